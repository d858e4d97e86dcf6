"""Transcripts of sessions: capture at the end of a session, read, search, forget.

Source: docs/compatibility.md "Hooks and sessions"; docs/decisions.md 26, 30, 34, 35, 37.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.domain.normalization import sanitize_text
from signet_actors.domain.permissions import Permission
from signet_actors.domain.session_keys import canonical_session_key
from signet_actors.operations import field_types as types
from signet_actors.operations import operation
from signet_actors.operations.problem import CHANGE_PROBLEMS, PROBLEMS, Problem
from signet_actors.operations.recall import QueryText
from signet_actors.operations.request_fields import LongText, Offset, TranscriptPath

MAX_CURSOR: Final = 2**62


@dataclass(frozen=True, kw_only=True)
class TranscriptText(types.FieldType):
    """A whole transcript as text or as JSON, limited only by the size of the body. The gateway redacts it."""

    @property
    def schema(self) -> Mapping[str, Any]:
        return {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}, {"type": "object"}]}

    def read(self, given: types.Given) -> Any:
        value = given.value
        messages = value if isinstance(value, list) else [value]
        if all(isinstance(message, dict) and message for message in messages):
            value = msgspec.json.encode(value).decode()
        if not isinstance(value, str):
            raise given.invalid("must be a string, or messages as JSON")
        return value if value.strip() else types.ABSENT


@dataclass(frozen=True, kw_only=True)
class SessionKey(types.FieldType):
    """The key of a session, without the prefix ``session:``; blank counts as absent."""

    secret: types.SecretRule = types.SecretRule.DIGEST

    @property
    def schema(self) -> Mapping[str, Any]:
        return _NAME.schema

    def read(self, given: types.Given) -> Any:
        key = _NAME.read(given)
        return types.ABSENT if key is types.ABSENT else session_key(key) or types.ABSENT


_NAME: Final = types.Text(secret=types.SecretRule.KEEP)
Session = Annotated[str, SessionKey()]


def session_key(text: str) -> str:
    """Return the key as sessions are stored under it."""
    return canonical_session_key(sanitize_text(text)) or ""


class OwnAgent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The agent of a request about its sessions. The gateway settles it (``Call``)."""

    agent_id: Annotated[
        str | None,
        types.CallerField(),
        Meta(description="The agent on whose behalf the caller acts; also the header x-signet-agent-id"),
    ] = msgspec.field(default=None, name="agentId")


class SessionEndRequest(OwnAgent, frozen=True, kw_only=True, omit_defaults=True):
    """A session that ended, or reached a point at which its transcript is to be kept."""

    harness: Annotated[str, types.Text(), Meta(description="The program that runs the agent, such as claude-code")]
    transcript: Annotated[str, TranscriptText(), Meta(description="The transcript itself")] | None = None
    transcript_path: TranscriptPath | None = msgspec.field(default=None, name="transcriptPath")
    session_key: (
        Annotated[Session, Meta(description="The session; also sessionId, or what the transcript names")] | None
    ) = msgspec.field(default=None, name="sessionKey")
    session_id: Annotated[Session, Meta(description="The session, if there is no sessionKey")] | None = msgspec.field(
        default=None, name="sessionId"
    )
    project: LongText | None = None
    cwd: Annotated[LongText, Meta(description="The directory of the session, if there is no project")] | None = None
    reason: (
        Annotated[str, types.Text(secret=types.SecretRule.KEEP), Meta(description="Why the session ended")] | None
    ) = None
    runtime_path: Literal["plugin", "legacy"] | None = msgspec.field(default=None, name="runtimePath")
    captured_at: (
        Annotated[str, types.Timestamp(past=True), Meta(description="ISO time of the capture; default: now")] | None
    ) = msgspec.field(default=None, name="capturedAt")
    idempotency_key: (
        Annotated[
            str,
            types.Text(secret=types.SecretRule.DIGEST),
            Meta(description="Recognises a retry of a capture that names no session"),
        ]
        | None
    ) = msgspec.field(default=None, name="idempotencyKey")


