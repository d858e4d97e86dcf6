"""``python -m signet_actors.writer --check``: check the database while the daemon is stopped.

Takes the workspace lock. Prints one JSON object: ``ok``, ``findings`` (texts), ``kinds`` (of each finding: the store's
checks), ``memories`` and ``repaired`` (what was rebuilt). Exit code 0 when whole, 74 when damaged or not checked, 73
when a daemon runs, 78 when the file is not ours. Writes nothing without ``--repair``; ``--deep`` adds slower checks:
vectors against their search index, rows against each other.

Source: docs/architecture.md "Dependency rules" 5; docs/reliability.md R18.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from signet_actors.config.workspace import Workspace, workspace_from
from signet_actors.errors import (
    CheckIncomplete,
    ConfigError,
    DatabaseMissing,
    ExitCode,
    ForeignDatabase,
    WorkspaceLocked,
)
from signet_actors.runtime.supervision.workspace_lock import WorkspaceLock
from signet_actors.store.engine import Reads
from signet_actors.store.errors import DAMAGED, UNCHECKABLE, StoreError
from signet_actors.store.findings import INDEX, STRUCTURE, UNCHECKED, Finding, incomplete, is_structural
from signet_actors.store.reads.stats import live_memories
from signet_actors.store.sqlite.database_files import refuse_unsafe_files
from signet_actors.store.sqlite.reader import read_engine
from signet_actors.store.sqlite.stale_log import refuse_stale_log
from signet_actors.store.sqlite.writer import write_engine
from signet_actors.store.vector_file import vector_file_findings
from signet_actors.writer.open_files import OpenFiles
from signet_actors.writer.restore import finish_restore

_LOCK_TRIES = 500


class CheckResult(NamedTuple):
    """``memories``: the live ones; ``repaired``: what was rebuilt."""

    findings: list[Finding]
    memories: int
    repaired: tuple[str, ...] = ()


def check_command(*, deep: bool, repair: bool) -> int:
    """Check (and with ``repair`` mend) the database of ``SIGNET_WORKSPACE``, and print the result."""
    workspace = Workspace(workspace_from(os.environ).resolve())
    if not workspace.memory_dir.is_dir():
        return _print(
            CheckResult([Finding(STRUCTURE, f"{workspace.root} does not contain a workspace yet")], 0), ExitCode.OK
        )
    lock = WorkspaceLock(workspace, tool="repair" if repair else "check")
    try:
        workspace.ensure()
        lock.acquire()
        finish_restore(workspace)
        refuse_unsafe_files(workspace.database)
        refuse_stale_log(workspace.database)
        if not workspace.database.exists():
            files = OpenFiles(workspace, ())
            if not files.may_create:
                raise DatabaseMissing(files.missing_message(f"{workspace.database} is missing"))
            return _print(CheckResult([Finding(STRUCTURE, f"{workspace.database} does not exist yet")], 0), ExitCode.OK)
        checked = check_database(workspace.database, deep=deep, index_dir=workspace.index_dir)
        if repair and any(finding.kind == INDEX for finding in checked.findings):
            checked = _repair(workspace, checked)
    except WorkspaceLocked as error:
        return _print(CheckResult([Finding(STRUCTURE, error.detail)], 0), ExitCode.IN_USE)
    except (ConfigError, ForeignDatabase) as error:
        return _print(CheckResult([Finding(STRUCTURE, error.detail)], 0), ExitCode.CONFIG)
    except CheckIncomplete as error:
        return _print(CheckResult([Finding(UNCHECKED, f"it {error.detail}")], 0), ExitCode.IO_ERROR)
    except UNCHECKABLE as error:
        return _print(CheckResult([Finding(UNCHECKED, f"it {incomplete(error).detail}")], 0), ExitCode.IO_ERROR)
    except (DatabaseMissing, StoreError) as error:
        return _print(CheckResult([Finding(STRUCTURE, str(error))], 0), ExitCode.IO_ERROR)
    finally:
        lock.release()
    return _print(checked, ExitCode.IO_ERROR if checked.findings else ExitCode.OK)


def check_vector_files_command() -> int:
    """Compare only the vector files with the database, beside a running daemon, and print the result. Takes no lock."""
    workspace = Workspace(workspace_from(os.environ).resolve())
    try:
        engine = read_engine(workspace.database)
        try:
            findings = vector_file_findings(engine, workspace.index_dir, in_use=True)
            checked = CheckResult(findings, _count_memories(engine))
        finally:
            engine.close()
    except (StoreError, OSError) as error:
        return _print(CheckResult([Finding(STRUCTURE, str(error))], 0), ExitCode.IO_ERROR)
    return _print(checked, ExitCode.IO_ERROR if checked.findings else ExitCode.OK)


def check_database(path: Path, *, deep: bool = False, index_dir: Path | None = None) -> CheckResult:
    """Return what is wrong with the database, which no process has open; ``deep`` includes the files in ``index_dir``.

    Raises ``ForeignDatabase``, ``CheckIncomplete`` and ``StoreError``.
    """
    try:
        engine = write_engine(path, busy=_wait_for_lock, create=False, set_wal=False)
    except DatabaseMissing as error:
        return CheckResult([Finding(STRUCTURE, error.detail)], 0)
    except DAMAGED as error:
        return CheckResult([Finding(STRUCTURE, f"it cannot be opened: {error}")], 0)
    try:
        findings = engine.findings(deep=deep)
        if deep and index_dir is not None and not is_structural(findings):
            findings += vector_file_findings(engine, index_dir)
        return CheckResult(findings, _count_memories(engine))
    finally:
        engine.close()


def _count_memories(view: Reads) -> int:
    try:
        return live_memories(view)
    except StoreError:
        return 0


def _repair(workspace: Workspace, checked: CheckResult) -> CheckResult:
    """Rebuild every index from its rows, after copying the database as it was to a directory beside it."""
    if is_structural(checked.findings):
        return checked
    aside = workspace.memory_dir / f"aside-{int(time.time() * 1000)}"
    aside.mkdir(mode=0o700)
    for suffix in ("", "-wal"):
        present = workspace.database.with_name(workspace.database.name + suffix)
        if present.exists():
            shutil.copy2(present, aside)
    engine = write_engine(workspace.database, busy=_wait_for_lock)
    try:
        repaired = engine.repair_indexes()
    finally:
        engine.close()
    for cache in workspace.index_dir.glob("*"):
        cache.unlink(missing_ok=True)
    again = check_database(workspace.database, deep=True)
    return CheckResult(again.findings, again.memories, (*repaired, f"the previous database is in {aside}"))


def _wait_for_lock(calls: int) -> bool:
    time.sleep(0.01)
    return calls < _LOCK_TRIES


def _print(checked: CheckResult, code: int) -> int:
    report = {
        "ok": not checked.findings,
        "findings": [finding.text for finding in checked.findings],
        "kinds": [finding.kind for finding in checked.findings],
        "memories": checked.memories,
        "repaired": list(checked.repaired),
    }
    sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    return code
