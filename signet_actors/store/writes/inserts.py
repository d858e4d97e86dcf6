"""INSERT statements of one or many whole rows, and the numbers that the next rows get."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from signet_actors.store.sqlite.transaction import WriteTransaction

MAX_ROWS_PER_STATEMENT: Final = 32

_LAST_SEQ: Final = "SELECT seq FROM sqlite_sequence WHERE name = ?"


@dataclass(frozen=True, slots=True, eq=False)
class Insert:
    """An INSERT of whole rows into ``table``. Rows are buffered per instance, so use one instance per statement."""

    table: str
    columns: tuple[str, ...]
    verb: str = "INSERT"
    _statements: dict[int, str] = field(default_factory=dict)

    def statement(self, rows: int) -> str:
        """Return the SQL for this number of rows."""
        sql = self._statements.get(rows)
        if sql is None:
            placeholders = f"({', '.join('?' * len(self.columns))})"
            sql = f"{self.verb} INTO {self.table} ({', '.join(self.columns)}) VALUES {', '.join([placeholders] * rows)}"
            self._statements[rows] = sql
        return sql


def insert_rows(tx: WriteTransaction, insert: Insert, values: Sequence[Any]) -> None:
    """Insert rows whose values are given one after another, many to a statement."""
    width = len(insert.columns)
    begin = 0
    while begin < len(values):
        # Powers of two: a table needs six prepared statements instead of thirty-two.
        left = (len(values) - begin) // width
        rows = min(MAX_ROWS_PER_STATEMENT, 1 << (left.bit_length() - 1))
        tx.execute_long(insert.statement(rows), values[begin : begin + rows * width])
        begin += rows * width


def next_seq(tx: WriteTransaction, table: str) -> int:
    """Return the ``seq`` of the table's next row: one more than any that was given out."""
    row = tx.one(_LAST_SEQ, (table,))
    return 1 if row is None else int(row[0]) + 1
