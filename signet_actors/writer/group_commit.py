"""Group commit: run all pending commands in one transaction, and reply to them only after COMMIT.

A reply with a result promises that its rows are on disk. Every failure says what is certain; DESIGN.md, "What an answer
means", lists the cases. After an I/O error the process exits with code 74, because its page cache may hold pages that
never reached the disk.

Source: docs/reliability.md R1-R5, R26 and "The writer's loop".
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple, Protocol, cast

from signet_actors.config.schema import Config, WriterConfig
from signet_actors.config.workspace import Workspace
from signet_actors.errors import DatabaseDisplaced, ErrorCode, SignetError, StoreIOError
from signet_actors.protocol.header import Header
from signet_actors.protocol.leases import AdvanceHighWaterMark, ReapLeases
from signet_actors.protocol.message import Failure
from signet_actors.protocol.pipeline import ReconcileJobs
from signet_actors.protocol.writer import PurgeStep, TransactionCommand, WriterCommand, WriterReply, WriterStatus
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.mailbox import Incoming
from signet_actors.runtime.sync_points import sync_point
from signet_actors.store.command_context import CommandContext, QueueChanges, RowCache
from signet_actors.store.engine import WriterEngine, WriteTransaction
from signet_actors.store.errors import BROKEN_DISK, DiskFull, LockTimeout, StoreError
from signet_actors.store.sqlite.connect import check_sqlite_version
from signet_actors.store.writes import store_meta
from signet_actors.writer import dispatch, idempotency
from signet_actors.writer.commands import purge
from signet_actors.writer.commands.access_counter import AccessCounter
from signet_actors.writer.disk_reserve import NO_RESERVE, DiskReserve
from signet_actors.writer.poison_commands import REFUSAL, PoisonCommands


class PendingCommand(Protocol):
    """A command that has not been replied to yet; ``runtime.messaging.mailbox.Incoming`` is one."""

    @property
    def header(self) -> Header: ...
    @property
    def body(self) -> Any: ...
    @property
    def frames(self) -> Sequence[bytes]: ...
    def reply(self, body: Any, frames: Sequence[bytes] = ()) -> None: ...


class RunOptions(NamedTuple):
    """What the actor adds to a commit: its sync and its long statements are reported, and rows send heartbeats."""

    during_sync: AbstractContextManager[None] = nullcontext()
    during_statement: AbstractContextManager[None] = nullcontext()
    heartbeat: Callable[[], None] = lambda: None


@dataclass(slots=True)
class CommitMetrics:
    """Counts since the process started."""

    commits: int = 0
    rows: int = 0
    largest_batch: int = 0
    refused_full: int = 0
    refused_busy: int = 0
    replayed: int = 0
    fenced: int = 0


class HousekeepingResult(NamedTuple):
    """``rows`` changed, and whether there is ``more`` to do than fits into one commit."""

    rows: int
    more: bool


class _RetryWithSavepoints(Exception):
    """A command failed after it had written: the transaction was rolled back; the batch runs again with savepoints."""


NO_HOUSEKEEPING = HousekeepingResult(0, False)
_PLAIN = RunOptions()
_NO_POISON = PoisonCommands()
PRUNE_LIMIT = 2000
REPLY_MARGIN_NS = 500_000_000
"""A refusal is sent this long before the caller's deadline, so that it arrives in time."""
BACKGROUND_COMMANDS: Final = (PurgeStep, ReapLeases, ReconcileJobs, AdvanceHighWaterMark)
"""Periodic commands that are repeated later anyway. Their deadlines do not follow from ``requestTimeoutMs``, so they do
not limit how long a batch waits for a lock."""
COMMIT_BYTES: Final = 1 << 20
"""The messages of one commit are at most this long together, unless it is a single one."""


def commit_parts(
    commands: Sequence[Incoming[WriterCommand]], most_commands: int
) -> Iterator[Sequence[Incoming[WriterCommand]]]:
    """Split the commands into commits of bounded work. A command that was sent before gets a commit of its own."""
    part: list[Incoming[WriterCommand]] = []
    size = 0
    for incoming in commands:
        alone = incoming.header.attempt > 1
        if part and (alone or len(part) >= most_commands or size + incoming.nbytes > COMMIT_BYTES):
            yield part
            part, size = [], 0
        part.append(incoming)
        size += incoming.nbytes
        if alone:
            yield part
            part, size = [], 0
    if part:
        yield part


def lock_wait_until_ns(deadline_ns: int, limits: WriterConfig) -> int:
    """Return when a command with this deadline must stop waiting for a foreign lock.

    The wait is counted from when the command was sent. A command that queued behind a batch which waited for the lock
    has used up its wait, and is refused as soon as the lock is found taken again; otherwise the second in the queue
    would wait twice as long as the first.
    """
    asked_ns = deadline_ns - limits.request_timeout_ms * 1_000_000
    return min(asked_ns + limits.busy_timeout_ms * 1_000_000, deadline_ns - REPLY_MARGIN_NS)


