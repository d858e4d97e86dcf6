"""Stored hints and their text index."""

from __future__ import annotations

from typing import NamedTuple

from signet_actors.store.sqlite.fts_tokens import token_count
from signet_actors.store.sqlite.snapshot import Snapshot

_BATCH = 20_000
_NEWEST = "SELECT seq FROM sqlite_sequence WHERE name = 'memory_hints'"
_ROWS = (
    "SELECT h.seq, h.memory_seq, d.sz FROM memory_hints h LEFT JOIN memory_hints_fts_docsize d ON d.id = h.seq"
    f" WHERE h.seq > ? ORDER BY h.seq LIMIT {_BATCH}"
)
_MATCH = "SELECT group_concat(rowid) FROM (SELECT rowid FROM memory_hints_fts WHERE memory_hints_fts MATCH ? LIMIT ?)"


class HintRows(NamedTuple):
    """Parallel lists: ``memory_hints.seq``, the ``memories.seq`` that it belongs to, and its number of tokens."""

    seqs: list[int]
    memory_seqs: list[int]
    tokens: list[int]


def newest(snapshot: Snapshot) -> int:
    """Return the highest ``memory_hints.seq`` that was ever given out."""
    return snapshot.value(_NEWEST) or 0


def after(snapshot: Snapshot, seq: int) -> HintRows:
    """Return the next hints after ``seq`` in order of ``seq``; empty if there are none."""
    rows = snapshot.rows(_ROWS, (seq,))
    return HintRows([row[0] for row in rows], [row[1] for row in rows], [token_count(row[2]) for row in rows])


def containing(snapshot: Snapshot, expression: str, most: int) -> str | None:
    """Return at most ``most`` ``memory_hints.seq`` that match the FTS5 expression, separated by commas.

    None if no hint matches.
    """
    listed: str | None = snapshot.value(_MATCH, (expression, most))
    return listed
