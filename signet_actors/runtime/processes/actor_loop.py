"""The loop of a synchronous actor (writer, searcher, retention): one thread that owns every socket of its process.

It reads all waiting messages into one batch (one message at a time where there is a work socket, see
``_process_mailboxes``), passes the batch to the actor, and sends the heartbeat between batches. A stuck actor therefore
goes silent and is replaced. An exception that leaves ``Actor.handle`` ends the process after every unanswered message
of the batch has been answered with a failure.

Source: docs/messaging.md rules 6, 10, 11 and 17; docs/reliability.md "The writer's loop", R10, R19 and R21.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
import zmq

from signet_actors.config.schema import Config
from signet_actors.errors import ActorExit, ErrorCode, ExitCode, SignetError
from signet_actors.protocol import control as messages
from signet_actors.protocol.message import Failure
from signet_actors.runtime.clock import Clock, next_heartbeat_ns
from signet_actors.runtime.logging.configuration import set_level
from signet_actors.runtime.logging.throttle import LogThrottle
from signet_actors.runtime.messaging import sockets
from signet_actors.runtime.messaging.blocking import BlockingRef
from signet_actors.runtime.messaging.envelope import MessageFactory, MessageReader, new_counters
from signet_actors.runtime.messaging.mailbox import Incoming, Linger, Mailbox, has_message
from signet_actors.runtime.processes.call_reporter import CallReporter
from signet_actors.runtime.processes.child_context import ChildContext, decode_control
from signet_actors.runtime.processes.idle_trimmer import IdleTrimmer
from signet_actors.runtime.processes.parent_death import supervisor_is_alive
from signet_actors.runtime.processes.process_metrics import process_metrics
from signet_actors.runtime.sync_points import sync_point

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

M = TypeVar("M")
M_contra = TypeVar("M_contra", contravariant=True)

_UNEXPECTED_EXIT = 1
_WORK_ITEMS = 16
_WORK_BYTES = 64 * 1024 * 1024


class Actor(Protocol[M]):
    """The interface of a role; every method is called from the loop's one thread."""

    def start(self) -> None:
        """Run the self-check; may call ``loop.starting``. Raises ActorExit to leave."""

    def handle(self, batch: list[Incoming[M]]) -> None:
        """Answer each message of ``batch``."""

    def tick(self) -> float | None:
        """Work when due and after each batch; return the seconds until the next call, None: after the next batch."""

    def counters(self) -> dict[str, float]:
        """Return the metrics to send with the heartbeat."""

    def drain(self) -> None:
        """Finish before the exit; no more messages arrive."""

    def reload(self, config: Config) -> None:
        """Apply the new configuration."""