def batch_wait_until_ns(part: Sequence[Incoming[WriterCommand]], limits: WriterConfig) -> int | None:
    """Return when the commands of one commit must stop waiting for a foreign lock; None if no caller waits for them."""
    deadlines = [
        incoming.header.deadline_ns
        for incoming in part
        if incoming.header.deadline_ns and not isinstance(incoming.body, BACKGROUND_COMMANDS)
    ]
    return lock_wait_until_ns(min(deadlines), limits) if deadlines else None


def failure_for_unstarted(pending: PendingCommand, detail: str, *, retry_after_ms: int | None = None) -> Failure:
    """Return the failure of a command that was not started, when the stored replies cannot be read or trusted.

    If the command may have been sent before, only the present attempt is known not to have been applied.
    """
    if pending.header.attempt > 1 or idempotency.client_key(pending.body) is not None:
        return Failure(ErrorCode.OUTCOME_UNKNOWN, f"{detail}; whether an earlier attempt was applied is unknown")
    return Failure(ErrorCode.NOT_APPLIED, f"{detail}; nothing was applied", retry_after_ms=retry_after_ms)


def reply_to_unstarted(commands: Sequence[Incoming[WriterCommand]], *, begun: int) -> None:
    """Refuse the commands after the first ``begun``, because the disk failed while these were committed.

    A message that was delivered twice may be among those that were begun; then its outcome is unknown.
    """
    known = {incoming.header.message_id for incoming in commands[:begun]}
    for incoming in commands[begun:]:
        if incoming.header.message_id in known:
            incoming.reply(Failure(ErrorCode.OUTCOME_UNKNOWN, "the disk failed; the outcome is unknown"))
        else:
            incoming.reply(failure_for_unstarted(incoming, "the writer had to stop", retry_after_ms=1000))


