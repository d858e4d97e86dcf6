"""Refuse a log that was left beside a database file which another daemon has changed since.

SQLite keeps the log beside the path by which the file was opened. If a file is used through two directories (a bind
mount) and the daemon of one is killed, its log stays there; applied after the other daemon's commits, it would undo
them or damage the file. So a file beside the log names the epochs (``vector_epochs``) of the runs that could write it.

Source: docs/reliability.md R10; https://sqlite.org/howtocorrupt.html, "Separating a database file from its log".
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import apsw

from signet_actors.config.regular_file import read_regular
from signet_actors.errors import ConfigError
from signet_actors.runtime.file_draft import replace_file
from signet_actors.store.sqlite.database_files import nonempty_logs, sibling
from signet_actors.store.vector_epochs import STORE_META_KEY, VectorEpochs

_SUFFIX: Final = "-runs"
_MOST_RUNS: Final = 64
_LONGEST_NOTE: Final = 64 * 1024


def refuse_stale_log(database: Path) -> None:
    """Raise ConfigError if the last run that the database file itself names is none of those noted beside its log.

    Without a log, without a note, or with a file that cannot be read, there is nothing to compare. The caller has
    exclusive access to the database, and no connection to it.
    """
    log = next(nonempty_logs(database), None)
    runs = _read(database)
    if log is None or not runs:
        return
    last = _last_run_without_log(database)
    if last is not None and last not in runs:
        raise ConfigError(
            f"{database} was changed by another daemon, through another directory, while {log.name} was left here;"
            f" applying that log now would undo the other daemon's commits. To keep the file as it is, move {log} away"
            " (what only that log contains is then lost), or run `signet restore latest`"
        )


def note_runs(database: Path, epochs: Iterable[str]) -> None:
    """Note, durably, that runs with these epochs may have written the database. On failure nothing stays noted."""
    path = sibling(database, _SUFFIX)
    runs = list(dict.fromkeys([*_read(database), *epochs]))[-_MOST_RUNS:]
    try:
        replace_file(path, "\n".join(runs).encode("ascii"))
    except OSError:  # a full disk; an incomplete note would refuse a log that is ours
        with contextlib.suppress(OSError):
            path.unlink()


def forget_runs(database: Path) -> None:
    """Delete the note, because the database file is replaced."""
    sibling(database, _SUFFIX).unlink(missing_ok=True)


def _read(database: Path) -> list[str]:
    try:
        return read_regular(sibling(database, _SUFFIX), _LONGEST_NOTE).decode("ascii").split()
    except (OSError, ConfigError, UnicodeDecodeError):
        return []


def _last_run_without_log(database: Path) -> str | None:
    """Return the last epoch that the database file names when its log is ignored; None if it names none."""
    uri = f"{database.absolute().as_uri()}?immutable=1"
    try:
        connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    except apsw.Error:
        return None
    try:
        stored = connection.execute("SELECT value FROM store_meta WHERE key = ?", (STORE_META_KEY,)).get
        names = VectorEpochs(stored).names
        return names[-1] if names else None
    except (apsw.Error, TypeError, UnicodeDecodeError):
        return None
    finally:
        connection.close()
