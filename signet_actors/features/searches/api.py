"""The record of what was asked for, what was given, and what was left out and why.

Source: docs/guides/hooks.md "What was asked and given".
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.domain.permissions import Permission
from signet_actors.errors import InvalidRequest
from signet_actors.operations.field_types import Clamped, Flag, Timestamp
from signet_actors.operations.headers import JSON_LINES, NEXT_CURSOR_HEADER
from signet_actors.operations.hooks import SearchMemory
from signet_actors.operations.operation import BY_AGENT, SESSION_READ, Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import SelectionText
from signet_actors.operations.sessions import ListSessionsRequest
from signet_actors.operations.transcripts import OwnAgent, Session
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Answered, Request

Kind = Literal["start", "prompt", "recall", "tool"]
Outcome = Literal[
    "given",
    "cut",
    "fact",
    "pinned",
    "rule",
    "asked_lately",
    "last_session",
    "important",
    "received",
    "below_relevance",
    "doubtful",
    "older_version",
    "beyond_limit",
    "no_room",
    "repeated",
]
"""What became of a memory that was considered; ``WORDS`` of the rules says each in words."""
MAX_SEARCHES: Final = 200
"""Of one ``RecordSearches``."""
MAX_EXPORTED: Final = 500
"""Of one export: with 20 memories each, some 4 MB."""
MAX_READ: Final = 20_000
"""Searches of an agent, the newest ones, that are read at most for counts and for the last prompt."""
CONTENT_CHARS: Final = 300
"""Of the present content of a memory in a list."""


class ConsideredMemory(msgspec.Struct, frozen=True, array_like=True):
    """A memory, by its number and the version since which it has these words (``Wording``), and what became of it."""

    seq: int
    version: int
    relevance: float | None
    outcome: Outcome


class Search(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A hook or a recall. ``prompt``: the beginning of what was asked. ``memories``: the best first.

    ``answered``: a prompt came with the answer before it; None of what is no prompt.
    """

    id: str
    created_at: str
    kind: Kind
    agent_id: str
    session_key: str | None = None
    context_epoch: int | None = None
    project: str | None = None
    harness: str | None = None
    prompt: str | None = None
    skipped: str | None = None
    given: int = 0
    characters: int = 0
    duration_ms: float = 0.0
    answered: bool | None = None
    memories: tuple[ConsideredMemory, ...] = ()


class RecordSearches(Request[Answered], frozen=True, kw_only=True, tag="searches.record"):
    """Store at most ``MAX_SEARCHES`` searches, in this order. Safe to repeat: each is stored once."""

    searches: tuple[Search, ...]


class SearchesRecorded(msgspec.Struct, frozen=True):
    """They are on disk."""


class DescribeMemories(Request[Answered], frozen=True, kw_only=True, tag="searches.describe"):
    """Tell what the memories of a search are, as far as ``read`` may read them; in the same order."""

    read: ReadScope
    memories: tuple[ConsideredMemory, ...]


class DescribedMemories(msgspec.Struct, frozen=True):
    memories: list[SearchMemory]


class FindReceived(Request[Answered], frozen=True, kw_only=True, tag="searches.find_received"):
    """Find what the agent's session had received in its context epoch before the search ``id``."""

    session_key: str
    agent_id: str
    id: str


class FindSessions(Request[Answered], frozen=True, kw_only=True, tag="searches.find_sessions"):
    """Find the agent's sessions of which anything is kept. The reply is a ``KeptSessionsReply``."""

    agent_id: str
    request: ListSessionsRequest


class ReceivedBefore(msgspec.Struct, frozen=True):
    """``found``: whether the session has this search. ``received``: number and version of each memory by id.

    ``facts``: what it was told of memories as facts, by id. ``has_started``: it had received the text of its start.
    """

    found: bool
    epoch: int = 0
    received: dict[str, tuple[int, int]] = {}
    facts: dict[str, list[str]] = {}
    has_started: bool = False


