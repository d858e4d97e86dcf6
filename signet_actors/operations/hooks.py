"""The hooks of harnesses: what a session receives at its start and with each prompt, and what it stores.

A hook is answered with 200 even if its work fails; ``skipped`` says that nothing was done, ``reason`` why. Only a
missing required field is refused; other invalid values count as absent and are named in ``warnings``.

Source: docs/compatibility.md "Hooks and sessions"; docs/decisions.md 34; docs/guides/hooks.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.domain.normalization import sanitize_text
from signet_actors.domain.permissions import Permission
from signet_actors.domain.ranking.explanation import Explanation
from signet_actors.domain.text_cut import beginning_of, ends_of
from signet_actors.operations import field_types as types
from signet_actors.operations import request_fields as fields
from signet_actors.operations.operation import BY_AGENT, BY_ALL, MEMORY_READ, OWNERS_SESSION, Effect, Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.recall import RecallFields, RecallReply, RecallResult
from signet_actors.operations.remember import RememberChunksReply, RememberReply, RowKey

MAX_INJECT_CHARS: Final = 24_000
MAX_PROMPT_CHARS: Final = 40_000
MAX_SUMMARY_CHARS: Final = 100_000


@dataclass(frozen=True, kw_only=True)
class CutText(types.FieldType):
    """A text of any length, of which ``max_chars`` characters count; blank counts as absent.

    The first ones, or with ``both_ends`` as many from the beginning as from the end.
    """

    max_chars: int = types.MAX_QUERY_CHARS
    both_ends: bool = False

    def read(self, given: types.Given) -> Any:
        if not isinstance(given.value, str):
            raise given.invalid("must be a string")
        cut = ends_of if self.both_ends else beginning_of
        return sanitize_text(cut(given.value, self.max_chars)).strip() or types.ABSENT


@dataclass(frozen=True, kw_only=True)
class HookContent(types.FieldType):
    """A content of any length: one that is too long must be told from one that is missing."""

    def read(self, given: types.Given) -> Any:
        if not isinstance(given.value, str):
            raise given.invalid("must be a string")
        return sanitize_text(given.value)


Prompt = Annotated[str, CutText(max_chars=MAX_PROMPT_CHARS, both_ends=True)]
Message = Annotated[str, CutText()]
InjectLimit = Annotated[
    int | None,
    types.Clamped(low=200, high=MAX_INJECT_CHARS),
    Meta(description="The longest text that the harness takes, in characters"),
]


class HookFields(fields.CallerFields, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What every hook may send beside its harness. ``runtimePath`` is also the header x-signet-runtime-path."""

    project: fields.LongText | None = None
    transcript_path: fields.TranscriptPath | None = None
    runtime_path: Literal["plugin", "legacy"] | None = None


