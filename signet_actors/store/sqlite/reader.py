"""Reading: statements through a connection, the engine of a process that only reads, and its snapshots.

An open read transaction lets the write-ahead log grow without bound. So every snapshot has a deadline, enforced by
SQLite's progress handler. It can also be revoked earlier, when the writer needs a checkpoint.

Source: docs/reliability.md "Ground rules" 4, R14.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import apsw
import msgspec

from signet_actors.runtime.clock import Clock
from signet_actors.runtime.sync_points import sync_point
from signet_actors.store.engine import Bindings, Preempted, RankedSearch, ReadTimeout, Snapshot, SnapshotEnded
from signet_actors.store.sqlite.connect import drop_cached_pages, open_reader
from signet_actors.store.sqlite.vectors import nearest, vec_table

_TOKENIZER: Final = ("porter", ["unicode61", "remove_diacritics", "2"])


class SqliteDialect:
    """The parts of a statement that are SQLite's own."""

    ranked_search: Final = RankedSearch(
        "memories_fts JOIN memories m ON m.seq = memories_fts.rowid WHERE memories_fts MATCH :match",
        "bm25(memories_fts)",
        "memories_fts.rank",
    )
    turn_search: Final = RankedSearch(
        "session_turns_fts JOIN session_turns u ON u.seq = session_turns_fts.rowid"
        " JOIN session_transcripts m ON m.seq = u.transcript_seq WHERE session_turns_fts MATCH :match",
        "bm25(session_turns_fts)",
        "session_turns_fts.rank",
    )
    text_sizes: Final = "memories_fts_docsize"
    hint_sizes: Final = "memory_hints_fts_docsize"

    def token_count(self, size: bytes | None) -> int:
        """Return the number of tokens of a row, from its ``sz`` in FTS5's ``docsize`` table; 0 for a row without one.

        Source: https://www.sqlite.org/fts5.html "The %_docsize table" (one varint per column).
        """
        if size is None:
            return 0
        total = number = 0
        for byte in size:
            number = number << 7 | byte & 0x7F
            if byte < 0x80:
                total, number = total + number, 0
        return total

    def members(self, name: str) -> str:
        return f"SELECT value FROM json_each(:{name})"

    def listed(self, values: Sequence[int] | Sequence[str]) -> str:
        return msgspec.json.encode(values).decode()

    def unix_ms(self, column: str) -> str:
        return f"CAST(round(unixepoch({column}, 'subsec') * 1000) AS INTEGER)"

    def without_keys(self, column: str, *keys: str) -> str:
        paths = ", ".join(f"'$.{key}'" for key in keys)
        return f"json_remove({column}, {paths})"


DIALECT: Final = SqliteDialect()


def stem(connection: apsw.Connection, text: str) -> list[str]:
    """Return the stemmed tokens that the index would store for ``text``."""
    tokenizer = connection.fts5_tokenizer(*_TOKENIZER)
    tokens = tokenizer(text.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False)
    return [str(token) for token in tokens]


NO_BINDINGS: Final[dict[str, Any]] = {}
_LAST_NUMBER: Final = "SELECT seq FROM sqlite_sequence WHERE name = ?"


class SqliteReads:
    """Reads through a connection, in whatever transaction it has open; what is committed if it has none.

    Methods without a docstring are described in ``store.engine``.
    """

    dialect: SqliteDialect = DIALECT

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, bindings: Bindings = NO_BINDINGS) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, bindings).fetchall()

    def one(self, sql: str, bindings: Bindings = NO_BINDINGS) -> Any | None:
        return self._connection.execute(sql, bindings).fetchone()

    def value(self, sql: str, bindings: Bindings = NO_BINDINGS) -> Any:
        row = self._connection.execute(sql, bindings).fetchone()
        return None if row is None else row[0]

    def last_number(self, table: str) -> int:
        """Return the highest number that the table ever gave out for a row, 0 if none or if that is damaged."""
        row = self._connection.execute(_LAST_NUMBER, (table,)).fetchone()
        return row[0] if row is not None and isinstance(row[0], int) else 0

    def schema_version(self) -> int:
        """Return ``PRAGMA user_version``, the number of the newest applied migration."""
        return int(self._connection.pragma("user_version"))


_STEPS_BETWEEN_CHECKS = 20_000
_STEPS_IF_EXPENSIVE = 200
"""For statements whose single steps are slow: FTS5 ranks a long row within a few steps."""

_DATA_VERSION: Final = "PRAGMA data_version"
_POSTINGS: Final = "SELECT group_concat(rowid) FROM memories_fts WHERE memories_fts MATCH :match AND rowid >= :least"
_HINT_POSTINGS: Final = (
    "SELECT group_concat(rowid) FROM"
    " (SELECT rowid FROM memory_hints_fts WHERE memory_hints_fts MATCH :match LIMIT :most)"
)
_DOCUMENT_FREQUENCY: Final = "SELECT doc FROM memories_fts_terms WHERE term = :term"
_TERMS: Final = (
    "SELECT term FROM memories_fts_terms WHERE term >= :low AND term <= :high"
    " AND length(term) BETWEEN :shortest AND :longest LIMIT :most"
)
_LAST_CHARACTER: Final = "\U0010ffff"
_OF_MODEL: Final = (
    "SELECT count(*) FROM memories m JOIN embeddings e ON e.seq = m.embedding_seq"
    " WHERE m.is_deleted = 0 AND e.model = :model"
)


