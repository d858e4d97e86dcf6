"""``python -m signet_actors.writer --check``: is the database whole? For when the daemon is down.

Takes the workspace lock, so that it cannot run beside a daemon. Prints one JSON object: ``ok``, ``findings`` (one text
each), ``memories``. Exit code 0 when whole, 74 when damaged, 73 when a daemon runs, 78 when the file is not ours.

Source: house.md section 3 rule 5; reliability.md R18.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from pathlib import Path

import msgspec

from signet_actors.config.load import workspace_from
from signet_actors.config.workspace import Workspace
from signet_actors.errors import ExitCode, ForeignDatabase, WorkspaceLocked
from signet_actors.runtime.workspace_lock import WorkspaceLock
from signet_actors.store.connect import open_writer
from signet_actors.store.failures import Connection, StoreError

_LOCK_TRIES = 500


def check_command() -> int:
    """Checks the database of ``SIGNET_WORKSPACE`` and prints the verdict."""
    workspace = Workspace(workspace_from(os.environ))
    if not workspace.daemon_dir.is_dir():
        return _say([f"{workspace.root} holds no workspace yet"], 0, ExitCode.OK)
    lock = WorkspaceLock(workspace.lock_file)
    try:
        lock.acquire()
        findings, memories = check_database(workspace.database)
    except WorkspaceLocked as error:
        return _say([error.detail], 0, ExitCode.IN_USE)
    except ForeignDatabase as error:
        return _say([error.detail], 0, ExitCode.CONFIG)
    except StoreError as error:
        return _say([str(error)], 0, ExitCode.IO_ERROR)
    finally:
        lock.release()
    return _say(findings, memories, ExitCode.IO_ERROR if findings else ExitCode.OK)


def check_database(path: Path) -> tuple[list[str], int]:
    """``(findings, live memories)``: structure, foreign keys, the text index against its rows, every row's checksum."""
    if not path.exists():
        return [f"{path} does not exist yet"], 0
    connection = open_writer(path, busy=_wait_for_lock)
    try:
        return list(_findings(connection)), int(connection.execute("SELECT count(*) FROM memories_live").get)
    finally:
        connection.close()


def _wait_for_lock(calls: int) -> bool:
    time.sleep(0.01)
    return calls < _LOCK_TRIES


def _findings(connection: Connection) -> list[str]:
    findings = [str(row[0]) for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
    findings += [f"foreign key of {row[0]} row {row[1]}" for row in connection.execute("PRAGMA foreign_key_check")]
    try:
        connection.execute("INSERT INTO memories_fts (memories_fts, rank) VALUES ('integrity-check', 1)")
    except StoreError as error:
        findings.append(f"the text index does not match its rows: {error}")
    for memory_id, content, checksum in connection.execute(
        "SELECT id, CAST(content AS BLOB), content_sha256 FROM memories"
    ):
        if hashlib.sha256(content).digest() != checksum:
            findings.append(f"memory {memory_id}: the content does not match its checksum")
    return findings


def _say(findings: list[str], memories: int, code: int) -> int:
    sys.stdout.buffer.write(
        msgspec.json.encode({"ok": not findings, "findings": findings, "memories": memories}) + b"\n"
    )
    return code
