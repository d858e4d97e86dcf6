"""The writer: the only process that writes and checkpoints the database. It opens no network socket.

Source: docs/architecture.md "The path of a remember"; docs/reliability.md "Supervision policy" and "The writer's loop";
docs/decisions.md 2, 45.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from signet_actors.config.regular_file import open_regular
from signet_actors.config.schema import Config
from signet_actors.config.workspace import Workspace
from signet_actors.domain.timestamps import iso
from signet_actors.errors import (
    ActorExit,
    ConfigError,
    DatabaseDisplaced,
    DatabaseMissing,
    ExitCode,
    ForeignDatabase,
    NewerSchema,
    SignetError,
    StoreIOError,
    UpgradeRefused,
)
from signet_actors.protocol.control import WalPressure
from signet_actors.protocol.message import Failure
from signet_actors.protocol.pipeline import ReconcileJobs, WatchJobs
from signet_actors.protocol.writer import (
    AdvanceBackup,
    AdvanceHighWaterMark,
    BackupProgress,
    ForgetMany,
    GetWriterStatus,
    PurgeStep,
    ReapLeases,
    ReportDamage,
    TouchMemories,
    WriterCommand,
    WriterStatus,
    WritesDisabled,
)
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.mailbox import Incoming
from signet_actors.runtime.processes.actor_loop import ActorLoop
from signet_actors.runtime.processes.child_context import ChildContext
from signet_actors.store import checkpoint
from signet_actors.store.checkpoint import Pressure
from signet_actors.store.checks import STRUCTURE, is_unread_page, schema_findings
from signet_actors.store.connect import check_sqlite_version, drop_cached_pages, open_reader, open_writer
from signet_actors.store.errors import (
    BROKEN_DISK,
    DAMAGED,
    REMEDY,
    Connection,
    DiskFull,
    LockTimeout,
    StoreError,
    check_schema,
)
from signet_actors.store.migrate import migrate, schema_version
from signet_actors.store.stale_log import note_runs, refuse_stale_log
from signet_actors.store.transaction import write_transaction
from signet_actors.store.vector_checks import sequence_errors
from signet_actors.store.vector_epochs import VectorEpochs, begin_epoch, read_stored
from signet_actors.writer.backup import BackupWork
from signet_actors.writer.busy_handler import BusyHandler, lock_wait_until_ns
from signet_actors.writer.command_context import CommandContext, QueueChanges, RowCache
from signet_actors.writer.commands import agents
from signet_actors.writer.disk_reserve import DiskReserve
from signet_actors.writer.group_commit import GroupCommit, RunOptions, failure_for_unstarted
from signet_actors.writer.idempotency import request_key
from signet_actors.writer.job_waiters import JobWaiters
from signet_actors.writer.open_files import OpenFiles
from signet_actors.writer.restore import finish_restore
from signet_actors.writer.stopped_commands import StoppedCommands

_NS = 1_000_000_000
_HOUSEKEEPING_NS = 60 * _NS
_BACKGROUND_COMMANDS = (PurgeStep, ReapLeases, ReconcileJobs, AdvanceHighWaterMark)
"""Periodic commands that are repeated later anyway. Their deadlines do not follow from ``requestTimeoutMs``, so they do
not limit how long a batch waits for a lock."""
_PROGRESS_STEPS = 20_000
"""Steps of SQLite's virtual machine between two heartbeat checks: some milliseconds."""
_LONGEST_BATCH_NS = 10 * _NS
"""A commit that takes longer counts as hung: its heartbeats end, and the supervisor kills this process. Its sync has a
limit of its own (``call_reporter``)."""
_COMMIT_BYTES = 1 << 20
"""The messages of one commit are at most this long together, unless it is a single one."""
_SLOW_SYNC_NS = _NS
_SLOW_SYNC_REPORTED_NS = 60 * _NS
"""How long a slow sync is reported when none follows it."""
_MAX_FINDINGS_NAMED = 5
_DISPLACED_EXIT_NS = 5 * _NS
"""The supervisor stops the daemon within this time. If it did not, the file was back when the supervisor looked, and a
new process may open it."""
_QUICK_CHECK_BYTES = 64 << 20
"""Larger files are not read in full at start; `signet doctor` checks them on demand."""