class SqliteSnapshot(SqliteReads):
    """An open read transaction. ``is_preempted`` tells whether a more urgent query waits; None disables preemption."""

    def __init__(
        self,
        connection: apsw.Connection,
        is_preempted: Callable[[], bool] | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(connection)
        self._is_preempted = is_preempted
        self._is_over = is_over

    def check_often(self) -> None:
        self._connection.set_progress_handler(self._is_over, _STEPS_IF_EXPENSIVE)

    def check_preempted(self) -> None:
        if self._is_preempted is not None and self._is_preempted():
            raise Preempted

    def data_version(self) -> int:
        return int(self.value(_DATA_VERSION))

    def stem(self, text: str) -> list[str]:
        return stem(self._connection, text)

    def postings(self, expression: str, least: int) -> str | None:
        """Return the ``memories.seq`` from ``least`` on that match the expression, separated by commas, or None."""
        listed: str | None = self.value(_POSTINGS, {"match": expression, "least": least})
        return listed

    def hint_postings(self, expression: str, most: int) -> str | None:
        """Return at most ``most`` ``memory_hints.seq`` that match the FTS5 expression, separated by commas, or None."""
        listed: str | None = self.value(_HINT_POSTINGS, {"match": expression, "most": most})
        return listed

    def document_frequency(self, term: str) -> int:
        return self.value(_DOCUMENT_FREQUENCY, {"term": term}) or 0

    def terms(self, beginning: str, shortest: int, longest: int, most: int) -> list[str]:
        """Return the first ``most`` stemmed terms with this beginning and length, from FTS5's vocabulary."""
        bindings = {
            "low": beginning,
            "high": beginning + _LAST_CHARACTER,
            "shortest": shortest,
            "longest": longest,
            "most": most,
        }
        return [term for (term,) in self.rows(_TERMS, bindings)]

    def has_vector_index(self, model: str, dimensions: int) -> bool:
        return vec_table(self._connection, model, dimensions) is not None

    def nearest(self, model: str, dimensions: int, query: bytes, k: int) -> list[tuple[int, float]]:
        table = vec_table(self._connection, model, dimensions)
        return [] if table is None else nearest(self._connection, table, query, k)

    def unindexed_vectors(self, model: str, dimensions: int) -> int:
        table = vec_table(self._connection, model, dimensions)
        missing = "" if table is None else f" AND e.seq NOT IN (SELECT rowid FROM {table})"
        return int(self.value(_OF_MODEL + missing, {"model": model}))


class SqliteEngine(SqliteReads):
    """What the engines of readers and of the writer have in common."""

    def check_schema(self) -> None:
        self._connection.execute("SELECT sql FROM sqlite_schema").fetchall()
        self._connection.execute("SELECT id FROM memories LIMIT 0").fetchall()

    def file_bytes(self) -> int:
        return os.stat(self._connection.filename).st_size

    def drop_cached_pages(self) -> None:
        drop_cached_pages(self._connection)

    def close(self) -> None:
        self._connection.close()


class SqliteReader(SqliteEngine):
    """A read-only connection, which can neither write nor checkpoint."""

    @contextmanager
    def snapshot(
        self,
        clock: Clock,
        *,
        deadline_ns: int,
        heartbeat: Callable[[], None] = lambda: None,
        is_revoked: Callable[[], bool] = lambda: False,
        is_preempted: Callable[[], bool] | None = None,
    ) -> Iterator[Snapshot]:
        """Open a snapshot that lasts until the end of the block.

        Raises ``ReadTimeout`` when ``deadline_ns`` (monotonic) has passed and ``SnapshotEnded`` when ``is_revoked``
        returns True. ``heartbeat`` is called while a long statement runs, so that the process does not look hung.
        """
        connection = self._connection
        ended = False

        def is_over() -> bool:
            nonlocal ended
            heartbeat()
            ended = is_revoked()
            return ended or clock.monotonic_ns() > deadline_ns

        connection.set_progress_handler(is_over, _STEPS_BETWEEN_CHECKS)
        try:
            connection.execute("BEGIN")
            sync_point("searcher.snapshot_open")
            yield SqliteSnapshot(connection, is_preempted, is_over)
        except apsw.InterruptError as error:
            raise (SnapshotEnded if ended else ReadTimeout) from error
        finally:
            connection.set_progress_handler(None)
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def read_engine(path: Path) -> SqliteReader:
    return SqliteReader(open_reader(path))
