"""The loop of a synchronous actor (writer, searcher, retention): one thread that owns every socket of its process.

It reads everything that waits into one batch (of a searcher's own mailbox one message), hands the
batch to the actor, and sends the heartbeat between batches: an actor that is stuck goes silent, and the supervisor
replaces it. An exception that leaves the actor's ``handle``
ends the process (let it crash): whoever has not been answered is told so first.

Source: docs/messaging.md rules 6, 10, 11 and 17; docs/reliability.md "The writer's loop", R10, R19 and R21.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
import zmq

from signet_actors.config.schema import Config
from signet_actors.errors import ActorExit, ErrorCode, ExitCode, SignetError
from signet_actors.protocol.control import (
    Drain,
    EndSnapshots,
    Exiting,
    Heartbeat,
    Idle,
    Ready,
    Reload,
    SnapshotsEnded,
    Starting,
    SupervisorMessage,
    TreeChanged,
)
from signet_actors.protocol.message import Failure
from signet_actors.runtime.clock import Clock, next_heartbeat_ns
from signet_actors.runtime.logging.configuration import set_level
from signet_actors.runtime.logging.throttle import LogThrottle
from signet_actors.runtime.messaging.blocking_ref import BlockingRef
from signet_actors.runtime.messaging.envelope import UNDECODABLE, MessageFactory, new_counters
from signet_actors.runtime.messaging.linger import Linger
from signet_actors.runtime.messaging.mailbox import Incoming, Mailbox
from signet_actors.runtime.messaging.sockets import (
    SEARCH_SOCKET,
    SUPERVISOR_SOCKET,
    bind_router,
    close_all,
    connect_dealer,
    has_message,
    new_context,
    socket_identity,
)
from signet_actors.runtime.processes.child_context import ChildContext
from signet_actors.runtime.processes.idle_trimmer import IdleTrimmer
from signet_actors.runtime.processes.parent_death import supervisor_is_alive
from signet_actors.runtime.processes.process_metrics import process_metrics
from signet_actors.runtime.sync_points import sync_point

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

__all__ = ["Actor", "ActorExit", "ActorLoop", "BlockingRef"]

M = TypeVar("M")
M_contra = TypeVar("M_contra", contravariant=True)

_UNEXPECTED_EXIT = 1
_WORK_ITEMS = 16
_WORK_BYTES = 64 * 1024 * 1024


class Actor(Protocol[M]):
    """What a role provides; every method is called from the loop's one thread."""

    def start(self) -> None:
        """The self-check has passed; may call ``loop.starting``; raises ActorExit to leave."""
        ...

    def handle(self, batch: list[Incoming[M]]) -> None:
        """Each message of ``batch`` is answered."""
        ...

    def tick(self) -> float | None:
        """Periodic duties are done. Called when its time has come and after each batch; seconds until the next
        wanted call, None = only after the next batch."""
        ...

    def counters(self) -> dict[str, float]:
        """Figures that go out with the heartbeat."""
        ...

    def drain(self) -> None:
        """Last duties before exit are done; nothing arrives any more."""
        ...

    def reload(self, config: Config) -> None:
        """The new configuration is in force."""
        ...


