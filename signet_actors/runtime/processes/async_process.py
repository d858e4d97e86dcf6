"""The base of every asyncio process of the tree: link to the supervisor, heartbeat, sockets, shutdown.

The heartbeat comes from the loop that does the work: a stuck process goes silent and is replaced.

Source: docs/messaging.md rules 1-12; docs/reliability.md "Supervision policy", R10, R19 and R21.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import zmq

from signet_actors.config.schema import Config
from signet_actors.errors import ExitCode
from signet_actors.protocol.control import UP, Drain, Exiting, GetTree, Heartbeat, Ready, Starting, TreeChanged
from signet_actors.runtime.clock import Clock, next_heartbeat_ns
from signet_actors.runtime.logging.configuration import set_level
from signet_actors.runtime.logging.throttle import LogThrottle
from signet_actors.runtime.messaging import sockets
from signet_actors.runtime.messaging.async_client import AsyncSocket, PeerLink, RequestTracker
from signet_actors.runtime.messaging.envelope import PING, MessageFactory, MessageReader, new_counters
from signet_actors.runtime.processes.child_context import ChildContext, decode_control
from signet_actors.runtime.processes.idle_trimmer import IdleTrimmer
from signet_actors.runtime.processes.parent_death import supervisor_is_alive
from signet_actors.runtime.processes.process_metrics import process_metrics

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

_UNSENT_WAIT_S = 0.5
_UNSENT_RETRY_S = 0.005
_TREE_TIMEOUT_MS = 1000


class AsyncProcess:
    """The base class. ``tree`` is the latest state of all children; ``counters`` are sent with each heartbeat.

    ``on_drain`` is called with the drain time in milliseconds, ``on_reload`` with each new configuration, ``on_tree``
    after each change of ``tree``. ``extra_counters`` returns more metrics for the heartbeat.
    """

    def __init__(self, boot: ChildContext, clock: Clock, log: FilteringBoundLogger, rng: random.Random) -> None:
        self.boot = boot
        self.clock = clock
        self.log = log
        self.rng = rng
        self.config = boot.config
        self.tree = TreeChanged([])
        self.counters: dict[str, int] = new_counters()
        self.on_drain: Callable[[int], None] | None = None
        self.on_reload: Callable[[Config], object] | None = None
        self.on_tree: Callable[[TreeChanged], None] | None = None
        self.extra_counters: Callable[[], dict[str, float]] | None = None
        self._message_factory = MessageFactory(boot)
        self._reader = MessageReader(self._message_factory, self.counters, LogThrottle(log, clock))
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._sockets: list[AsyncSocket] = []
        self._peers: dict[str, RequestTracker] = {}
        self._links: dict[str, PeerLink] = {}
        self._mailbox_files: dict[str, tuple[zmq.Socket[bytes], tuple[int, int] | None]] = {}
        self._heartbeat_timer: asyncio.TimerHandle | None = None
        self._next_heartbeat_ns = 0
        self.idle_trimmer = IdleTrimmer()
        self._control_retry_timer: asyncio.TimerHandle | None = None
        self._unsent_control: list[list[bytes]] = []
        self._tree_waiters: list[asyncio.Future[TreeChanged]] = []
        self._supervisor_seen_ns = clock.monotonic_ns()

    async def start(self) -> None:
        """Open the sockets, report Starting to the supervisor, and start the heartbeat."""
        self._loop = asyncio.get_running_loop()
        context = self._context = sockets.new_context()
        self._open_sockets()
        directory, name = self.boot.socket_dir, self.boot.name
        control = sockets.connect_dealer(context, directory, sockets.SUPERVISOR_SOCKET, name, self.boot.bus_key)
        self._control = self._wrap_socket(control, self._from_supervisor)
        self._tell_supervisor(Starting())
        self._next_heartbeat_ns = self.clock.monotonic_ns()
        self._heartbeat()

    async def close(self) -> None:
        """Fail all pending requests and close the sockets."""
        if self._context is None:
            return
        if self._heartbeat_timer is not None:
            self._heartbeat_timer.cancel()
        self._fail_pending_requests()
        await self._send_unsent()
        for tracker in self._peers.values():
            tracker.close()
        for socket in self._sockets:
            socket.close()
        await asyncio.sleep(0)
        sockets.close_all(self._context, flush=True)
        self._context = None

    async def _send_unsent(self) -> None:
        """Give the connection to the supervisor time to come up, so that an exit right after the start is explained."""
        until = self._loop.time() + _UNSENT_WAIT_S
        while self._unsent_control and self._loop.time() < until:
            await asyncio.sleep(_UNSENT_RETRY_S)
            self._flush_control()

    def starting(self, detail: str) -> None:
        """Tell the supervisor what this process still does before it is ready."""
        self._tell_supervisor(Starting(detail))
        self.log.info("starting", detail=detail)

    def ready(self, detail: str = "") -> None:
        self._tell_supervisor(Ready(detail))

    def exiting(self, code: int, detail: str) -> None:
        self._tell_supervisor(Exiting(code, detail))

    async def ask_tree(self) -> TreeChanged:
        """Return the tree with the counters of the last heartbeats; the last known tree if no reply comes in time."""
        waiter: asyncio.Future[TreeChanged] = self._loop.create_future()
        self._tree_waiters.append(waiter)
        self._tell_supervisor(GetTree())
        try:
            return await asyncio.wait_for(waiter, _TREE_TIMEOUT_MS / 1000)
        except TimeoutError:
            return self.tree
        finally:
            if waiter in self._tree_waiters:
                self._tree_waiters.remove(waiter)

    def supervisor_silent_ms(self) -> int:
        """Return the age of the known tree; a working supervisor sends it after each of our heartbeats."""
        return (self.clock.monotonic_ns() - self._supervisor_seen_ns) // 1_000_000

    def _open_sockets(self) -> None:
        """Open the subclass's own sockets, before those of this class."""

    def _fail_pending_requests(self) -> None:
        """Fail the subclass's own pending requests."""

    def _on_tree_change(self, tree: TreeChanged) -> None:
        """Apply a change of the tree to the subclass's own requests."""

    def _apply_config(self, config: Config) -> None:
        """Apply limits that the configuration sets."""

    def _metrics(self) -> dict[str, float]:
        """Return the subclass's own metrics for the heartbeat."""
        return {}

    def _wrap_socket(self, socket: zmq.Socket[bytes], receive: Callable[[list[bytes]], None]) -> AsyncSocket:
        wrapped = AsyncSocket(self._loop, socket, receive, self._receive_failed)
        self._sockets = [*(known for known in self._sockets if known.is_open), wrapped]
        return wrapped

    def _bind_router(self, name: str) -> zmq.Socket[bytes]:
        """Bind the ROUTER ``name`` and watch its path from then on."""
        assert self._context is not None
        socket = sockets.bind_router(self._context, self.boot.socket_dir, name, self.boot.bus_key)
        self._mailbox_files[name] = socket, sockets.socket_identity(self.boot.socket_dir, name)
        return socket

    def _check_sockets(self) -> None:
        """Bind lost socket paths again, and replace connections that no longer work."""
        directory = self.boot.socket_dir
        for name, (socket, ours) in self._mailbox_files.items():
            if ours is not None and sockets.socket_identity(directory, name) == ours:
                continue
            self.log.error("socket_path_missing", socket=name)
            self._mailbox_files[name] = socket, None
            with contextlib.suppress(zmq.ZMQError):  # no directory: the next heartbeat tries again
                sockets.rebind(socket, directory, name)
                self._mailbox_files[name] = socket, sockets.socket_identity(directory, name)
        for child in self.tree.children:
            if child.name in self._links:
                self._links[child.name].check(is_up=child.state == UP)

    def _connect(
        self,
        peer: str,
        decode: Callable[[bytes], Any],
        *,
        max_items: int,
        max_bytes: int,
        resend: bool,
        probe: bool = False,
    ) -> tuple[RequestTracker, PeerLink]:
        """Connect to the mailbox of the child ``peer``; the link is for messages without a reply."""

        def connect() -> AsyncSocket:
            assert self._context is not None
            directory, key = self.boot.socket_dir, self.boot.bus_key
            return self._wrap_socket(
                sockets.connect_dealer(self._context, directory, peer, self.boot.name, key), receive
            )

        def receive(parts: list[bytes]) -> None:
            opened = self._reader.read(parts, lambda body: None if body == PING else decode(body), peer)
            if opened is not None:
                link.on_message()
                header, reply = opened
                if reply is not None:
                    tracker.on_reply(header.message_id, reply, header.attempt)

        def send(parts: list[bytes]) -> bool:
            if link.send(parts):
                self.counters["sent"] += 1
                return True
            return False

        link = PeerLink(self.clock, self._message_factory, connect, probe=probe)
        tracker = RequestTracker(
            self._loop,
            self.clock,
            self._message_factory,
            send,
            self.counters,
            peer=peer,
            max_items=max_items,
            max_bytes=max_bytes,
            resend=resend,
        )
        self._peers[peer], self._links[peer] = tracker, link
        for child in self.tree.children:
            if child.name == peer:
                tracker.on_peer_state(child.state, child.incarnation)
        return tracker, link

    def _receive_failed(self, error: Exception) -> None:
        self.log.error("message_failed", exc_info=error)

    def _from_supervisor(self, parts: list[bytes]) -> None:
        opened = self._reader.read(parts, decode_control, "supervisor")
        if opened is None:
            return
        self._supervisor_seen_ns = self.clock.monotonic_ns()
        match opened[1]:
            case TreeChanged() as tree:
                self._tree_changed(tree)
            case Drain(grace_ms):
                if self.on_drain is not None:
                    self.on_drain(grace_ms)
            case Config() as config:
                self._reload(config)
            case _:
                pass  # a Failure: counted and logged where it was read

    def _tree_changed(self, tree: TreeChanged) -> None:
        before = {child.name: child.incarnation for child in self.tree.children}
        self.tree = tree
        for child in tree.children:
            if child.incarnation > before.get(child.name, child.incarnation):
                self.counters["reconnects"] += 1
            peer = self._peers.get(child.name)
            if peer is not None:
                peer.on_peer_state(child.state, child.incarnation)
        self._on_tree_change(tree)
        for waiter in self._tree_waiters:
            if not waiter.done():
                waiter.set_result(tree)
        if self.on_tree is not None:
            self.on_tree(tree)

    def _reload(self, config: Config) -> None:
        former, self.config = self.config, config
        set_level(config.logging)
        if self._heartbeat_timer is not None and config.supervision.heartbeat_ms != former.supervision.heartbeat_ms:
            self._heartbeat_timer.cancel()
            self._heartbeat()  # the next one was due when the former configuration said
        self._apply_config(config)
        if self.on_reload is not None:
            self.on_reload(config)

    def _tell_supervisor(self, body: msgspec.Struct) -> None:
        """Send in order; while the connection is not up, keep the newest few messages."""
        if not isinstance(body, Heartbeat) or not self._unsent_control:
            self._unsent_control = [*self._unsent_control[-4:], self._message_factory.tell(body)]
        self._flush_control()

    def _flush_control(self) -> None:
        while self._unsent_control:
            if not self._control.send(self._unsent_control[0]):
                self.counters["hb_missed"] += 1
                if self._control_retry_timer is None:
                    self._control_retry_timer = self._loop.call_later(0.02, self._retry_flush)
                return
            self._unsent_control.pop(0)

    def _retry_flush(self) -> None:
        self._control_retry_timer = None
        if self._context is not None:
            self._flush_control()

    def _heartbeat(self) -> None:
        """Send a heartbeat and schedule the next, from the same loop that does the work."""
        if self._context is None:
            return
        if not supervisor_is_alive(self.boot.supervisor_pid):
            self.log.critical("supervisor_exited")
            os._exit(ExitCode.GIVE_UP)
        interval_ns = self.config.supervision.heartbeat_ms * 1_000_000
        now_ns = self.clock.monotonic_ns()
        if now_ns > self._next_heartbeat_ns + interval_ns:
            self.counters["hb_missed"] += 1
        self._next_heartbeat_ns = next_heartbeat_ns(now_ns, interval_ns)
        figures: dict[str, float] = {**self.counters, **process_metrics(), **self._metrics()}
        if self.extra_counters is not None:
            figures |= self.extra_counters()
        self._tell_supervisor(Heartbeat(figures))
        self._check_sockets()
        self._heartbeat_timer = self._loop.call_later(
            (self._next_heartbeat_ns - self.clock.monotonic_ns()) / 1e9, self._heartbeat
        )
        self.idle_trimmer.check(self.clock.monotonic_ns())
