"""An actor whose work is mostly waiting for others: one asyncio loop, one mailbox, many concurrent requests.

For roles that call models and other slow services (extractor, decider). Each message of the mailbox becomes a task. An
exception that leaves the task is answered and logged, and ends the process.

Source: docs/architecture.md "The path of a remember" and "Messages"; docs/reliability.md "Supervision policy".
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
import uvloop
import zmq

from signet_actors.config.schema import Config
from signet_actors.errors import ActorExit, ErrorCode, ExitCode, SignetError, Unavailable
from signet_actors.protocol.control import UP
from signet_actors.protocol.message import Failure, Request
from signet_actors.protocol.searcher import SearcherReply
from signet_actors.runtime.clock import Clock, SystemClock
from signet_actors.runtime.logging.configuration import configure_logging
from signet_actors.runtime.messaging.async_client import AsyncSocket, RequestTracker
from signet_actors.runtime.messaging.envelope import MessageFactory, encode_frame, result_of
from signet_actors.runtime.messaging.mailbox import Incoming, MailboxRules
from signet_actors.runtime.processes.async_process import AsyncProcess
from signet_actors.runtime.processes.child_context import ChildContext, read_context
from signet_actors.runtime.processes.priority import lower_priority

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

R = TypeVar("R")
M = TypeVar("M")

_ASK_BYTES = 8 * 1024 * 1024
_MAX_UNANSWERED_BYTES = 16 * 1024 * 1024
_UNEXPECTED_EXIT = 1
DRAIN_RESERVE_S = 0.5
"""Part of the drain time that is kept for sending failures to callers whose tasks were cancelled."""
_REPLY_GRACE_S = 0.05
"""Time for peers to read the last replies: a DEALER drops unread replies when its peer disconnects."""
_SEARCHES = 4
"""Limit of unanswered queries of this process: the gateway's queries have priority."""


class AsyncRole(Protocol):
    """The interface of a role; every method is called from the loop."""

    async def start(self) -> None:
        """Run the self-check and open the mailbox. Raises ActorExit to leave."""

    def counters(self) -> dict[str, float]:
        """Return the metrics to send with the heartbeat."""

    async def reload(self, config: Config) -> None:
        """Apply the new configuration."""

    async def drain(self, grace_s: float) -> None:
        """Finish before the exit, within ``grace_s``."""


def run_role(make: Callable[[AsyncActor], AsyncRole]) -> int:
    """Run a role in this process, at low priority, and return the exit code."""
    lower_priority()
    boot = read_context()
    actor = AsyncActor(boot, SystemClock(), configure_logging(boot), random.Random())

    async def run_actor() -> int:
        return await actor.run(make(actor))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run_actor())


class AsyncRef:
    """A client of one mailbox."""

    def __init__(self, tracker: RequestTracker) -> None:
        self._tracker = tracker

    def __len__(self) -> int:
        return len(self._tracker)

    async def ask(self, request: Request[R], *, trace_id: str = "", timeout_ms: int, frames: Sequence[bytes] = ()) -> R:
        """Send ``request`` and return the reply.

        Raises Busy and Unavailable (certainly not applied), OutcomeUnknown (sent, not answered), or a SignetError with
        the peer's own code.
        """
        reply: R | Failure = await self._tracker.submit(trace_id, timeout_ms, encode_frame(request), list(frames))
        return result_of(reply)


