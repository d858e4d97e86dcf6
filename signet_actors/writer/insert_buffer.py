"""New rows of a group commit wait here and are inserted many to a statement.

A row costs a third of what it costs alone: SQLite opens a statement journal for each INSERT that fires a trigger, and
FTS5 writes a segment to the tree whenever one is opened. Measured at sixteen rows a commit: 131 µs a row
instead of 211.

Nothing may read around the rows that wait: ``CommandContext.tx`` inserts them first. The few look-ups that
must not pay for that ask for the lookup key of what they look for, and insert only when a buffered row has it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from signet_actors.store.transaction import WriteTransaction

MAX_ROWS_PER_STATEMENT: Final = 32
MAX_BUFFERED_VALUES: Final = 8192
"""Bindings of one table that wait; more are inserted at once, so that a large batch holds its memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Insert:
    """An INSERT of whole rows into ``table``; the same instance stands for the same statement everywhere."""

    table: str
    columns: tuple[str, ...]
    verb: str = "INSERT"
    _statements: dict[int, str] = field(default_factory=dict)

    def statement(self, rows: int) -> str:
        """The SQL for so many rows."""
        sql = self._statements.get(rows)
        if sql is None:
            placeholders = f"({', '.join('?' * len(self.columns))})"
            sql = f"{self.verb} INTO {self.table} ({', '.join(self.columns)}) VALUES {', '.join([placeholders] * rows)}"
            self._statements[rows] = sql
        return sql


class InsertBuffer:
    """The rows that wait in one transaction."""

    def __init__(self, tx: WriteTransaction) -> None:
        self._tx = tx
        self._values: dict[Insert, list[Any]] = {}
        self._lookup_keys: set[Hashable] = set()
        self._next_seq: dict[str, int] = {}
        self.added = 0

    def next_seq(self, table: str) -> int:
        """The ``seq`` of the table's next row: one above every one that was ever given out."""
        seq = self._next_seq.get(table)
        if seq is None:
            row = self._tx.one("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,))
            seq = 1 if row is None else int(row[0]) + 1
        self._next_seq[table] = seq + 1
        return seq

    def add(self, insert: Insert, row: Sequence[Any], *lookup_keys: Hashable) -> None:
        """The row waits; ``lookup_keys`` are what a look-up may find it by."""
        self.added += 1
        values = self._values.get(insert)
        if values is None:
            values = self._values[insert] = []
        values.extend(row)
        self._lookup_keys.update(lookup_keys)
        if len(values) >= MAX_BUFFERED_VALUES:
            self.flush()

    def contains(self, lookup_key: Hashable) -> bool:
        """Whether a buffered row bears the lookup_key."""
        return lookup_key in self._lookup_keys

    def flush(self) -> None:
        """Every row is in its table."""
        if not self._values:
            return
        buffered = self._values
        self.discard()
        for insert, values in buffered.items():
            width = len(insert.columns)
            begin = 0
            while begin < len(values):
                # Powers of two, so that a table has six prepared statements and not thirty-two.
                left = (len(values) - begin) // width
                rows = min(MAX_ROWS_PER_STATEMENT, 1 << (left.bit_length() - 1))
                self._tx.execute(insert.statement(rows), values[begin : begin + rows * width])
                begin += rows * width

    def discard(self) -> None:
        """Nothing waits; rows that were not inserted are forgotten, and so are the numbers that they had."""
        self._values = {}
        self._lookup_keys.clear()
        self._next_seq.clear()
