"""Explicit times of memories: when something occurred, was observed, was written down elsewhere, or held true."""

from __future__ import annotations

from typing import NamedTuple

from signet_actors.store.engine import Snapshot

# Times in the storage form can be compared as text. The inner SELECT bounds the work: it reads an index backwards.
_COLUMNS = "t.id, t.subject_id, t.start_at, t.end_at, t.confidence FROM temporal_edges t"
_BEGUN = (
    f"SELECT {_COLUMNS} WHERE t.facet = :facet AND t.start_at < :end AND t.subject_type = 'memory'"
    " ORDER BY t.start_at DESC, t.id DESC LIMIT :most"
)
_WITHOUT_START = (
    f"SELECT {_COLUMNS} WHERE t.facet = :facet AND t.start_at IS NULL AND t.subject_type = 'memory'"
    " ORDER BY t.id DESC LIMIT :most"
)
_SELECT = (
    "SELECT m.seq, {}, {}, e.confidence FROM ({}) e CROSS JOIN memories m"
    " WHERE m.id = e.subject_id AND m.is_deleted = 0 AND {} ORDER BY e.start_at DESC, e.id DESC"
)
_POINT = "coalesce(e.end_at, e.start_at) >= :start"
_INTERVAL = "(e.start_at >= :start OR e.end_at > :start OR e.end_at IS NULL)"
_VALID = "valid"


class Edge(NamedTuple):
    """A time of the memory ``seq``, in milliseconds since 1970; None for an end that is open."""

    seq: int
    start_ms: int | None
    end_ms: int | None
    confidence: float


def overlapping(snapshot: Snapshot, facet: str, start: str, end: str, most: int) -> list[Edge]:
    """Return the times of live memories that overlap ``start`` to before ``end``, without a check of who may read them.

    Of the times that begin before ``end`` the last ``most`` are considered. A validity without an end holds still; any
    other time without an end is a moment.
    """
    dialect = snapshot.dialect
    times = dialect.unix_ms("e.start_at"), dialect.unix_ms("e.end_at")
    bindings = {"facet": facet, "start": start, "end": end, "most": most}
    rows = snapshot.rows(_SELECT.format(*times, _BEGUN, _INTERVAL if facet == _VALID else _POINT), bindings)
    if facet == _VALID:
        del bindings["end"]
        rows += snapshot.rows(_SELECT.format(*times, _WITHOUT_START, _INTERVAL), bindings)
    return [Edge(*row) for row in rows]