class ListSearchesRequest(OwnAgent, frozen=True, kw_only=True, omit_defaults=True):
    """Which searches to return."""

    session: Annotated[Session, Meta(description="Only those of this session")] | None = None
    project: Annotated[SelectionText, Meta(description="Only those in this project")] | None = None
    kind: Annotated[Kind, Meta(description="Only those of this kind")] | None = None
    number: (
        Annotated[int, Clamped(low=1, high=1_000_000), Meta(description="Only the prompt of this number, of a session")]
        | None
    ) = None
    no_hits: Annotated[bool | None, Flag(), Meta(description="true: only those that were given nothing")] = None
    checks: Annotated[
        bool | None, Flag(), Meta(description="true: only those of `signet connect --check`; false: none of them")
    ] = None
    since: Annotated[str, Timestamp(), Meta(description="ISO time: asked then or later")] | None = None
    before: Annotated[SelectionText, Meta(description="The `next` of the page before")] | None = None
    limit: Annotated[int, Clamped(low=1, high=200), Meta(description="Searches to return")] = 50

    def __post_init__(self) -> None:
        if self.number is not None and self.session is None:
            raise InvalidRequest("number needs the session of which it is the prompt", field="session")


class ExportSearchesRequest(ListSearchesRequest, frozen=True, kw_only=True, omit_defaults=True):
    """Which searches to export."""

    limit: Annotated[int, Clamped(low=1, high=MAX_EXPORTED), Meta(description="Searches to export")] = MAX_EXPORTED


class SearchRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One hook or recall. ``number``: of the prompts of its session, the how many-th it is; absent of other kinds.

    ``prompt``: the beginning of what was asked, null of a start, and where it was erased with the transcript or with a
    memory. ``given``: how many memories were given, also those that were erased since. ``skipped``: why a hook did
    nothing. ``outcome``: what came of it in a few words. ``characters``: of the text that was given.
    """

    id: str
    at: str
    kind: Kind
    session_key: str | None
    number: int | UnsetType = UNSET
    context_epoch: int | None
    project: str | None
    harness: str | None
    prompt: str | None
    skipped: str | None
    outcome: str
    given: int
    characters: int
    ms: float
    memories: list[SearchMemory] = []


class FindLastPrompts(Request[Answered], frozen=True, kw_only=True, tag="searches.find_last"):
    """Find the last prompt of the agent, and the last one since ``since`` that was given something.

    ``harnesses``: of which the last search is wanted, too. Only the newest ``MAX_READ`` searches are read, and none of
    a check.
    """

    read: ReadScope
    since: str
    harnesses: tuple[str, ...] = ()


class LastPrompts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """``last``: the last prompt. ``last_given``: the last one of the period that was given something.

    ``heard``: when the last search of a harness came (ISO), if there is one.
    """

    last: SearchRow | None
    last_given: SearchRow | None
    heard: dict[str, str] = {}


class ListSearchesReply(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the agent's own searches, the last one first. ``next``: what the next page is ``before``."""

    searches: list[SearchRow]
    count: int
    next: str | None


LIST: Final[Operation[ListSearchesRequest, ListSearchesReply]] = Operation(
    name="searches.list",
    summary="What was asked, given and left out",
    tag="Sessions",
    paths=("/api/telemetry/memory-search",),
    request=ListSearchesRequest,
    example={"session": "s-1", "limit": 20},
    replies={200: ListSearchesReply, 403: Problem, **PROBLEMS},
    **SESSION_READ,
    needs_offers=True,
    description="Each start and prompt of a session, each recall and each search by a tool, with the memories that it "
    "was given and the best of those that were left out. It stays on this machine.",
)
EXPORT: Final[Operation[ExportSearchesRequest, str]] = Operation(
    name="searches.export",
    summary="What was asked, given and left out, as JSON lines",
    tag="Sessions",
    paths=("/api/telemetry/memory-search/export",),
    request=ExportSearchesRequest,
    example={"no_hits": True, "limit": 100},
    replies={200: str, 403: Problem, **PROBLEMS},
    media_types=(JSON_LINES,),
    reply_headers={NEXT_CURSOR_HEADER: "`before` of the next page; absent on the last one"},
    permission=Permission.RECALL,
    scoped_by=BY_AGENT,
    owner_only=True,
    audited=True,
    description="The searches of `GET /api/telemetry/memory-search`, one a line, the last one first.",
)
OPERATIONS: Final = (LIST, EXPORT)
