"""The writer's share of a backup: copy some pages between two batches, until the copy is complete.

Verification, naming and pruning take long and run in other processes. The verification is ``python -m
signet_actors.writer --verify NAME``.

Source: docs/reliability.md R17, R18; docs/architecture.md "Dependency rules" 3.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

import msgspec

from signet_actors.config.workspace import Workspace, workspace_from
from signet_actors.domain.backups import SPARE_BYTES, BackupName, parse_backup_name
from signet_actors.errors import CheckIncomplete, ConfigError, ExitCode, ForeignDatabase, InvalidRequest
from signet_actors.protocol.backups import BackupProgress, BackupVerification
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.processes.parent_death import tie_to_supervisor
from signet_actors.store.engine import BackupCopy, WriterEngine
from signet_actors.store.errors import UNCHECKABLE, StoreError
from signet_actors.store.findings import ROWS, STRUCTURE, Finding, incomplete
from signet_actors.store.reads.stats import last_memory_seq
from signet_actors.store.sqlite.connect import check_ownership
from signet_actors.store.sqlite.online_backup import PARTIAL, install, verify_copy
from signet_actors.store.sqlite.reader import read_engine

SLICE_NS: Final = 3_000_000
"""The longest time that a commit may have to wait for pages being copied."""
ABANDONED_AFTER_NS: Final = 60_000_000_000
_NICENESS: Final = 10


class BackupWork:
    """At most one copy in progress, and the result of the last one."""

    def __init__(self, engine: WriterEngine, database: Path, backup_dir: Path, clock: Clock) -> None:
        self._engine = engine
        self._database = database
        self._backup_dir = backup_dir
        self._clock = clock
        self.copy: BackupCopy | None = None
        """The copy in progress."""
        self._progress: BackupProgress | None = None
        self._last_polled_ns = 0

    def advance(self, name: str) -> BackupProgress:
        """Return the progress of the copy ``name``; start it if necessary, and abandon any other copy.

        Raises ``InvalidRequest`` if ``name`` is not the name of a backup.
        """
        if parse_backup_name(name) is None:
            raise InvalidRequest(f"{name!r} is not the name of a backup", field="name")
        self._last_polled_ns = self._clock.monotonic_ns()
        if self._progress is None or self._progress.name != name:
            self.abandon()
            self._progress = self._begin(name)
        return self._progress

    def step(self) -> None:
        """Copy some milliseconds' worth of pages, or end the copy if it is complete, has failed or was abandoned."""
        if self.copy is None or self._progress is None:
            return
        if self._clock.monotonic_ns() - self._last_polled_ns > ABANDONED_AFTER_NS:
            self.abandon()
            return
        name, copy = self._progress.name, self.copy
        try:
            done = copy.step(self._clock, SLICE_NS)
            if not done:
                self._progress = BackupProgress(name, "copying", copy.pages, copy.remaining)
                return
            last_seq = last_memory_seq(self._engine)
        except (OSError, StoreError) as error:
            # The copy's disk failed, or a page cannot be read; if the database is affected, its commits will fail too.
            self.abandon()
            self._progress = BackupProgress(name, "failed", copy.pages, copy.remaining, f"{error}")
            return
        self.copy = None
        copy.close()
        self._progress = BackupProgress(name, "copied", copy.pages, 0, None, last_seq)

    def abandon(self) -> None:
        """End the copy in progress, if any, and delete its incomplete file."""
        copy, self.copy, self._progress = self.copy, None, None
        if copy is not None:
            copy.close()
            copy.partial.unlink(missing_ok=True)

    def _begin(self, name: str) -> BackupProgress:
        try:
            needed = self._engine.database_bytes() + SPARE_BYTES
            free = shutil.disk_usage(self._database.parent).free
            if free < needed:
                return BackupProgress(
                    name,
                    "failed",
                    0,
                    0,
                    f"it needs {needed / 1e6:.0f} MB of free disk, but only {free / 1e6:.0f} MB are free",
                )
            self.copy = self._engine.begin_backup(self._backup_dir / (name + PARTIAL))
        except (OSError, StoreError, ConfigError) as error:
            return BackupProgress(name, "failed", 0, 0, str(error))
        return BackupProgress(name, "copying", 0, 0)


def verify_command(name: str, last_seq: int, boot_pid: int) -> int:
    """Turn the partial copy ``name`` into a backup, or delete it if it is not known to be whole; print the result.

    The process exits together with its parent. Exit code 0, 74 if the copy is damaged or could not be checked, 78 if
    ``name`` is not the name of a backup.
    """
    if not tie_to_supervisor(boot_pid):
        return ExitCode.GIVE_UP
    os.nice(_NICENESS)
    workspace = Workspace(workspace_from(os.environ).resolve())
    parsed = parse_backup_name(name)
    if parsed is None:
        return ExitCode.CONFIG
    target = workspace.backup_dir / name
    partial = target.with_name(name + PARTIAL)
    try:
        findings, memories = verify_backup(partial, parsed, last_seq=last_seq)
        if not findings:
            install(partial, target)
        texts = [(finding.kind, finding.text) for finding in findings[:20]]
        verdict = BackupVerification(not findings, texts, memories)
    except CheckIncomplete as error:
        verdict = BackupVerification(False, [], 0, f"the copy {error.detail}")
    except OSError as error:
        verdict = BackupVerification(False, [], 0, f"the copy could not be put in its place: {error}")
    if not verdict.ok:
        partial.unlink(missing_ok=True)
    sys.stdout.buffer.write(msgspec.json.encode(verdict) + b"\n")
    return ExitCode.OK if verdict.ok else ExitCode.IO_ERROR


def verify_backup(path: Path, name: BackupName | None, *, last_seq: int | None = None) -> tuple[list[Finding], int]:
    """Return ``(findings, live memories)``: is the file ours, whole, complete, and of the schema in its name?

    Raises ``CheckIncomplete`` if that could not be found out.
    """
    try:
        if not check_ownership(path):
            return [Finding(STRUCTURE, f"{path} is missing or empty")], 0
    except OSError as error:
        raise incomplete(error) from error
    except (ForeignDatabase, ConfigError) as error:
        return [Finding(STRUCTURE, str(error))], 0
    findings, memories = verify_copy(path)
    if findings:
        return findings, memories
    try:
        findings += _mismatches(path, name, last_seq)
    except UNCHECKABLE as error:
        raise incomplete(error) from error
    return findings, memories


def _mismatches(path: Path, name: BackupName | None, last_seq: int | None) -> list[Finding]:
    findings = []
    reader = read_engine(path)
    try:
        schema = reader.schema_version()
        if name is not None and schema != name.schema:
            findings.append(Finding(ROWS, f"its schema is {schema}, but its name contains schema {name.schema}"))
        last_copied = last_memory_seq(reader)
        if last_seq is not None and last_copied != last_seq:
            findings.append(
                Finding(
                    ROWS, f"its last memory has the number {last_copied}, but the database's last one has {last_seq}"
                )
            )
    finally:
        reader.close()
    return findings
