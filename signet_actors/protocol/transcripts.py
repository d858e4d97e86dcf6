"""Messages about transcripts of sessions: to the writer, and to searchers.

Source: architecture.txt "session_transcripts"; docs/compatibility.md "Hooks and sessions"; docs/decisions.md 35.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from signet_actors.domain.transcripts.turns import Role, TranscriptFormat
from signet_actors.operations.transcripts import PastSessionBody
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import KeyedRequest, Message, Principal, Request


class CapturedTurn(msgspec.Struct, frozen=True, omit_defaults=True, array_like=True):
    """A turn, or a piece of a long one, without secrets; ``continues``: a piece that is not the first.

    ``basis``, ``number`` and ``name`` are those of ``domain.transcripts.turns.StoredTurn``. ``cjk`` is what the text
    index needs of it (``domain.normalization.cjk_bigrams``).
    """

    basis: bytes
    number: int
    role: Role
    content: str
    cjk: str | None = None
    said_at: str | None = None
    continues: bool = False
    name: bytes | None = None


class CapturePosition(msgspec.Struct, frozen=True, array_like=True):
    """Where a part of a capture ends, for the part after it.

    ``begin``: the first row (``session_turns.seq``) that the capture may contain. ``last_key``: the part's last row.
    """

    begin: int
    last_key: bytes


class TranscriptStored(Message, frozen=True, tag="writer.transcript_stored"):
    """The turns are on disk. ``added``: how many were not stored before. ``forgotten``: the session's transcript was
    forgotten, and nothing was stored (``position`` is None). ``job_id``: the job that summarizes what no job has seen.
    ``has_copies``: the session repeats what was said in another one while memory was off; that is left out.
    """

    added: int
    forgotten: bool = False
    position: CapturePosition | None = None
    job_id: str | None = None
    has_copies: bool = False


class StoreTurns(Request[TranscriptStored], frozen=True, tag="writer.store_turns"):
    """Store the turns of a session that are not stored yet; safe to repeat.

    A capture is sent in parts, in order. ``previous`` is the position of the part before this one, None for the first.
    ``ended``: the session reported its end, and this is the last part, perhaps without turns. ``then`` tells of a last
    part what else follows: the session ``goes_on``; it goes on, and a job is to ``extract`` what none has seen; or it
    ended and is ``dropped``, so that no job is made of it. None: it is one of the past. ``is_off``: memory is off for
    the session, so that nothing is stored but by what its turns are known in copies. ``plan_of``: the session whose
    plan it was begun with.
    """

    session_key: str
    agent_id: str
    format: TranscriptFormat
    turns: tuple[CapturedTurn, ...]
    previous: CapturePosition | None = None
    harness: str | None = None
    project: str | None = None
    captured_at: str | None = None
    ended: bool = False
    then: Literal["goes_on", "extract", "dropped"] | None = None
    is_off: bool = False
    plan_of: str | None = None


class TranscriptForgotten(Message, frozen=True, tag="writer.transcript_forgotten"):
    """``turns`` were erased; ``more``: some are left. ``found`` is false if the caller has no such session.

    ``summaries``: ids of the live memories that summarize the session, once nothing is left.
    """

    turns: int
    more: bool
    found: bool = True
    summaries: list[str] = []


class ForgetTranscript(KeyedRequest[TranscriptForgotten], frozen=True, tag="writer.forget_transcript"):
    """Erase turns of the caller's transcript for good, as many as fit into one commit.

    Later captures of the session store nothing. ``is_captured``: one is under way, perhaps the first.
    """

    session_key: str
    agent_id: str
    principal: Principal
    is_captured: bool = False


class StoredTranscript(msgspec.Struct, frozen=True):
    """A transcript without its turns; ``turns`` counts them."""

    session_key: str
    agent_id: str
    harness: str | None
    project: str | None
    format: str
    created_at: str
    updated_at: str
    turns: int


class TranscriptTurn(msgspec.Struct, frozen=True, array_like=True):
    """A stored row of a transcript. ``copy_of``: the session of which it is a copy."""

    seq: int
    role: str
    content: str
    said_at: str | None
    continues: bool
    copy_of: str | None = None


class TranscriptFound(Message, frozen=True, tag="searcher.transcript_found"):
    """None if it is missing, forgotten, or not readable. ``next``: where the next page begins, None on the last."""

    transcript: StoredTranscript | None
    turns: list[TranscriptTurn] = []
    next: int | None = None


class GetTranscript(Request[TranscriptFound], frozen=True, tag="searcher.get_transcript"):
    """Read the rows of a session after ``after``: at most ``max_rows``, as fit into ``max_bytes``, but at least one."""

    session_key: str
    read: ReadScope
    after: int = 0
    max_bytes: int = 1 << 20
    max_rows: int = 1000


class FoundSession(msgspec.Struct, frozen=True):
    """A session with the turn of it that matches best."""

    session_key: str
    agent_id: str
    harness: str | None
    project: str | None
    updated_at: str
    role: str
    said_at: str | None
    excerpt: str
    copy_of: str | None = None


class SessionsFound(Message, frozen=True, tag="searcher.sessions_found"):
    """Sessions that match, best first."""

    sessions: list[FoundSession]


class SearchSessions(Request[SessionsFound], frozen=True, tag="searcher.search_sessions"):
    """Search the turns of readable sessions: only of ``session_key``, or of all but ``without``."""

    query: str
    read: ReadScope
    limit: int
    session_key: str | None = None
    without: str | None = None
    project: str | None = None


class SessionExcerpt(msgspec.Struct, frozen=True, array_like=True):
    """A part of the transcript of a session, as text."""

    agent_id: str
    session_key: str
    text: str


class SessionsExpanded(Message, frozen=True, tag="searcher.sessions_expanded"):
    """The excerpts of the transcripts that exist and that the caller may read."""

    excerpts: list[SessionExcerpt]


class ExpandSessions(Request[SessionsExpanded], frozen=True, tag="searcher.expand_sessions"):
    """Read from the transcript of each session (agent and key) the turns around the one that matches ``query`` best.

    Without a match, its beginning. ``max_chars``: of one excerpt, without the names of the speakers.
    """

    sessions: tuple[tuple[str, str], ...]
    read: ReadScope
    query: str
    max_chars: int


class SessionSpan(msgspec.Struct, frozen=True, array_like=True):
    """When a conversation began and ended, in storage form, its beginning as text, and if asked for, its end."""

    agent_id: str
    session_key: str
    project: str | None
    start: str
    end: str
    text: str
    ending: str = ""


class SpansListed(Message, frozen=True, tag="searcher.spans_listed"):
    """The sessions, the latest first."""

    spans: list[SessionSpan]


class ListSpans(Request[SpansListed], frozen=True, tag="searcher.list_spans"):
    """List sessions whose transcripts have a turn from ``start`` to before ``end``, as far as turns have times.

    A turn without a time has that of its capture. ``words``: only sessions in which any of these was said.
    ``with_ends``: also the last prompt and the last answer of each. ``unasked``: without what was forgotten.
    """

    start: str
    end: str
    read: ReadScope
    limit: int
    words: str = ""
    project: str | None = None
    with_ends: bool = False
    unasked: bool = False


class SayingFound(Message, frozen=True, tag="searcher.saying_found"):
    """The keys of the sessions, and of others that may say it; the ids of the memories. The best match first."""

    sessions: list[str] = []
    perhaps: list[str] = []
    memories: list[str] = []


class FindSaying(Request[SayingFound], frozen=True, tag="searcher.find_saying"):
    """Find the agent's sessions whose transcripts say what these memories say, and its live memories that do.

    A memory that the pipeline has made of one of these counts, too.
    """

    ids: tuple[str, ...]
    read: ReadScope


class PastSessionsListed(Message, frozen=True, tag="searcher.past_sessions_listed"):
    """A page of sessions, and the number of all."""

    sessions: list[PastSessionBody]
    total: int


class ListPastSessions(Request[PastSessionsListed], frozen=True, tag="searcher.list_past_sessions"):
    """List sessions with a transcript, the last changed first. ``prefix``: the beginning of their keys."""

    read: ReadScope
    limit: int
    chars: int
    offset: int = 0
    project: str | None = None
    prefix: str = ""


TranscriptCommand = StoreTurns | ForgetTranscript
TranscriptQuery = GetTranscript | SearchSessions | ExpandSessions | ListSpans | ListPastSessions | FindSaying
