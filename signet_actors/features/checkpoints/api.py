"""Checkpoints of sessions: list those of a project or of a session, and make one.

Source: architecture.txt "HTTP API"; memory-pipeline.txt "Session Checkpoints"; docs/compatibility.md "Hooks and
sessions".
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.operations.field_types import Clamped, SecretRule, Text
from signet_actors.operations.hooks import HookOutcome
from signet_actors.operations.operation import EXAMPLE_SESSION, SESSION_READ, SESSION_WRITE, Operation
from signet_actors.operations.problem import CHANGE_PROBLEMS, PROBLEMS, Problem
from signet_actors.operations.request_fields import CallerFields, LongText
from signet_actors.operations.transcripts import OwnAgent, SessionEndRequest
from signet_actors.protocol.message import Answered, Request

CONTEXT_CHARS: Final = 1000
MAX_LISTED: Final = 500
Listed = Annotated[int, Clamped(low=1, high=MAX_LISTED), Meta(description="Checkpoints to return, the newest first")]


class ProjectCheckpointsRequest(OwnAgent, frozen=True, kw_only=True, omit_defaults=True):
    """Of which project."""

    project: Annotated[
        str,
        Text(secret=SecretRule.KEEP, max_chars=4096, missing="project query parameter required"),
        Meta(description="The path of the project"),
    ]
    limit: Listed = 50


class SessionCheckpointsRequest(OwnAgent, frozen=True, kw_only=True, omit_defaults=True):
    """How many checkpoints of the session."""

    limit: Listed = 50


class Checkpoint(msgspec.Struct, frozen=True):
    """A checkpoint. ``trigger``: periodic, pre_compaction, session_end, agent or explicit.

    ``prompt_count``: prompts since the previous checkpoint. ``memory_queries`` and ``recent_remembers`` are arrays as
    JSON text; the second one has the ids of memories that the session stored.
    """

    id: str
    session_key: str
    agent_id: str
    harness: str | None
    project: str | None
    project_normalized: str | None
    trigger: str
    digest: str
    prompt_count: int
    memory_queries: str
    recent_remembers: str
    created_at: str


class CheckpointsReply(msgspec.Struct, frozen=True):
    """Checkpoints that the caller may read, the newest first."""

    checkpoints: list[Checkpoint]
    count: int


class MakeCheckpointRequest(CallerFields, frozen=True, kw_only=True, omit_defaults=True):
    """The session, with what is to be noted about it."""

    harness: Annotated[str, Text(), Meta(description="The program that runs the agent")] | None = None
    project: LongText | None = None
    context: (
        Annotated[
            str,
            Text(max_chars=4096),
            Meta(description=f"What to note, of which {CONTEXT_CHARS} characters are kept"),
        ]
        | None
    ) = None


class MakeCheckpointReply(msgspec.Struct, frozen=True):
    """The checkpoint is on disk, or ``reason`` says why there is none: disabled, bypassed, or forgotten."""

    stored: bool
    id: str | UnsetType = UNSET
    skipped: Literal[True] | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET


class KeepCheckpointReply(HookOutcome, frozen=True, kw_only=True, rename="camel"):
    """What was stored, on disk, of a session that goes on. ``queued``: the job ``jobId`` will summarize it.

    ``newTurns``: the stored rows that the transcript added. ``checkpointId``: the checkpoint, if they are long enough
    for one. With the reason timeout the work goes on, and the turns are stored later or with the next report.
    """

    queued: bool = False
    job_id: str | UnsetType = UNSET
    stored: bool = False
    session_key: str | UnsetType = UNSET
    format: str | UnsetType = UNSET
    turns: int | UnsetType = UNSET
    new_turns: int | UnsetType = UNSET
    checkpoint_id: str | UnsetType = UNSET
    redacted: Literal[True] | UnsetType = UNSET
    redactions: list[str] | UnsetType = UNSET


class StoredCheckpoint(Checkpoint, frozen=True):
    """The row of a checkpoint; ``ended`` is 0 or 1. ``focal_*``: what it was about, arrays as JSON text or None."""

    ended: int
    focal_entity_ids: str | None = None
    focal_entity_names: str | None = None


class RecordCheckpoint(Request[Answered], frozen=True, tag="checkpoints.record"):
    """Store a checkpoint of the session, and delete its oldest ones beyond the configured number. Safe to repeat.

    A later checkpoint with the same ``id`` replaces it. The writer sets ``created_at`` and ``ended`` of the row.
    ``ended``: the session reported its end, at ``ended_at`` if that is known. Without a ``checkpoint`` only that is
    stored. An end has one checkpoint: what else happened by the time it is reported again is a periodic one.
    """

    session_key: str
    agent_id: str
    checkpoint: StoredCheckpoint | None = None
    ended: bool = False
    ended_at: str | None = None


class CheckpointRecorded(msgspec.Struct, frozen=True):
    """It is on disk; ``stored`` is false if the transcript of the session was forgotten, and nothing is stored.

    ``same_end``: the checkpoint that was made when the same end of the session was reported before.
    """

    stored: bool
    same_end: str | None = None


class FindRecovery(Request[Answered], frozen=True, tag="checkpoints.find_recovery"):
    """Find the agent's newest checkpoint of the session and the end of its transcript if it goes on (``same_session``).

    Else what is stored of the session of the project that was active last, of those that tell anything. ``since``:
    sessions that were not active since then do not count.
    """

    agent_id: str
    session_key: str | None = None
    same_session: bool = False
    project: str | None = None
    since: str = ""


class LastTurns(msgspec.Struct, frozen=True):
    """The end of a transcript: role and text of the last turns, the oldest first, long ones without their middle.

    ``created_at``: when the session was active last. ``ended``: it reported its end.
    """

    session_key: str
    harness: str | None
    created_at: str
    turns: list[tuple[str, str]]
    ended: int = 0


class RecoveryFound(msgspec.Struct, frozen=True):
    """The last checkpoint and the end of the transcript of the session that is gone on with; None for what is missing.

    ``summary``: the id of the memory that says what was done in it, instead of both.
    """

    checkpoint: StoredCheckpoint | None = None
    transcript: LastTurns | None = None
    summary: str | None = None


LIST: Final[Operation[ProjectCheckpointsRequest, CheckpointsReply]] = Operation(
    name="checkpoints.list",
    summary="Session checkpoints of a project",
    tag="Sessions",
    paths=("/api/checkpoints", "/api/sessions/checkpoints"),
    request=ProjectCheckpointsRequest,
    example={"project": "/home/you/shop", "limit": 1},
    replies={200: CheckpointsReply, 400: Problem, 403: Problem, **PROBLEMS},
    **SESSION_READ,
)
LIST_SESSION: Final[Operation[SessionCheckpointsRequest, CheckpointsReply]] = Operation(
    name="checkpoints.of_session",
    summary="Checkpoints of a session",
    tag="Sessions",
    paths=("/api/checkpoints/{key}",),
    request=SessionCheckpointsRequest,
    example={"key": EXAMPLE_SESSION},
    replies={200: CheckpointsReply, 403: Problem, **PROBLEMS},
    **SESSION_READ,
)
MAKE: Final[Operation[MakeCheckpointRequest, MakeCheckpointReply]] = Operation(
    name="checkpoints.make",
    while_off=True,
    summary="Make a checkpoint of a session",
    tag="Sessions",
    method="POST",
    paths=("/api/checkpoints",),
    request=MakeCheckpointRequest,
    example={
        "sessionKey": EXAMPLE_SESSION,
        "harness": "generic",
        "context": "The login form is half moved to the new router.",
    },
    replies={200: MakeCheckpointReply, 403: Problem, **CHANGE_PROBLEMS},
    **SESSION_WRITE,
    served_by="writer",
    description="`sessionKey` is required. The checkpoint has the trigger `explicit`.",
)
KEEP: Final[Operation[SessionEndRequest, KeepCheckpointReply]] = Operation(
    name="hooks.session_checkpoint_extract",
    summary="Keep the transcript of a session that goes on",
    tag="Hooks",
    method="POST",
    paths=("/api/hooks/session-checkpoint-extract",),
    request=SessionEndRequest,
    example={
        "harness": "generic",
        "sessionKey": EXAMPLE_SESSION,
        "transcript": "User: On which port does the staging database listen?\nAssistant: On port 5433.",
    },
    replies={200: KeepCheckpointReply, 403: Problem, **CHANGE_PROBLEMS},
    **SESSION_WRITE,
    served_by="writer",
    lenient=True,
    description=(
        "Stores what is not stored yet of the transcript, with a checkpoint, and does not end the session. A job"
        " summarizes the turns that none has seen, if they have 500 characters; not with the reason `turn`, for"
        " programs that report the end of each turn. `sessionKey` is required."
    ),
)
OPERATIONS: Final = (LIST, LIST_SESSION, MAKE, KEEP)
