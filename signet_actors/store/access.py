"""What a function of the store needs from its caller to read: a transaction, a snapshot, or a bare connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import apsw

Bindings = Sequence[Any] | Mapping[str, Any]


class Reads(Protocol):
    """Satisfied by ``WriteTransaction``, ``Snapshot`` and ``CommittedReads``."""

    def rows(self, sql: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a SELECT."""
        ...

    def one(self, sql: str, bindings: Bindings = ()) -> Any | None:
        """Return the first row, or None."""
        ...


class CommittedReads:
    """Reads of what is committed, each in a transaction of its own."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a SELECT."""
        return self._connection.execute(sql, bindings).fetchall()

    def one(self, sql: str, bindings: Bindings = ()) -> Any | None:
        """Return the first row, or None."""
        return self._connection.execute(sql, bindings).fetchone()
