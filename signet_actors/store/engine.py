"""What an engine of the store must be able to do. ``sqlite/`` is the engine that there is.

``reads/`` and ``writes/`` have each statement once, in SQL that SQLite and PostgreSQL understand: named parameters,
explicit conflict targets, qualified columns, 0 and 1 for truth, no row identity of an engine. What they cannot say that
way, they ask of the Protocols here. Nothing outside the store has more of a database than these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from signet_actors.errors import ErrorCode, SignetError
from signet_actors.runtime.clock import Clock
from signet_actors.store.findings import Finding

Bindings = Mapping[str, Any]
"""The values of a statement's parameters by name."""


class ReadTimeout(SignetError):
    """The read exceeded its deadline."""

    code = ErrorCode.UNAVAILABLE
    retry_after_ms = 1000


class SnapshotEnded(SignetError):
    """The snapshot was revoked because it kept the engine from tidying up; the query may be retried."""

    code = ErrorCode.UNAVAILABLE
    retry_after_ms = 1000


class Preempted(Exception):
    """The query was preempted by a more urgent one; it may be started over."""


@dataclass(frozen=True, slots=True, eq=False)
class Insert:
    """An INSERT of whole rows into ``table``. Rows are buffered per instance, so use one instance per statement.

    ``on_conflict`` is the clause ``ON CONFLICT (…) DO NOTHING``, or empty.
    """

    table: str
    columns: tuple[str, ...]
    on_conflict: str = ""


class RankedSearch(NamedTuple):
    """Parts of a search for memories whose text matches ``:match``, an expression of the engine; alias ``m``.

    ``source`` is what follows FROM up to a condition, ``score`` is lower for better matches, ``order`` sorts by it.
    """

    source: str
    score: str
    order: str


class Dialect(Protocol):
    """What engines spell differently inside a statement."""

    @property
    def ranked_search(self) -> RankedSearch: ...
    @property
    def turn_search(self) -> RankedSearch:
        """The same for the turns of sessions: alias ``u``, and their ``session_transcripts`` as ``m``."""

    @property
    def text_sizes(self) -> str:
        """The table ``(id, sz)`` of the lengths of indexed texts of memories, for ``token_count``."""

    @property
    def hint_sizes(self) -> str:
        """The table ``(id, sz)`` of the lengths of hints."""

    def token_count(self, size: Any) -> int:
        """Return the number of tokens of a text from its ``sz``; 0 for None, a text that is not indexed."""

    def members(self, name: str) -> str:
        """Return the subquery for the column ``value`` of the list bound as ``name``."""

    def listed(self, values: Sequence[int] | Sequence[str]) -> Any:
        """Return what to bind for a list."""

    def unix_ms(self, column: str) -> str:
        """Return the expression for a stored time in milliseconds since 1970, NULL if it is no time."""

    def without_keys(self, column: str, *keys: str) -> str:
        """Return the expression for the JSON object of a column without these keys."""


class Reads(Protocol):
    """What can be read with: an open transaction, a snapshot, or an engine that reads what is committed."""

    @property
    def dialect(self) -> Dialect: ...

    def rows(self, sql: str, bindings: Bindings = ...) -> list[tuple[Any, ...]]:
        """Return all rows of a SELECT."""

    def one(self, sql: str, bindings: Bindings = ...) -> Any | None:
        """Return the first row, or None."""

    def value(self, sql: str, bindings: Bindings = ...) -> Any:
        """Return the first column of the first row, or None."""

    def last_number(self, table: str) -> int:
        """Return the highest number that the table ever gave out for a row, 0 if none."""

    def schema_version(self) -> int:
        """Return the number of the newest applied migration."""


class Snapshot(Reads, Protocol):
    """A consistent view of the store, which ends at a deadline and can be revoked."""

    def check_often(self) -> None:
        """Check the deadline after fewer steps from now on, because single steps of the next statement are slow."""

    def check_preempted(self) -> None:
        """Raise Preempted if a more urgent query waits. Call this only between steps that leave caches consistent."""

    def data_version(self) -> int:
        """Return a number that differs after every commit of another connection."""

    def stem(self, text: str) -> list[str]:
        """Return the stemmed terms that the text index would store for ``text``."""

    def postings(self, expression: str, least: int) -> str | None:
        """Return the ``memories.seq`` from ``least`` on whose text matches, separated by commas, or None.

        One text is much faster than a tuple per row when a word is frequent.
        """

    def hint_postings(self, expression: str, most: int) -> str | None:
        """Return at most ``most`` ``memory_hints.seq`` whose text matches, separated by commas; None if none does."""

    def document_frequency(self, term: str) -> int:
        """Return how many rows contain the stemmed term."""

    def terms(self, beginning: str, shortest: int, longest: int, most: int) -> list[str]:
        """Return the first ``most`` stemmed terms of the text index with this beginning and so many characters."""

    def has_vector_index(self, model: str, dimensions: int) -> bool:
        """Return whether a vector of the model was ever stored."""

    def nearest(self, model: str, dimensions: int, query: bytes, k: int) -> list[tuple[int, float]]:
        """Return ``(embeddings.seq, cosine)`` of the ``k`` nearest (at most 4096) of the whole store, best first."""

    def unindexed_vectors(self, model: str, dimensions: int) -> int:
        """Return how many live memories have their newest vector of this model, but not in its index."""


