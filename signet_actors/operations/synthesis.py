"""``MEMORY.md`` made from memories: by a harness, which is given the prompt, or by the daemon's own model.

Source: architecture.txt "HTTP API Reference" (``/api/hooks/synthesis/*``); docs/compatibility.md "MEMORY.md".
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import Content, Flag, SecretRule, Text
from signet_actors.operations.hooks import HookOutcome, StartMemory
from signet_actors.operations.operation import BY_AGENT, SESSION_READ, SESSION_WRITE, Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import CallerFields

MAX_CONTENT_CHARS: Final = 200_000
_NAME: Final = Text(max_chars=200)


class SynthesisAgent(CallerFields, frozen=True, kw_only=True, omit_defaults=True):
    """Whose file."""


class RequestSynthesisRequest(CallerFields, frozen=True, kw_only=True, omit_defaults=True):
    """Why the file is to be made."""

    trigger: Annotated[str, _NAME, Meta(description="scheduled or manual; it has no effect")] | None = None


class CompleteSynthesisRequest(CallerFields, frozen=True, kw_only=True, omit_defaults=True):
    """The text that a model made of the prompt."""

    content: Annotated[
        str, Content(missing="content is required"), Meta(description="The Markdown that the model returned")
    ]
    harness: Annotated[str, _NAME, Meta(description="Who made it")] | None = None


class TriggerRequest(CallerFields, frozen=True, kw_only=True, omit_defaults=True):
    """Which parts to make."""

    again: Annotated[
        bool, Flag(), Meta(description="true: also the parts whose memories are the same as last time")
    ] = False


class TriggerReply(msgspec.Struct, frozen=True, rename="camel"):
    """The daemon has begun to make the file; the status says how that ends."""

    success: bool
    running: bool
    agent_id: str
    warnings: list[str] | UnsetType = UNSET


class VersionRequest(CallerFields, frozen=True, kw_only=True, omit_defaults=True):
    """What to compare the file with."""

    version: (
        Annotated[
            str,
            Text(max_chars=200, secret=SecretRule.KEEP),
            Meta(description="The name of a former version; the newest one if none is given"),
        ]
        | None
    ) = None


class SynthesisSettings(msgspec.Struct, frozen=True):
    """The settings in effect.

    ``harness`` makes the file; ``model`` is what it is told to use. ``enabled``: the hook is served. ``schedule``:
    daily, weekly or on-demand.
    """

    enabled: bool
    harness: str
    model: str
    schedule: str
    max_tokens: int
    provider: str


class SynthesisPrompt(HookOutcome, frozen=True, kw_only=True, rename="camel"):
    """What to give to a model. ``fileCount``: the parts of the file, one for each project and one for all others."""

    harness: str
    model: str
    prompt: str = ""
    memories: list[StartMemory] = []
    file_count: int = 0


class SynthesisCompleted(HookOutcome, frozen=True, kw_only=True, rename="camel"):
    """The file is on disk. ``edited``: a person had changed it, and ``version`` is what it was before."""

    success: bool
    written: bool = False
    edited: bool = False
    version: str | UnsetType = UNSET
    redacted: Literal[True] | UnsetType = UNSET
    redactions: list[str] | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET


class FileVersion(msgspec.Struct, frozen=True, rename="camel"):
    """A former version in the workspace; ``edited``: a person had changed it."""

    name: str
    kept_at: str
    bytes: int
    edited: bool


class SynthesisStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The file of an agent, and the work that makes it. Times are ISO text.

    ``madeBy``: daemon, or the harness that made the present text. ``edited``: a person has changed the file since.
    ``lastError`` is that of the last attempt; null if it succeeded. ``nextRunAt``: when the daemon makes it next if
    memories have changed; null if only on request, or if it is due and waits. ``waiting`` says why the daemon cannot
    make it now; null if it can. ``running``: it is being made now.
    """

    running: bool
    last_run_at: str | None
    config: SynthesisSettings
    agent_id: str
    path: str
    chars: int
    made_by: str | None
    model: str | None
    edited: bool
    edited_at: str | None
    last_attempt_at: str | None
    last_error: str | None
    failures: int
    next_run_at: str | None
    waiting: str | None
    versions: list[FileVersion]


class SynthesisDiff(msgspec.Struct, frozen=True, rename="camel"):
    """A unified diff from a former version to the present file, empty if they are equal; null without a version."""

    version: str | None
    diff: str | None


CONFIG: Final[Operation[SynthesisAgent, SynthesisSettings]] = Operation(
    name="hooks.synthesis_config",
    summary="Who makes MEMORY.md, and how often",
    tag="Hooks",
    paths=("/api/hooks/synthesis/config",),
    request=SynthesisAgent,
    replies={200: SynthesisSettings, **PROBLEMS},
    permission=Permission.RECALL,
    scoped_by=BY_AGENT,
)
REQUEST: Final[Operation[RequestSynthesisRequest, SynthesisPrompt]] = Operation(
    name="hooks.synthesis",
    summary="The prompt for MEMORY.md",
    tag="Hooks",
    method="POST",
    paths=("/api/hooks/synthesis",),
    request=RequestSynthesisRequest,
    example={"trigger": "manual"},
    replies={200: SynthesisPrompt, 403: Problem, **PROBLEMS},
    **SESSION_READ,
    body_required=False,
    lenient=True,
)
COMPLETE: Final[Operation[CompleteSynthesisRequest, SynthesisCompleted]] = Operation(
    name="hooks.synthesis_complete",
    summary="Write MEMORY.md",
    tag="Hooks",
    method="POST",
    paths=("/api/hooks/synthesis/complete",),
    request=CompleteSynthesisRequest,
    example={"content": "## Open Threads\n- The login form is half moved to the new router."},
    replies={200: SynthesisCompleted, 403: Problem, 409: Problem, 413: Problem, 504: Problem, 507: Problem, **PROBLEMS},
    **SESSION_WRITE,
    lenient=True,
    description="What a person wrote into the file stays; the former file is kept as a version.",
)
STATUS: Final[Operation[SynthesisAgent, SynthesisStatus]] = Operation(
    name="synthesis.status",
    summary="MEMORY.md: when it was made, and its versions",
    tag="Pipeline",
    paths=("/api/synthesis/status",),
    request=SynthesisAgent,
    replies={200: SynthesisStatus, 403: Problem, 409: Problem, **PROBLEMS},
    permission=Permission.RECALL,
    scoped_by=BY_AGENT,
    owner_only=True,
)
TRIGGER: Final[Operation[TriggerRequest, TriggerReply]] = Operation(
    name="synthesis.trigger",
    summary="Have the daemon make MEMORY.md now",
    tag="Pipeline",
    method="POST",
    paths=("/api/synthesis/trigger",),
    request=TriggerRequest,
    example={"again": True},
    replies={200: TriggerReply, 403: Problem, 409: Problem, **PROBLEMS},
    **SESSION_WRITE,
    served_by="extractor",
    body_required=False,
    description="503 if no model can be asked now. Parts whose memories are the same as last time are not made anew.",
)
DIFF: Final[Operation[VersionRequest, SynthesisDiff]] = Operation(
    name="synthesis.diff",
    summary="What changed in MEMORY.md",
    tag="Pipeline",
    paths=("/api/synthesis/diff",),
    request=VersionRequest,
    replies={200: SynthesisDiff, 403: Problem, 404: Problem, 409: Problem, **PROBLEMS},
    permission=Permission.RECALL,
    scoped_by=BY_AGENT,
    owner_only=True,
)
OPERATIONS: Final = (CONFIG, REQUEST, COMPLETE, STATUS, TRIGGER, DIFF)
