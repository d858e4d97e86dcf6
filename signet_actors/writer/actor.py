"""The writer: the only process that writes and checkpoints, and that opens no network socket.

Source: house.md section 2; reliability.md appendices A and B; decisions.md 2, 45.
"""

from __future__ import annotations

import fcntl
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from signet_actors.config.schema import Config, WriterConfig
from signet_actors.config.workspace import Workspace
from signet_actors.errors import ActorExit, ConfigError, ErrorCode, ExitCode, ForeignDatabase, NewerSchema, StoreIOError
from signet_actors.protocol.message import Failure
from signet_actors.protocol.writer import GetWriterStatus, TouchMemories, WriterCommand, WriterStatus
from signet_actors.runtime.actor_loop import ActorLoop
from signet_actors.runtime.boot import Boot
from signet_actors.runtime.clock import Clock, iso
from signet_actors.runtime.mailbox import Incoming
from signet_actors.store import checkpoint
from signet_actors.store.connect import check_sqlite_version, open_writer
from signet_actors.store.failures import BROKEN_DISK, Connection, DiskFull, LockTimeout, StoreError
from signet_actors.store.migrate import migrate, schema_version
from signet_actors.store.transaction import write_transaction
from signet_actors.writer.ballast import Ballast
from signet_actors.writer.commands import agents
from signet_actors.writer.group_commit import GroupCommit
from signet_actors.writer.session import KnownRows, Session

_NS = 1_000_000_000
_HOUSEKEEPING_NS = 60 * _NS
_ANSWER_NS = _NS // 2
"""A refusal leaves so long before the caller's deadline, so that it arrives in time to be believed."""
_QUICK_CHECK_BYTES = 64 << 20
"""A larger file is not read whole at start; `signet doctor` checks it on demand."""


def patience_until_ns(deadline_ns: int, limits: WriterConfig) -> int:
    """When whoever must be answered by ``deadline_ns`` has waited for a foreign lock as long as anybody may.

    A command that waited behind a batch which waited for the lock has used up its patience there, and is refused as
    soon as the lock is found taken again: else the second in the queue would wait twice as long as the first.
    """
    asked_ns = deadline_ns - limits.request_timeout_ms * 1_000_000
    return min(asked_ns + limits.busy_timeout_ms * 1_000_000, deadline_ns - _ANSWER_NS)


