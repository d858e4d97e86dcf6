"""The writer: the only process that writes and checkpoints the database. It opens no network socket.

Source: docs/architecture.md "The path of a remember"; docs/reliability.md "Supervision policy" and "The writer's loop";
docs/decisions.md 2, 45.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from signet_actors import errors
from signet_actors.config.schema import Config
from signet_actors.config.workspace import Workspace
from signet_actors.protocol import writer as messages
from signet_actors.protocol.backups import AdvanceBackup, BackupProgress
from signet_actors.protocol.message import Failure
from signet_actors.protocol.pipeline import WatchJobs
from signet_actors.protocol.transcripts import ForgetTranscript
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.mailbox import Incoming
from signet_actors.runtime.processes.actor_loop import ActorLoop
from signet_actors.runtime.processes.call_reporter import SlowSyncs
from signet_actors.runtime.processes.child_context import ChildContext
from signet_actors.store.command_context import QueueChanges
from signet_actors.store.engine import WriterEngine
from signet_actors.store.errors import BROKEN_DISK, DAMAGED, REMEDY, DiskFull, LockTimeout, StoreError
from signet_actors.store.sqlite.connect import check_sqlite_version
from signet_actors.store.sqlite.reader import read_engine
from signet_actors.store.sqlite.stale_log import refuse_stale_log
from signet_actors.store.sqlite.writer import write_engine
from signet_actors.writer import group_commit
from signet_actors.writer.backup import BackupWork
from signet_actors.writer.busy_handler import BusyHandler
from signet_actors.writer.disk_failure import disk_failed, request_whole_check
from signet_actors.writer.disk_reserve import DiskReserve
from signet_actors.writer.job_waiters import JobWaiters
from signet_actors.writer.open_files import OpenFiles
from signet_actors.writer.opening import Damaged, StartupCommit, check_objects, check_structure, take_writer_lock
from signet_actors.writer.poison_commands import PoisonCommands
from signet_actors.writer.restore import finish_restore
from signet_actors.writer.wal_checkpointer import WalCheckpointer

_NS, _HOUSEKEEPING_NS = 1_000_000_000, 60_000_000_000
_LONGEST_ROW_NS = 10 * _NS
"""A row that takes longer counts as hung: the heartbeats end, and the supervisor kills this process. The sync of the
commit has a limit of its own (``call_reporter``)."""
_DISPLACED_CHECK_S = 0.25


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
        self.engine: WriterEngine | None = None
        self.group: group_commit.GroupCommit | None = None
        self.backup: BackupWork | None = None
        self.job_waiters = JobWaiters(clock)
        self.damage: str | None = None
        """Why every write is refused: what is wrong with the structure of the database. None while it is sound."""
        self.displacement: str | None = None
        """Why every command is refused: which database file is gone or truncated. None while all are in order."""
        self.wal: WalCheckpointer | None = None
        self._lock_fd: int | None = None
        self._roster_pending = False
        self._startup: StartupCommit | None = None
        self._last_housekeeping_ns = self._last_probe_ns = 0
        self._row_began_ns: int | None = None
        self.syncs = SlowSyncs(clock)
        self.poison_commands = PoisonCommands()

    def start(self) -> None:
        """Open the database, check it, migrate it to the current schema, and make one commit reach the disk.

        A damaged database is not opened for writing. The process keeps running, refuses every write and gives the
        reason, so that the supervisor does not restart it again and again. Reads are served as far as possible.
        """
        path = self.workspace.database
        self._lock_fd = take_writer_lock(self.workspace.daemon_dir / "writer.lock", self.loop, self.clock)
        if (displacement := self.files.displaced()) is not None:
            raise errors.ActorExit(errors.ExitCode.IO_ERROR, f"{displacement} while the daemon ran")
        try:
            finish_restore(self.workspace)
            self.files.refuse_unsafe()
            self.poison_commands = PoisonCommands(
                self.workspace.daemon_dir / "poison-commands",
                now_ms=self.clock.wall_ms(),
                retention_ms=self.config.writer.reply_retention_ms,
            )
            refuse_stale_log(path)
            engine: WriterEngine = write_engine(path, busy=self.busy_handler, create=self.files.may_create)
        except errors.DatabaseMissing as error:
            raise errors.ActorExit(errors.ExitCode.CONFIG, self.files.missing_message(error.detail)) from error
        except (errors.ForeignDatabase, errors.ConfigError) as error:
            raise errors.ActorExit(errors.ExitCode.CONFIG, error.detail) from error
        except DAMAGED as error:
            self._enter_read_only(str(error))
            return
        except StoreError as error:
            raise errors.ActorExit(errors.ExitCode.IO_ERROR, f"cannot open {path}: {error}") from error
        self.engine = engine
        self.loop.may_be_replaced = self._files_in_place
        self.wal = WalCheckpointer(
            engine, self.workspace, self.busy_handler, self.loop, self.clock, self.log, self.files.sizes
        )
        self._startup = StartupCommit(engine, self.workspace, self.clock, self.rng, self.boot.boot_id)
        applied = 0
        try:
            check_objects(engine)
            check_structure(engine, path, self.loop, every_page=self.workspace.integrity_check_file.exists())
            disk_reserve = DiskReserve(self.workspace.disk_reserve_file, self.config.writer.ballast_bytes)
            applied = engine.migrate(
                path,
                self.clock,
                progress=self.loop.starting,
                heartbeat=self.loop.heartbeat,
                keep=self.config.backup.keep,
            )
            self.group = group_commit.GroupCommit(
                engine,
                self.clock,
                self.rng,
                self.config,
                self.boot.boot_id,
                self.log,
                disk_reserve,
                displaced=self.files.displaced,
                options=group_commit.RunOptions(self.loop.calls.sync, self.loop.calls.statement, self._begin_row),
                poison_commands=self.poison_commands,
            )
            self.backup = BackupWork(engine, path, self.workspace.backup_dir, self.clock)
            self._tell_archived(self._startup.write(self.config, self.loop.calls.sync))
            disk_reserve.allocate()
        except (errors.NewerSchema, errors.UpgradeRefused, errors.ConfigError) as error:
            raise errors.ActorExit(errors.ExitCode.CONFIG, error.detail) from error
        except Damaged as error:
            self._enter_read_only(error.detail)
            return
        except DAMAGED as error:
            self._enter_read_only(str(error))
            return
        except errors.StoreIOError as error:
            raise errors.ActorExit(errors.ExitCode.IO_ERROR, error.detail) from error
        except DiskFull:
            if self.group is None:
                raise errors.ActorExit(errors.ExitCode.IO_ERROR, f"the disk is too full to create {path}") from None
            self.group.enter_storage_full()  # reads go on; writes are refused until a probe succeeds
            self._roster_pending = True
        except LockTimeout as error:
            raise errors.ActorExit(errors.ExitCode.GIVE_UP, f"another program has locked {path}") from error
        except BROKEN_DISK as error:
            raise errors.ActorExit(errors.ExitCode.IO_ERROR, f"{path}: {error}") from error
        self.loop.tell_supervisor(self.files.record_opened(engine))
        self.workspace.integrity_check_file.unlink(missing_ok=True)
        self.busy_handler.starting = False
        self.busy_handler.limit_ms = self.config.writer.busy_timeout_ms
        engine.report_progress(self._send_row_heartbeat)
        self.loop.idle_trimmer.before_trim = engine.drop_cached_pages
        self.log.info("store_open", schema=engine.schema_version(), migrations=applied)

    def handle(self, batch: list[Incoming[messages.WriterCommand]]) -> None:
        """Reply to every command. Raise ``ActorExit`` with code 74 when the disk failed during a commit."""
        for incoming in batch:
            if isinstance(incoming.body, messages.ReportDamage):
                if not self._reads_another_file():
                    self._record_damage(incoming.body.detail)
                incoming.reply(messages.WritesDisabled())
        if self.damage is not None:
            self._refuse_damaged(batch)
            return
        if self.displacement is not None:
            self._refuse_displaced(batch)
            return
        group = self._group
        effects: list[Incoming[messages.WriterCommand]] = []
        for incoming in batch:
            match incoming.body:
                case messages.TouchMemories() as touched:
                    group.touches.add(touched)
                case messages.GetWriterStatus():
                    incoming.reply(self._group.status(self.workspace))
                case WatchJobs():
                    self.job_waiters.park(incoming)
                case AdvanceBackup() as command:
                    incoming.reply(self._advance_backup(command))
                case messages.ReportDamage():
                    pass  # answered above
                case command:
                    effects.append(incoming)
                    if isinstance(command, messages.PurgeStep | ForgetTranscript) or (
                        isinstance(command, messages.ForgetMany) and command.hard
                    ):
                        self._wal.may_hold_erased_text = True  # it stays in the log until the log is truncated
        begun, limits = 0, self.config.writer
        try:
            for part in group_commit.commit_parts(effects, limits.batch_limit):
                begun += len(part)
                self._row_began_ns = self.clock.monotonic_ns()
                self.busy_handler.until_ns = group_commit.batch_wait_until_ns(part, limits)
                with self.poison_commands.noted(part[0]) if part[0].header.attempt > 1 else contextlib.nullcontext():
                    group.commit(part)
                self.syncs.note(self.loop.calls.sync)
        except errors.StoreIOError as error:
            if self._is_displaced(error):
                self._refuse_displaced(effects[begun:])
                return
            group_commit.reply_to_unstarted(effects, begun=begun)
            raise disk_failed(self.workspace, error.__cause__, error.detail) from error
        finally:
            self._row_began_ns = self.busy_handler.until_ns = None
        self._notify_job_waiters()
        self._wal.run_due()

    def tick(self) -> float | None:
        """Do the housekeeping that is due, reply to job waiters, and return the seconds until the next call."""
        if self.damage is not None:
            return None
        if self.displacement is not None:
            if self.files.displaced() is None:  # it was put back: the next process opens the files again
                raise errors.ActorExit(
                    errors.ExitCode.IO_ERROR, f"{self.displacement} while the daemon ran, and was put back"
                )
            return _DISPLACED_CHECK_S
        next_s = self._housekeeping()
        if self.displacement is not None:
            return next_s
        due_s = self._notify_job_waiters()
        return next_s if due_s is None else due_s if next_s is None else min(next_s, due_s)

    def _housekeeping(self) -> float | None:
        group = self._group
        now_ns = self.clock.monotonic_ns()
        if not self._files_in_place():
            return _DISPLACED_CHECK_S
        self._sync_roster()
        flush_ns = self.config.writer.touch_flush_ms * 1_000_000
        more = False
        try:
            if group.storage_full and now_ns - self._last_probe_ns >= _NS:
                self._last_probe_ns = now_ns
                group.probe_storage()
                self._sync_roster()  # starts the vector epoch, which must precede every stored vector
            if now_ns - self._last_housekeeping_ns >= (flush_ns if group.touches.pending else _HOUSEKEEPING_NS):
                with self.busy_handler.at_most(0):  # commands must not wait behind it
                    done = group.housekeep()
                if not done.more:
                    self._last_housekeeping_ns = now_ns
                more = done.more
        except errors.StoreIOError as error:
            if self._is_displaced(error):
                return _DISPLACED_CHECK_S
            raise disk_failed(self.workspace, error.__cause__, error.detail) from error
        self._wal.run_due()
        if self.backup is not None and self.backup.copy is not None:
            self.backup.step()
            return 0.0
        if self._wal.may_hold_erased_text:
            return self._wal.truncate_erased()
        if group.storage_full or self._wal.is_blocked:
            return 1.0
        if more:
            return 0.05
        return flush_ns / 1e9 if group.touches.pending else _HOUSEKEEPING_NS / _NS

    def counters(self) -> dict[str, float]:
        """Return metrics for the heartbeat, after a look at the files, because an idle writer commits nothing."""
        if self.damage is not None:
            return {"damaged": 1.0}
        if self.group is None or self.wal is None:
            return {}
        self._files_in_place()
        return {
            **self.group.counters(),
            "watches": len(self.job_waiters),
            **self.wal.counters(),
            "sync_seconds": self.syncs.reported_s(),
            "displaced": float(self.displacement is not None),
            "truncated": float(self.files.sizes.truncated is not None),
        }

    def drain(self) -> None:
        """Write the pending access counts, checkpoint and truncate the write-ahead log, and close the database."""
        self.job_waiters.reply_to_all()
        if self.engine is None:
            return
        if self.backup is not None:
            self.backup.abandon()
        try:
            if not self._files_in_place():
                return
            if self.group is not None:
                while self.group.touches.pending and self.group.housekeep(prune=False).rows:
                    self.loop.heartbeat()
            self._wal.truncate()
        except (errors.StoreIOError, StoreError) as error:
            self.log.exception("drain_incomplete", error=str(error))
        finally:
            self.engine.close()
            self.engine = None

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
    def _group(self) -> group_commit.GroupCommit:
        assert self.group is not None, "the writer was not started"
        return self.group

    @property
    def _wal(self) -> WalCheckpointer:
        assert self.wal is not None, "the writer was not started"
        return self.wal

    def _files_in_place(self) -> bool:
        """Return whether all files are in place, and refuse every command from now on if not."""
        if self.displacement is None and (displacement := self.files.displaced()) is not None:
            self._enter_displaced(displacement)
        return self.displacement is None

    def _reads_another_file(self) -> bool:
        """Return True, and refuse every command from now on, if a file was removed, replaced or truncated.

        That explains why a searcher finds the database damaged.
        """
        if self._files_in_place() and (truncation := self.files.truncated()) is not None:
            self._enter_displaced(truncation)
        return self.displacement is not None

    def _is_displaced(self, error: errors.StoreIOError) -> bool:
        """Return True, and refuse every command from now on, if a missing or truncated file caused ``error``."""
        found = error.detail if isinstance(error, errors.DatabaseDisplaced) else self.files.truncated()
        if found is not None:
            self._enter_displaced(found)
        return found is not None

    def _enter_displaced(self, displacement: str) -> None:
        """Refuse every command from now on. The supervisor, which looks every second, stops the daemon.

        The log is checkpointed into the open file, which may only have been moved: a log that is left behind would be
        applied to whatever database is put at its path. This is skipped where another program has put its own log
        there, because that program may be writing the same file, and for truncated files, which are evidence.
        """
        if self.displacement is not None:
            return
        self.displacement = displacement
        self.log.critical("database_displaced", found=displacement, remedy="put it back, or signet restore latest")
        self.job_waiters.reply_to_all()
        if self.backup is not None:
            self.backup.abandon()
        if self.wal is not None and self.files.sizes.truncated is None and self.files.log_is_ours():
            with contextlib.suppress(StoreError, OSError), self.busy_handler.at_most(0):
                self.wal.truncate()

    def _refuse_displaced(self, batch: Sequence[Incoming[messages.WriterCommand]]) -> None:
        for incoming in batch:
            if isinstance(incoming.body, messages.GetWriterStatus):
                incoming.reply(self._group.status(self.workspace))
        self._group.refuse_displaced([incoming for incoming in batch if not incoming.answered], str(self.displacement))

    def _enter_read_only(self, found: str) -> None:
        """Close the database and refuse all writes; the file stays as it is until a restore sets it aside.

        Raises ``ActorExit`` if the database cannot even be read: then there is nothing to serve.
        """
        path = self.workspace.database
        self._close_without_checkpoint()
        try:
            reader = read_engine(path)
            try:
                reader.check_schema()
            finally:
                reader.close()
        except (StoreError, UnicodeDecodeError) as error:
            raise errors.ActorExit(
                errors.ExitCode.CONFIG, f"{path} is damaged and cannot be read ({error}); {REMEDY}"
            ) from error
        self.loop.tell_supervisor(self.files.record_opened(None))
        self._record_damage(found)

    def _record_damage(self, found: str) -> None:
        request_whole_check(self.workspace)
        if self.damage is None:
            self.damage = f"{errors.DATABASE_DAMAGED} ({found}); {REMEDY}"
            self.log.critical("database_damaged", found=found, remedy=REMEDY)
        self._close_without_checkpoint()

    def _notify_job_waiters(self) -> float | None:
        """Reply to the waiters whose jobs may be leased now; return the seconds until the next check, or None."""
        group = self._group
        changes, group.queue_changes = group.queue_changes, QueueChanges()
        if not self.job_waiters.waiters:
            return None
        try:
            # While the disk is full no job can be leased, so no waiter is notified.
            return self.job_waiters.notify(group.engine, changes, may_write=not group.storage_full)
        except LockTimeout:
            group.queue_changes.add(changes)
            return 0.05
        except BROKEN_DISK as error:
            raise disk_failed(self.workspace, error, f"the disk failed: {error}") from error

    def _close_without_checkpoint(self) -> None:
        """Close the database without a checkpoint: a damaged file is evidence and is not written."""
        self.job_waiters.reply_to_all()
        if self.backup is not None:
            self.backup.abandon()
            self.backup = None
        if self.engine is not None:
            self.engine.close()
            self.loop.tell_supervisor(self.files.record_closed())
        self.engine = self.group = self.wal = None

    def _refuse_damaged(self, batch: list[Incoming[messages.WriterCommand]]) -> None:
        for incoming in batch:
            if isinstance(incoming.body, messages.GetWriterStatus):
                incoming.reply(messages.WriterStatus(0, 0, 0, 0, False, 0, check_sqlite_version(), self.damage))
            elif not isinstance(incoming.body, (messages.TouchMemories, messages.ReportDamage)):
                incoming.reply(group_commit.failure_for_unstarted(incoming, str(self.damage)))

    def _advance_backup(self, command: AdvanceBackup) -> BackupProgress | Failure:
        assert self.backup is not None, "the writer was not started"
        try:
            return self.backup.advance(command.name)
        except errors.SignetError as error:
            return Failure(error.code, error.detail, field=error.field)

    def _sync_roster(self) -> None:
        """Write a reloaded roster to the store; if that is not possible now, the next tick retries."""
        if not self._roster_pending or self._group.storage_full:
            return
        try:
            with self.busy_handler.at_most(0):
                assert self._startup is not None, "the writer was not started"
                archived = self._startup.write(self.config, self.loop.calls.sync)
            self._group.row_cache.clear()  # an agent of it may be archived now
            self._roster_pending = False
            self._tell_archived(archived)
        except (LockTimeout, DiskFull) as error:
            self.log.warning("roster_write_postponed", error=str(error))
        except BROKEN_DISK as error:
            raise errors.ActorExit(errors.ExitCode.IO_ERROR, f"the disk failed: {error}") from error

    def _tell_archived(self, agents: list[str]) -> None:
        if agents:
            remedy = "they are not in agents.roster any more; their memories are kept, and readable when they are again"
            self.log.warning("agents_archived", agents=agents, remedy=remedy)

    def _begin_row(self) -> None:
        """Note that the commit goes on to another row or command, and send the heartbeat if it is due."""
        if self._row_began_ns is not None:
            self._row_began_ns = self.clock.monotonic_ns()
        self._send_row_heartbeat()

    def _send_row_heartbeat(self) -> None:
        """Send the heartbeat if it is due, unless the present row of a commit takes too long."""
        began = self._row_began_ns
        if began is not None and self.clock.monotonic_ns() - began < _LONGEST_ROW_NS:
            # Exiting here would interrupt a statement inside its transaction; the loop exits after the batch.
            with contextlib.suppress(errors.ActorExit):
                self.loop.heartbeat()

    def _warn_of_link(self, path: str) -> None:
        self.log.warning("database_has_hard_link", path=path, remedy="remove the other link; do not write through it")