class SessionEndReply(msgspec.Struct, frozen=True, rename="camel"):
    """What was stored, on disk. ``memories_saved`` is always 0; ``queued``: the job ``jobId`` will summarize it.

    ``turns`` counts the turns of this capture, ``new_turns`` the stored rows that it added. ``checkpoint_id``: the
    session's checkpoint, if it is on disk. ``skipped`` with ``reason``: nothing was stored, and a retry would not
    change that. ``reason`` alone: the transcript has nothing to store. The session has ended in both cases.
    """

    memories_saved: int = 0
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
    skipped: Literal[True] | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    bypassed: Literal[True] | UnsetType = UNSET
    duplicate_runtime_path: Literal[True] | UnsetType = UNSET
    claimed_by: str | UnsetType = UNSET
    duplicate_session_end: Literal[True] | UnsetType = UNSET
    ended_by: str | UnsetType = UNSET


class GetTranscriptRequest(OwnAgent, frozen=True, kw_only=True):
    """Which part of the transcript to read, and how."""

    view: Annotated[
        Literal["text", "turns"], Meta(description="text: the conversation; turns: also each turn with its time")
    ] = "text"
    after: Annotated[int, types.Cursor(high=MAX_CURSOR), Meta(description="nextCursor of the previous part")] = 0


class TurnBody(msgspec.Struct, frozen=True, rename="camel"):
    """One turn; ``at`` is null if the transcript does not tell the time. ``copyOf``: the session that had it before."""

    role: str
    content: str
    at: str | None
    copy_of: str | msgspec.UnsetType = msgspec.UNSET


class TranscriptReply(msgspec.Struct, frozen=True, rename="camel"):
    """The conversation as text. ``next_cursor``: the transcript goes on; it is the ``after`` of the next request."""

    session_key: str
    agent_id: str
    content: str
    harness: str | None
    project: str | None
    format: str
    turn_count: int
    created_at: str
    updated_at: str
    next_cursor: int | UnsetType = UNSET
    turns: list[TurnBody] | UnsetType = UNSET


class ListPastRequest(OwnAgent, frozen=True, kw_only=True):
    """Which past sessions to list."""

    project: (
        Annotated[
            str,
            types.Text(secret=types.SecretRule.KEEP, max_chars=4096),
            Meta(description="Only of this directory, or of those with this last part"),
        ]
        | None
    ) = None
    prefix: Annotated[
        str, types.Text(secret=types.SecretRule.KEEP), Meta(description="Only those whose keys begin with this text")
    ] = ""
    limit: Annotated[int, types.Clamped(low=1, high=200), Meta(description="Sessions to return")] = 20
    offset: Offset = 0


class PastSessionBody(msgspec.Struct, frozen=True, rename="camel"):
    """A session. ``prompt``: the beginning of its first prompt; ``summary``: that of its summary, null without one.

    ``started_at`` and ``updated_at``: when its first and its last turn was said, or else stored.
    """

    session_key: str
    agent_id: str
    harness: str | None
    project: str | None
    started_at: str
    updated_at: str
    turns: int
    prompt: str | None
    summary: str | None


class PastSessionsReply(msgspec.Struct, frozen=True):
    """A page of sessions, the latest conversation first; ``total`` counts all that match."""

    sessions: list[PastSessionBody]
    total: int


class SearchSessionsRequest(OwnAgent, frozen=True, kw_only=True):
    """What to search for in the turns of sessions."""

    query: QueryText
    session_key: Annotated[Session, Meta(description="Only this session")] | None = msgspec.field(
        default=None, name="sessionKey"
    )
    current_session_key: Annotated[Session, Meta(description="Not this session, which the caller knows")] | None = (
        msgspec.field(default=None, name="currentSessionKey")
    )
    project: (
        Annotated[str, types.Text(secret=types.SecretRule.KEEP), Meta(description="Only sessions of this project")]
        | None
    ) = None
    limit: Annotated[int, types.Clamped(low=1, high=20), Meta(description="Sessions to return")] = 10


class SessionHit(msgspec.Struct, frozen=True, rename="camel"):
    """A session with the part of its best turn that matches; ``rank`` counts from 1, the best match.

    ``copyOf``: the session that had this turn before, if the search is in this session alone.
    """

    session_key: str
    project: str | None
    updated_at: str
    excerpt: str
    rank: int
    agent_id: str
    harness: str | None
    role: str
    at: str | None
    copy_of: str | msgspec.UnsetType = msgspec.UNSET


class SearchSessionsReply(msgspec.Struct, frozen=True):
    """Sessions that match any word of the query, best first."""

    query: str
    hits: list[SessionHit]
    count: int


class ForgetTranscriptRequest(OwnAgent, frozen=True, kw_only=True, omit_defaults=True):
    """Whose transcript to forget."""


