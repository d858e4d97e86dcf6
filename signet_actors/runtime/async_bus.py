"""The bus for an asyncio process (the gateway): asks to the writer, to a pool of searchers, to retention.

It reads sockets when their descriptor says so, not through ``zmq.asyncio``: no task, no poll and no timer per message.
The descriptor of a ZeroMQ socket is readable once per *change*, and any call on the socket may consume that edge;
so the socket's own state is asked again after every send and after every burst, and nothing is ever left lying.

No coroutine receives from a socket, so cancelling a request cannot lose a message: timeouts and cancellations
belong to futures, and a late answer to one of them is counted and dropped.

Source: reliability.md section 2 rules 1-12 and 18; targets.md.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
import zmq

from signet_actors.config.schema import Config
from signet_actors.errors import ExitCode, Unavailable
from signet_actors.protocol.control import (
    Drain,
    GetTree,
    Heartbeat,
    Idle,
    Leaving,
    Ready,
    Reload,
    Starting,
    SupervisorSays,
    TreeChanged,
)
from signet_actors.protocol.header import Header
from signet_actors.protocol.message import Failure, Message, Request
from signet_actors.protocol.retention import RetentionReply
from signet_actors.protocol.searcher import SearcherReply
from signet_actors.protocol.writer import WriterReply
from signet_actors.runtime.boot import Boot
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.envelope import UNDECODABLE, Speaker, encode_body, is_tell, new_counters, raise_failure
from signet_actors.runtime.histogram import Histogram
from signet_actors.runtime.logs import follow_level
from signet_actors.runtime.parent import supervisor_lives
from signet_actors.runtime.peer_asks import PeerAsks
from signet_actors.runtime.process_figures import process_figures
from signet_actors.runtime.sockets import (
    SEARCH_SOCKET,
    SUPERVISOR_SOCKET,
    bind_router,
    close_all,
    connect_dealer,
    new_context,
)
from signet_actors.runtime.sync_points import sync_point
from signet_actors.runtime.work_pool import Query, WorkPool

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

R = TypeVar("R")

_POLLIN = int(zmq.POLLIN)  # plain integers: an operation on enum members costs a microsecond each
_EVENTS = int(zmq.EVENTS)
_RCVMORE = int(zmq.RCVMORE)
_NOBLOCK = int(zmq.NOBLOCK)
_NOBLOCK_MORE = int(zmq.NOBLOCK) | int(zmq.SNDMORE)
_BURST = 64
"""Messages read in one go; then the loop gets its turn."""
_RETENTION_ITEMS = 8
_TREE_TIMEOUT_MS = 1000


class _AsyncSocket:
    """Calls ``receive`` for each message, and ``failed`` with what that raised; ``send`` never waits."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        socket: zmq.Socket[bytes],
        receive: Callable[[list[bytes]], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._loop = loop
        self._socket: Any = socket  # its ``get`` is typed for every option at once
        self._receive = receive
        self._failed = failed
        self._descriptor = int(self._socket.get(zmq.FD))
        self._scheduled = False
        self._open = True
        loop.add_reader(self._descriptor, self._drain)
        self._look_again()

    def send(self, parts: Sequence[bytes]) -> bool:
        """True when the frames were taken; False when there is nobody, or the peer reads nothing."""
        if not self._open:
            return False
        socket = self._socket
        last = len(parts) - 1
        try:  # only the first part can be refused: a message is taken whole or not at all
            for part in parts[:last]:
                socket.send(part, _NOBLOCK_MORE)
            socket.send(parts[last], _NOBLOCK)
        except zmq.ZMQError:
            return False
        finally:
            if not self._scheduled and socket.get(_EVENTS) & _POLLIN:
                self._look_again()
        return True

    def close(self) -> None:
        """No message is received any more; the context closes the socket itself."""
        if self._open:
            self._open = False
            self._loop.remove_reader(self._descriptor)

    def _look_again(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._drain)

    def _drain(self) -> None:
        self._scheduled = False
        socket = self._socket
        left = _BURST
        while self._open and socket.get(_EVENTS) & _POLLIN:
            if not left:
                self._look_again()
                return
            left -= 1
            parts = [socket.recv(_NOBLOCK)]
            while socket.get(_RCVMORE):
                parts.append(socket.recv(_NOBLOCK))
            try:
                self._receive(parts)
            except Exception as error:  # noqa: BLE001 - what waits behind it is read all the same: no other edge may come
                self._failed(error)


class AsyncBus:
    """See the module. ``tree`` is the latest state of all children; ``counters`` go out with each heartbeat.

    ``on_drain`` is called once with the grace in milliseconds; ``on_reload`` with each new configuration;
    ``on_tree`` after each change of ``tree``; ``more_counters`` supplies figures for the heartbeat.
    ``ask_took`` holds how long asks took, by peer and whatever came of them; those refused at once are not in it.
    """

    def __init__(
        self,
        boot: Boot,
        clock: Clock,
        log: FilteringBoundLogger,
        rng: random.Random,
        *,
        in_flight_per_searcher: int = 2,
    ) -> None:
        self.boot = boot
        self.clock = clock
        self.log = log
        self.rng = rng
        self.config = boot.config
        self.tree = TreeChanged([])
        self.counters: dict[str, int] = new_counters()
        self.ask_took = {peer: Histogram() for peer in ("writer", "searcher", "retention")}
        self.on_drain: Callable[[int], None] | None = None
        self.on_reload: Callable[[Config], None] | None = None
        self.on_tree: Callable[[TreeChanged], None] | None = None
        self.more_counters: Callable[[], dict[str, float]] | None = None
        self._speaker = Speaker(boot)
        self._in_flight = in_flight_per_searcher
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._sockets: list[_AsyncSocket] = []
        self._decode_control = msgspec.msgpack.Decoder(SupervisorSays).decode
        self._decode_writer = msgspec.msgpack.Decoder(WriterReply).decode
        self._decode_retention = msgspec.msgpack.Decoder(RetentionReply).decode
        self._decode_search = msgspec.msgpack.Decoder(SearcherReply | Idle).decode
        self._beat_timer: asyncio.TimerHandle | None = None
        self._next_beat = 0.0
        self._say_timer: asyncio.TimerHandle | None = None
        self._unsaid: list[list[bytes]] = []
        self._tree_waiters: list[asyncio.Future[TreeChanged]] = []
        self._supervisor_heard_ns = clock.monotonic_ns()

    async def start(self) -> None:
        """The sockets are open, the searchers can announce themselves, and the heartbeat has begun."""
        loop = self._loop = asyncio.get_running_loop()
        context = self._context = new_context()
        directory, name = self.boot.socket_dir, self.boot.name
        config = self.config

        def opened(socket: zmq.Socket[bytes], receive: Callable[[list[bytes]], None]) -> _AsyncSocket:
            wrapped = _AsyncSocket(loop, socket, receive, self._receive_failed)
            self._sockets.append(wrapped)
            return wrapped

        self._search = opened(bind_router(context, directory, SEARCH_SOCKET), self._from_searcher)
        self._pool = WorkPool(
            loop,
            self.clock,
            self._send_query,
            self.counters,
            queue_limit=config.searcher.queue_limit,
            in_flight=self._in_flight,
        )
        self._writer_socket = opened(connect_dealer(context, directory, "writer", name), self._from_writer)
        self._writer = PeerAsks(
            loop,
            self.clock,
            self._speaker,
            self._counted(self._writer_socket),
            self.counters,
            peer="writer",
            max_items=config.writer.queue_limit,
            max_bytes=config.writer.queue_bytes,
            resend=True,
        )
        retention = opened(connect_dealer(context, directory, "retention", name), self._from_retention)
        self._retention = PeerAsks(
            loop,
            self.clock,
            self._speaker,
            self._counted(retention),
            self.counters,
            peer="retention",
            max_items=_RETENTION_ITEMS,
            max_bytes=config.writer.queue_bytes,
            resend=False,
        )
        self._control = opened(connect_dealer(context, directory, SUPERVISOR_SOCKET, name), self._from_supervisor)
        self._tell_supervisor(Starting())
        self._next_beat = loop.time()
        self._beat()

    async def close(self) -> None:
        """Everybody who waits has been told, and the sockets are closed."""
        if self._context is None:
            return
        if self._beat_timer is not None:
            self._beat_timer.cancel()
        for asks in (self._writer, self._retention):
            asks.close()
        self._pool.close()
        for socket in self._sockets:
            socket.close()
        await asyncio.sleep(0)
        close_all(self._context, farewell=True)
        self._context = None

    def starting(self, detail: str) -> None:
        """The supervisor knows what this process still works on before it is ready."""
        self._tell_supervisor(Starting(detail))
        self.log.info("starting", detail=detail)

    def ready(self, detail: str = "") -> None:
        """The supervisor knows that this process serves."""
        self._tell_supervisor(Ready(detail))

    def leaving(self, code: int, detail: str) -> None:
        """The supervisor knows why this process is about to exit with ``code``."""
        self._tell_supervisor(Leaving(code, detail))

    async def ask_writer(
        self,
        request: Request[R],
        *,
        trace_id: str,
        timeout_ms: int | None = None,
        frames: Sequence[bytes] = (),
    ) -> R:
        """The writer's answer: what it says has happened is on disk.

        Raises Busy and Unavailable (certainly not applied), OutcomeUnknown (sent, not answered), or a SignetError
        with the writer's own code.
        """
        timeout = self.config.writer.request_timeout_ms if timeout_ms is None else timeout_ms
        asked = self._writer.submit(trace_id, timeout, encode_body(request), list(frames))
        reply = await self._timed("writer", asked)
        sync_point("gateway.reply_received")
        if type(reply) is Failure:
            raise_failure(reply)
        return cast("R", reply)

    async def ask_retention(self, request: Request[R], *, trace_id: str, timeout_ms: int = 60_000) -> R:
        """The retention actor's answer; raises like ``ask_writer`` and is never sent twice."""
        asked = self._retention.submit(trace_id, timeout_ms, encode_body(request), [])
        reply = await self._timed("retention", asked)
        if type(reply) is Failure:
            raise_failure(reply)
        return cast("R", reply)

    def tell_writer(self, message: Message, *, trace_id: str) -> bool:
        """True when the message was handed to a connected writer; at most half of the credits' backlog is risked.

        Best effort: it is dropped and counted when the writer is away or busy.
        """
        if 2 * len(self._writer) > self._writer.max_items:
            self.counters["shed"] += 1
            return False
        if self._writer_socket.send(self._speaker.tell(message, trace_id)):
            self.counters["sent"] += 1
            return True
        self.counters["unroutable"] += 1
        return False

    async def ask_searcher(
        self,
        request: Request[R],
        *,
        trace_id: str,
        timeout_ms: int | None = None,
        frames: Sequence[bytes] = (),
    ) -> tuple[R, list[bytes]]:
        """A searcher's answer and its raw frames; raises Busy, Unavailable, or a SignetError with its own code."""
        timeout = self.config.searcher.read_timeout_ms if timeout_ms is None else timeout_ms
        query = Query(
            self._speaker.next_id(),
            trace_id,
            self.clock.monotonic_ns() + timeout * 1_000_000,
            encode_body(request),
            list(frames),
            self._loop.create_future(),
        )
        self._pool.submit(query)
        reply, extra = await self._timed("searcher", query.future)
        if type(reply) is Failure:
            raise_failure(reply)
        return cast("R", reply), extra

    async def _timed(self, peer: str, asked: asyncio.Future[Any]) -> Any:
        begun = self.clock.monotonic_ns()
        try:
            return await asked
        finally:
            self.ask_took[peer].observe(self.clock.monotonic_ns() - begun)

    async def ask_tree(self) -> TreeChanged:
        """The tree with counters as fresh as the last heartbeats; the last known one when nobody answers."""
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

    @property
    def searchers_known(self) -> int:
        """Searchers that have offered themselves and are not known to be dead."""
        return self._pool.known

    @property
    def writer_backlog(self) -> int:
        """Asks to the writer that have no answer yet."""
        return len(self._writer)

    @property
    def search_backlog(self) -> int:
        """Queries that wait for a searcher."""
        return self._pool.waiting

    def supervisor_silent_ms(self) -> int:
        """How old our knowledge of the tree is; a supervisor that turns tells it after each of our heartbeats."""
        return (self.clock.monotonic_ns() - self._supervisor_heard_ns) // 1_000_000

    def _receive_failed(self, error: Exception) -> None:
        self.log.error("message failed", exc_info=error)

    def _counted(self, socket: _AsyncSocket) -> Callable[[list[bytes]], bool]:
        def send(parts: list[bytes]) -> bool:
            if socket.send(parts):
                self.counters["sent"] += 1
                return True
            return False

        return send

    def _send_query(self, identity: bytes, query: Query) -> bool:
        header = self._speaker.header(query.message_id, query.trace_id, query.deadline_ns, query.attempt)
        if self._search.send([identity, header, query.body, *query.frames]):
            self.counters["sent"] += 1
            return True
        self.counters["unroutable"] += 1
        return False

    def _open(self, parts: list[bytes], decode: Callable[[bytes], Any], peer: str) -> tuple[Header, Any] | None:
        self.counters["received"] += 1
        header = None
        try:
            header = self._speaker.read_header(parts[0])
            if self._speaker.is_foreign(header):
                self.counters["foreign"] += 1
                self.log.warning("foreign message refused", sender=header.sender, proto=header.proto)
                return None
            return header, decode(parts[1])
        except (*UNDECODABLE, IndexError) as error:
            self.counters["decode_error"] += 1
            self.log.warning("answer not understood", peer=peer, error=type(error).__name__)
            if header is None:
                return None
            return header, Failure(Unavailable.code, f"the {peer}'s answer was not understood")

    def _from_writer(self, parts: list[bytes]) -> None:
        opened = self._open(parts, self._decode_writer, "writer")
        if opened is not None:
            self._writer.answered(opened[0].message_id, opened[1])

    def _from_retention(self, parts: list[bytes]) -> None:
        opened = self._open(parts, self._decode_retention, "retention")
        if opened is not None:
            self._retention.answered(opened[0].message_id, opened[1])

    def _from_searcher(self, parts: list[bytes]) -> None:
        identity = parts.pop(0)
        opened = self._open(parts, self._decode_search, "searcher")
        if opened is None:
            return
        header, body = opened
        if header.sender.encode() != identity:
            self.counters["foreign"] += 1
        elif is_tell(header):
            self._pool.heard_idle(identity, header.incarnation)
        else:
            self._pool.heard_answer(identity, header.incarnation, header.message_id, (body, parts[2:]))

    def _from_supervisor(self, parts: list[bytes]) -> None:
        opened = self._open(parts, self._decode_control, "supervisor")
        if opened is None:
            return
        self._supervisor_heard_ns = self.clock.monotonic_ns()
        match opened[1]:
            case TreeChanged() as tree:
                self._tree_changed(tree)
            case Drain(grace_ms):
                if self.on_drain is not None:
                    self.on_drain(grace_ms)
            case Reload(config_json):
                self._reload(config_json)
            case _:
                pass  # a Failure: counted and logged where it was read

    def _tree_changed(self, tree: TreeChanged) -> None:
        before = {child.name: child.incarnation for child in self.tree.children}
        self.tree = tree
        for child in tree.children:
            if child.incarnation > before.get(child.name, child.incarnation):
                self.counters["reconnects"] += 1
            asks = {"writer": self._writer, "retention": self._retention}.get(child.name)
            if asks is not None:
                asks.peer_is(child.state, child.incarnation)
        self._pool.tree_changed(tree)
        for waiter in self._tree_waiters:
            if not waiter.done():
                waiter.set_result(tree)
        if self.on_tree is not None:
            self.on_tree(tree)

    def _reload(self, config_json: str) -> None:
        try:
            config = msgspec.json.decode(config_json, type=Config)
        except UNDECODABLE as error:
            self.counters["decode_error"] += 1
            self.log.warning("configuration not understood", error=type(error).__name__)
            return
        self.config = config
        follow_level(config.logging)
        self._pool.queue_limit = config.searcher.queue_limit
        self._writer.max_items = config.writer.queue_limit
        self._writer.max_bytes = config.writer.queue_bytes
        if self.on_reload is not None:
            self.on_reload(config)

    def _tell_supervisor(self, body: msgspec.Struct) -> None:
        """Said in order; what cannot go out before the connection stands is kept, the newest few."""
        if not isinstance(body, Heartbeat) or not self._unsaid:
            self._unsaid = [*self._unsaid[-4:], self._speaker.tell(body)]
        self._say_unsaid()

    def _say_unsaid(self) -> None:
        while self._unsaid:
            if not self._control.send(self._unsaid[0]):
                self.counters["hb_missed"] += 1
                if self._say_timer is None:
                    self._say_timer = self._loop.call_later(0.02, self._say_again)
                return
            self._unsaid.pop(0)

    def _say_again(self) -> None:
        self._say_timer = None
        if self._context is not None:
            self._say_unsaid()

    def _beat(self) -> None:
        """A heartbeat is sent, from the same loop that serves requests."""
        if self._context is None:
            return
        if not supervisor_lives(self.boot.supervisor_pid):
            self.log.critical("the supervisor is gone")
            os._exit(ExitCode.GIVE_UP)
        interval = self.config.supervision.heartbeat_ms / 1000
        now = self._loop.time()
        if now > self._next_beat + interval:
            self.counters["hb_missed"] += 1
        self._next_beat = now + interval
        figures: dict[str, float] = {
            **self.counters,
            **process_figures(),
            "searchers_known": self.searchers_known,
            "search_backlog": self.search_backlog,
            "writer_backlog": self.writer_backlog,
        }
        if self.more_counters is not None:
            figures |= self.more_counters()
        self._tell_supervisor(Heartbeat(figures))
        self._beat_timer = self._loop.call_later(interval, self._beat)