class AsyncMailbox(MailboxRules[M]):
    """Calls ``handle`` with each message from the loop's thread; ``handle`` returns at once and answers later.

    A message counts as unanswered until ``release``; one more than ``max_unanswered`` is refused at once.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        socket: zmq.Socket[bytes],
        decoder: msgspec.msgpack.Decoder[M],
        handle: Callable[[Incoming[M]], None],
        message_factory: MessageFactory,
        clock: Clock,
        log: FilteringBoundLogger,
        counters: dict[str, int],
        *,
        max_unanswered: int,
    ) -> None:
        self._log = log
        self._handle = handle
        self._socket = AsyncSocket(loop, socket, self._receive, self._failed)
        super().__init__(
            decoder,
            message_factory,
            clock,
            log,
            counters,
            self._socket.send,
            max_items=max_unanswered,
            max_bytes=_MAX_UNANSWERED_BYTES,
        )

    def close(self) -> None:
        """Stop reading; messages in progress may still be answered until the context is closed."""
        self._socket.stop_reading()

    def _receive(self, parts: list[bytes]) -> None:
        incoming = self.accept(parts.pop(0), parts)
        if incoming is None:
            return
        try:
            self._handle(incoming)
        except Exception as error:  # noqa: BLE001 - the next messages can still be handled
            self.release(incoming)
            self._failed(error)
            incoming.reply(Failure(ErrorCode.INTERNAL, "the actor failed on this request"))

    def _failed(self, error: Exception) -> None:
        self._log.error("message_failed", exc_info=error)


class AsyncActor(AsyncProcess):
    """The actor of the module's description."""

    def __init__(self, boot: ChildContext, clock: Clock, log: FilteringBoundLogger, rng: random.Random) -> None:
        super().__init__(boot, clock, log, rng)
        self._mailboxes: list[AsyncMailbox[Any]] = []
        self._searchers: dict[str, AsyncRef] = {}
        self._searches = asyncio.Semaphore(_SEARCHES)
        self._decode_search = msgspec.msgpack.Decoder(SearcherReply).decode
        self._tasks: set[asyncio.Task[None]] = set()
        self.crashed: asyncio.Future[Exception] | None = None
        """Set to the exception that left a task; the process then ends."""

    async def start(self) -> None:
        """Open the sockets, but not the mailbox, and start the heartbeat."""
        await super().start()
        self.crashed = self._loop.create_future()

    def connect(self, name: str, replies: msgspec.msgpack.Decoder[Any], *, max_items: int, resend: bool) -> AsyncRef:
        """Return a ref to the mailbox ``name`` with at most ``max_items`` unanswered requests."""
        tracker, _ = self._connect(name, replies.decode, max_items=max_items, max_bytes=_ASK_BYTES, resend=resend)
        return AsyncRef(tracker)

    def open_mailbox(
        self,
        name: str,
        decoder: msgspec.msgpack.Decoder[M],
        handler: Callable[[Incoming[M]], Coroutine[Any, Any, msgspec.Struct]],
        *,
        max_unanswered: int,
    ) -> None:
        """Bind ``<socket_dir>/<name>.sock`` and answer each message with what ``handler`` returns."""
        box: AsyncMailbox[M]

        def handle(incoming: Incoming[M]) -> None:
            self.spawn(answered(incoming))

        async def answered(incoming: Incoming[M]) -> None:
            try:
                incoming.reply(await handler(incoming))
            except SignetError as error:
                incoming.reply(
                    Failure(error.code, error.detail, field=error.field, retry_after_ms=error.retry_after_ms)
                )
            except asyncio.CancelledError:
                incoming.reply(Failure(ErrorCode.UNAVAILABLE, "the actor is exiting"))
                raise
            except Exception:
                incoming.reply(Failure(ErrorCode.INTERNAL, "the actor failed on this request"))
                raise
            finally:
                box.release(incoming)

        box = AsyncMailbox(
            self._loop,
            self._mailbox_socket(name),
            decoder,
            handle,
            self._message_factory,
            self.clock,
            self.log,
            self.counters,
            max_unanswered=max_unanswered,
        )
        self._mailboxes.append(box)

    async def ask_searcher(
        self, request: Request[R], *, trace_id: str = "", timeout_ms: int, frames: Sequence[bytes] = ()
    ) -> R:
        """Send ``request`` to the least busy searcher that is up; raises Unavailable when there is none.

        A few requests run at once; more wait here, before their timeout begins.
        """
        async with self._searches:
            return await self._ask_searcher(request, trace_id, timeout_ms, frames)

    async def _ask_searcher(self, request: Request[R], trace_id: str, timeout_ms: int, frames: Sequence[bytes]) -> R:
        if not self.tree.children:  # this process has just started
            await self.ask_tree()
        names = [child.name for child in self.tree.children if child.role == "searcher" and child.state == UP]
        if not names:
            raise Unavailable("no searcher is up")
        for name in names:
            if name not in self._searchers:
                tracker, _ = self._connect(
                    name, self._decode_search, max_items=_SEARCHES, max_bytes=_ASK_BYTES, resend=True
                )
                self._searchers[name] = AsyncRef(tracker)
        ref = min((self._searchers[name] for name in names), key=len)
        return await ref.ask(request, trace_id=trace_id, timeout_ms=timeout_ms, frames=frames)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task; an exception that leaves it sets ``crashed``."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_end)
        return task

    async def close(self) -> None:
        """Cancel every task, answer all callers, close the sockets."""
        for box in self._mailboxes:
            box.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))
            await asyncio.sleep(_REPLY_GRACE_S)
        await super().close()

    async def run(self, role: AsyncRole) -> int:
        """Run until the supervisor asks to drain or the role cannot go on; return the exit code."""
        await self.start()
        try:
            return await self._run(role)
        except ActorExit as leaving:
            self.log.error("exiting", code=leaving.exit_code, detail=leaving.detail)  # noqa: TRY400 - no crash, a decision
            self.exiting(leaving.exit_code, leaving.detail)
            return leaving.exit_code
        except Exception as error:
            self.log.critical("crashed", exc_info=error)
            self.exiting(_UNEXPECTED_EXIT, f"crashed with {type(error).__name__}")
            return _UNEXPECTED_EXIT
        finally:
            await self.close()

    async def _run(self, role: AsyncRole) -> int:
        assert self.crashed is not None
        drain: asyncio.Future[int] = self._loop.create_future()

        def asked_to_drain(grace_ms: int) -> None:
            if not drain.done():
                drain.set_result(grace_ms)

        self.on_drain = asked_to_drain
        self.on_reload = lambda config: self.spawn(role.reload(config))
        await role.start()
        self.extra_counters = role.counters
        self.ready()
        self.log.info("ready")
        either: set[asyncio.Future[Any]] = {drain, self.crashed}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if self.crashed.done():
            raise self.crashed.result()
        self.log.info("draining")
        await role.drain(max(0.0, drain.result() / 1000 - DRAIN_RESERVE_S))
        self.log.info("drained")
        return ExitCode.OK

    def _mailbox_socket(self, name: str) -> zmq.Socket[bytes]:
        return self._bind_router(name)

    def _on_task_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, Exception) and self.crashed is not None and not self.crashed.done():
            self.crashed.set_result(error)
