"""The SQLite engine of the writer: the only connection that writes and checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from signet_actors.errors import CheckIncomplete
from signet_actors.runtime.clock import Clock
from signet_actors.store.engine import WriteTransaction
from signet_actors.store.findings import STRUCTURE, Finding
from signet_actors.store.sqlite.checkpoint import checkpoint, watch_log
from signet_actors.store.sqlite.checks import schema_findings, scrub
from signet_actors.store.sqlite.connect import has_moved, open_writer, report_progress
from signet_actors.store.sqlite.migrate import migrate
from signet_actors.store.sqlite.online_backup import OnlineBackup, database_bytes
from signet_actors.store.sqlite.page_checks import first_page_error, is_unread_page
from signet_actors.store.sqlite.reader import SqliteEngine
from signet_actors.store.sqlite.repairs import repair_indexes
from signet_actors.store.sqlite.transaction import write_transaction
from signet_actors.store.sqlite.vector_checks import sequence_errors

_UNOBSERVED = nullcontext()


class SqliteWriter(SqliteEngine):
    """A connection that may write. Reads outside a transaction see what is committed."""

    def begin(
        self,
        during_sync: AbstractContextManager[None] = _UNOBSERVED,
        during_statement: AbstractContextManager[None] = _UNOBSERVED,
    ) -> AbstractContextManager[WriteTransaction]:
        """Open a transaction; see ``write_transaction``."""
        return write_transaction(self._connection, during_sync, during_statement)

    def migrate(
        self,
        path: Path,
        clock: Clock,
        *,
        progress: Callable[[str], None],
        heartbeat: Callable[[], None],
        keep: int,
    ) -> int:
        """Apply all pending migrations and return their number; see ``migrate``."""
        return migrate(self._connection, path, clock, progress=progress, heartbeat=heartbeat, keep=keep)

    def report_progress(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` every few milliseconds from now on while SQLite executes a statement."""
        report_progress(self._connection, callback)

    def watch_log(self, callback: Callable[[int], None]) -> None:
        """Call ``callback`` with the length of the log in pages after each commit."""
        watch_log(self._connection, callback)

    def checkpoint(self, mode: str) -> tuple[int, int]:
        """Run a checkpoint; return ``(frames in the log, frames checkpointed)``, (-1, -1) if readers blocked it."""
        return checkpoint(self._connection, mode)

    def has_moved(self) -> bool:
        """Return True if SQLite reports that the open file is no longer the one at its path."""
        return has_moved(self._connection)

    def database_bytes(self) -> int:
        """Return the size of the database without its log."""
        return database_bytes(self._connection)

    def begin_backup(self, partial: Path) -> OnlineBackup:
        """Begin a copy of the database in the file ``partial``."""
        return OnlineBackup(self._connection, partial)

    def object_errors(self) -> list[str]:
        """Describe objects that are not part of the schema, and tables that could give out no further number."""
        found = [finding.text for finding in schema_findings(self._connection)[0] if finding.kind == STRUCTURE]
        return [*found, *sequence_errors(self._connection)]

    def page_error(self, *, every_page: bool, heartbeat: Callable[[], None]) -> str | None:
        """Return the first thing that is wrong with the pages, or None. Raises ``CheckIncomplete``."""
        error = first_page_error(self._connection, every_page=every_page, heartbeat=heartbeat)
        if error is not None and is_unread_page(error):
            raise CheckIncomplete(f"could not be checked: {error}")
        return error

    def findings(self, *, deep: bool) -> list[Finding]:
        """Return what is wrong with the database; see ``scrub``."""
        return scrub(self._connection, deep=deep)

    def repair_indexes(self) -> tuple[str, ...]:
        """Rebuild derived data from the rows; return descriptions of what was done."""
        return repair_indexes(self._connection)


def write_engine(
    path: Path, *, busy: Callable[[int], bool], vfs: str | None = None, create: bool = True, set_wal: bool = True
) -> SqliteWriter:
    """Open the database for writing; see ``open_writer``."""
    return SqliteWriter(open_writer(path, busy=busy, vfs=vfs, create=create, set_wal=set_wal))
