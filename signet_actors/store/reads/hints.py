"""Stored hints."""

from __future__ import annotations

from typing import NamedTuple

from signet_actors.store.engine import Snapshot

_BATCH = 20_000
_ROWS = (
    "SELECT h.seq, h.memory_seq, d.sz FROM memory_hints h LEFT JOIN {} d ON d.id = h.seq"
    f" WHERE h.seq > :after ORDER BY h.seq LIMIT {_BATCH}"
)


class HintRows(NamedTuple):
    """Parallel lists: ``memory_hints.seq``, the ``memories.seq`` that it belongs to, and its number of tokens."""

    seqs: list[int]
    memory_seqs: list[int]
    tokens: list[int]


def newest(snapshot: Snapshot) -> int:
    """Return the highest ``memory_hints.seq`` that was ever given out."""
    return snapshot.last_number("memory_hints")


def after(snapshot: Snapshot, seq: int) -> HintRows:
    """Return the next hints after ``seq`` in order of ``seq``; empty if there are none."""
    dialect = snapshot.dialect
    rows = snapshot.rows(_ROWS.format(dialect.hint_sizes), {"after": seq})
    tokens = [dialect.token_count(row[2]) for row in rows]
    return HintRows([row[0] for row in rows], [row[1] for row in rows], tokens)