class Damaged(SignetError):
    """The structure of the database is damaged."""


def _parts(
    commands: Sequence[Incoming[WriterCommand]], most_commands: int
) -> Iterator[Sequence[Incoming[WriterCommand]]]:
    """Split the commands into commits of bounded work. A command that was sent before gets a commit of its own."""
    part: list[Incoming[WriterCommand]] = []
    size = 0
    for incoming in commands:
        alone = incoming.header.attempt > 1
        if part and (alone or len(part) >= most_commands or size + incoming.nbytes > _COMMIT_BYTES):
            yield part
            part, size = [], 0
        part.append(incoming)
        size += incoming.nbytes
        if alone:
            yield part
            part, size = [], 0
    if part:
        yield part


class Writer:
    """Run commands in group commits, and do housekeeping between batches."""

    def __init__(self, boot: ChildContext, loop: ActorLoop, clock: Clock, rng: random.Random, log: Any) -> None:
        self.boot = boot
        self.loop = loop
        self.clock = clock
        self.rng = rng
        self.log = log
        self.config: Config = boot.config
        self.workspace = Workspace(Path(boot.workspace))
        self.busy_handler = BusyHandler(clock, loop, boot.config.supervision.start_timeout_ms)
        self.files = OpenFiles(self.workspace, boot.files, linked=self._warn_of_link)
        self.connection: Connection | None = None
        self.group: GroupCommit | None = None
        self.backup: BackupWork | None = None
        self.job_waiters = JobWaiters(clock)
        self.damage: str | None = None
        """Why every write is refused: what is wrong with the structure of the database. None while it is sound."""
        self.displacement: str | None = None
        """Why every command is refused: which database file is no longer at its path. None while all are."""
        self._displaced_since_ns = 0
        self._wal_holds_erased_text = True
        """Whether the write-ahead log may hold erased text. True at start, because an earlier incarnation may have been
        killed before it truncated the log."""
        self._lock_fd: int | None = None
        self._wal_frames = 0
        self._tried_frames = 0
        self._restart_not_before_ns = 0
        self._restart_pressure = Pressure.NONE
        self._warn_not_before_ns = 0
        self._roster_pending = False
        self._epoch_begun = False
        self._last_housekeeping_ns = 0
        self._last_probe_ns = 0
        self._batch_began_ns: int | None = None
        self._slow_sync_ns = 0
        self._slow_sync_at_ns = 0
        self.stopped = StoppedCommands()

    def start(self) -> None:
        """Open the database, check it, migrate it to the current schema, and make one commit reach the disk.

        A damaged database is not opened for writing. The process keeps running, refuses every write and gives the
        reason, so that the supervisor does not restart it again and again. Reads are served as far as possible.
        """
        self._take_lock()
        path = self.workspace.database
        if (displacement := self.files.displaced()) is not None:
            raise ActorExit(ExitCode.IO_ERROR, f"{displacement} while the daemon ran")
        try:
            finish_restore(self.workspace)
            self.files.refuse_unsafe()
            refuse_stale_log(path)
            connection = open_writer(path, busy=self.busy_handler, create=self.files.may_create)
        except DatabaseMissing as error:
            raise ActorExit(ExitCode.CONFIG, self.files.missing_message(error.detail)) from error
        except (ForeignDatabase, ConfigError) as error:
            raise ActorExit(ExitCode.CONFIG, error.detail) from error
        except DAMAGED as error:
            self._enter_read_only(str(error))
            return
        except StoreError as error:
            raise ActorExit(ExitCode.IO_ERROR, f"cannot open {path}: {error}") from error
        self.connection = connection
        self.stopped = StoppedCommands(
            self.workspace.daemon_dir / "stopped-commands",
            now_ms=self.clock.wall_ms(),
            retention_ms=self.config.writer.reply_retention_ms,
        )
        self.loop.may_be_replaced = self._may_be_replaced
        connection.set_wal_hook(self._on_wal)
        applied = 0
        try:
            self._check_schema(connection)
            self._quick_check(connection, path)
            disk_reserve = DiskReserve(self.workspace.disk_reserve_file, self.config.writer.ballast_bytes)
            applied = migrate(
                connection,
                path,
                self.clock,
                progress=self.loop.starting,
                heartbeat=self.loop.heartbeat,
                keep=self.config.backup.keep,
            )
            self.group = GroupCommit(
                connection,
                self.clock,
                self.rng,
                self.config,
                self.boot.boot_id,
                self.log,
                disk_reserve,
                displaced=self.files.displaced,
                options=RunOptions(self.loop.calls.sync, self.loop.calls.statement, self._send_batch_heartbeat),
                stopped=self.stopped,
            )
            self.backup = BackupWork(connection, path, self.workspace.backup_dir, self.clock)
            self._first_commit()
            disk_reserve.allocate()
        except (NewerSchema, UpgradeRefused, ConfigError) as error:
            raise ActorExit(ExitCode.CONFIG, error.detail) from error
        except Damaged as error:
            self._enter_read_only(error.detail)
            return
        except DAMAGED as error:
            self._enter_read_only(str(error))
            return
        except StoreIOError as error:
            raise ActorExit(ExitCode.IO_ERROR, error.detail) from error
        except DiskFull:
            if self.group is None:
                raise ActorExit(ExitCode.IO_ERROR, f"the disk is too full to create {path}") from None
            self.group.enter_storage_full()  # reads go on; writes are refused until a probe succeeds
            self._roster_pending = True
        except LockTimeout as error:
            raise ActorExit(ExitCode.GIVE_UP, f"another program has locked {path}") from error
        except BROKEN_DISK as error:
            raise ActorExit(ExitCode.IO_ERROR, f"{path}: {error}") from error
        self.loop.tell_supervisor(self.files.record_opened(connection))
        self.workspace.integrity_check_file.unlink(missing_ok=True)
        self.busy_handler.starting = False
        self.busy_handler.limit_ms = self.config.writer.busy_timeout_ms
        connection.set_progress_handler(self._on_progress, _PROGRESS_STEPS)
        self.loop.idle_trimmer.before_trim = lambda: drop_cached_pages(connection)
        self.log.info("store_open", schema=schema_version(connection), migrations=applied)

    def handle(self, batch: list[Incoming[WriterCommand]]) -> None:
        """Reply to every command. Raise ``ActorExit`` with code 74 when the disk failed during a commit."""
        for incoming in batch:
            if isinstance(incoming.body, ReportDamage):
                self._record_damage(incoming.body.detail)
                incoming.reply(WritesDisabled())
        if self.damage is not None:
            self._refuse_damaged(batch)
            return
        if self.displacement is not None:
            self._refuse_displaced(batch)
            return
        group = self._group
        effects: list[Incoming[WriterCommand]] = []
        for incoming in batch:
            body = incoming.body
            if isinstance(body, TouchMemories):
                group.touches.add(body)
            elif isinstance(body, GetWriterStatus):
                incoming.reply(self._status())
            elif isinstance(body, WatchJobs):
                self.job_waiters.park(incoming)
            elif isinstance(body, AdvanceBackup):
                incoming.reply(self._advance_backup(body))
            elif not isinstance(body, ReportDamage):
                effects.append(incoming)
                # Erased text stays in the write-ahead log until the log is truncated.
                self._wal_holds_erased_text = (
                    self._wal_holds_erased_text
                    or isinstance(body, PurgeStep)
                    or (isinstance(body, ForgetMany) and body.hard)
                )
        unstarted = effects
        try:
            for part in _parts(effects, self.config.writer.batch_limit):
                unstarted = unstarted[len(part) :]
                self._batch_began_ns = self.clock.monotonic_ns()
                deadlines = [
                    incoming.header.deadline_ns
                    for incoming in part
                    if incoming.header.deadline_ns and not isinstance(incoming.body, _BACKGROUND_COMMANDS)
                ]
                until_ns = lock_wait_until_ns(min(deadlines), self.config.writer) if deadlines else None
                with (
                    self.busy_handler.at_most(self.config.writer.busy_timeout_ms, until_ns=until_ns),
                    self._noted(part),
                ):
                    group.commit(part)
                self._note_sync()
        except DatabaseDisplaced as error:
            self._enter_displaced(error.detail)
            self._refuse_displaced(unstarted)
            return
        except StoreIOError as error:
            for incoming in unstarted:
                incoming.reply(failure_for_unstarted(incoming, "the writer had to stop", retry_after_ms=1000))
            self._mark_suspect(error.__cause__)
            raise ActorExit(ExitCode.IO_ERROR, error.detail) from error
        finally:
            self._batch_began_ns = None
        self._notify_job_waiters()
        self._checkpoint()

    def _noted(self, part: Sequence[Incoming[WriterCommand]]) -> contextlib.AbstractContextManager[None]:
        """Note a command on which a writer may have ended before, so that it cannot end a third one."""
        if part[0].header.attempt == 1:
            return contextlib.nullcontext()
        key, _ = request_key(part[0].header, getattr(part[0].body, "idempotency", None))
        return self.stopped.running(key)

    def _note_sync(self) -> None:
        """Remember how long the last sync took, if that was long, for health."""
        took_ns = self.loop.calls.sync.last_ns
        self._slow_sync_ns = took_ns if took_ns >= _SLOW_SYNC_NS else 0
        self._slow_sync_at_ns = self.clock.monotonic_ns()

    def _reported_sync_s(self) -> float:
        if self.clock.monotonic_ns() - self._slow_sync_at_ns > _SLOW_SYNC_REPORTED_NS:
            return 0.0
        return self._slow_sync_ns / _NS

    def tick(self) -> float | None:
        """Do the housekeeping that is due, reply to job waiters, and return the seconds until the next call."""
        if self.damage is not None:
            return None
        if self.displacement is not None:
            if self.clock.monotonic_ns() - self._displaced_since_ns > _DISPLACED_EXIT_NS:  # it was put back unnoticed
                raise ActorExit(ExitCode.IO_ERROR, f"{self.displacement} while the daemon ran")
            return 1.0
        next_s = self._housekeeping()
        if self.displacement is not None:
            return next_s
        due_s = self._notify_job_waiters()
        return next_s if due_s is None else due_s if next_s is None else min(next_s, due_s)

    def _housekeeping(self) -> float | None:
        group = self._group
        now_ns = self.clock.monotonic_ns()
        if (displacement := self.files.displaced()) is not None:
            self._enter_displaced(displacement)
            return 1.0
        self._sync_roster()
        flush_ns = self.config.writer.touch_flush_ms * 1_000_000
        more = False
        try:
            if group.storage_full and now_ns - self._last_probe_ns >= _NS:
                self._last_probe_ns = now_ns
                group.probe_storage()
                self._sync_roster()  # starts the vector epoch, which must precede every stored vector
            due = now_ns - self._last_housekeeping_ns >= (flush_ns if group.touches else _HOUSEKEEPING_NS)
            if due:
                before_ms = self.clock.wall_ms() - self.config.writer.reply_retention_ms
                with self.busy_handler.at_most(0):  # commands must not wait behind it
                    done = group.housekeep(replies_before_ms=before_ms)
                if not done.more:
                    self._last_housekeeping_ns = now_ns
                more = done.more
        except DatabaseDisplaced as error:
            self._enter_displaced(error.detail)
            return 1.0
        except StoreIOError as error:
            self._mark_suspect(error.__cause__)
            raise ActorExit(ExitCode.IO_ERROR, error.detail) from error
        self._checkpoint()
        if self.backup is not None and self.backup.running:
            self.backup.step()
            return 0.0
        if self._wal_holds_erased_text:
            return self._truncate_wal()
        if group.storage_full:
            return 1.0
        if more:
            return 0.05
        return flush_ns / 1e9 if group.touches else _HOUSEKEEPING_NS / _NS

    def counters(self) -> dict[str, float]:
        """Return metrics for the heartbeat."""
        if self.damage is not None:
            return {"damaged": 1.0}
        if self.group is None:
            return {}
        metrics = self.group.metrics
        return {
            "commits": metrics.commits,
            "rows": metrics.rows,
            "largest_batch": metrics.largest_batch,
            "refused_full": metrics.refused_full,
            "refused_busy": metrics.refused_busy,
            "replayed": metrics.replayed,
            "fenced": metrics.fenced,
            "watches": len(self.job_waiters),
            "wal_frames": self._wal_frames,
            "storage_full": float(self.group.storage_full),
            "sync_seconds": self._reported_sync_s(),
            "touches_dropped": self.group.touches.dropped,
        }

    def drain(self) -> None:
        """Write the pending access counts, checkpoint and truncate the write-ahead log, and close the database."""
        self.job_waiters.reply_to_all()
        if self.connection is None:
            return
        if self.backup is not None:
            self.backup.abandon()
        try:
            if (displacement := self.files.displaced()) is not None:
                self._enter_displaced(displacement)
                return
            if self.group is not None:
                while self.group.touches and self.group.housekeep(replies_before_ms=0).rows:
                    self.loop.heartbeat()
            self._fold(self.connection, "truncate")
        except (StoreIOError, StoreError) as error:
            self.log.exception("drain_incomplete", error=str(error))
        finally:
            self.connection.close()
            self.connection = None

    def reload(self, config: Config) -> None:
        """Apply new limits and the agents' roster from the next commit on."""
        self.config = config
        if self.group is None:
            return
        self.group.config = config
        self.busy_handler.limit_ms = config.writer.busy_timeout_ms
        self._roster_pending = True
        self._sync_roster()

    @property
    def _group(self) -> GroupCommit:
        assert self.group is not None, "the writer was not started"
        return self.group

    def _take_lock(self) -> None:
        """Take the lock that allows one writer per workspace; wait for the writer of a killed supervisor to exit."""
        path = self.workspace.daemon_dir / "writer.lock"
        try:
            self._lock_fd = open_regular(path, os.O_RDWR | os.O_CREAT)
        except ConfigError as error:
            raise ActorExit(ExitCode.CONFIG, error.detail) from error
        until_ns = self.clock.monotonic_ns() + 10 * _NS
        self.loop.starting("opening the database")
        while True:
            try:
                fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if self.clock.monotonic_ns() > until_ns:
                    raise ActorExit(ExitCode.IN_USE, "another writer has locked this workspace") from error
                time.sleep(0.02)
            else:
                return

    def _may_be_replaced(self) -> bool:
        """Return False where the database vanished together with the socket: a new writer could not serve it either."""
        if self.displacement is None and (displacement := self.files.displaced()) is not None:
            self._enter_displaced(displacement)
        return self.displacement is None

    def _enter_displaced(self, displacement: str) -> None:
        """Refuse every command from now on. The supervisor, which looks every second, stops the daemon.

        The log is checkpointed into the open file, which may only have been moved: a log that is left behind would be
        applied to whatever database is put at its path. This is skipped where another program has put its own log
        there, because that program may be writing the same file.
        """
        if self.displacement is not None:
            return
        self.displacement = displacement
        self._displaced_since_ns = self.clock.monotonic_ns()
        self.log.critical("database_displaced", found=displacement, remedy="put it back, or signet restore latest")
        self.job_waiters.reply_to_all()
        if self.backup is not None:
            self.backup.abandon()
        if self.files.log_is_ours() and self.connection is not None:
            with contextlib.suppress(StoreError, OSError), self.busy_handler.at_most(0):
                self._fold(self.connection, "truncate")

    def _refuse_displaced(self, batch: Sequence[Incoming[WriterCommand]]) -> None:
        for incoming in batch:
            if isinstance(incoming.body, GetWriterStatus):
                incoming.reply(self._status())
        self._group.refuse_displaced([incoming for incoming in batch if not incoming.answered], str(self.displacement))

    def _check_schema(self, connection: Connection) -> None:
        """Raise ``Damaged`` if an object is not part of the schema: the next write would run a foreign trigger.

        The same if a table has no further number to give out: every write would fail.
        """
        found = [finding.text for finding in schema_findings(connection)[0] if finding.kind == STRUCTURE]
        found += sequence_errors(connection)
        if found:
            more = f" and {len(found) - _MAX_FINDINGS_NAMED} more" if len(found) > _MAX_FINDINGS_NAMED else ""
            raise Damaged("; ".join(found[:_MAX_FINDINGS_NAMED]) + more)

    def _quick_check(self, connection: Connection, path: Path) -> None:
        suspect = self.workspace.integrity_check_file.exists()
        if path.stat().st_size > _QUICK_CHECK_BYTES and not suspect:
            return
        self.loop.starting("checking the database")
        connection.set_progress_handler(self._beat, 100_000)
        try:
            verdict = connection.pragma("integrity_check" if suspect else "quick_check", 1)
        finally:
            connection.set_progress_handler(None)
        if is_unread_page(str(verdict)):
            raise StoreIOError(f"{path} could not be checked: {verdict}")
        if verdict != "ok":
            raise Damaged(str(verdict))

    def _beat(self) -> bool:
        self.loop.heartbeat()
        return False

    def _enter_read_only(self, found: str) -> None:
        """Close the database and refuse all writes; the file stays as it is until a restore sets it aside.

        Raises ``ActorExit`` if the database cannot even be read: then there is nothing to serve.
        """
        path = self.workspace.database
        self._close_without_checkpoint()
        try:
            reader = open_reader(path)
            try:
                check_schema(reader)
            finally:
                reader.close()
        except (StoreError, UnicodeDecodeError) as error:
            raise ActorExit(ExitCode.CONFIG, f"{path} is damaged and cannot be read ({error}); {REMEDY}") from error
        self.loop.tell_supervisor(self.files.record_opened(None))
        self._record_damage(found)

    def _record_damage(self, found: str) -> None:
        if self.damage is None:
            self.damage = f"the database is damaged ({found}); {REMEDY}"
            self.log.critical("database_damaged", found=found, remedy=REMEDY)
        self._close_without_checkpoint()
        with contextlib.suppress(OSError):
            self.workspace.integrity_check_file.touch(mode=0o600)

    def _notify_job_waiters(self) -> float | None:
        """Reply to the waiters whose jobs may be leased now; return the seconds until the next check, or None."""
        group = self._group
        if not self.job_waiters:
            group.queue_changes = QueueChanges()
            return None
        changes, group.queue_changes = group.queue_changes, QueueChanges()
        try:
            # While the disk is full no job can be leased, so no waiter is notified.
            return self.job_waiters.notify(group.connection, changes, may_write=not group.storage_full)
        except LockTimeout:
            group.queue_changes.add(changes)
            return 0.05
        except BROKEN_DISK as error:
            self._mark_suspect(error)
            raise ActorExit(ExitCode.IO_ERROR, f"the disk failed: {error}") from error

    def _close_without_checkpoint(self) -> None:
        """Close the database without a checkpoint: a damaged file is evidence and is not written."""
        self.job_waiters.reply_to_all()
        if self.backup is not None:
            self.backup.abandon()
            self.backup = None
        if self.connection is not None:
            self.connection.close()
            self.loop.tell_supervisor(self.files.record_closed())
        self.connection = self.group = None

    def _refuse_damaged(self, batch: list[Incoming[WriterCommand]]) -> None:
        for incoming in batch:
            if isinstance(incoming.body, GetWriterStatus):
                incoming.reply(WriterStatus(0, 0, 0, 0, False, 0, check_sqlite_version(), self.damage))
            elif not isinstance(incoming.body, (TouchMemories, ReportDamage)):
                incoming.reply(failure_for_unstarted(incoming, str(self.damage)))

    def _advance_backup(self, command: AdvanceBackup) -> BackupProgress | Failure:
        assert self.backup is not None, "the writer was not started"
        try:
            return self.backup.advance(command.name)
        except SignetError as error:
            return Failure(error.code, error.detail, field=error.field)

    def _truncate_wal(self) -> float | None:
        """Truncate the write-ahead log, which may hold erased text; if a reader blocks that, the next tick retries."""
        assert self.connection is not None
        try:
            with self.busy_handler.at_most(0):
                frames, _ = self._fold(self.connection, "truncate")
        except DiskFull:
            return 1.0
        except BROKEN_DISK as error:
            self._mark_suspect(error)
            raise ActorExit(ExitCode.IO_ERROR, f"the disk failed in a checkpoint: {error}") from error
        self._wal_holds_erased_text = frames < 0
        self._wal_frames = self._tried_frames = 0 if frames == 0 else self._wal_frames
        return 0.05

    def _mark_suspect(self, cause: BaseException | None) -> None:
        """After damaged pages, make the next start check the whole file before it writes to it again."""
        if isinstance(cause, DAMAGED):
            with contextlib.suppress(OSError):
                self.workspace.integrity_check_file.touch(mode=0o600)

    def _first_commit(self) -> None:
        group = self._group
        with write_transaction(group.connection, self.loop.calls.sync) as tx:
            context = CommandContext.begin(tx, self.clock, self.rng, self.config, self.boot.boot_id, RowCache())
            agents.sync_roster(context)
            tx.execute(
                "INSERT INTO store_meta (key, value) VALUES ('database_id', ?) ON CONFLICT (key) DO NOTHING",
                (context.new_id(),),
            )
            tx.execute(
                "INSERT INTO store_meta (key, value) VALUES ('writer_started_at', ?)"
                " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (iso(self.clock.wall_ms()),),
            )
            if not self._epoch_begun:
                epoch = context.new_id()
                note_runs(self.workspace.database, (*VectorEpochs(read_stored(tx)).names, epoch))
                begin_epoch(tx, epoch)
            tx.commit()
        self._epoch_begun = True

    def _sync_roster(self) -> None:
        """Write a reloaded roster to the store; if that is not possible now, the next tick retries."""
        if not self._roster_pending or self._group.storage_full:
            return
        try:
            with self.busy_handler.at_most(0):
                self._first_commit()
            self._roster_pending = False
        except (LockTimeout, DiskFull) as error:
            self.log.warning("roster_write_postponed", error=str(error))
        except BROKEN_DISK as error:
            raise ActorExit(ExitCode.IO_ERROR, f"the disk failed: {error}") from error

    def _on_progress(self) -> bool:
        """Send heartbeats during a long statement. Returns False, which tells SQLite to continue."""
        self._send_batch_heartbeat()
        return False

    def _send_batch_heartbeat(self) -> None:
        """Send the heartbeat if it is due, unless the present commit takes too long."""
        began = self._batch_began_ns
        if began is not None and self.clock.monotonic_ns() - began < _LONGEST_BATCH_NS:
            # Exiting here would interrupt a statement inside its transaction; the loop exits after the batch.
            with contextlib.suppress(ActorExit):
                self.loop.heartbeat()

    def _on_wal(self, _connection: Connection, _database: str, frames: int) -> int:
        if frames < self._wal_frames:
            self._tried_frames = 0  # the log restarted from its beginning
        self._wal_frames = frames
        return 0

    def _checkpoint(self) -> None:
        """Run the checkpoint that the size of the log calls for, if any; see ``store.checkpoint``."""
        now_ns = self.clock.monotonic_ns()
        resting = self._restart_pressure if now_ns < self._restart_not_before_ns else None
        plan = checkpoint.plan_checkpoint(self._wal_frames, tried=self._tried_frames, resting=resting)
        if plan is None or self.connection is None:
            return
        try:
            frames, _ = self._run_checkpoint(self.connection, plan)
        except DiskFull:
            return
        except BROKEN_DISK as error:
            self._mark_suspect(error)
            raise ActorExit(ExitCode.IO_ERROR, f"the disk failed in a checkpoint: {error}") from error
        if frames < 0:
            self._restart_pressure = plan.pressure
            self._restart_not_before_ns = self.clock.monotonic_ns() + plan.pause_ms * 1_000_000
            if plan.pressure is Pressure.KILL_READERS:
                self._warn_wal_not_truncated()
        elif plan.mode == "passive":
            self._tried_frames = frames
        else:
            # No reader uses the log any more and the next commit restarts it: no further pressure on readers.
            self._wal_frames = self._tried_frames = 0

    def _run_checkpoint(self, connection: Connection, plan: checkpoint.Plan) -> tuple[int, int]:
        """Run the checkpoint of ``plan``, and ask readers to end their snapshots first where the plan says so."""
        if plan.pressure is Pressure.NONE:
            with self.busy_handler.at_most(plan.busy_ms):
                return self._fold(connection, plan.mode)
        log_bytes = self._wal_frames * checkpoint.PAGE_BYTES
        with self.busy_handler.at_most(plan.busy_ms // 2):
            self.loop.tell_supervisor(WalPressure(log_bytes, severe=plan.pressure is Pressure.KILL_READERS))
            folded = self._fold(connection, "full")
            if folded[0] < 0:
                return folded
            self.loop.tell_supervisor(WalPressure(log_bytes, severe=False))
            return self._fold(connection, plan.mode)

    def _fold(self, connection: Connection, mode: str) -> tuple[int, int]:
        """Run a checkpoint, whose syncs are reported while they last."""
        with self.loop.calls.sync:
            return checkpoint.checkpoint(connection, mode)

    def _warn_of_link(self, path: str) -> None:
        self.log.warning(
            "database_has_hard_link", path=path, remedy="remove the other hard link and do not write through it"
        )

    def _warn_wal_not_truncated(self) -> None:
        """Warn at most once a minute that the log keeps growing although none of our readers can be in the way."""
        now_ns = self.clock.monotonic_ns()
        if now_ns >= self._warn_not_before_ns:
            self._warn_not_before_ns = now_ns + 60 * _NS
            self.log.warning(
                "wal_not_checkpointed",
                log_bytes=self._wal_frames * checkpoint.PAGE_BYTES,
                remedy="another program has an open read transaction on the database: stop that program",
            )

    def _status(self) -> WriterStatus:
        group = self._group
        wal = self.workspace.database.with_name(self.workspace.database.name + "-wal")
        return WriterStatus(
            commits=group.metrics.commits,
            rows=group.metrics.rows,
            largest_batch=group.metrics.largest_batch,
            wal_bytes=wal.stat().st_size if wal.exists() else 0,
            storage_full=group.storage_full,
            schema_version=schema_version(group.connection),
            sqlite_version=check_sqlite_version(),
        )
