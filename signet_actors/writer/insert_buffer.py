"""A buffer for the new rows of a group commit, which are inserted many to a statement.

A buffered row costs a third less than one that is inserted alone: SQLite opens a statement journal for each INSERT that
fires a trigger, and FTS5 writes a segment whenever a journal is opened. Measured with 16 rows a commit: 131 µs a row
instead of 211. No query can miss a buffered row, because ``CommandContext.tx`` inserts all of them first. A few
look-ups avoid that cost: they pass a lookup key, and rows are inserted only when a buffered row has this key.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

from signet_actors.store.sqlite.transaction import WriteTransaction
from signet_actors.store.writes.inserts import Insert, insert_rows, next_seq

MAX_BUFFERED_VALUES: Final = 8192
"""Buffered values of one table. Beyond this the rows are inserted at once, which bounds the memory of a large batch."""


class InsertBuffer:
    """The rows of one transaction that are not inserted yet."""

    def __init__(self, tx: WriteTransaction) -> None:
        self._tx = tx
        self._values: dict[Insert, list[Any]] = {}
        self._lookup_keys: set[Hashable] = set()
        self._next_seq: dict[str, int] = {}
        self.added = 0

    def next_seq(self, table: str) -> int:
        """Return the ``seq`` of the table's next row: one more than any that was given out."""
        seq = self._next_seq.get(table)
        if seq is None:
            seq = next_seq(self._tx, table)
        self._next_seq[table] = seq + 1
        return seq

    def add(self, insert: Insert, row: Sequence[Any], *lookup_keys: Hashable) -> None:
        """Buffer the row; look-ups can find it by any of ``lookup_keys``."""
        self.added += 1
        values = self._values.get(insert)
        if values is None:
            values = self._values[insert] = []
        values.extend(row)
        self._lookup_keys.update(lookup_keys)
        if len(values) >= MAX_BUFFERED_VALUES:
            self.flush()

    def contains(self, lookup_key: Hashable) -> bool:
        """Return whether a buffered row has this lookup key."""
        return lookup_key in self._lookup_keys

    def flush(self) -> None:
        """Insert every buffered row."""
        if not self._values:
            return
        buffered = self._values
        self.discard()
        for insert, values in buffered.items():
            insert_rows(self._tx, insert, values)

    def discard(self) -> None:
        """Drop the buffered rows, and the sequence numbers that were given out for them."""
        self._values = {}
        self._lookup_keys.clear()
        self._next_seq.clear()
