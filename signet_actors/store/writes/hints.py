"""Statements about ``memory_hints``; triggers of the schema keep their text index.

Source: memory-pipeline.txt "Prospective Indexing (Hints)".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from signet_actors.store.sqlite.transaction import WriteTransaction


class HintRow(NamedTuple):
    """A new hint."""

    memory_id: str
    memory_seq: int
    hint: str
    cjk: str | None
    created_at: str


_DELETE: Final = "DELETE FROM memory_hints WHERE memory_id = ?"
_INSERT: Final = "INSERT INTO memory_hints (memory_id, memory_seq, hint, cjk, created_at) VALUES (?, ?, ?, ?, ?)"


def replace(tx: WriteTransaction, memory_id: str, hints: Iterable[HintRow]) -> None:
    """Replace all hints of the memory."""
    tx.execute(_DELETE, (memory_id,))
    for hint in hints:
        tx.execute(_INSERT, hint)
