"""``python -m signet_actors.writer --restore FILE``: a backup takes the database's place; either old or new, always.

The backup is copied beside the database and verified there. Then one small file is written, ``.daemon/restore``, and
from that moment the restore will be finished by whoever comes next: this command, or the next start of the daemon.
Finishing sets the present database aside by rename, with its log, and gives its name to the verified copy. Every step
can be done twice. Nothing is ever deleted that is not a copy.

Source: reliability.md R18; house.md section 3 rule 5.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any, Final

import msgspec

from signet_actors.config.workspace import Workspace
from signet_actors.domain.backups import newest_first, parse_backup_name
from signet_actors.errors import ConfigError, ExitCode, WorkspaceLocked
from signet_actors.runtime.clock import iso
from signet_actors.runtime.file_sync import sync_to_disk
from signet_actors.runtime.sync_points import sync_point
from signet_actors.runtime.workspace_lock import FileLock, WorkspaceLock
from signet_actors.store.connect import open_reader
from signet_actors.store.failures import StoreError
from signet_actors.store.migrate import load_migrations, schema_version
from signet_actors.writer.backup import verify_backup

LATEST: Final = "latest"
_SUFFIXES: Final = ("-wal", "-shm", "-journal", "")
"""The log leaves before its database: a log without one is nothing, a database without its log has lost commits."""


class Told(msgspec.Struct, omit_defaults=True):
    """What the command prints: ``age_ms`` is the time that is lost, None when the file's name does not tell it."""

    ok: bool
    findings: list[str] = []
    restored: str | None = None
    aside: str | None = None
    made_at: str | None = None
    age_ms: int | None = None
    memories_before: int | None = None
    memories_after: int | None = None
    other: str | None = None


def restore_command(source: str) -> int:
    """The backup ``source`` (a path, or ``latest``) is the database; prints one JSON object.

    Exit code 0; 73 when a daemon runs; 74 when the backup is damaged or the disk failed; 78 when there is no such
    backup, or it is of a newer schema. After anything but 0 the database is the one it was.
    """
    from signet_actors.config.load import workspace_from  # noqa: PLC0415 - the actor is born without a YAML parser

    workspace = Workspace(workspace_from(os.environ))
    try:
        workspace.ensure()
    except ConfigError as error:
        return _tell(Told(False, [error.detail]), ExitCode.CONFIG)
    lock, writer_lock = WorkspaceLock(workspace), FileLock(workspace.daemon_dir / "writer.lock")
    try:
        lock.acquire()
        writer_lock.acquire()
        told, code = restore(workspace, source, now_ms=int(time.time() * 1000))
    except WorkspaceLocked as error:
        return _tell(Told(False, [error.detail]), ExitCode.IN_USE)
    except ConfigError as error:
        return _tell(Told(False, [error.detail]), ExitCode.CONFIG)
    except OSError as error:
        return _tell(Told(False, [str(error)]), ExitCode.IO_ERROR)
    finally:
        writer_lock.release()
        lock.release()
    return _tell(told, code)


