"""Statements about ``memory_hints``; triggers of the schema keep their text index."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from signet_actors.store.engine import Insert, WriteTransaction


class HintRow(NamedTuple):
    memory_id: str
    memory_seq: int
    hint: str
    cjk: str | None
    created_at: str


_DELETE: Final = "DELETE FROM memory_hints WHERE memory_id = :memory_id"
_HINTS: Final = Insert("memory_hints", HintRow._fields)


def replace(tx: WriteTransaction, memory_id: str, hints: Iterable[HintRow]) -> None:
    """Replace all hints of the memory."""
    tx.execute(_DELETE, {"memory_id": memory_id})
    tx.insert(_HINTS, [value for hint in hints for value in hint])