class WriteTransaction(Reads, Protocol):
    """An open transaction that nothing else writes beside; nothing is durable before ``commit`` returns."""

    def execute(self, sql: str, bindings: Bindings = ...) -> None:
        """Run one statement that returns no rows."""

    def execute_long(self, sql: str, bindings: Bindings = ...) -> None:
        """Run one statement that may take long for few rows, because it writes long texts and their index."""

    def insert(self, insert: Insert, values: Sequence[Any]) -> None:
        """Insert rows whose values are given one after another."""

    @property
    def is_open(self) -> bool:
        """Whether the engine has not rolled the transaction back because of an error."""

    def total_changes(self) -> int:
        """Return a number that grows with every row that is changed."""

    def changes(self) -> int:
        """Return the number of rows that the last statement changed, without changes by triggers."""

    def savepoint(self) -> AbstractContextManager[None]:
        """Undo the statements of the block if it raises; the transaction stays open."""

    def commit(self) -> None:
        """Commit; when this returns, everything is on disk."""

    def vector_index(self, model: str, dimensions: int) -> Insert | None:
        """Return the INSERT of ``(embeddings.seq, vector)`` into the search index of the model, None if it has none."""

    def create_vector_index(self, number: int, dimensions: int) -> Insert:
        """Create the search index of the model with this ``embedding_models.id``; return its INSERT."""

    def rebuild_text_index(self) -> None:
        """Build the text index of memories anew from their rows."""

    def unindex_vector(self, model: str, dimensions: int, seq: int) -> None:
        """Remove the vector from the search index of the model, if it is there."""


class Engine(Reads, Protocol):
    """An open database."""

    def check_schema(self) -> None:
        """Raise a ``StoreError`` unless the schema can be read; rows may still be damaged."""

    def file_bytes(self) -> int:
        """Return the size of what is stored, without what only a log holds."""

    def drop_cached_pages(self) -> None:
        """Free the engine's cache while the process is idle."""

    def close(self) -> None: ...


class ReaderEngine(Engine, Protocol):
    """A database that is open for reading."""

    def snapshot(
        self,
        clock: Clock,
        *,
        deadline_ns: int,
        heartbeat: Callable[[], None] = ...,
        is_revoked: Callable[[], bool] = ...,
        is_preempted: Callable[[], bool] | None = ...,
    ) -> AbstractContextManager[Snapshot]:
        """Open a snapshot that lasts until the end of the block.

        Raises ``ReadTimeout`` when ``deadline_ns`` (monotonic) has passed and ``SnapshotEnded`` when ``is_revoked``
        returns True. ``heartbeat`` is called while a long statement runs.
        """


class BackupCopy(Protocol):
    """A copy in progress, written to the file ``partial``. Raises OSError, ``StoreError``."""

    partial: Path
    pages: int
    remaining: int

    def step(self, clock: Clock, budget_ns: int) -> bool:
        """Copy pages for about ``budget_ns``; return True when the copy is complete and consistent."""

    def close(self) -> None:
        """Close the copy. The file is incomplete unless ``step`` returned True."""


class WriterEngine(Engine, Protocol):
    """A database that is open for writing, and what its upkeep needs."""

    def begin(
        self, during_sync: AbstractContextManager[None] = ..., during_statement: AbstractContextManager[None] = ...
    ) -> AbstractContextManager[WriteTransaction]:
        """Open a transaction that is rolled back unless ``commit`` is called in the block.

        The commit runs inside ``during_sync``, long statements run inside ``during_statement``. Raises ``LockTimeout``
        if another program holds the lock for too long.
        """

    def migrate(
        self,
        path: Path,
        clock: Clock,
        *,
        progress: Callable[[str], None],
        heartbeat: Callable[[], None],
        keep: int,
    ) -> int:
        """Apply all pending migrations and return their number."""

    def report_progress(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` every few milliseconds from now on while a statement is executed."""

    def watch_log(self, callback: Callable[[int], None]) -> None:
        """Call ``callback`` with the length of the log in pages after each commit."""

    def checkpoint(self, mode: str) -> tuple[int, int]:
        """Run a checkpoint; return ``(frames in the log, frames checkpointed)``, (-1, -1) if readers blocked it."""

    def has_moved(self) -> bool:
        """Return True if the open file is no longer the one at its path."""

    def database_bytes(self) -> int:
        """Return the size of the database without its log."""

    def begin_backup(self, partial: Path) -> BackupCopy:
        """Begin a copy of the database in the file ``partial``."""

    def object_errors(self) -> list[str]:
        """Describe objects that are not part of the schema, and tables that could give out no further number."""

    def page_error(self, *, every_page: bool, heartbeat: Callable[[], None]) -> str | None:
        """Return the first thing that is wrong with the pages, or None. Raises ``CheckIncomplete``.

        With ``every_page`` also what is on each page is checked, otherwise only how they hang together.
        """

    def findings(self, *, deep: bool) -> list[Finding]:
        """Return what is wrong with the database. Raises ``CheckIncomplete``."""

    def repair_indexes(self) -> tuple[str, ...]:
        """Rebuild derived data from the rows; return descriptions of what was done."""
