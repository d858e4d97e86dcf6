"""A verified backup every day, of which the newest few are kept, and with each a full check of the database.

The writer copies pages between commits, another process checks the copy, and only one that passes gets the name of a
backup. Since the copy has the database's pages, this also scrubs the database, without pinning a snapshot. If a second
copy shows structural damage too, the writer is told to refuse writes; other damage is only reported.

Source: docs/reliability.md R17, R18, R23.
Departs: no scrub reads the database in place; with ``backup.intervalMs`` 0 nothing is scrubbed automatically.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from signet_actors.config.schema import Config
from signet_actors.config.workspace import DATABASE_NAME
from signet_actors.domain.backups import SPARE_BYTES, backup_name, newest_first, parse_backup_name, surplus
from signet_actors.domain.timestamps import iso
from signet_actors.errors import ErrorCode
from signet_actors.operations.repair import BackupEnd, BackupEntry, BackupFinding
from signet_actors.protocol.backups import AdvanceBackup, BackupProgress, BackupVerification
from signet_actors.protocol.message import Failure
from signet_actors.protocol.retention import BackupState
from signet_actors.protocol.writer import GetWriterStatus, ReportDamage
from signet_actors.retention.work_process import Work
from signet_actors.retention.writer_ref import ASK_TIMEOUT_MS, WriterRef
from signet_actors.runtime.clock import Clock

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

FIRST_AFTER_MS: Final = 5 * 60_000
"""The first backup waits until the daemon has settled."""
LOOK_MS: Final = 5 * 60_000
"""How often the age of the newest backup is looked at. The monotonic clock stands still while the machine sleeps, so a
wait of a day would be a day of waking time."""
POLL_MS: Final = 100
RETRY_MS: Final = 60 * 60_000
"""The wait after a failed backup."""
LONGEST_MS: Final = 60 * 60_000
"""A copy or check that takes longer is abandoned."""
NEVER_NS: Final = 1 << 62
STRUCTURE: Final = "structure"
_TRANSIENT: Final = frozenset({ErrorCode.UNAVAILABLE, ErrorCode.OUTCOME_UNKNOWN, ErrorCode.BUSY})
PARTIAL: Final = ".partial"


class Backup:
    """The duty. ``findings`` of the last check and ``problem`` of the last backup are empty while all is well."""

    def __init__(
        self,
        writer: WriterRef,
        clock: Clock,
        log: FilteringBoundLogger,
        config: Config,
        directory: Path,
        verify: Callable[[str, int], Work[BackupVerification]],
    ) -> None:
        self._writer = writer
        self._clock = clock
        self._log = log
        self._config = config
        self._directory = directory
        self._verify = verify
        self._name: str | None = None
        self._progress: BackupProgress | None = None
        self._checking: Work[BackupVerification] | None = None
        self._begun_ns = 0
        self._is_recheck = False
        self._copy_begun = False
        self._queued = False
        self._last: BackupEnd | None = None
        self.findings: tuple[str, ...] = ()
        self.problem: str | None = self._unusable()
        self.made = 0
        self.due_ns = self._next_ns(at_least_ms=FIRST_AFTER_MS)

    @property
    def running(self) -> bool:
        return self._name is not None

    def reload(self, config: Config) -> None:
        """Apply the new interval and the number of backups to keep."""
        self._config = config
        if not self.running and not self._queued:
            self.due_ns = self._next_ns(at_least_ms=0)

    def begin(self) -> Failure | None:
        """Start a backup; return a ``Failure`` if the disk has no room for it.

        A backup holds what was committed before it was requested. So one whose copy may be complete already is followed
        by another one, for all that are requested meanwhile.
        """
        if self.running:
            self._queued = self._queued or self._copy_begun
            return None
        if why := self._unusable():
            self._failed(backup_name(self._clock.wall_ms(), 0), why)
            return Failure(ErrorCode.CONFLICT, why)
        self._is_recheck = False
        self._start()
        return None if self._name is None else self._check_disk_space(self._name)

    def _check_disk_space(self, name: str) -> Failure | None:
        database = self._directory.parent / DATABASE_NAME
        try:
            needed = database.stat().st_size + SPARE_BYTES
            free = shutil.disk_usage(database.parent).free
        except OSError:
            return None  # the writer, which makes the copy, reports the error
        if free >= needed:
            return None
        why = f"a backup needs {needed / 1e6:.0f} MB of free disk, but only {free / 1e6:.0f} MB are free"
        self._failed(name, why)
        return Failure(ErrorCode.STORAGE_FULL, why)

    def step(self) -> None:
        """Ask the writer how far the copy is, or the check whether it has finished."""
        if self._name is None:
            if self._queued or self.problem is not None or self._wait_ms() <= 0:
                self.begin()
            else:
                self.due_ns = self._next_ns(at_least_ms=0)
            return
        self.due_ns = self._clock.monotonic_ns() + POLL_MS * 1_000_000
        if self._clock.monotonic_ns() - self._begun_ns > LONGEST_MS * 1_000_000:
            self.stop()
            self._failed(self._name, "it took too long")
        elif self._checking is None:
            self._copy(self._name)
        else:
            self._check(self._name, self._checking)

    def stop(self) -> None:
        """Stop a running check. A copy in progress is abandoned by the writer when the requests for it cease."""
        if self._checking is not None:
            self._checking.stop()
            self._checking = None

    def state(self) -> BackupState:
        """Return which backups there are, and how far the one in progress is."""
        return BackupState(
            running=self._name,
            phase=None if self._name is None else "copying" if self._checking is None else "verifying",
            pages=self._progress.pages if self._progress else 0,
            pages_left=self._progress.remaining if self._progress else 0,
            last=self._last,
            backups=self._backups(),
            directory=str(self._directory),
            queued=self._queued,
        )

    def newest_at(self) -> str | None:
        """Return when the newest backup was made (ISO), or None."""
        names = newest_first(self._names(), now_ms=self._clock.wall_ms())
        return iso(names[0].made_ms) if names else None

    def _start(self) -> None:
        now_ns = self._clock.monotonic_ns()
        self._begun_ns = self.due_ns = now_ns
        self._copy_begun = self._queued = False  # every request so far came before this copy
        status = self._writer.ask(GetWriterStatus(), timeout_ms=ASK_TIMEOUT_MS)
        if isinstance(status, Failure) or status.damage is not None:
            why = status.detail if isinstance(status, Failure) else status.damage
            self._failed(backup_name(self._clock.wall_ms(), 0), why or "the writer did not answer")
            return
        self._sweep_partials()  # an unfinished copy may take the room that this one needs
        self._name = backup_name(self._clock.wall_ms(), status.schema_version)
        self._progress = None

    def _copy(self, name: str) -> None:
        self._copy_begun = True
        answer = self._writer.ask(AdvanceBackup(name), timeout_ms=ASK_TIMEOUT_MS)
        if isinstance(answer, Failure):
            if answer.code not in _TRANSIENT and not self._is_transient(answer):
                self._failed(name, answer.detail)
            return  # a restarted writer begins the copy again, a busy one continues it
        self._progress = answer
        if answer.state == "failed":
            self._failed(name, answer.detail or "the copy failed")
        elif answer.state == "copied":
            try:
                self._checking = self._verify(name, answer.last_seq)
            except OSError as error:
                self._failed(name, f"the check of the copy could not be started: {error}")

    def _is_transient(self, answer: Failure) -> bool:
        """Return whether the writer missed the deadline for another reason than damage, such as a foreign lock."""
        if answer.code is not ErrorCode.NOT_APPLIED:
            return False
        status = self._writer.ask(GetWriterStatus(), timeout_ms=ASK_TIMEOUT_MS)
        return isinstance(status, Failure) or status.damage is None

    def _check(self, name: str, checking: Work[BackupVerification]) -> None:
        verdict = checking.poll()
        if verdict is None:
            return
        self._checking = None
        if verdict.ok:
            self._done(name, verdict.memories)
            return
        if not verdict.findings:
            self._failed(name, verdict.detail or "the check of the copy failed")
            return
        self._log.error("scrub_found_damage", findings=[text for _, text in verdict.findings])
        if any(kind == STRUCTURE for kind, _ in verdict.findings):
            if not self._is_recheck:
                self._is_recheck = True  # the copy may be damaged although the database is not
                self._start()
                return
            self._writer.ask(ReportDamage(verdict.findings[0][1]), timeout_ms=ASK_TIMEOUT_MS)
        self.findings = tuple(text for _, text in verdict.findings)
        self._failed(name, "the database failed its check: run `signet doctor --deep`", verdict.findings)

    def _done(self, name: str, memories: int) -> None:
        self.made += 1
        self.findings, self.problem = (), None
        for old in surplus(self._names(), self._config.backup.keep, made=name, now_ms=self._clock.wall_ms()):
            self._delete(old)
        self._sweep_partials()
        self._log.info("backup_completed", name=name, memories=memories)
        self._end(BackupEnd(name, True, "verified", [], memories, iso(self._clock.wall_ms())))
        self.due_ns = self._next_ns(at_least_ms=POLL_MS)
        self._begin_queued()

    def _failed(self, name: str, why: str, findings: list[tuple[str, str]] | None = None) -> None:
        self.problem = why
        self._log.warning("backup_failed", name=name, detail=why)
        defects = [BackupFinding(*finding) for finding in findings or ()]
        self._end(BackupEnd(name, False, why, defects, 0, iso(self._clock.wall_ms())))
        self.due_ns = self._clock.monotonic_ns() + RETRY_MS * 1_000_000 if self._config.backup.interval_ms else NEVER_NS
        self._begin_queued()

    def _begin_queued(self) -> None:
        """Make the next step begin the backup that was requested during the one that has ended."""
        if self._queued:
            self.due_ns = self._clock.monotonic_ns()

    def _end(self, outcome: BackupEnd) -> None:
        self._last = outcome
        self._name = self._progress = None

    def _next_ns(self, *, at_least_ms: int) -> int:
        """Return when the next backup is due, or when to look again whether it is."""
        if self._config.backup.interval_ms == 0:
            return NEVER_NS
        return self._clock.monotonic_ns() + max(min(self._wait_ms(), LOOK_MS), at_least_ms) * 1_000_000

    def _wait_ms(self) -> int:
        """Return how long the newest backup is recent enough, at most one interval; 0 or less if it is too old.

        A backup whose name is in the future does not count, since the clock was wrong when it was made or is now.
        """
        interval_ms = self._config.backup.interval_ms
        now_ms = self._clock.wall_ms()
        ages_ms = [now_ms - found.made_ms for found in newest_first(self._names()) if not found.is_ahead_of(now_ms)]
        return min(interval_ms - ages_ms[0], interval_ms) if ages_ms else 0

    def _names(self) -> list[str]:
        try:
            return os.listdir(self._directory)
        except OSError:  # missing, or `_unusable` says why
            return []

    def _unusable(self) -> str | None:
        """Return why no backup can be in the directory; None if one can."""
        try:
            os.listdir(self._directory)
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            return f"{self._directory} is not a directory; move or delete it, because backups need a directory there"
        except OSError as error:
            return f"{self._directory} cannot be read: {error.strerror}"
        return None

    def _delete(self, name: str) -> None:
        try:
            (self._directory / name).unlink(missing_ok=True)
        except OSError as error:
            self._log.warning("backup_not_deleted", name=name, reason=error.strerror)

    def _sweep_partials(self) -> None:
        """Delete unfinished copies with their journals or logs."""
        for name in self._names():
            target, partial, _ = name.partition(PARTIAL)
            if partial and parse_backup_name(target) is not None:
                self._delete(name)

    def _backups(self) -> list[BackupEntry]:
        found = []
        for backup in newest_first(self._names()):
            try:
                size = (self._directory / backup.name).stat().st_size
            except OSError:
                continue
            found.append(BackupEntry(backup.name, iso(backup.made_ms), backup.schema, size))
        return found