@dataclass(eq=False, repr=False)
class GroupCommit:
    """Own the write transaction. ``commit`` replies to every command of its batch, whatever happens.

    ``displaced`` is called before each COMMIT: it returns which database file is no longer at its path, in words, or
    None. ``queue_changes``: what commits changed in the job queue since the actor last read it.
    """

    engine: WriterEngine
    clock: Clock
    rng: random.Random
    config: Config
    boot_id: str
    log: Any
    disk_reserve: DiskReserve = NO_RESERVE
    displaced: Callable[[], str | None] = lambda: None
    options: RunOptions = _PLAIN
    poison_commands: PoisonCommands = _NO_POISON
    row_cache: RowCache = field(default_factory=RowCache)
    touches: AccessCounter = field(default_factory=AccessCounter)
    metrics: CommitMetrics = field(default_factory=CommitMetrics)
    storage_full: bool = False
    queue_changes: QueueChanges = field(default_factory=QueueChanges)
    _committing: bool = False

    def __post_init__(self) -> None:
        self._reply_expiry = idempotency.ReplyExpiry(self.clock)

    def counters(self) -> dict[str, float]:
        """Return the metrics of the commits since the process started."""
        flags = {"storage_full": float(self.storage_full), "touches_dropped": self.touches.dropped}
        return {**asdict(self.metrics), **flags}

    def status(self, workspace: Workspace) -> WriterStatus:
        """Return the reply to ``GetWriterStatus``."""
        wal = workspace.database.with_name(workspace.database.name + "-wal")
        return WriterStatus(
            commits=self.metrics.commits,
            rows=self.metrics.rows,
            largest_batch=self.metrics.largest_batch,
            wal_bytes=wal.stat().st_size if wal.exists() else 0,
            storage_full=self.storage_full,
            schema_version=self.engine.schema_version(),
            sqlite_version=check_sqlite_version(),
        )

    def commit(self, batch: Sequence[PendingCommand]) -> None:
        """Apply or refuse every command of the batch, commit to disk, and reply to each.

        Raises ``StoreIOError`` after replying when the disk failed: the process must exit.
        """
        if not batch:
            return
        if self.storage_full:
            # Some commands may use the released reserve; all others are refused.
            growing = [pending for pending in batch if not isinstance(pending.body, dispatch.ON_FULL_DISK)]
            self._refuse(growing, ErrorCode.STORAGE_FULL, "the disk is full; nothing was applied")
            batch = [pending for pending in batch if isinstance(pending.body, dispatch.ON_FULL_DISK)]
            if not batch:
                return
        self._committing = False
        try:
            try:
                answers = self._transact(batch, with_savepoints=False)
            except _RetryWithSavepoints:
                self.row_cache.clear()
                answers = self._transact(batch, with_savepoints=True)
        except LockTimeout:
            self.row_cache.clear()
            self.metrics.refused_busy += len(batch)
            self._refuse(
                batch, ErrorCode.NOT_APPLIED, "another program has locked the database; nothing was applied", 1000
            )
            return
        except DiskFull:
            self.enter_storage_full()
            self._refuse(batch, ErrorCode.STORAGE_FULL, "the disk is full; nothing was applied")
            return
        except DatabaseDisplaced as error:
            self.refuse_displaced(batch, error.detail)
            raise
        except BROKEN_DISK as error:
            self._disk_failed(batch, committing=self._committing, error=error)
        self.metrics.commits += 1
        self.metrics.rows += len(batch)
        self.metrics.largest_batch = max(self.metrics.largest_batch, len(batch))
        if self.config.logging.level == "debug":
            traces = [pending.header.trace_id for pending, _ in answers]
            self.log.debug("committed", rows=len(answers), traces=traces)
        for index, (pending, answer) in enumerate(answers):
            pending.reply(answer)
            self.metrics.fenced += isinstance(answer, Failure) and answer.code is ErrorCode.LEASE_LOST
            if index == 0:
                sync_point("writer.after_first_reply")

    def housekeep(self, *, prune: bool = True) -> HousekeepingResult:
        """Write pending access counts and, with ``prune``, delete expired replies, in a commit of their own."""
        if self.storage_full:
            return NO_HOUSEKEEPING
        try:
            with self._open() as tx:
                context = CommandContext.begin(tx, self.clock, self.rng, self.config, self.boot_id, self.row_cache)
                touched = self.touches.flush(context)
                expired_ms = self._reply_expiry.before_ms(self.config.writer.reply_retention_ms) if prune else 0
                pruned = purge.prune_replies(context, expired_ms, PRUNE_LIMIT)
                self._check_files()
                tx.commit()
        except LockTimeout:
            return NO_HOUSEKEEPING
        except DiskFull:
            self.enter_storage_full()
            return NO_HOUSEKEEPING
        except BROKEN_DISK as error:
            raise StoreIOError(f"the disk failed: {error}") from error
        return HousekeepingResult(touched + pruned, bool(self.touches.pending) or pruned == PRUNE_LIMIT)

    def probe_storage(self) -> bool:
        """Test with a small write whether the disk has room again; return True when writes are accepted."""
        if not self.storage_full:
            return True
        try:
            with self._open() as tx:
                store_meta.write_probe(tx)
                tx.commit()
        except (DiskFull, LockTimeout):
            return False
        except BROKEN_DISK as error:
            raise StoreIOError(f"the disk failed: {error}") from error
        self.storage_full = False
        self.disk_reserve.allocate()
        self.log.warning("storage_recovered")
        return True

    def _transact(
        self, batch: Sequence[PendingCommand], *, with_savepoints: bool
    ) -> list[tuple[PendingCommand, WriterReply]]:
        """Run the batch in one transaction and return the replies once it is on disk.

        Savepoints are skipped at first: each one costs a tenth of a remember, and commands rarely fail halfway. A
        command that does raises ``_RetryWithSavepoints``. The second run, ``with_savepoints``, gives each command a
        savepoint, so that only the failing commands are undone.
        """
        replayed = self.metrics.replayed
        answers: list[tuple[PendingCommand, WriterReply]] = []
        heartbeat = self.options.heartbeat
        with self._open() as tx:
            context = CommandContext.begin(
                tx, self.clock, self.rng, self.config, self.boot_id, self.row_cache, heartbeat
            )
            try:
                for pending in batch:
                    heartbeat()
                    answers.append((pending, self._run(context, pending, with_savepoints=with_savepoints)))
                    sync_point("writer.mid_batch")
                self._flush_inserts(context)
            except _RetryWithSavepoints:
                self.metrics.replayed = replayed
                raise
            self._check_files()
            self._committing = True
            tx.commit()
            self._committing = False
        self.queue_changes.add(context.queue_changes)
        return answers

    def _open(self) -> AbstractContextManager[WriteTransaction]:
        return self.engine.begin(self.options.during_sync, self.options.during_statement)

    def _check_files(self) -> None:
        """Raise ``DatabaseDisplaced`` unless the open files are still the ones at their paths."""
        displacement = self.displaced()
        if displacement is not None:
            raise DatabaseDisplaced(displacement)

    def _run(self, context: CommandContext, pending: PendingCommand, *, with_savepoints: bool) -> WriterReply:
        command = cast(TransactionCommand, pending.body)
        context.frames = pending.frames
        context.caller = pending.header.sender, pending.header.incarnation
        key, digest = idempotency.request_key(pending.header, idempotency.client_key(command))
        lookup_key = idempotency.reply_lookup_key(key)
        if context.insert_buffer.contains(lookup_key):
            self._flush_inserts(context)  # a row that is refused here belongs to another command
        earlier = idempotency.earlier_reply(context.tx_for(lookup_key), key, digest)
        if earlier is not None:
            self.metrics.replayed += 1
            return earlier
        if pending.header.attempt > 1 and key in self.poison_commands.refused:
            return REFUSAL
        before = context.change_counts()
        try:
            with context.tx.savepoint() if with_savepoints else nullcontext():
                reply = dispatch.execute(context, command)
                if dispatch.keeps_reply(command, reply):
                    idempotency.keep_reply(context, key, digest, reply)
                if with_savepoints:
                    context.insert_buffer.flush()
                return reply
        except SignetError as error:
            self.row_cache.clear()  # cached rows may have been rolled back
            if with_savepoints:
                context.insert_buffer.discard()
            elif context.change_counts() != before:
                raise _RetryWithSavepoints from error
            return Failure(code=error.code, detail=error.detail, field=error.field, retry_after_ms=error.retry_after_ms)
        except (LockTimeout, DiskFull):
            raise
        except BROKEN_DISK:
            raise
        except Exception as error:
            if not with_savepoints:
                raise _RetryWithSavepoints from error
            # A bug in one command fails that command only: its savepoint is rolled back and the others go on.
            self.row_cache.clear()
            context.insert_buffer.discard()
            if not context.is_open:
                raise
            self.log.exception("command_failed", command=type(command).__name__, trace=pending.header.trace_id)
            return Failure(code=ErrorCode.INTERNAL, detail="the command failed; it was not applied")

    def _flush_inserts(self, context: CommandContext) -> None:
        """Insert the buffered rows; raise ``_RetryWithSavepoints`` if one is refused."""
        try:
            context.insert_buffer.flush()
        except (LockTimeout, DiskFull):
            raise
        except BROKEN_DISK:
            raise
        except Exception as error:
            raise _RetryWithSavepoints from error

    def enter_storage_full(self) -> None:
        """Refuse writes until a probe succeeds, and release the disk reserve for the commands that free space."""
        self.row_cache.clear()
        if not self.storage_full:
            self.log.error("storage_full", remedy="free disk space; writes resume automatically")
            self.disk_reserve.release()
        self.storage_full = True

    def _refuse(
        self, batch: Sequence[PendingCommand], code: ErrorCode, detail: str, retry_after_ms: int | None = None
    ) -> None:
        if code is ErrorCode.STORAGE_FULL:
            self.metrics.refused_full += len(batch)
        for pending in batch:
            pending.reply(
                self._earlier_reply_or(pending, Failure(code=code, detail=detail, retry_after_ms=retry_after_ms))
            )

    def _earlier_reply_or(self, pending: PendingCommand, failure: Failure) -> WriterReply:
        """Return the stored reply of an earlier attempt at the same command, else ``failure``.

        A retry of a command that was applied must not be told that nothing was applied.
        """
        key, digest = idempotency.request_key(pending.header, idempotency.client_key(pending.body))
        try:
            return idempotency.earlier_reply(self.engine, key, digest) or failure
        except StoreError:
            if pending.header.attempt > 1 or digest is not None:
                return Failure(
                    code=ErrorCode.OUTCOME_UNKNOWN, detail="whether an earlier attempt was applied is unknown"
                )
            return failure

    def refuse_displaced(self, batch: Sequence[PendingCommand], detail: str) -> None:
        """Refuse the batch: nothing of it was applied.

        An earlier reply is not repeated, because its rows are in the file that is no longer at its path.
        """
        for pending in batch:
            key, digest = idempotency.request_key(pending.header, idempotency.client_key(pending.body))
            try:
                earlier = idempotency.earlier_reply(self.engine, key, digest)
            except StoreError:
                pending.reply(failure_for_unstarted(pending, detail, retry_after_ms=1000))
                continue
            if earlier is None:
                refusal = f"{detail}; nothing was applied"
                pending.reply(Failure(ErrorCode.NOT_APPLIED, refusal, retry_after_ms=1000, is_lasting=True))
            else:
                pending.reply(Failure(ErrorCode.OUTCOME_UNKNOWN, f"{detail}; that file contains an earlier attempt"))

    def _disk_failed(self, batch: Sequence[PendingCommand], *, committing: bool, error: BaseException) -> None:
        """Reply to every command with what is certain, and raise ``StoreIOError``.

        The connection is not read any more: its pages cannot be trusted.
        """
        for pending in batch:
            if committing:
                pending.reply(Failure(ErrorCode.OUTCOME_UNKNOWN, "the disk failed; the outcome is unknown"))
            else:
                pending.reply(failure_for_unstarted(pending, "the disk failed", retry_after_ms=1000))
        raise StoreIOError(f"the disk failed: {error}") from error