class SessionStartRequest(HookFields, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A session that begins, or goes on after a compaction."""

    harness: Annotated[str, types.Text(missing="harness is required")]
    source: Annotated[fields.SelectionText, Meta(description="startup, resume, clear or compact")] | None = None
    max_inject_chars: InjectLimit = None
    claim_only: Annotated[bool, Meta(description="Only claim the session for `runtimePath`")] = False
    deferred: Annotated[
        bool, Meta(description="Only note the start: its text comes with the next prompt that is sent `withStart`")
    ] = False
    context: Annotated[Message | None, fields.not_yet("is not used yet")] = None
    harness_agent_id: Annotated[fields.SelectionText | None, fields.not_yet("is not used yet")] = None
    parent_session_key: Annotated[fields.SelectionText | None, fields.not_yet("is not used yet")] = None


class UserPromptRequest(HookFields, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A prompt: ``harness`` and one of ``userMessage``, ``userPrompt`` and ``prompt``.

    A dry run `asOf` a prompt that was kept needs neither.
    """

    harness: Annotated[str, types.Text()] = ""
    user_message: Prompt | None = None
    user_prompt: Prompt | None = None
    prompt: Prompt | None = None
    last_assistant_message: Message | None = None
    max_inject_chars: InjectLimit = None
    with_start: Annotated[
        bool, Meta(description="`inject` begins with the text of the start, if the session has not received it")
    ] = False
    memory_feedback: Annotated[
        dict[str, float] | None,
        fields.Ratings(),
        Meta(description="A score from -1 to 1 for each memory id, as `feedback` of `/api/memory/feedback`"),
    ] = msgspec.field(default=None, name="memory_feedback")
    dry_run: Annotated[bool, Meta(description="Answer as always, and change nothing: nothing counts as given")] = False
    as_of: (
        Annotated[
            fields.SelectionText,
            Meta(
                description="Of a dry run, the `id` of a prompt that was kept: as if the session had received no more; "
                "its words are those of then, if none are sent"
            ),
        ]
        | None
    ) = None
    explain: Annotated[bool, Meta(description="Say of each memory that was found whether it is given, or why not")] = (
        False
    )
    explain_id: (
        Annotated[
            fields.SelectionText, Meta(description="A memory: say why it is given or not, wherever it was left out")
        ]
        | None
    ) = None


class HookRememberRequest(HookFields, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A memory to store; prefixes count as in ``/api/memory/remember``."""

    harness: Annotated[str, types.Text(missing="harness and content are required")]
    content: Annotated[str, HookContent(missing="harness and content are required")]
    type: Annotated[str, types.MemoryType()] | None = None
    who: str | None = None
    tags: Annotated[tuple[str, ...], types.Tags()] | None = None
    importance: fields.Importance | None = None
    idempotency_key: RowKey | None = None


class HookRecallRequest(RecallFields, frozen=True, kw_only=True, omit_defaults=True):
    """What to recall, with the filters of ``/api/memory/recall``; ``project`` is one of them."""

    harness: Annotated[str, types.Text(missing="harness and query are required")]
    query: Annotated[str, CutText(missing="harness and query are required")]
    runtime_path: Literal["plugin", "legacy"] | None = msgspec.field(default=None, name="runtimePath")


class PreCompactionRequest(HookFields, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A session whose context is about to be compacted."""

    harness: Annotated[str, types.Text(missing="harness is required")]
    session_context: Annotated[Message | None, Meta(description="Part of the checkpoint")] = None
    message_count: (
        Annotated[int, types.Clamped(low=0, high=1_000_000), Meta(description="Part of the checkpoint")] | None
    ) = None
    begins_epoch: Annotated[
        bool, Meta(description="No end of the compaction will be reported: the next context epoch begins now")
    ] = False


class CompactionCompleteRequest(HookFields, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The summary that replaces the context of a session."""

    harness: Annotated[str, types.Text(missing="harness and summary are required")]
    summary: Annotated[str, CutText(max_chars=MAX_SUMMARY_CHARS, missing="harness and summary are required")]
    captured_at: Annotated[
        Annotated[str, types.Timestamp(past=True)] | None, Meta(description="Of a late report: when the compaction was")
    ] = None
    idempotency_key: RowKey | None = None


class HookOutcome(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Why a hook did nothing, if it did nothing.

    ``reason``: no_hooks, bypassed, forgotten, other_project, claimed, disabled, review, busy, timeout, internal, or the
    error code of a request to the API.
    ``bypassed``: memory is switched off for the session, by this prompt or before; that is on disk.
    ``claimedBy``: the path that has the session. ``sessionKnown``: an earlier hook named the session.
    """

    skipped: Literal[True] | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    bypassed: Literal[True] | UnsetType = UNSET
    duplicate_runtime_path: Literal[True] | UnsetType = UNSET
    claimed_by: str | UnsetType = UNSET
    session_known: bool | UnsetType = UNSET


class HookIdentity(msgspec.Struct, frozen=True):
    """The identity of the workspace's agent."""

    name: str = "Agent"
    description: str | UnsetType = UNSET


class StartMemory(msgspec.Struct, frozen=True):
    """A memory that the text shows."""

    id: str
    content: str
    type: str
    importance: float
    created_at: str


class Notification(msgspec.Struct, frozen=True):
    """One notification; the same message always has the same id."""

    id: str
    message: str
    type: Literal["memory_unavailable"] = "memory_unavailable"


class Notifications(msgspec.Struct, frozen=True, rename="camel"):
    """Everything that is to be told now."""

    items: list[Notification] = []
    unread_count: int = 0


class SessionStartReply(HookOutcome, frozen=True, kw_only=True, rename="camel"):
    """``inject`` is the text for the agent's context, empty if there is nothing to say.

    ``recentContext``: what the agent is given of ``MEMORY.md``, which ``inject`` contains as far as it fits.
    ``stableSystemPrompt`` and ``dynamicContext`` are the same text in two parts: the agent's files, which change only
    when a person edits them, and the rest. ``contextHash``: of the stable part, by which a change is noticed.
    ``notifications``: what is wrong with memory now.
    """

    inject: str = ""
    memories: list[StartMemory] = []
    identity: HookIdentity | UnsetType = UNSET
    recent_context: str | UnsetType = UNSET
    stable_system_prompt: str | UnsetType = UNSET
    dynamic_context: str | UnsetType = UNSET
    context_hash: str | UnsetType = UNSET
    notifications: Notifications | UnsetType = UNSET


class GivenEarlier(msgspec.Struct, frozen=True, kw_only=True):
    """Where the session was given a memory last: its ``start``, or the ``prompt`` of this number, or a search."""

    kind: str
    number: int | UnsetType = UNSET


class SearchMemory(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A memory of a search. ``outcome``, in words ``why``: whether it was ``given``, or why it was left out.

    ``version``: since which it had the words that it had then; ``changed``: it has others now. ``content``: the
    beginning of what it says now, null if it is ``forgotten``; ``content_then``: that of what it said then, if it was
    edited since and its former words are kept.
    In a conversation, ``seems_used`` guesses whether the answer has used what was given, and ``earlier`` tells where
    the session had got what it already had.
    """

    id: str
    version: int
    relevance: float | None
    given: bool
    outcome: str
    why: str
    type: str
    content: str | None
    content_then: str | None = None
    changed: bool = False
    forgotten: bool = False
    seems_used: bool | UnsetType = UNSET
    earlier: GivenEarlier | UnsetType = UNSET


class MemoryFate(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What becomes of one memory at a prompt: ``outcome``, in words ``why``.

    ``filters`` exclude it; its ``value`` is below the ``threshold``. ``explanation``: as of a recall.
    With `asOf`, ``then`` says what became of it at that time, and ``earlier`` where the session had been given it.
    ``as_then``: the same became of it, with the same words and relevance, so the explanation is also that of then.
    """

    id: str
    given: bool
    outcome: str
    why: str
    relevance: float | None = None
    filters: list[str] = []
    value: float | None = None
    threshold: float | None = None
    explanation: Explanation | None = None
    then: str | UnsetType = UNSET
    earlier: GivenEarlier | UnsetType = UNSET
    as_then: bool | UnsetType = UNSET


class UserPromptReply(HookOutcome, frozen=True, kw_only=True, rename="camel"):
    """``inject`` is the text for the agent's context, empty if no memory is relevant enough.

    ``dynamicContext`` is the same text: a prompt changes nothing of the stable part. ``considered``: with `explain`.
    ``explained``: with `explainId`.
    """

    inject: str = ""
    dynamic_context: str | UnsetType = UNSET
    memory_count: int = 0
    query_terms: list[str] | UnsetType = UNSET
    engine: str | UnsetType = UNSET
    dry_run: Literal[True] | UnsetType = UNSET
    considered: list[SearchMemory] | UnsetType = UNSET
    explained: MemoryFate | UnsetType = UNSET


class HookRememberReply(RememberReply, frozen=True, kw_only=True):
    """The memory is on disk."""

    saved: bool = True


class HookRememberChunksReply(RememberChunksReply, frozen=True, kw_only=True):
    """An oversized content is on disk as chunks; ``id`` is that of their group."""

    id: str
    saved: bool = True


class HookRememberSkipped(HookOutcome, frozen=True, kw_only=True, rename="camel"):
    """Nothing is known to be stored."""

    saved: bool = False
    success: bool | UnsetType = UNSET
    memories: list[StartMemory] | UnsetType = UNSET


class HookRecallReply(RecallReply, frozen=True, kw_only=True):
    """The results of a recall, also as ``memories``."""

    memories: list[RecallResult]
    count: int
    message: str | UnsetType = UNSET


class HookRecallSkipped(HookOutcome, frozen=True, kw_only=True, rename="camel"):
    """No results."""

    results: list[RecallResult] = []
    memories: list[RecallResult] = []
    count: int = 0
    query: str = ""


class PreCompactionReply(HookOutcome, frozen=True, kw_only=True, rename="camel"):
    """What to tell the model before the compaction; ``instructions`` is another name of ``guidelines``.

    ``checkpointId``: the session's checkpoint, if it is on disk.
    """

    summary_prompt: str = ""
    guidelines: str = ""
    instructions: str = ""
    checkpoint_id: str | UnsetType = UNSET


class CompactionCompleteReply(HookOutcome, frozen=True, kw_only=True, rename="camel"):
    """The summary is stored as ``memoryId``, and the session may receive all memories again."""

    success: bool
    memory_id: str | None = None
    context_epoch: int | UnsetType = UNSET


_REFUSALS: Final = {400: Problem, **PROBLEMS}

SESSION_START: Final[Operation[SessionStartRequest, SessionStartReply]] = Operation(
    name="hooks.session_start",
    summary="Start of a session",
    tag="Hooks",
    method="POST",
    paths=("/api/hooks/session-start",),
    request=SessionStartRequest,
    example={"harness": "claude-code", "project": "/home/you/shop", "sessionKey": "s-1"},
    replies={200: SessionStartReply, **_REFUSALS},
    permission=Permission.REMEMBER,
    scoped_by=BY_ALL,
    served_by="searcher",
    keeps_names=True,
    owner_parts=f"the files of the agent, MEMORY.md, the checkpoint, what other sessions did, and {OWNERS_SESSION}",
    lenient=True,
)
USER_PROMPT: Final[Operation[UserPromptRequest, UserPromptReply]] = Operation(
    name="hooks.user_prompt_submit",
    summary="Memories for a prompt",
    tag="Hooks",
    method="POST",
    paths=("/api/hooks/user-prompt-submit",),
    request=UserPromptRequest,
    example={"harness": "claude-code", "userPrompt": "which port has the staging database?", "sessionKey": "s-1"},
    replies={200: UserPromptReply, 403: Problem, 404: Problem, **_REFUSALS},
    **MEMORY_READ,
    owner_parts=OWNERS_SESSION,
    lenient=True,
)
HOOK_REMEMBER: Final[
    Operation[HookRememberRequest, HookRememberReply | HookRememberChunksReply | HookRememberSkipped]
] = Operation(
    name="hooks.remember",
    summary="Remember by a hook",
    tag="Hooks",
    method="POST",
    paths=("/api/hooks/remember",),
    request=HookRememberRequest,
    example={"harness": "codex", "content": "The release branch is cut on Mondays", "sessionKey": "s-1"},
    replies={200: HookRememberReply | HookRememberChunksReply | HookRememberSkipped, **_REFUSALS},
    permission=Permission.REMEMBER,
    scoped_by=BY_ALL,
    served_by="writer",
    effect=Effect.MAYBE_MEMORIES,
    owner_parts=OWNERS_SESSION,
    lenient=True,
)
HOOK_RECALL: Final[Operation[HookRecallRequest, HookRecallReply | HookRecallSkipped]] = Operation(
    name="hooks.recall",
    summary="Recall by a hook",
    tag="Hooks",
    method="POST",
    paths=("/api/hooks/recall",),
    request=HookRecallRequest,
    example={"harness": "codex", "query": "when is the release branch cut?", "limit": 5},
    replies={200: HookRecallReply | HookRecallSkipped, **_REFUSALS},
    **MEMORY_READ,
    owner_parts=f"turns of sessions, and {OWNERS_SESSION}",
    lenient=True,
)
PRE_COMPACTION: Final[Operation[PreCompactionRequest, PreCompactionReply]] = Operation(
    name="hooks.pre_compaction",
    summary="What to say before a compaction",
    tag="Hooks",
    method="POST",
    paths=("/api/hooks/pre-compaction",),
    request=PreCompactionRequest,
    example={"harness": "claude-code", "sessionKey": "s-1"},
    replies={200: PreCompactionReply, **_REFUSALS},
    permission=Permission.REMEMBER,
    scoped_by=BY_AGENT,
    keeps_names=True,
    owner_parts=OWNERS_SESSION,
    lenient=True,
)
COMPACTION_COMPLETE: Final[Operation[CompactionCompleteRequest, CompactionCompleteReply]] = Operation(
    name="hooks.compaction_complete",
    summary="Store the summary of a compaction",
    tag="Hooks",
    method="POST",
    paths=("/api/hooks/compaction-complete",),
    request=CompactionCompleteRequest,
    example={"harness": "claude-code", "summary": "The login form was moved to the new router.", "sessionKey": "s-1"},
    replies={200: CompactionCompleteReply, **_REFUSALS},
    permission=Permission.REMEMBER,
    scoped_by=BY_AGENT,
    served_by="writer",
    effect=Effect.MAYBE_MEMORIES,
    owner_parts=OWNERS_SESSION,
    lenient=True,
    description="With the header `x-signet-late: 1` only the summary is stored; no context epoch begins.",
)
OPERATIONS: Final = (
    SESSION_START,
    USER_PROMPT,
    HOOK_REMEMBER,
    HOOK_RECALL,
    PRE_COMPACTION,
    COMPACTION_COMPLETE,
)