class ForgetTranscriptReply(msgspec.Struct, frozen=True, rename="camel"):
    """The transcript is erased; later captures of the session store nothing. ``turns``: rows that were erased."""

    session_key: str
    turns: int
    success: Literal[True] = True
    said_by: (
        Annotated[list[str], Meta(description="Ids of the memories that summarize the session; they stay")] | UnsetType
    ) = UNSET


SESSION_END: Final[operation.Operation[SessionEndRequest, SessionEndReply]] = operation.Operation(
    name="hooks.session_end",
    summary="Keep the transcript of a session",
    tag="Hooks",
    method="POST",
    paths=("/api/hooks/session-end",),
    request=SessionEndRequest,
    example={
        "harness": "generic",
        "sessionKey": operation.EXAMPLE_SESSION,
        "transcript": "User: On which port does the staging database listen?\nAssistant: On port 5433.",
    },
    replies={200: SessionEndReply, 403: Problem, **CHANGE_PROBLEMS},
    **operation.SESSION_WRITE,
    served_by="writer",
    lenient=True,
    description=(
        "Stores what is not stored yet of the session, so it may be called more than once. A transcript that"
        " cannot be read is a 200 with `skipped` and `reason`."
    ),
)
GET_TRANSCRIPT: Final[operation.Operation[GetTranscriptRequest, TranscriptReply]] = operation.Operation(
    name="sessions.transcript",
    summary="Read the transcript of a session",
    tag="Sessions",
    paths=("/api/sessions/{key}/transcript",),
    request=GetTranscriptRequest,
    example={"key": operation.EXAMPLE_SESSION, "view": "turns"},
    replies={200: TranscriptReply, 403: Problem, 404: Problem, **PROBLEMS},
    **operation.SESSION_READ,
)
SEARCH_SESSIONS: Final[operation.Operation[SearchSessionsRequest, SearchSessionsReply]] = operation.Operation(
    name="sessions.search",
    while_off=True,
    summary="Search the transcripts of sessions",
    tag="Sessions",
    method="POST",
    paths=("/api/sessions/search",),
    request=SearchSessionsRequest,
    example={"query": "port of the staging database", "limit": 5},
    replies={200: SearchSessionsReply, 403: Problem, **PROBLEMS},
    **operation.SESSION_READ,
    tool=operation.Tool(
        name="session_search",
        title="Search earlier sessions",
        description="Search what was said in earlier sessions, by words. Returns the best sessions, each with an "
        "excerpt. For what was kept as a fact, use memory_search instead.",
        fields={
            "query": "Words that the session contains",
            "limit": "",
            "project": "Only sessions of this project",
            "session_key": "Only this session",
            "current_session_key": "Not this session, such as your own",
        },
        shown={"hits": ("sessionKey", "project", "harness", "updatedAt", "excerpt", "role", "at")},
    ),
)
LIST_PAST: Final[operation.Operation[ListPastRequest, PastSessionsReply]] = operation.Operation(
    name="sessions.list_past",
    summary="List past sessions",
    tag="Sessions",
    paths=("/api/sessions/past",),
    request=ListPastRequest,
    example={"limit": 5},
    replies={200: PastSessionsReply, 403: Problem, **PROBLEMS},
    **operation.SESSION_READ,
    description="Those whose transcripts are kept, with their first prompts; `signet sessions` prints them.",
)
FORGET_TRANSCRIPT: Final[operation.Operation[ForgetTranscriptRequest, ForgetTranscriptReply]] = operation.Operation(
    name="sessions.forget_transcript",
    while_off=True,
    summary="Erase the transcript of a session",
    tag="Sessions",
    method="DELETE",
    paths=("/api/sessions/{key}/transcript",),
    request=ForgetTranscriptRequest,
    example={"key": operation.EXAMPLE_SESSION},
    replies={200: ForgetTranscriptReply, 403: Problem, 404: Problem, **CHANGE_PROBLEMS},
    permission=Permission.FORGET,
    scoped_by=operation.BY_AGENT,
    served_by="writer",
    effect=operation.Effect.OTHER,
    rate="forget",
    owner_only=True,
    query_too=True,
    body_required=False,
    description="Erases for good. Later captures of the session store nothing.",
)
OPERATIONS: Final = (SESSION_END, GET_TRANSCRIPT, SEARCH_SESSIONS, LIST_PAST, FORGET_TRANSCRIPT)