def restore(workspace: Workspace, source: str, *, now_ms: int) -> tuple[Told, int]:
    """What was done, and the exit code. The caller holds the workspace."""
    finish_restore(workspace)
    path, other = _chosen(workspace, source)
    if path is None or not path.is_file():
        return Told(False, [f"there is no backup {source}"]), ExitCode.CONFIG
    incoming = _incoming(workspace)
    for left in (incoming, *(_beside(incoming, suffix) for suffix in ("-wal", "-shm", "-journal"))):
        left.unlink(missing_ok=True)
    descriptor = os.open(incoming, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        with path.open("rb") as old, os.fdopen(descriptor, "wb") as new:
            shutil.copyfileobj(old, new, 1 << 20)
    except OSError:
        incoming.unlink(missing_ok=True)
        raise
    sync_point("restore.copied")
    name = parse_backup_name(path.name)
    findings, memories = verify_backup(incoming, name)
    if findings:
        incoming.unlink(missing_ok=True)
        return Told(False, [finding.text for finding in findings[:10]], other=other), ExitCode.IO_ERROR
    schema = _schema(incoming)
    if schema > len(load_migrations()):
        incoming.unlink(missing_ok=True)
        text = f"{path} has schema {schema}, this release knows {len(load_migrations())}: install the newer release"
        return Told(False, [text]), ExitCode.CONFIG
    sync_to_disk(incoming)
    before = _memories(workspace.database)
    aside = workspace.memory_dir / f"aside-{now_ms}"
    _decide(workspace, aside)
    finish_restore(workspace)
    return (
        Told(
            True,
            [],
            str(path),
            str(aside) if aside.exists() else None,
            None if name is None else iso(name.made_ms),
            None if name is None else max(0, now_ms - name.made_ms),
            before,
            memories,
        ),
        ExitCode.OK,
    )


def finish_restore(workspace: Workspace) -> None:
    """No restore is half done: one that was decided is carried out; one that was not has never been.

    The caller holds the database alone. Raises OSError.
    """
    decision = workspace.restore_file
    try:
        aside = workspace.memory_dir / Path(decision.read_text("utf-8").strip()).name
    except FileNotFoundError:
        return
    incoming, database = _incoming(workspace), workspace.database
    if incoming.exists():
        aside.mkdir(mode=0o700, exist_ok=True)
        for suffix in _SUFFIXES:
            present = _beside(database, suffix)
            if present.exists():
                present.rename(aside / present.name)
            sync_point("restore.moved_aside")
        sync_to_disk(aside)
        sync_to_disk(workspace.memory_dir)
        incoming.rename(database)
        sync_point("restore.installed")
    sync_to_disk(workspace.memory_dir)
    for cache in workspace.index_dir.glob("*") if workspace.index_dir.is_dir() else ():
        if cache.is_file():
            cache.unlink(missing_ok=True)
    workspace.suspect_file.unlink(missing_ok=True)
    sync_point("restore.before_end")
    decision.unlink(missing_ok=True)
    sync_to_disk(workspace.daemon_dir)


def _decide(workspace: Workspace, aside: Path) -> None:
    """From here on the restore will be finished, whatever happens."""
    draft = _beside(workspace.restore_file, ".draft")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(f"{aside.name}\n")
    sync_to_disk(draft)
    sync_to_disk(workspace.memory_dir)
    sync_point("restore.before_decision")
    draft.rename(workspace.restore_file)
    sync_to_disk(workspace.daemon_dir)
    sync_point("restore.decided")


def _chosen(workspace: Workspace, source: str) -> tuple[Path | None, str | None]:
    """The file that is meant, and the next older backup in case it is damaged."""
    try:
        names = newest_first(os.listdir(workspace.backup_dir))
    except FileNotFoundError:
        names = []
    if source == LATEST:
        return (workspace.backup_dir / names[0].name if names else None), (names[1].name if len(names) > 1 else None)
    given = Path(source).expanduser()
    named = workspace.backup_dir / given.name
    path = named if given.name == source and named.exists() and not given.exists() else given
    others = [found.name for found in names if found.name != path.name]
    return path, others[0] if others else None


def _incoming(workspace: Workspace) -> Path:
    return _beside(workspace.database, ".incoming")


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _schema(path: Path) -> int:
    reader = open_reader(path)
    try:
        return schema_version(reader)
    finally:
        reader.close()


def _memories(path: Path) -> int | None:
    """How many live memories the present database has, None where it cannot tell."""
    try:
        reader = open_reader(path)
        try:
            return int(reader.execute("SELECT count(*) FROM memories WHERE is_deleted = 0").get)
        finally:
            reader.close()
    except (StoreError, UnicodeDecodeError):
        return None


def _tell(told: Any, code: int) -> int:
    sys.stdout.buffer.write(msgspec.json.encode(told) + b"\n")
    return code
