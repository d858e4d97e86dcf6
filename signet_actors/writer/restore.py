"""``python -m signet_actors.writer --restore FILE``: replace the database by a backup, atomically.

The backup is copied beside the database and verified, and the copy takes over from the present database what must not
come back (``store/writes/carry_over.py``). Then the decision file ``.daemon/restore`` is written; from then
on this command or the next start of the daemon completes the restore. Completing it renames the present database with
its log into a directory ``aside-<time>``, and the verified copy to the database's name. Every step can be repeated, and
only copies are ever deleted.

Source: docs/reliability.md R18; docs/architecture.md "Dependency rules" 5.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any, Final

import msgspec

from signet_actors.config.regular_file import open_regular, read_regular
from signet_actors.config.workspace import Workspace, workspace_from
from signet_actors.config.workspace_holder import is_locked
from signet_actors.domain.backups import newest_first, parse_backup_name
from signet_actors.domain.timestamps import iso
from signet_actors.errors import CheckIncomplete, ConfigError, ExitCode, ForeignDatabase, WorkspaceLocked
from signet_actors.features.audit.api import RESTORE, AuditEvent
from signet_actors.features.audit.reads import kept_link
from signet_actors.features.audit.rules import HEAD
from signet_actors.features.audit.writes import append
from signet_actors.runtime.file_draft import FileDraft, fsync_path
from signet_actors.runtime.processes.parent_death import die_with_supervisor, supervisor_is_alive
from signet_actors.runtime.supervision.workspace_lock import FileLock, WorkspaceLock
from signet_actors.runtime.sync_points import sync_point
from signet_actors.store.errors import StoreError
from signet_actors.store.reads.stats import live_ids, live_memories
from signet_actors.store.sqlite.connect import check_ownership, open_copy
from signet_actors.store.sqlite.database_files import nonempty_logs, refuse_unsafe_files, sibling
from signet_actors.store.sqlite.migrate import load_migrations
from signet_actors.store.sqlite.reader import read_engine
from signet_actors.store.sqlite.stale_log import forget_runs
from signet_actors.store.sqlite.writer import SqliteWriter
from signet_actors.store.writes import carry_over, transcripts
from signet_actors.writer.backup import verify_backup

LATEST: Final = "latest"
_SUFFIXES: Final = ("-wal", "-shm", "-journal", "")
"""The log moves before its database: a log alone is harmless, but a database without its log has lost commits."""


_DECISION: Final = re.compile(r"aside-[0-9]+\n?")
_LONGEST_DECISION: Final = 100
_SCHEMA_WITH_TOKENS: Final = 23


class RestoreReport(msgspec.Struct, omit_defaults=True):
    """What the command prints. ``age_ms`` is how much time is lost; None if the file name does not tell.

    ``ahead`` are the backups that were passed over because their names are in the future. ``missing`` is how many live
    memories of the present database the backup lacks; only a preview counts them. ``carried_over``: the restored
    database knows for which sessions memory was switched off since, and what was forgotten or erased; None without a
    present one.
    """

    ok: bool
    findings: list[str] = []
    restored: str | None = None
    aside: str | None = None
    made_at: str | None = None
    age_ms: int | None = None
    memories_before: int | None = None
    memories_after: int | None = None
    missing: int | None = None
    carried_over: bool | None = None
    other: str | None = None
    ahead: list[str] = []


def restore_command(source: str, parent_pid: int = 0, *, preview: bool = False) -> int:
    """Replace the database by the backup ``source`` (a path, or ``latest``); print one JSON object.

    With ``preview``, only check the backup and compare it with the database.

    Exit code 0; 73 when a daemon runs; 74 when the backup is damaged or the disk failed; 78 when there is no such
    backup, or it has a newer schema. After any code but 0 the database is unchanged. With ``parent_pid`` the restore
    ends together with that process; if it had decided by then, the next start completes it.
    """
    if parent_pid and not die_with_supervisor(parent_pid):
        return ExitCode.GIVE_UP
    workspace = Workspace(workspace_from(os.environ).resolve())
    try:
        workspace.ensure()
    except ConfigError as error:
        return _print(RestoreReport(False, [error.detail]), ExitCode.CONFIG)
    lock, writer_lock = WorkspaceLock(workspace, tool="restore"), FileLock(workspace.daemon_dir / "writer.lock")
    try:
        lock.acquire()
        writer_lock.acquire()
        now_ms = int(time.time() * 1000)
        report, code = restore(workspace, source, now_ms=now_ms, parent_pid=parent_pid, preview=preview)
    except WorkspaceLocked as error:
        return _print(RestoreReport(False, [error.detail]), ExitCode.IN_USE)
    except ConfigError as error:
        return _print(RestoreReport(False, [error.detail]), ExitCode.CONFIG)
    except OSError as error:
        return _print(RestoreReport(False, [str(error)]), ExitCode.IO_ERROR)
    finally:
        writer_lock.release()
        lock.release()
    return _print(report, code)


def _missing(workspace: Workspace, source: str) -> str:
    if source == "latest":
        return f"there are no backups in {workspace.backup_dir}; `signet backup` makes one"
    return f"the backup {source} does not exist; `signet backup --list` shows the existing ones"


def restore(
    workspace: Workspace, source: str, *, now_ms: int, parent_pid: int = 0, preview: bool = False
) -> tuple[RestoreReport, int]:
    """Return the report and the exit code. The caller holds the workspace lock. Raises ConfigError, OSError.

    Decides nothing for a ``preview``, or if the process ``parent_pid``, which asked for the restore, has exited.
    """
    finish_restore(workspace)
    refuse_unsafe_files(workspace.database)
    try:
        path, other, ahead = _select_backup(workspace, source, now_ms)
        if path is None or not path.is_file():
            return RestoreReport(False, [_missing(workspace, source)]), ExitCode.CONFIG
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return RestoreReport(False, [f"the backup {source} does not exist: {reason}"]), ExitCode.CONFIG
    if _is_in_use(path.resolve(), workspace):
        text = (
            f"a running daemon uses {path}, so a plain copy of it may miss commits; run `signet backup --to TARGET` in"
            " that workspace"
        )
        return RestoreReport(False, [text], other=other), ExitCode.IN_USE
    if workspace.database.exists() and path.samefile(workspace.database):
        return RestoreReport(False, [f"{path} is the database in use, not a backup of it"]), ExitCode.CONFIG
    try:
        if not check_ownership(path, follow=True):
            return RestoreReport(False, [f"{path} is empty"], other=other), ExitCode.IO_ERROR
    except ForeignDatabase as error:
        return RestoreReport(False, [error.detail], other=other), ExitCode.IO_ERROR
    incoming = _incoming(workspace)
    try:
        _copy_in(path, incoming)
    except BaseException:
        _remove_incoming(workspace)
        raise
    sync_point("restore.copied")
    name = parse_backup_name(path.name)
    try:
        findings, memories = verify_backup(incoming, name)
    except CheckIncomplete as error:
        _remove_incoming(workspace)
        return RestoreReport(False, [f"{path} {error.detail}"]), ExitCode.IO_ERROR
    if findings:
        _remove_incoming(workspace)
        return RestoreReport(False, [finding.text for finding in findings[:10]], other=other), ExitCode.IO_ERROR
    schema = _schema(incoming)
    if schema > len(load_migrations()):
        _remove_incoming(workspace)
        newest = len(load_migrations())
        text = (
            f"{path} has schema {schema}, but this release supports schemas up to {newest}: install the newer release"
        )
        return RestoreReport(False, [text]), ExitCode.CONFIG
    try:
        carried_over = _carry_over(workspace.database, incoming, iso(now_ms))
        if not carried_over:
            _end_tokens(incoming, iso(now_ms))
        if not preview:
            _record(workspace.database, incoming, path.name, iso(now_ms))
    except StoreError as error:
        _remove_incoming(workspace)
        return RestoreReport(False, [f"the copy of {path} could not be completed: {error}"]), ExitCode.IO_ERROR
    fsync_path(incoming)
    report = RestoreReport(
        True,
        restored=str(path),
        made_at=None if name is None else iso(name.made_ms),
        age_ms=None if name is None or name.is_ahead_of(now_ms) else max(0, now_ms - name.made_ms),
        memories_before=_count_memories(workspace.database),
        memories_after=_count_memories(incoming) if carried_over else memories,
        carried_over=carried_over,
        ahead=ahead,
    )
    if preview:
        missing = _count_missing(workspace.database, incoming)
        _remove_incoming(workspace)
        return msgspec.structs.replace(report, missing=missing), ExitCode.OK
    aside = workspace.memory_dir / f"aside-{now_ms}"
    if not _write_decision(workspace, aside, parent_pid):
        _remove_incoming(workspace)
        return RestoreReport(False, ["the command that asked for the restore has exited"]), ExitCode.GIVE_UP
    finish_restore(workspace)
    return msgspec.structs.replace(report, aside=str(aside) if aside.exists() else None), ExitCode.OK


def finish_restore(workspace: Workspace) -> None:
    """Complete a restore that was decided on, or remove the remains of one that was not.

    The caller has exclusive access to the database. Raises OSError, and ConfigError if the decision file has a content
    that this module did not write.
    """
    decision = workspace.restore_file
    try:
        chosen = read_regular(decision, _LONGEST_DECISION).decode("utf-8", "replace")
    except FileNotFoundError:
        _remove_incoming(workspace)
        return
    if _DECISION.fullmatch(chosen) is None:
        raise ConfigError(
            f"{decision} does not contain the name of a directory aside-<time>; delete it, then repeat the restore"
        )
    aside = workspace.memory_dir / chosen.strip()
    incoming, database = _incoming(workspace), workspace.database
    if incoming.exists():
        for suffix in _SUFFIXES:
            present = sibling(database, suffix)
            if os.path.lexists(present):
                aside.mkdir(mode=0o700, exist_ok=True)
                present.rename(aside / present.name)
            sync_point("restore.moved_aside")
        if aside.exists():
            fsync_path(aside)
        forget_runs(database)
        fsync_path(workspace.memory_dir)
        incoming.rename(database)
        sync_point("restore.installed")
    fsync_path(workspace.memory_dir)
    for cache in workspace.index_dir.glob("*") if workspace.index_dir.is_dir() else ():
        if cache.is_file():
            cache.unlink(missing_ok=True)
    workspace.integrity_check_file.unlink(missing_ok=True)
    sync_point("restore.before_end")
    decision.unlink(missing_ok=True)
    fsync_path(workspace.daemon_dir)


def _is_in_use(path: Path, workspace: Workspace) -> bool:
    """Return whether a daemon has the database file at ``path``. This process itself has locked ``workspace``."""
    if path.parent == workspace.memory_dir.resolve():
        return False
    return is_locked(path.parent, directory=True) or is_locked(path)


def _copy_in(source: Path, incoming: Path) -> None:
    """Copy ``source`` and the logs beside it, which SQLite then finds beside the copy. Raises OSError, ConfigError."""
    real = source.resolve()
    files = [real, *nonempty_logs(real)]
    needed = sum(file.stat().st_size for file in files)
    free = shutil.disk_usage(incoming.parent).free
    if free < needed:
        raise OSError(f"the copy needs {needed / 1e6:.0f} MB of free disk, but only {free / 1e6:.0f} MB are free")
    for file in files:
        target = sibling(incoming, file.name.removeprefix(real.name))
        descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as new, os.fdopen(open_regular(file, os.O_RDONLY), "rb") as old:
            shutil.copyfileobj(old, new, 1 << 20)


def _remove_incoming(workspace: Workspace) -> None:
    """Remove the remains of a copy that was not decided on."""
    incoming = _incoming(workspace)
    for suffix in _SUFFIXES:
        with contextlib.suppress(OSError):
            sibling(incoming, suffix).unlink(missing_ok=True)


def _write_decision(workspace: Workspace, aside: Path, parent_pid: int) -> bool:
    """Write the decision file; from here on the restore will be completed, even after a crash.

    Return False without writing it if the process ``parent_pid`` (0: none) has exited.
    """
    with FileDraft(workspace.restore_file) as draft:
        draft.file.write(f"{aside.name}\n".encode())
        draft.sync()
        fsync_path(workspace.memory_dir)
        sync_point("restore.before_decision")
        if parent_pid and not supervisor_is_alive(parent_pid):
            return False
        draft.replace()
    fsync_path(workspace.daemon_dir)
    sync_point("restore.decided")
    return True


def _carry_over(present: Path, incoming: Path, now: str) -> bool | None:
    """Let the copy know what must not be stored or shown again by the present database, and is not in the backup.

    Return None if there is no present database, False if it cannot be read, or one of both has another schema than this
    release. Raises StoreError if the copy cannot be written.
    """
    if not present.exists():
        return None
    newest = len(load_migrations())
    try:
        replaced = read_engine(present)
        try:
            if replaced.schema_version() != newest or _schema(incoming) != newest:
                return False
            carried = carry_over.read(replaced)
        finally:
            replaced.close()
    except (StoreError, UnicodeDecodeError):
        return False
    copy = SqliteWriter(open_copy(incoming))
    try:
        with copy.begin() as tx:
            carry_over.write(tx, carried, now)
            for agent_id, key in carried.forgotten:
                transcripts.erase_others(tx, agent_id, key)
            tx.commit()
    finally:
        copy.close()
    return True


def _end_tokens(incoming: Path, now: str) -> None:
    """Revoke what the copy accepts, if its schema has tokens. Raises StoreError."""
    if _schema(incoming) < _SCHEMA_WITH_TOKENS:
        return
    copy = SqliteWriter(open_copy(incoming))
    try:
        with copy.begin() as tx:
            carry_over.end_tokens(tx, now)
            tx.commit()
    finally:
        copy.close()


def _record(present: Path, incoming: Path, backup: str, now: str) -> None:
    """Add the restore to the copy's audit log, with the last row of the log that it replaces, if that can be read.

    A backup with the schema of an older release has no log. Raises StoreError.
    """
    if _schema(incoming) != len(load_migrations()):
        return
    detail: dict[str, Any] = {"backup": backup, "uid": os.geteuid()}
    if present.exists():
        with contextlib.suppress(StoreError, UnicodeDecodeError):
            replaced = read_engine(present)
            try:
                last = kept_link(replaced, HEAD)
            finally:
                replaced.close()
            detail |= {"replacedRow": last.seq, "replacedHash": last.hash}
    event = AuditEvent(created_at=now, kind=RESTORE, actor="signet restore", outcome="done", detail=detail)
    copy = SqliteWriter(open_copy(incoming))
    try:
        with copy.begin() as tx:
            append(tx, (event,))
            tx.commit()
    finally:
        copy.close()


def _select_backup(workspace: Workspace, source: str, now_ms: int) -> tuple[Path | None, str | None, list[str]]:
    """Return the chosen file, the name of the newest other backup in case the file is damaged, and the passed over.

    Passed over are backups whose names are in the future, where ``latest`` is asked for and there are others.
    """
    try:
        names = newest_first(os.listdir(workspace.backup_dir), now_ms=now_ms)
    except (FileNotFoundError, NotADirectoryError):
        names = []
    if source == LATEST:
        chosen = workspace.backup_dir / names[0].name if names else None
        ahead = [found.name for found in names[1:] if found.is_ahead_of(now_ms) and not names[0].is_ahead_of(now_ms)]
        return chosen, (names[1].name if len(names) > 1 else None), ahead
    given = Path(source).expanduser()
    named = workspace.backup_dir / given.name
    path = named if given.name == source and named.exists() and not given.exists() else given
    others = [found.name for found in names if found.name != path.name]
    return path, others[0] if others else None, []


def _incoming(workspace: Workspace) -> Path:
    return sibling(workspace.database, ".incoming")


def _schema(path: Path) -> int:
    reader = read_engine(path)
    try:
        return reader.schema_version()
    finally:
        reader.close()


def _count_memories(path: Path) -> int | None:
    """Return how many live memories the present database has, or None if it cannot be read."""
    try:
        reader = read_engine(path)
        try:
            return live_memories(reader)
        finally:
            reader.close()
    except (StoreError, UnicodeDecodeError):
        return None


def _count_missing(present: Path, incoming: Path) -> int | None:
    """Return how many live memories of the present database the backup lacks, or None if it cannot be read."""
    try:
        kept = _live_ids(incoming)
        return len(_live_ids(present) - kept)
    except (StoreError, UnicodeDecodeError):
        return None


def _live_ids(path: Path) -> set[str]:
    reader = read_engine(path)
    try:
        return live_ids(reader)
    finally:
        reader.close()


def _print(report: Any, code: int) -> int:
    sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    return code