class ActorLoop:
    """Owns the sockets; see the module. ``tree`` is the latest state of all children."""

    def __init__(self, boot: ChildContext, clock: Clock, log: FilteringBoundLogger) -> None:
        self.boot = boot
        self.clock = clock
        self.log = log
        self.config = boot.config
        self.warnings = LogThrottle(log, clock)
        self.message_factory = MessageFactory(boot)
        self.counters = new_counters()
        self.tree = TreeChanged([])
        self._context = new_context()
        self._poller = zmq.Poller()
        self._control = connect_dealer(self._context, boot.socket_dir, SUPERVISOR_SOCKET, boot.name, boot.bus_key)
        self._poller.register(self._control, zmq.POLLIN)
        self._decode_control = msgspec.msgpack.Decoder(SupervisorMessage).decode
        self._mailboxes: list[Mailbox[Any]] = []
        self._unbound: list[tuple[str, msgspec.msgpack.Decoder[Any], int, int, Linger | None]] = []
        self._mailbox_files: dict[str, tuple[int, int] | None] = {}
        self._work: Mailbox[Any] | None = None
        self._announce = False
        self._watching_for_gateway = False
        self._actor_counters: dict[str, float] = {}
        self._heartbeat_ns = boot.config.supervision.heartbeat_ms * 1_000_000
        self._next_heartbeat = 0
        self._drain_asked = False
        self._reloaded: Config | None = None
        self._unsent_control: list[list[bytes]] = []
        self._snapshots_to_end: int | None = None
        self.idle_trimmer = IdleTrimmer()
        self.may_be_replaced: Callable[[], bool] = lambda: True
        """Whether a new process could take this one's place; where not, it stays without its socket's path."""
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
        """The actor will have a mailbox at ``<socket_dir>/<name>.sock``, bound once its self-check has passed.

        Nothing is accepted before: a sender finds nobody there and can say for certain that nothing was applied.
        With ``linger`` its batches may gather.
        """
        self._unbound.append((name, decoder, max_items, max_bytes, linger))

    def join_pool(self, name: str, decoder: msgspec.msgpack.Decoder[M]) -> None:
        """The actor will offer itself at the gateway's search socket under ``name`` and get queries one by one."""
        socket = connect_dealer(self._context, self.boot.socket_dir, SEARCH_SOCKET, name, self.boot.bus_key)
        self._work = Mailbox(
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
        """A ref to the mailbox ``name``."""
        boot = self.boot
        return BlockingRef(
            self,
            lambda: connect_dealer(self._context, boot.socket_dir, name, boot.name, boot.bus_key),
            name,
            reply_decoder,
        )

    def starting(self, detail: str) -> None:
        """The supervisor knows that this actor is still working towards Ready, and on what."""
        self._tell_supervisor(Starting(detail))
        self.log.info("starting", detail=detail)

    def heartbeat(self) -> None:
        """The heartbeat has been sent if it was due; cheap enough for a progress handler or a busy handler."""
        now = self.clock.monotonic_ns()
        if now < self._next_heartbeat:
            return
        if self._next_heartbeat and now > self._next_heartbeat + self._heartbeat_ns:
            self.counters["hb_missed"] += 1
        self._next_heartbeat = next_heartbeat_ns(now, self._heartbeat_ns)
        self._tell_supervisor(Heartbeat({**self.counters, **process_metrics(), **self._actor_counters}))
        if not supervisor_is_alive(self.boot.supervisor_pid):
            raise ActorExit(ExitCode.GIVE_UP, "the supervisor is gone")

    def tell_supervisor(self, body: msgspec.Struct) -> None:
        """``body`` is on its way to the supervisor, or kept until the connection stands."""
        self._tell_supervisor(body)

    def snapshot_revoked(self) -> bool:
        """True when the supervisor wants this reader's snapshot to end; for a progress handler."""
        self._read_supervisor()
        return self._snapshots_to_end is not None

    def has_pending_query(self) -> bool:
        """True when something has come through the work socket meanwhile."""
        return self._work is not None and has_message(self._work.socket)

    def serve_pending(self, actor: Actor[M]) -> None:
        """What has come through the work socket is handled, inside the handling of a message that made way for it."""
        if self._work is not None:
            self._process_batch(actor, self._work)

    def snapshot_ended(self) -> None:
        """The supervisor knows that this process holds no snapshot any more, if it has asked."""
        if self._snapshots_to_end is not None:
            asked, self._snapshots_to_end = self._snapshots_to_end, None
            self._tell_supervisor(SnapshotsEnded(asked))

    def wait_for(self, socket: zmq.Socket[bytes], timeout_ms: int) -> None:
        """Something has come from ``socket`` or the supervisor, or the time is over; for ``BlockingRef``."""
        poller = zmq.Poller()
        poller.register(socket, zmq.POLLIN)
        poller.register(self._control, zmq.POLLIN)
        if any(ready is self._control for ready, _ in poller.poll(timeout_ms)):
            self._read_supervisor()

    def run(self, actor: Actor[M]) -> int:
        """The exit code; returns when the supervisor asked to drain, or when the actor cannot go on."""
        try:
            return self._run(actor)
        except ActorExit as leaving:
            self.log.error("leaving", code=leaving.exit_code, detail=leaving.detail)  # noqa: TRY400 - no crash, a decision
            self._tell_supervisor(Exiting(leaving.exit_code, leaving.detail))
            return leaving.exit_code
        except Exception as error:
            self.log.critical("crashed", exc_info=error)
            self._tell_supervisor(Exiting(_UNEXPECTED_EXIT, f"crashed with {type(error).__name__}"))
            return _UNEXPECTED_EXIT
        finally:
            close_all(self._context, flush=True)

    def _run(self, actor: Actor[M]) -> int:
        self._control.poll(self.config.supervision.heartbeat_ms, zmq.POLLOUT)  # until the connection stands
        self._tell_supervisor(Starting(""))
        actor.start()
        if self._work is not None:
            self._poller.register(self._work.socket, zmq.POLLIN)
            self._mailboxes.append(self._work)
            self._announce = True
        for name, decoder, max_items, max_bytes, linger in self._unbound:
            socket = bind_router(self._context, self.boot.socket_dir, name, self.boot.bus_key)
            box: Mailbox[Any] = Mailbox(
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
            self._mailboxes.append(box)
            self._mailbox_files[name] = socket_identity(self.boot.socket_dir, name)
        self._actor_counters = actor.counters()
        self._tell_supervisor(Ready())
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
            self.snapshot_ended()  # between two batches nobody holds one
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
                wish = actor.tick()
                next_tick = None if wish is None else self.clock.monotonic_ns() + int(wish * 1e9)
            if self.clock.monotonic_ns() >= self._next_heartbeat:
                self._actor_counters = actor.counters()
                self._announce = self._work is not None
                self.heartbeat()
                self._check_sockets()
                self.idle_trimmer.check(self.clock.monotonic_ns())
            if self._announce:
                self._announce_idle()

    def _check_sockets(self) -> None:
        """Raise ``ActorExit`` where something else has this process's path: the next life binds it anew, and gets
        what this one left unanswered."""
        for name, ours in self._mailbox_files.items():
            if socket_identity(self.boot.socket_dir, name) != ours and self.may_be_replaced():
                raise ActorExit(ExitCode.IO_ERROR, f"the socket {name}.sock was removed or replaced")

    def _process_mailboxes(self, actor: Actor[M]) -> bool:
        """What waited has been handled; True when there was something.

        With a work socket, that first and then one message of each mailbox: somebody waits for the answer of a query,
        and whoever asks by mailbox (the pipeline) must not be ahead of it by more than one.
        """
        worked = False
        for box in self._mailboxes:
            limit = 1 if self._work is not None and box is not self._work else None
            worked = self._process_batch(actor, box, limit) or worked
        return worked

    def _process_batch(self, actor: Actor[M], box: Mailbox[M], limit: int | None = None) -> bool:
        batch = box.take(limit)
        if not batch:
            return False
        sync_point(self._dequeued_point)
        begun = self.clock.monotonic_ns()
        self._handle(actor, batch)
        box.note_duration(self.clock.monotonic_ns() - begun)
        return True

    def _handle(self, actor: Actor[M], batch: list[Incoming[M]]) -> None:
        try:
            actor.handle(batch)
        except ActorExit:
            self._answer_rest(batch, Failure(ErrorCode.OUTCOME_UNKNOWN, "the actor had to stop"))
            raise
        except SignetError as error:
            self.log.warning("request failed", exc_info=error)
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
        """The gateway knows that this searcher waits, or POLLOUT wakes the loop when there is a gateway."""
        assert self._work is not None
        try:
            self._work.socket.send_multipart(self.message_factory.tell(Idle()), zmq.NOBLOCK)
            self._announce = False
        except zmq.ZMQError:
            pass
        if self._announce != self._watching_for_gateway:
            self._watching_for_gateway = self._announce
            wanted = zmq.POLLIN | zmq.POLLOUT if self._announce else zmq.POLLIN
            self._poller.modify(self._work.socket, wanted)

    def _tell_supervisor(self, body: msgspec.Struct) -> None:
        """Said in order; what cannot go out before the connection stands is kept, the newest few."""
        if not isinstance(body, Heartbeat) or not self._unsent_control:
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
            parts = self._control.recv_multipart(zmq.NOBLOCK)
            try:
                if self.message_factory.is_foreign(self.message_factory.read_header(parts[0])):
                    self.counters["foreign"] += 1
                    continue
                message = self._decode_control(parts[1])
                match message:
                    case TreeChanged():
                        self._tree_changed(message)
                    case Drain():
                        self._drain_asked = True
                    case EndSnapshots():
                        self._snapshots_to_end = message.asked
                    case Reload():
                        self._reloaded = msgspec.json.decode(message.config_json, type=Config)
            except (*UNDECODABLE, IndexError) as error:
                self.counters["decode_error"] += 1
                self.warnings.warning("supervisor not understood", error=type(error).__name__)

    def _tree_changed(self, tree: TreeChanged) -> None:
        before = {child.name: child.incarnation for child in self.tree.children}
        for child in tree.children:
            if child.incarnation > before.get(child.name, child.incarnation):
                self.counters["reconnects"] += 1
        if self._work is not None:
            self._announce = self._announce or [c for c in tree.children if c.role == "gateway"] != [
                c for c in self.tree.children if c.role == "gateway"
            ]
        self.tree = tree