class ActorLoop:
    """The loop of the module's description. ``tree`` is the latest state of all children."""

    def __init__(self, boot: ChildContext, clock: Clock, log: FilteringBoundLogger) -> None:
        self.boot = boot
        self.clock = clock
        self.log = log
        self.config = boot.config
        self.message_factory = MessageFactory(boot)
        self.counters = new_counters()
        self.reader = MessageReader(self.message_factory, self.counters, LogThrottle(log, clock))
        self.tree = messages.TreeChanged([])
        self._context = sockets.new_context()
        self._poller = zmq.Poller()
        self._control = sockets.connect_dealer(
            self._context, boot.socket_dir, sockets.SUPERVISOR_SOCKET, boot.name, boot.bus_key
        )
        self._poller.register(self._control, zmq.POLLIN)
        self._mailboxes: list[Mailbox[Any]] = []
        self._unbound: list[tuple[str, msgspec.msgpack.Decoder[Any], int, int, Linger | None]] = []
        self._mailbox_files: dict[str, tuple[int, int] | None] = {}
        self._pool_mailbox: Mailbox[Any] | None = None
        self._announce_due = False
        self._watching_for_gateway = False
        self._actor_counters: dict[str, float] = {}
        self._heartbeat_ns = boot.config.supervision.heartbeat_ms * 1_000_000
        self._next_heartbeat = 0
        self._drain_asked = False
        self._reloaded: Config | None = None
        self._unsent_control: list[list[bytes]] = []
        self._snapshots_to_end: int | None = None
        self.idle_trimmer = IdleTrimmer()
        self.calls = CallReporter(clock, self.tell_supervisor, boot.config.supervision.heartbeat_ms)
        self.may_be_replaced: Callable[[], bool] = lambda: True
        """Return whether a new process could take over; if not, this one goes on although its socket's path is lost."""
        self._dequeued_point = f"{boot.role}.dequeued"

    def bind_mailbox(
        self,
        name: str,
        decoder: msgspec.msgpack.Decoder[M],
        *,
        max_items: int,
        max_bytes: int,
        linger: Linger | None = None,
    ) -> None:
        """Declare a mailbox at ``<socket_dir>/<name>.sock``; it is bound once the self-check has passed.

        A sender that is earlier finds no socket, and knows for certain that nothing was applied. With ``linger`` a
        batch may wait for more messages.
        """
        self._unbound.append((name, decoder, max_items, max_bytes, linger))

    def join_pool(self, name: str, decoder: msgspec.msgpack.Decoder[M]) -> None:
        """Offer this actor at the gateway's search socket as ``name``; it gets one query at a time."""
        socket = sockets.connect_dealer(
            self._context, self.boot.socket_dir, sockets.SEARCH_SOCKET, name, self.boot.bus_key
        )
        self._pool_mailbox = Mailbox(
            socket,
            decoder,
            self.message_factory,
            self.clock,
            self.log,
            self.counters,
            max_items=_WORK_ITEMS,
            max_bytes=_WORK_BYTES,
            routed=False,
        )

    def connect_ref(self, name: str, reply_decoder: msgspec.msgpack.Decoder[Any]) -> BlockingRef:
        """Return a ref to the mailbox ``name``."""
        boot = self.boot
        return BlockingRef(
            self,
            lambda: sockets.connect_dealer(self._context, boot.socket_dir, name, boot.name, boot.bus_key),
            name,
            reply_decoder,
        )

    def starting(self, detail: str) -> None:
        """Tell the supervisor what this actor still does before Ready."""
        self.tell_supervisor(messages.Starting(detail))
        self.log.info("starting", detail=detail)

    def heartbeat(self) -> None:
        """Send the heartbeat if it is due; cheap. Raises ActorExit when the supervisor has exited."""
        now = self.clock.monotonic_ns()
        if now < self._next_heartbeat:
            return
        if self._next_heartbeat and now > self._next_heartbeat + self._heartbeat_ns:
            self.counters["hb_missed"] += 1
        self._next_heartbeat = next_heartbeat_ns(now, self._heartbeat_ns)
        self.tell_supervisor(messages.Heartbeat({**self.counters, **process_metrics(), **self._actor_counters}))
        if not supervisor_is_alive(self.boot.supervisor_pid):
            raise ActorExit(ExitCode.GIVE_UP, "the supervisor has exited")

    def snapshot_revoked(self) -> bool:
        """Return whether the supervisor has asked this reader to end its snapshot; for a progress handler."""
        self._read_supervisor()
        return self._snapshots_to_end is not None

    def has_pending_query(self) -> bool:
        return self._pool_mailbox is not None and has_message(self._pool_mailbox.socket)

    def serve_pending(self, actor: Actor[M]) -> None:
        """Handle what waits in the work socket, from within the handling of a preempted message."""
        if self._pool_mailbox is not None:
            self._process_batch(actor, self._pool_mailbox)

    def snapshot_ended(self) -> None:
        """Tell the supervisor that this process holds no snapshot, if it has asked."""
        if self._snapshots_to_end is not None:
            asked, self._snapshots_to_end = self._snapshots_to_end, None
            self.tell_supervisor(messages.SnapshotsEnded(asked))

    def wait_for(self, socket: zmq.Socket[bytes], timeout_ms: int) -> None:
        """Wait for a message from ``socket`` or the supervisor, at most ``timeout_ms``; for ``BlockingRef``."""
        poller = zmq.Poller()
        poller.register(socket, zmq.POLLIN)
        poller.register(self._control, zmq.POLLIN)
        if any(ready is self._control for ready, _ in poller.poll(timeout_ms)):
            self._read_supervisor()

    def run(self, actor: Actor[M]) -> int:
        """Run until the supervisor asks to drain or the actor cannot go on; return the exit code."""
        try:
            return self._run(actor)
        except ActorExit as leaving:
            self.log.error("exiting", code=leaving.exit_code, detail=leaving.detail)  # noqa: TRY400 - no crash, a decision
            self.tell_supervisor(messages.Exiting(leaving.exit_code, leaving.detail))
            return leaving.exit_code
        except Exception as error:
            self.log.critical("crashed", exc_info=error)
            self.tell_supervisor(messages.Exiting(_UNEXPECTED_EXIT, f"crashed with {type(error).__name__}"))
            return _UNEXPECTED_EXIT
        finally:
            self.calls.stop()
            sockets.close_all(self._context, flush=True)

    def _run(self, actor: Actor[M]) -> int:
        self._control.poll(self.config.supervision.heartbeat_ms, zmq.POLLOUT)  # until the connection is up
        self.tell_supervisor(messages.Starting(""))
        actor.start()
        if self._pool_mailbox is not None:
            self._poller.register(self._pool_mailbox.socket, zmq.POLLIN)
            self._mailboxes.append(self._pool_mailbox)
            self._announce_due = True
        for name, decoder, max_items, max_bytes, linger in self._unbound:
            socket = sockets.bind_router(self._context, self.boot.socket_dir, name, self.boot.bus_key)
            mailbox: Mailbox[Any] = Mailbox(
                socket,
                decoder,
                self.message_factory,
                self.clock,
                self.log,
                self.counters,
                max_items=max_items,
                max_bytes=max_bytes,
                linger=linger,
            )
            self._poller.register(socket, zmq.POLLIN)
            self._mailboxes.append(mailbox)
            self._mailbox_files[name] = sockets.socket_identity(self.boot.socket_dir, name)
        self._actor_counters = actor.counters()
        self.tell_supervisor(messages.Ready())
        self.log.info("ready")
        self._run_loop(actor)
        self.log.info("draining")
        while self._process_mailboxes(actor):
            pass
        actor.drain()
        self.log.info("drained")
        return ExitCode.OK

    def _run_loop(self, actor: Actor[M]) -> None:
        next_tick: int | None = self.clock.monotonic_ns()
        while not self._drain_asked:
            now = self.clock.monotonic_ns()
            until = self._next_heartbeat if next_tick is None else min(self._next_heartbeat, next_tick)
            self._poller.poll(max(0, -(-(until - now) // 1_000_000)))
            self._read_supervisor()
            self.snapshot_ended()  # no snapshot is open between two batches
            if self._reloaded is not None:
                self.config, self._reloaded = self._reloaded, None
                self._heartbeat_ns = self.config.supervision.heartbeat_ms * 1_000_000
                self._next_heartbeat = min(
                    self._next_heartbeat, next_heartbeat_ns(self.clock.monotonic_ns(), self._heartbeat_ns)
                )
                set_level(self.config.logging)
                actor.reload(self.config)
            worked = self._process_mailboxes(actor)
            now = self.clock.monotonic_ns()
            if worked or (next_tick is not None and now >= next_tick):
                next_tick_s = actor.tick()
                next_tick = None if next_tick_s is None else self.clock.monotonic_ns() + int(next_tick_s * 1e9)
            if self.clock.monotonic_ns() >= self._next_heartbeat:
                self._actor_counters = actor.counters()
                self._announce_due = self._pool_mailbox is not None
                self.heartbeat()
                self._check_sockets()
                self.idle_trimmer.check(self.clock.monotonic_ns())
            if self._announce_due:
                self._announce_idle()

    def _check_sockets(self) -> None:
        """Raise ``ActorExit`` if another process has taken a socket's path: the next process binds it again."""
        for name, ours in self._mailbox_files.items():
            if sockets.socket_identity(self.boot.socket_dir, name) != ours and self.may_be_replaced():
                raise ActorExit(ExitCode.IO_ERROR, f"the socket {name}.sock was removed or replaced")

    def _process_mailboxes(self, actor: Actor[M]) -> bool:
        """Handle waiting messages; return whether there were any.

        With a work socket, handle its message first, then one of each mailbox: a caller waits for a query's reply, so
        at most one message of the pipeline may be ahead of it.
        """
        worked = False
        for mailbox in self._mailboxes:
            limit = 1 if self._pool_mailbox is not None and mailbox is not self._pool_mailbox else None
            worked = self._process_batch(actor, mailbox, limit) or worked
        return worked

    def _process_batch(self, actor: Actor[M], mailbox: Mailbox[M], limit: int | None = None) -> bool:
        batch = mailbox.take(limit)
        if not batch:
            return False
        sync_point(self._dequeued_point)
        begun_ns = self.clock.monotonic_ns()
        self._handle(actor, batch)
        mailbox.note_duration(self.clock.monotonic_ns() - begun_ns)
        return True

    def _handle(self, actor: Actor[M], batch: list[Incoming[M]]) -> None:
        try:
            actor.handle(batch)
        except ActorExit:
            self._answer_rest(batch, Failure(ErrorCode.OUTCOME_UNKNOWN, "the actor had to stop"))
            raise
        except SignetError as error:
            self.log.warning("request_failed", exc_info=error)
            self._answer_rest(
                batch, Failure(error.code, error.detail, field=error.field, retry_after_ms=error.retry_after_ms)
            )
        except Exception:
            self._answer_rest(batch, Failure(ErrorCode.INTERNAL, "the actor failed on this request"))
            raise

    def _answer_rest(self, batch: list[Incoming[M]], failure: Failure) -> None:
        for incoming in batch:
            if not incoming.answered:
                incoming.reply(failure)

    def _announce_idle(self) -> None:
        """Offer this searcher to the gateway; while no gateway is connected, let POLLOUT wake the loop."""
        assert self._pool_mailbox is not None
        try:
            self._pool_mailbox.socket.send_multipart(self.message_factory.tell(messages.Idle()), zmq.NOBLOCK)
            self._announce_due = False
        except zmq.ZMQError:
            pass
        if self._announce_due != self._watching_for_gateway:
            self._watching_for_gateway = self._announce_due
            wanted = zmq.POLLIN | zmq.POLLOUT if self._announce_due else zmq.POLLIN
            self._poller.modify(self._pool_mailbox.socket, wanted)

    def tell_supervisor(self, body: msgspec.Struct) -> None:
        """Send ``body`` to the supervisor, in order; while the connection is not up, keep the newest few messages."""
        with self.calls.lock:
            if not isinstance(body, messages.Heartbeat | messages.InCall) or not self._unsent_control:
                self._unsent_control = [*self._unsent_control[-4:], self.message_factory.tell(body)]
            while self._unsent_control:
                try:
                    self._control.send_multipart(self._unsent_control[0], zmq.NOBLOCK)
                except zmq.ZMQError:
                    self.counters["hb_missed"] += 1
                    return
                self._unsent_control.pop(0)

    def _read_supervisor(self) -> None:
        while has_message(self._control):
            opened = self.reader.read(self._control.recv_multipart(zmq.NOBLOCK), decode_control, "supervisor")
            if opened is None:
                continue
            match opened[1]:
                case messages.TreeChanged() as tree:
                    self._tree_changed(tree)
                case messages.Drain():
                    self._drain_asked = True
                case messages.EndSnapshots(asked):
                    self._snapshots_to_end = asked
                case Config() as config:
                    self._reloaded = config

    def _tree_changed(self, tree: messages.TreeChanged) -> None:
        before = {child.name: child.incarnation for child in self.tree.children}
        for child in tree.children:
            if child.incarnation > before.get(child.name, child.incarnation):
                self.counters["reconnects"] += 1
        if self._pool_mailbox is not None:
            self._announce_due = self._announce_due or [c for c in tree.children if c.role == "gateway"] != [
                c for c in self.tree.children if c.role == "gateway"
            ]
        self.tree = tree
