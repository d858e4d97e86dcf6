"""Asyncio actors in virtual time: each incarnation has an event loop whose callbacks are events of the simulation.

The real ``Extractor`` and ``Decider`` run here, with their real tasks, requests, mailboxes, guards and breakers. The
transport of messages, the model behind the guard, and the thread of an embedder are simulated. When an incarnation is
killed, its tasks are cancelled and run to their end without any effect on the others.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import structlog
import zmq

from signet_actors.decider.actor import Decider
from signet_actors.extractor.actor import Extractor
from signet_actors.features.classification import reads as classification
from signet_actors.features.classification.api import FindUnclassified
from signet_actors.features.handlers import encoding
from signet_actors.protocol.control import UP, ChildState, TreeChanged
from signet_actors.protocol.searcher import FindCandidates
from signet_actors.runtime.logging.throttle import LogThrottle
from signet_actors.runtime.messaging.async_client import RequestTracker
from signet_actors.runtime.messaging.envelope import MessageReader
from signet_actors.runtime.processes.async_actor import AsyncActor, AsyncRole
from signet_actors.runtime.processes.child_context import ChildContext
from signet_actors.searcher.queries import candidates
from tests.sim.processes import Incarnation
from tests.sim.world import NS, Timer, World

if TYPE_CHECKING:
    from tests.sim.pipeline import PipelineDaemon

_MOST_LAST_STEPS = 20_000
_SEARCH_S = (0.001, 0.02)


class _Handle:
    """A scheduled callback."""

    __slots__ = ("arguments", "callback", "context", "loop", "timer")

    def __init__(
        self, loop: IncarnationLoop, callback: Any, arguments: Sequence[Any], context: contextvars.Context | None
    ) -> None:
        self.loop = loop
        self.callback = callback
        self.arguments = arguments
        self.context = context or contextvars.copy_context()
        self.timer: Timer | None = None

    def cancel(self) -> None:
        self.callback, self.arguments = _nothing, ()
        self.loop.waiting.pop(self, None)
        if self.timer is not None:
            self.timer.cancel()

    def run(self) -> None:
        self.context.run(self.callback, *self.arguments)


def _nothing() -> None:
    """The callback of a cancelled handle."""


class IncarnationLoop(asyncio.AbstractEventLoop):
    """The part of an event loop that tasks, futures and timeouts need; time and order come from the world.

    A callback that is due at once runs after the earlier ones, within the same event of the world: no time passes in
    between.
    """

    def __init__(self, incarnation: Incarnation) -> None:
        self._incarnation = incarnation
        self._world: World = incarnation.world
        self._readers: dict[int, Callable[[], None]] = {}
        self._ready: deque[_Handle] = deque()
        self._awake = False
        self.waiting: dict[_Handle, int] = {}
        """Return the callbacks with a due time, in the order in which they were created."""
        self._tasks: list[asyncio.Task[Any]] = []
        self._enough_tasks = 64
        self._buried_ns: int | None = None

    def time(self) -> float:
        return self._now_ns() / NS

    def get_debug(self) -> bool:
        return False

    def call_soon(self, callback: Any, *args: Any, context: contextvars.Context | None = None) -> Any:
        handle = _Handle(self, callback, args, context)
        self._ready.append(handle)
        if not self._awake:
            self._awake = True
            self._incarnation.after(0, self._run_ready)
        return handle

    def call_later(self, delay: float, callback: Any, *args: Any, context: contextvars.Context | None = None) -> Any:
        delay_s = max(0.0, delay)
        handle = _Handle(self, callback, args, context)
        self.waiting[handle] = self._now_ns() + int(delay_s * NS)
        if self._incarnation.alive:
            handle.timer = self._incarnation.after(delay_s, self._due, handle)
        return handle

    def call_at(self, when: float, callback: Any, *args: Any, context: contextvars.Context | None = None) -> Any:
        return self.call_later(when - self.time(), callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Any = None) -> asyncio.Task[Any]:  # type: ignore[override]
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks.append(task)
        if len(self._tasks) > self._enough_tasks:
            self._tasks = self._unfinished()
            self._enough_tasks = 64 + 2 * len(self._tasks)
        return task

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Run the work of a thread at a later virtual time."""
        future = self.create_future()

        def work() -> None:
            if not future.done():
                try:
                    future.set_result(func(*args))
                except Exception as error:  # noqa: BLE001 - passed to the waiting task
                    future.set_exception(error)

        self.call_later(self._world.rng.uniform(0.001, 0.01), work)
        return future

    def add_reader(self, fd: Any, callback: Any, *args: Any) -> None:
        self._readers[fd] = lambda: callback(*args)

    def remove_reader(self, fd: Any) -> bool:
        return self._readers.pop(fd, None) is not None

    def readable(self, fd: int) -> None:
        """Return True if a message can be read."""
        reader = self._readers.get(fd)
        if reader is not None:
            self.call_soon(reader)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Ignore exceptions: tasks of a killed incarnation are irrelevant, and a live actor watches its own tasks."""

    def bury(self) -> None:
        """Cancel all tasks of the killed incarnation and run them to their end, at a frozen time and without any
        effect.
        """
        assert not self._incarnation.alive
        if self._buried_ns is not None:
            return
        self._buried_ns = self._world.now_ns
        for task in self._unfinished():
            task.cancel()
        asyncio._set_running_loop(self)
        try:
            for _ in range(_MOST_LAST_STEPS):
                if self._ready:
                    self._ready.popleft().run()
                elif self.waiting and self._unfinished():
                    handle = min(self.waiting, key=self.waiting.__getitem__)
                    self._buried_ns = max(self._buried_ns, self.waiting.pop(handle))
                    handle.run()
                else:
                    break
        finally:
            asyncio._set_running_loop(None)
        left = self._unfinished()
        assert not left, f"tasks of {self._incarnation.name} do not end: {left[:3]}"
        self.waiting.clear()
        self._tasks.clear()

    def _unfinished(self) -> list[asyncio.Task[Any]]:
        return [task for task in self._tasks if not task.done()]

    def _now_ns(self) -> int:
        return self._world.now_ns if self._buried_ns is None else self._buried_ns

    def _due(self, handle: _Handle) -> None:
        if self.waiting.pop(handle, None) is not None:
            self._ready.append(handle)
        if not self._awake:
            self._awake = True
            self._run_ready()

    def _run_ready(self) -> None:
        ready, incarnation = self._ready, self._incarnation
        asyncio._set_running_loop(self)
        try:
            while ready and incarnation.alive:
                ready.popleft().run()
        finally:
            self._awake = False
            asyncio._set_running_loop(None)


class _MailboxSocket:
    """The part of a ROUTER socket that ``AsyncMailbox`` uses; messages come and go frame by frame."""

    descriptor = 3

    def __init__(self, incarnation: AsyncIncarnation) -> None:
        self._incarnation = incarnation
        self.inbox: deque[list[bytes]] = deque()
        self._unread: deque[bytes] = deque()
        self._unsent: list[bytes] = []

    def get(self, option: int) -> int:
        if option == zmq.FD:
            return self.descriptor
        if option == zmq.RCVMORE:
            return int(bool(self._unread))
        return int(zmq.POLLIN) if self.inbox else 0

    def recv(self, _flags: int) -> bytes:
        if not self._unread:
            self._unread.extend(self.inbox.popleft())
        return self._unread.popleft()

    def send(self, part: bytes, flags: int) -> None:
        self._unsent.append(part)
        if not flags & zmq.SNDMORE:
            parts, self._unsent = self._unsent, []
            if not self._incarnation.daemon.network.answer(self._incarnation, parts[0].decode(), parts[1:]):
                raise zmq.ZMQError(zmq.EHOSTUNREACH)


class SimActor(AsyncActor):
    """The real actor with simulated connections."""

    def __init__(self, incarnation: AsyncIncarnation) -> None:
        super().__init__(
            incarnation.boot, incarnation.world, incarnation.log, random.Random(incarnation.world.rng.random())
        )
        self._incarnation = incarnation
        self._loop = incarnation.loop
        self._message_factory = incarnation.message_factory
        self._reader = MessageReader(incarnation.message_factory, self.counters, LogThrottle(self.log, self.clock))
        self._decoders: dict[str, Callable[[bytes], Any]] = {}
        self.crashed = incarnation.loop.create_future()
        self.crashed.add_done_callback(lambda crashed: incarnation.crashed(crashed.result()))

    def told(self, tree: TreeChanged) -> None:
        """Tell the actor the state of the children, and that there is a searcher, as whose ``ask_searcher`` works."""
        searcher = ChildState("searcher-1", "searcher", UP, 1, 0, None)
        self._tree_changed(msgspec.structs.replace(tree, children=[*tree.children, searcher]))

    def answered(self, by: str, parts: list[bytes]) -> None:
        if by not in self._decoders:
            return  # a reply to an earlier incarnation, before this one has connected
        opened = self._reader.read(parts, self._decoders[by], by)
        if opened is not None:
            header, body = opened
            self._incarnation.hears(header.message_id, body)
            self._peers[by].on_reply(header.message_id, body, header.attempt)

    def _connect(
        self, peer: str, decode: Callable[[bytes], Any], *, max_items: int, max_bytes: int, resend: bool
    ) -> tuple[RequestTracker, Any]:
        incarnation = self._incarnation

        def send(parts: list[bytes]) -> bool:
            sent = incarnation.daemon.network.ask(peer, incarnation, parts)
            if sent:
                incarnation.says(peer, parts)
            return sent

        self._decoders[peer] = decode
        asks = self._peers[peer] = RequestTracker(
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
        return asks, None

    def _mailbox_socket(self, name: str) -> Any:
        socket = self._incarnation.socket = _MailboxSocket(self._incarnation)
        return socket

    async def ask_searcher(self, request: Any, *, trace_id: str = "", timeout_ms: int, frames: Any = ()) -> Any:
        """Run the real query on the real store after a delay; all searchers would give the same reply."""
        await asyncio.sleep(self._incarnation.world.rng.uniform(*_SEARCH_S))
        reader = self._incarnation.daemon.reader()
        with reader.open_snapshot() as view:
            if isinstance(request, FindUnclassified):
                return encoding(classification.find)(view, request)
            assert isinstance(request, FindCandidates)
            return candidates.find(reader, view, request, list(frames))


class AsyncIncarnation(Incarnation):
    """One incarnation of an asyncio actor."""

    daemon: PipelineDaemon
    role: Callable[[AsyncActor], AsyncRole]

    def __init__(self, daemon: PipelineDaemon, boot: ChildContext) -> None:
        super().__init__(daemon, boot)
        self.loop = IncarnationLoop(self)
        self.socket: _MailboxSocket | None = None
        self.log: Any = structlog.wrap_logger(None, processors=[self._logged])
        self.actor = SimActor(self)

    def ready(self) -> None:
        self.loop.create_task(self._start())

    @property
    def reachable(self) -> bool:
        return self.alive and self.socket is not None

    def arrived(self, identity: str, parts: list[bytes]) -> None:
        assert self.socket is not None
        self.socket.inbox.append([identity.encode(), *parts])
        self.loop.readable(self.socket.descriptor)

    def answered(self, by: str, parts: list[bytes]) -> None:
        self.loop.call_soon(self.actor.answered, by, parts)

    def told(self, body: Any) -> None:
        if isinstance(body, TreeChanged):
            self.loop.call_soon(self.actor.told, body)
        super().told(body)

    def says(self, peer: str, parts: list[bytes]) -> None:
        """Return True if a message from this actor is still on its way."""

    def hears(self, message_id: str, body: Any) -> None:
        """Receive a reply."""

    def crashed(self, error: BaseException) -> None:
        self.daemon.crashes.append(f"{self.name} crashed with {error!r}")
        self.exit(1)

    def struck(self) -> None:
        self.exit(-9)

    def forget(self) -> None:
        self.daemon.graves.append(self.loop)
        self.world.call_later(0, self.daemon.bury)

    async def _start(self) -> None:
        await type(self).role(self.actor).start()
        Incarnation.ready(self)

    def _logged(self, _logger: Any, method: str, event: dict[str, Any]) -> Any:
        if self.alive and method in {"exception", "critical", "error"}:
            self.daemon.crashes.append(f"{self.name} says {event}"[:500])
        raise structlog.DropEvent


class DeciderIncarnation(AsyncIncarnation):
    role = Decider


class ExtractorIncarnation(AsyncIncarnation):
    """An extractor whose leases a ``Witness`` records."""

    role = Extractor

    def says(self, peer: str, parts: list[bytes]) -> None:
        if peer == "writer":
            self.daemon.witness.said(self, parts)

    def hears(self, message_id: str, body: Any) -> None:
        self.daemon.witness.heard(self, message_id, body)