class LockWait:
    """Busy handler: how long to wait for a foreign lock, showing meanwhile that this process lives.

    It gives up at ``until_ns`` at the latest, where that is set: whoever waited behind another batch has used up some
    of its patience, and is refused while its caller still listens.
    """

    def __init__(
        self, clock: Clock, loop: ActorLoop, limit_ms: int, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._clock = clock
        self._loop = loop
        self._sleep = sleep
        self.limit_ms = limit_ms
        self.until_ns: int | None = None
        self.starting = True
        self._begun_ns = 0
        self._said_ns = 0

    def __call__(self, prior_calls: int) -> bool:
        now_ns = self._clock.monotonic_ns()
        if prior_calls == 0:
            self._begun_ns = now_ns
        if now_ns - self._begun_ns >= self.limit_ms * 1_000_000:
            return False
        if self.until_ns is not None and now_ns >= self.until_ns:
            return False
        if self.starting and now_ns - self._said_ns >= _NS:
            self._said_ns = now_ns
            self._loop.starting("waiting: another program holds a lock on the database")
        elif not self.starting:
            self._loop.beat()
        self._sleep(0.005)
        return True

    @contextmanager
    def at_most(self, limit_ms: int, *, until_ns: int | None = None) -> Iterator[None]:
        """Another patience, for what runs inside."""
        before = self.limit_ms, self.until_ns
        self.limit_ms, self.until_ns = limit_ms, until_ns
        try:
            yield
        finally:
            self.limit_ms, self.until_ns = before


class Writer:
    """Turns batches of commands into group commits; between batches it keeps house."""

    def __init__(self, boot: Boot, loop: ActorLoop, clock: Clock, rng: random.Random, log: Any) -> None:
        self.boot = boot
        self.loop = loop
        self.clock = clock
        self.rng = rng
        self.log = log
        self.config: Config = boot.config
        self.workspace = Workspace(Path(boot.workspace))
        self.waiting = LockWait(clock, loop, boot.config.supervision.start_timeout_ms)
        self.connection: Connection | None = None
        self.group: GroupCommit | None = None
        self._lock_fd: int | None = None
        self._wal_frames = 0
        self._folded_frames = 0
        self._restart_not_before_ns = 0
        self._roster_pending = False
        self._housekept_ns = 0
        self._probed_ns = 0

    def start(self) -> None:
        """The database is open, sound, of the current schema, and one commit has reached the disk."""
        self._take_lock()
        path = self.workspace.database
        try:
            connection = open_writer(path, busy=self.waiting)
        except (ForeignDatabase, ConfigError) as error:
            raise ActorExit(ExitCode.CONFIG, error.detail) from error
        except StoreError as error:
            raise ActorExit(ExitCode.IO_ERROR, f"cannot open {path}: {error}") from error
        self.connection = connection
        connection.set_wal_hook(self._on_wal)
        applied = 0
        try:
            self._quick_check(connection, path)
            ballast = Ballast(self.workspace.ballast_file, self.config.writer.ballast_bytes)
            applied = migrate(connection, path, self.clock, progress=self.loop.starting)
            self.group = GroupCommit(
                connection, self.clock, self.rng, self.config, self.boot.boot_id, self.log, ballast
            )
            self._first_commit()
            ballast.take_in()
        except NewerSchema as error:
            raise ActorExit(ExitCode.CONFIG, error.detail) from error
        except StoreIOError as error:
            raise ActorExit(ExitCode.IO_ERROR, error.detail) from error
        except DiskFull:
            if self.group is None:
                raise ActorExit(ExitCode.IO_ERROR, f"the disk is too full to make {path}") from None
            self.group.storage_full = True  # reads must go on: stand, refuse writes, probe
        except LockTimeout as error:
            raise ActorExit(ExitCode.GIVE_UP, f"another program holds {path}") from error
        except BROKEN_DISK as error:
            raise ActorExit(ExitCode.IO_ERROR, f"{path}: {error}") from error
        self.waiting.starting = False
        self.waiting.limit_ms = self.config.writer.busy_timeout_ms
        self.log.info("store_open", schema=schema_version(connection), migrations=applied)

    def handle(self, batch: list[Incoming[WriterCommand]]) -> None:
        """Every command is answered; the process leaves with 74 when the disk failed under a commit."""
        group = self._group
        effects: list[Incoming[WriterCommand]] = []
        for incoming in batch:
            if isinstance(incoming.body, TouchMemories):
                group.touches.add(incoming.body)
            elif isinstance(incoming.body, GetWriterStatus):
                incoming.reply(self._status())
            else:
                effects.append(incoming)
        limit = self.config.writer.batch_limit
        start = 0
        try:
            for start in range(0, len(effects), limit):
                part = effects[start : start + limit]
                deadlines = [incoming.header.deadline_ns for incoming in part if incoming.header.deadline_ns]
                until_ns = patience_until_ns(min(deadlines), self.config.writer) if deadlines else None
                with self.waiting.at_most(self.config.writer.busy_timeout_ms, until_ns=until_ns):
                    group.commit(part)
        except StoreIOError as error:
            for incoming in effects[start + limit :]:
                incoming.reply(
                    Failure(ErrorCode.NOT_APPLIED, "the writer had to stop; nothing was applied", None, 1000)
                )
            raise ActorExit(ExitCode.IO_ERROR, error.detail) from error
        self._checkpoint()

    def tick(self) -> float | None:
        """Touches are flushed, old replies pruned, the log folded back, a full disk probed."""
        group = self._group
        now_ns = self.clock.monotonic_ns()
        self._sync_roster()
        flush_ns = self.config.writer.touch_flush_ms * 1_000_000
        more = False
        try:
            if group.storage_full and now_ns - self._probed_ns >= _NS:
                self._probed_ns = now_ns
                group.probe_storage()
            due = now_ns - self._housekept_ns >= (flush_ns if group.touches else _HOUSEKEEPING_NS)
            if due:
                before_ms = self.clock.wall_ms() - self.config.writer.reply_retention_ms
                with self.waiting.at_most(0):  # nobody waits for this, and commands must not wait for it
                    done = group.housekeep(replies_before_ms=before_ms)
                if not done.more:
                    self._housekept_ns = now_ns
                more = done.more
        except StoreIOError as error:
            raise ActorExit(ExitCode.IO_ERROR, error.detail) from error
        self._checkpoint()
        if group.storage_full:
            return 1.0
        if more:
            return 0.05
        return flush_ns / 1e9 if group.touches else _HOUSEKEEPING_NS / _NS

    def counters(self) -> dict[str, float]:
        """Figures for the heartbeat."""
        if self.group is None:
            return {}
        figures = self.group.figures
        return {
            "commits": figures.commits,
            "rows": figures.rows,
            "largest_batch": figures.largest_batch,
            "refused_full": figures.refused_full,
            "refused_busy": figures.refused_busy,
            "replayed": figures.replayed,
            "wal_frames": self._wal_frames,
            "storage_full": float(self.group.storage_full),
            "touches_dropped": self.group.touches.dropped,
        }

    def drain(self) -> None:
        """Pending touches are written, the log is folded back and emptied, the database is closed."""
        if self.connection is None:
            return
        try:
            if self.group is not None:
                while self.group.touches and self.group.housekeep(replies_before_ms=0).rows:
                    self.loop.beat()
            checkpoint.checkpoint(self.connection, "truncate")
        except (StoreIOError, StoreError) as error:
            self.log.exception("drain_incomplete", error=str(error))
        finally:
            self.connection.close()
            self.connection = None

    def reload(self, config: Config) -> None:
        """New limits and the agents' roster hold from the next commit on."""
        self.config = config
        self._group.config = config
        self.waiting.limit_ms = config.writer.busy_timeout_ms
        self._roster_pending = True
        self._sync_roster()

    @property
    def _group(self) -> GroupCommit:
        assert self.group is not None, "the writer was not started"
        return self.group

    def _take_lock(self) -> None:
        """Only one writer per workspace, whatever became of an earlier supervisor; waits for an old one to leave."""
        path = self.workspace.daemon_dir / "writer.lock"
        self._lock_fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        until_ns = self.clock.monotonic_ns() + 10 * _NS
        self.loop.starting("opening the database")
        while True:
            try:
                fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if self.clock.monotonic_ns() > until_ns:
                    raise ActorExit(ExitCode.IN_USE, "another writer holds this workspace") from error
                time.sleep(0.02)
            else:
                return

    def _quick_check(self, connection: Connection, path: Path) -> None:
        if path.stat().st_size > _QUICK_CHECK_BYTES:
            return
        verdict = connection.pragma("quick_check", 1)
        if verdict != "ok":
            raise StoreIOError(f"{path} is damaged ({verdict}); run `signet doctor`, or restore a backup")

    def _first_commit(self) -> None:
        group = self._group
        with write_transaction(group.connection) as tx:
            session = Session.begin(tx, self.clock, self.rng, self.config, self.boot.boot_id, KnownRows())
            agents.sync_roster(session)
            tx.execute(
                "INSERT INTO store_meta (key, value) VALUES ('database_id', ?) ON CONFLICT (key) DO NOTHING",
                (session.new_id(),),
            )
            tx.execute(
                "INSERT INTO store_meta (key, value) VALUES ('writer_started_at', ?)"
                " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (iso(self.clock.wall_ms()),),
            )
            tx.commit()

    def _sync_roster(self) -> None:
        """A reloaded roster is in the store; while it cannot be written, the next tick tries again."""
        if not self._roster_pending:
            return
        try:
            with self.waiting.at_most(0):
                self._first_commit()
            self._roster_pending = False
        except (LockTimeout, DiskFull) as error:
            self.log.warning("roster_not_written_yet", error=str(error))

    def _on_wal(self, _connection: Connection, _database: str, frames: int) -> int:
        if frames < self._wal_frames:
            self._folded_frames = 0  # the log began anew
        self._wal_frames = frames
        return 0

    def _checkpoint(self) -> None:
        """The log is folded back as far as its size asks for; see ``store.checkpoint``."""
        now_ns = self.clock.monotonic_ns()
        plan = checkpoint.wanted(
            self._wal_frames,
            folded=self._folded_frames,
            paused=now_ns < self._restart_not_before_ns,
            read_timeout_ms=self.config.searcher.read_timeout_ms,
        )
        if plan is None or self.connection is None:
            return
        try:
            with self.waiting.at_most(plan.busy_ms):
                frames, folded = checkpoint.checkpoint(self.connection, plan.mode)
        except DiskFull:
            return
        except BROKEN_DISK as error:
            raise ActorExit(ExitCode.IO_ERROR, f"the disk failed in a checkpoint: {error}") from error
        if frames < 0:
            self._restart_not_before_ns = self.clock.monotonic_ns() + checkpoint.RESTART_PAUSE_MS * 1_000_000
        else:
            self._folded_frames = folded

    def _status(self) -> WriterStatus:
        group = self._group
        wal = self.workspace.database.with_name(self.workspace.database.name + "-wal")
        return WriterStatus(
            commits=group.figures.commits,
            rows=group.figures.rows,
            largest_batch=group.figures.largest_batch,
            wal_bytes=wal.stat().st_size if wal.exists() else 0,
            storage_full=group.storage_full,
            schema_version=schema_version(group.connection),
            sqlite_version=check_sqlite_version(),
        )
