"""Explicit times of memories: when something occurred, was observed, was written down elsewhere, or held true."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from signet_actors.store.engine import Snapshot

# Times in the storage form can be compared as text. A page reads an index backwards, from the end of the page before.
_PAGE = (
    "SELECT m.seq, {}, {}, e.confidence, CASE WHEN e.end_at > :start THEN 1 ELSE 0 END, e.start_at, e.id FROM"
    " (SELECT t.id, t.subject_id, t.start_at, t.end_at, t.confidence FROM temporal_edges t"
    " WHERE t.facet = :facet AND {} AND t.subject_type = 'memory' ORDER BY t.start_at DESC, t.id DESC LIMIT :page) e"
    " LEFT JOIN memories m ON m.id = e.subject_id AND m.is_deleted = 0 ORDER BY e.start_at DESC, e.id DESC"
)
_ANY_OCCURRED = "SELECT t.id FROM temporal_edges t WHERE t.facet = 'occurred' LIMIT 1"
_OCCURRED = (
    "SELECT m.seq, {} FROM ({}) i CROSS JOIN memories m JOIN temporal_edges t ON t.subject_type = 'memory'"
    " AND t.subject_id = m.id WHERE m.seq = i.value AND t.facet = 'occurred' AND t.start_at IS NOT NULL"
    " ORDER BY t.start_at"
)
_EARLIER = "(t.start_at, t.id) < (:last_start, :last_id)"
_WITHIN = f"t.start_at >= :start AND {_EARLIER}"
_WITHOUT_START = "t.start_at IS NULL AND t.id < :last_id"
_VALID = "valid"
_MOST_LASTING = 1_000
_PAGE_ROWS = 2_000
_ABOVE_ALL_IDS = 2**62


class Edge(NamedTuple):
    """A time of the memory ``seq``, in milliseconds since 1970; None for an end that is open."""

    seq: int
    start_ms: int | None
    end_ms: int | None
    confidence: float


def overlapping(
    snapshot: Snapshot, facet: str, start: str, end: str, most: int, is_allowed: Callable[[int], bool]
) -> list[Edge]:
    """Return the times of allowed live memories that overlap ``start`` to before ``end``.

    ``is_allowed`` receives a ``memories.seq``. Considered are the last ``most`` that begin in the window, and of those
    that began before it the last ``most`` validities or the last 1,000 other times; only allowed ones count. A validity
    without an end holds still; any other time without an end is a moment.
    """
    is_valid = facet == _VALID
    earlier = most if is_valid else min(most, _MOST_LASTING)
    found = [edge for edge, _ in _last(snapshot, facet, _WITHIN, start, end, most, is_allowed)]
    for edge, end_at_is_later in _last(snapshot, facet, _EARLIER, start, start, earlier, is_allowed):
        if end_at_is_later or (is_valid and edge.end_ms is None):
            found.append(edge)
    if is_valid:
        without = _last(snapshot, facet, _WITHOUT_START, start, "", earlier, is_allowed)
        found += [edge for edge, end_at_is_later in without if end_at_is_later]
    return found


def occurred_ms(snapshot: Snapshot, seqs: Sequence[int]) -> dict[int, int]:
    """Return when the rows occurred that tell it, the latest of several times, in milliseconds since 1970."""
    if snapshot.value(_ANY_OCCURRED, {}) is None:
        return {}
    dialect = snapshot.dialect
    sql = _OCCURRED.format(dialect.unix_ms("t.start_at"), dialect.members("seqs"))
    return dict(snapshot.rows(sql, {"seqs": dialect.listed(seqs)}))


def _last(
    snapshot: Snapshot,
    facet: str,
    condition: str,
    start: str,
    last_start: str,
    most: int,
    is_allowed: Callable[[int], bool],
) -> list[tuple[Edge, bool]]:
    """Return the last ``most`` allowed times, and of each whether it ends after ``start``."""
    dialect = snapshot.dialect
    sql = _PAGE.format(dialect.unix_ms("e.start_at"), dialect.unix_ms("e.end_at"), condition)
    found: list[tuple[Edge, bool]] = []
    last_id = _ABOVE_ALL_IDS if condition == _WITHOUT_START else 0
    while True:
        bindings: dict[str, Any] = {"facet": facet, "start": start, "last_id": last_id, "page": _PAGE_ROWS}
        if condition != _WITHOUT_START:
            bindings["last_start"] = last_start
        rows = snapshot.rows(sql, bindings)
        for seq, start_ms, end_ms, confidence, is_later, _, _ in rows:
            if seq is not None and is_allowed(seq):
                found.append((Edge(seq, start_ms, end_ms, confidence), bool(is_later)))
                if len(found) == most:
                    return found
        if len(rows) < _PAGE_ROWS:
            return found
        last_start, last_id = rows[-1][-2:]
        snapshot.check_preempted()
