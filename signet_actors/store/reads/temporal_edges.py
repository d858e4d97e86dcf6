"""Explicit times of memories: when something occurred, was observed, was written down elsewhere, or held true."""

from __future__ import annotations

from typing import Any, NamedTuple

from signet_actors.store.engine import Snapshot

# Times in the storage form can be compared as text. The inner SELECT bounds the work: it reads an index backwards.
_COLUMNS = "t.id, t.subject_id, t.start_at, t.end_at, t.confidence FROM temporal_edges t"
_LAST = "t.subject_type = 'memory' ORDER BY t.start_at DESC, t.id DESC LIMIT :most"
_WITHIN = f"SELECT {_COLUMNS} WHERE t.facet = :facet AND t.start_at >= :start AND t.start_at < :end AND {_LAST}"
_BEFORE = f"SELECT {_COLUMNS} WHERE t.facet = :facet AND t.start_at < :start AND {_LAST}"
_WITHOUT_START = f"SELECT {_COLUMNS} WHERE t.facet = :facet AND t.start_at IS NULL AND {_LAST}"
_SELECT = (
    "SELECT m.seq, {}, {}, e.confidence FROM ({}) e CROSS JOIN memories m"
    " WHERE m.id = e.subject_id AND m.is_deleted = 0 AND {} ORDER BY e.start_at DESC, e.id DESC"
)
_ANY = "1 = 1"
_LASTING = "e.end_at > :start"
_STILL_VALID = "(e.end_at > :start OR e.end_at IS NULL)"
_VALID = "valid"
_MOST_LASTING = 1_000


class Edge(NamedTuple):
    """A time of the memory ``seq``, in milliseconds since 1970; None for an end that is open."""

    seq: int
    start_ms: int | None
    end_ms: int | None
    confidence: float


def overlapping(snapshot: Snapshot, facet: str, start: str, end: str, most: int) -> list[Edge]:
    """Return the times of live memories that overlap ``start`` to before ``end``, without a check of who may read them.

    Considered are the last ``most`` that begin in the window, and of those that began before it the last ``most``
    validities or the last 1,000 other times. A validity without an end holds still; any other time without an end is a
    moment.
    """
    is_valid = facet == _VALID
    bindings = {"facet": facet, "start": start, "end": end, "most": most}
    rows = _rows(snapshot, _WITHIN, _ANY, bindings)
    del bindings["end"]
    bindings["most"] = most if is_valid else min(most, _MOST_LASTING)
    rows += _rows(snapshot, _BEFORE, _STILL_VALID if is_valid else _LASTING, bindings)
    if is_valid:
        rows += _rows(snapshot, _WITHOUT_START, _LASTING, bindings)
    return [Edge(*row) for row in rows]


def _rows(snapshot: Snapshot, inner: str, condition: str, bindings: dict[str, Any]) -> list[tuple[Any, ...]]:
    dialect = snapshot.dialect
    times = dialect.unix_ms("e.start_at"), dialect.unix_ms("e.end_at")
    return snapshot.rows(_SELECT.format(*times, inner, condition), bindings)
