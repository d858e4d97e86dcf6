"""Transcripts that a caller may read: by session, and by the words of their turns.

The read policy is that of memories (``read_policy``): the alias of ``session_transcripts`` is ``m`` for that reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from signet_actors.operations.transcripts import PastSessionBody
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.transcripts import ListPastSessions, SearchSessions, StoredTranscript, TranscriptTurn
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, in_project, readable_in_any_scope

_ROWS_AT_ONCE: Final = 32
_LIVE: Final = "m.forgotten_at IS NULL"
_TRANSCRIPT: Final = (
    "SELECT m.seq, m.session_key, m.agent_id, m.harness, m.project, m.format, m.created_at, m.updated_at,"
    " (SELECT count(*) FROM session_turns u WHERE u.transcript_seq = m.seq AND u.continues = 0)"
    " FROM session_transcripts m WHERE {} ORDER BY CASE WHEN m.agent_id = :rp_agent THEN 0 ELSE 1 END, m.seq LIMIT 1"
)
_ONE: Final = "SELECT m.seq FROM session_transcripts m WHERE {}"
COPY_OF: Final = (
    "(SELECT t.session_key FROM session_turns o JOIN session_transcripts t ON t.seq = o.transcript_seq"
    " WHERE o.seq = u.copy_of AND t.forgotten_at IS NULL)"
)
"""The session of which the turn ``u`` is a copy."""
_TURNS: Final = (
    f"SELECT u.seq, u.role, u.content, u.said_at, u.continues, {COPY_OF} FROM session_turns u"
    f" WHERE u.transcript_seq = :transcript AND u.seq > :after ORDER BY u.seq LIMIT {_ROWS_AT_ONCE}"
)
_TURNS_BEFORE: Final = (
    "SELECT u.seq, u.role, u.content, u.said_at, u.continues FROM session_turns u"
    " WHERE u.transcript_seq = :transcript AND u.seq < :turn ORDER BY u.seq DESC LIMIT :count"
)
_TURNS_FROM: Final = (
    "SELECT u.seq, u.role, u.content, u.said_at, u.continues FROM session_turns u"
    " WHERE u.transcript_seq = :transcript AND u.seq >= :turn ORDER BY u.seq LIMIT :count"
)
_LAST_PROMPT: Final = (
    "SELECT u.seq FROM session_turns u WHERE u.transcript_seq = :transcript AND u.role = 'user' AND u.continues = 0"
    " AND u.seq <= :last ORDER BY u.seq DESC LIMIT 1"
)
_MOST_CHANGED: Final = 2000
_CHANGED: Final = (
    "SELECT m.seq, m.agent_id, m.session_key, m.project FROM session_transcripts m WHERE {}"
    f" ORDER BY m.updated_at DESC LIMIT {_MOST_CHANGED}"
)
_END: Final = (
    "SELECT coalesce(u.said_at, u.created_at), u.seq FROM session_turns u WHERE u.transcript_seq = :transcript"
    " AND u.copy_of IS NULL{} ORDER BY u.seq {} LIMIT 1"
)
_LAST: Final = (1 << 62) - 1
"""Behind every turn."""
_IN_WINDOW: Final = " AND coalesce(u.said_at, u.created_at) >= :start AND coalesce(u.said_at, u.created_at) < :end"
_PAST: Final = (
    "SELECT m.session_key, m.agent_id, m.harness, m.project,"
    " (SELECT coalesce(u.said_at, u.created_at) FROM session_turns u WHERE u.transcript_seq = m.seq"
    " ORDER BY u.seq LIMIT 1),"
    " (SELECT coalesce(u.said_at, u.created_at) FROM session_turns u WHERE u.transcript_seq = m.seq"
    " ORDER BY u.seq DESC LIMIT 1) AS ended,"
    " (SELECT count(*) FROM session_turns u WHERE u.transcript_seq = m.seq AND u.continues = 0),"
    " (SELECT substr(u.content, 1, :chars) FROM session_turns u WHERE u.transcript_seq = m.seq AND u.role = 'user'"
    " AND u.continues = 0 ORDER BY u.seq LIMIT 1),"
    " (SELECT substr(x.content, 1, :chars) FROM session_summaries s CROSS JOIN memories x ON x.id = s.memory_id"
    " WHERE s.session_key = m.session_key AND x.agent_id = m.agent_id AND x.is_deleted = 0"
    " ORDER BY s.latest_at DESC LIMIT 1)"
    " FROM session_transcripts m WHERE {} ORDER BY ended DESC, m.seq DESC LIMIT :limit OFFSET :offset"
)
_PAST_COUNT: Final = "SELECT count(*) FROM session_transcripts m WHERE {}"
_HAS_TURNS: Final = "EXISTS (SELECT 1 FROM session_turns u WHERE u.transcript_seq = m.seq)"
_HIGHEST_CHARACTER: Final = chr(0x10FFFF)
_SEARCH: Final = (
    "WITH matches AS MATERIALIZED (SELECT u.transcript_seq AS transcript, u.seq AS turn, {} AS score,"
    " coalesce(u.said_at, u.created_at) AS said FROM {} AND {}),"
    " ranked AS (SELECT a.transcript, a.turn, a.score, a.said,"
    " row_number() OVER (PARTITION BY a.transcript ORDER BY a.score, a.turn) AS place FROM matches a)"
    " SELECT b.transcript, b.turn FROM ranked b WHERE b.place <= :places"
    " ORDER BY b.score, b.said DESC, b.turn DESC LIMIT :limit"
)
_NO_COPY: Final = (
    "NOT EXISTS (SELECT 1 FROM session_turns o JOIN session_transcripts t ON t.seq = o.transcript_seq"
    " WHERE o.seq = u.copy_of AND t.forgotten_at IS NULL{})"
)
"""The turn is found in the session that had it first."""
_NOT_COPIED: Final = (
    "NOT EXISTS (SELECT 1 FROM session_transcripts t JOIN session_turns c ON c.transcript_seq = t.seq"
    " AND c.copy_of = u.seq WHERE t.agent_id = m.agent_id AND t.session_key = :without)"
)
_FOUND: Final = (
    "SELECT m.session_key, m.agent_id, m.harness, m.project, m.updated_at, u.role, u.said_at, u.content, m.seq, u.seq,"
    f" {COPY_OF} FROM session_turns u JOIN session_transcripts m ON m.seq = u.transcript_seq WHERE u.seq = :turn"
)

_MATCHES: Final = "SELECT 1 FROM {} AND u.seq = :turn"
_ANY: Final = "SELECT 1 FROM session_transcripts LIMIT 1"
_ONE_MORE: Final = "SELECT 1 FROM {} AND {} LIMIT 1 OFFSET :most"


class Span(NamedTuple):
    """The part of a conversation in a window of time: when it began and ended, and its first and its last turn."""

    transcript: int
    agent_id: str
    session_key: str
    project: str | None
    start: str
    end: str
    first: int
    last: int


class FoundTurn(NamedTuple):
    """A turn with its session. ``transcript`` and ``turn`` are the ``seq`` of each."""

    session_key: str
    agent_id: str
    harness: str | None
    project: str | None
    updated_at: str
    role: str
    said_at: str | None
    content: str
    transcript: int
    turn: int
    copy_of: str | None


def readable_transcript(snapshot: Snapshot, session_key: str, read: ReadScope) -> tuple[int, StoredTranscript] | None:
    """Return the transcript with its ``seq``, the caller's own before another's; None if there is none to read."""
    where, bindings = conjunction(
        ("m.session_key = :session_key", {"session_key": session_key}),
        (_LIVE, {}),
        readable_in_any_scope(snapshot, read),
    )
    row = snapshot.one(_TRANSCRIPT.format(where), bindings)
    return None if row is None else (row[0], StoredTranscript(*row[1:]))


def turns_after(
    snapshot: Snapshot, transcript: int, after: int, max_bytes: int, max_rows: int
) -> tuple[list[TranscriptTurn], int | None]:
    """Return at most ``max_rows`` turns of at most ``max_bytes`` together, but one at least, and where the rest begins
    (None: no more).
    """
    turns: list[TranscriptTurn] = []
    size = 0
    while True:
        rows = snapshot.rows(_TURNS, {"transcript": transcript, "after": after})
        for seq, role, content, said_at, continues, copy_of in rows:
            size += len(content.encode())
            if turns and (size > max_bytes or len(turns) >= max_rows):
                return turns, after
            turns.append(TranscriptTurn(seq, role, content, said_at, bool(continues), copy_of))
            after = seq
        if len(rows) < _ROWS_AT_ONCE:
            return turns, None


def best_turns(snapshot: Snapshot, query: SearchSessions, expression: str, *, places: int = 1) -> list[FoundTurn]:
    """Return the best turns, at most ``places`` of each readable session that the query admits, best first."""
    where, bindings = _admission(snapshot, query)
    found = _best(snapshot, where, bindings, expression, query.limit, places)
    rows = (snapshot.one(_FOUND, {"turn": turn}) for _, turn in found)
    return [FoundTurn(*row) for row in rows if row is not None]


def is_any_kept(snapshot: Snapshot) -> bool:
    """Return True if there is a transcript, perhaps one that the caller may not read."""
    return snapshot.one(_ANY, {}) is not None


def is_in_more_turns(snapshot: Snapshot, expression: str, most: int, *, of_query: SearchSessions | None = None) -> bool:
    """Return True if more than ``most`` turns, only of those that a query admits, have what the expression asks for."""
    where, bindings = ("1 = 1", {}) if of_query is None else _admission(snapshot, of_query)
    sql = _ONE_MORE.format(snapshot.dialect.turn_search.source, where)
    return snapshot.one(sql, {**bindings, "match": expression, "most": most}) is not None


def turn_matches(snapshot: Snapshot, turn: int, expression: str) -> bool:
    """Return True if the turn has what the expression asks for."""
    sql = _MATCHES.format(snapshot.dialect.turn_search.source)
    return snapshot.one(sql, {"match": expression, "turn": turn}) is not None


def _best(
    snapshot: Snapshot, where: str, bindings: dict[str, Any], expression: str, limit: int, places: int = 1
) -> list[tuple[int, int]]:
    """Return transcripts with their best matching turns, at most ``places`` of each, the best match first."""
    snapshot.check_often()
    search = snapshot.dialect.turn_search
    sql = _SEARCH.format(search.score, search.source, where)
    rows = snapshot.rows(sql, {**bindings, "match": expression, "limit": limit, "places": places})
    return [(transcript, turn) for transcript, turn in rows]


def readable_sessions(
    snapshot: Snapshot, sessions: Sequence[tuple[str, str]], read: ReadScope
) -> dict[tuple[str, str], int]:
    """Return the ``seq`` of the transcript of each session, an agent and a key, if there is one to read."""
    where, bindings = conjunction(
        ("m.agent_id = :agent_id AND m.session_key = :session_key", {}),
        (_LIVE, {}),
        readable_in_any_scope(snapshot, read),
    )
    rows = {
        (agent_id, key): snapshot.one(_ONE.format(where), {**bindings, "agent_id": agent_id, "session_key": key})
        for agent_id, key in sessions
    }
    return {session: row[0] for session, row in rows.items() if row is not None}


def best_turn_of_each(snapshot: Snapshot, transcripts: Sequence[int], expression: str) -> dict[int, int]:
    """Return the ``seq`` of the best matching turn of each transcript that has one."""
    dialect = snapshot.dialect
    where = f"u.transcript_seq IN ({dialect.members('transcripts')})"
    bindings = {"transcripts": dialect.listed(transcripts)}
    return dict(_best(snapshot, where, bindings, expression, len(transcripts)))


def is_in_span(snapshot: Snapshot, span: Span, expression: str) -> bool:
    """Return whether a turn of the span matches."""
    where = "u.transcript_seq = :transcript AND u.seq BETWEEN :first AND :last"
    bindings = {"transcript": span.transcript, "first": span.first, "last": span.last}
    return bool(_best(snapshot, where, bindings, expression, 1))


def past(snapshot: Snapshot, query: ListPastSessions) -> tuple[list[PastSessionBody], int]:
    """Return a page of the readable sessions that have turns, the latest conversation first, and the number of all."""
    last = query.prefix + _HIGHEST_CHARACTER
    where, bindings = conjunction(
        (_LIVE, {}),
        (_HAS_TURNS, {}),
        readable_in_any_scope(snapshot, query.read),
        ("1 = 1", {}) if query.project is None else in_project(query.project),
        ("m.session_key >= :first AND m.session_key < :last", {"first": query.prefix, "last": last}),
    )
    page = {"limit": query.limit, "offset": query.offset, "chars": query.chars}
    found = [PastSessionBody(*row) for row in snapshot.rows(_PAST.format(where), {**bindings, **page})]
    return found, int(snapshot.value(_PAST_COUNT.format(where), bindings))


def spans(snapshot: Snapshot, start: str, end: str, read: ReadScope, project: str | None) -> list[Span]:
    """Return of the last changed readable sessions what was said from ``start`` to before ``end``, the latest first."""
    where, bindings = conjunction(
        ("m.updated_at >= :start", {"start": start}),
        (_LIVE, {}),
        readable_in_any_scope(snapshot, read),
        ("1 = 1", {}) if project is None else in_project(project),
    )
    found = []
    for transcript, agent_id, session_key, its_project in snapshot.rows(_CHANGED.format(where), bindings):
        snapshot.check_preempted()
        whole = {"transcript": transcript}
        first, last = (snapshot.one(_END.format("", order), whole) for order in ("ASC", "DESC"))
        if first is not None and last is not None and (first[0] < start or last[0] >= end):
            part = {**whole, "start": start, "end": end} if first[0] < end and last[0] >= start else None
            first, last = (part and snapshot.one(_END.format(_IN_WINDOW, order), part) for order in ("ASC", "DESC"))
        if first and last:
            found.append(Span(transcript, agent_id, session_key, its_project, first[0], last[0], first[1], last[1]))
    return sorted(found, key=lambda span: (span.end, span.transcript), reverse=True)


def turns_beside(snapshot: Snapshot, transcript: int, turn: int, count: int) -> tuple[list[TranscriptTurn], int]:
    """Return the turn with at most ``count`` turns before it and after it, and its index among them.

    If it does not exist, the index is that of the first turn after it.
    """
    bindings = {"transcript": transcript, "turn": turn, "count": count}
    before = snapshot.rows(_TURNS_BEFORE, bindings)[::-1]
    rows = [*before, *snapshot.rows(_TURNS_FROM, {**bindings, "count": count + 1})]
    turns = [
        TranscriptTurn(seq, role, content, said_at, bool(continues)) for seq, role, content, said_at, continues in rows
    ]
    return turns, len(before)


def last_turns(
    snapshot: Snapshot, transcript: int, count: int, *, first: int = 0, last: int = _LAST
) -> list[TranscriptTurn]:
    """Return the last ``count`` turns from ``first`` to ``last``, and before them the last prompt."""
    rows = snapshot.rows(_TURNS_BEFORE, {"transcript": transcript, "turn": last + 1, "count": count})
    rows = [row for row in rows if row[0] >= first]
    prompt = snapshot.value(_LAST_PROMPT, {"transcript": transcript, "last": last})
    if prompt is not None and rows and first <= prompt < rows[-1][0]:
        rows += snapshot.rows(_TURNS_FROM, {"transcript": transcript, "turn": prompt, "count": 1})
    return [TranscriptTurn(seq, role, content, said_at, bool(cont)) for seq, role, content, said_at, cont in rows[::-1]]


def _admission(snapshot: Snapshot, query: SearchSessions) -> tuple[str, dict[str, Any]]:
    return conjunction((_LIVE, {}), readable_in_any_scope(snapshot, query.read), _filters(query))


def _filters(query: SearchSessions) -> tuple[str, dict[str, Any]]:
    given = {
        "session_key": ("m.session_key = :session_key", query.session_key),
        "without": ("m.session_key <> :without", query.without),
    }
    clauses = [clause for clause, value in given.values() if value is not None]
    named: dict[str, Any] = {}
    if query.project is not None:
        clause, named = in_project(query.project)
        clauses.append(clause)
    if query.session_key is None:
        of_project = "" if query.project is None else f" AND {in_project(query.project, alias='t')[0]}"
        clauses.append(_NO_COPY.format(of_project))
    if query.without is not None:
        clauses.append(_NOT_COPIED)
    bindings = {**named, **{name: value for name, (_, value) in given.items() if value is not None}}
    return " AND ".join(clauses) or "1 = 1", bindings
