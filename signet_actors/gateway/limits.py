"""Bounds of work that all requests share: long texts, chunks on their way to the writer, waits for a vector.

They know no request and no other state of the gateway, which holds one of each.

Source: docs/reliability.md R13; docs/decisions.md 23.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from signet_actors.errors import Busy
from signet_actors.protocol.extractor import VectorsAwaited

LONG_TEXT_THREADS: Final = 1
"""Two threads would compete for the interpreter, which costs more than the work on a busy machine."""
MAX_WAITING: Final = 8
"""Long texts that may wait for a thread. The longest possible content takes a thread about a second."""

CHUNKS_AT_ONCE: Final = 1000
"""Chunks in one commit: they take the writer about a quarter of a second."""
CHUNKS_WAITING: Final = 4000

MAX_VECTOR_WAITS: Final = 8
"""A small part of ``max_in_flight``: while a request waits, it holds the place of another write."""
FIRST_PAUSE_MS: Final = 1_000
LONGEST_PAUSE_MS: Final = 60_000

PAUSE_S: Final = 0.001
PAUSE_PER_WORK: Final = 2.0

T = TypeVar("T")


class CountedThreads:
    """Threads whose unfinished work is counted. For any number of event loops."""

    def __init__(self, threads: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._lock = threading.Lock()
        self.unfinished = 0

    async def run(self, work: Callable[[], T], most: int | None = None) -> T:
        """Return the result of ``work``. Raises Busy, and starts nothing, if ``most`` are unfinished."""
        with self._lock:
            if most is not None and self.unfinished >= most:
                raise Busy
            self.unfinished += 1
        future = self._executor.submit(work)
        # Not when the caller is cancelled: a thread cannot be stopped, so it is at work until it is done.
        future.add_done_callback(self._finish)
        return await asyncio.wrap_future(future)

    def _finish(self, _: Future[T]) -> None:
        with self._lock:
            self.unfinished -= 1


class TextExecutor:
    """A thread with a bounded queue for long texts, and one without bound for others."""

    def __init__(self, threads: int = LONG_TEXT_THREADS, max_waiting: int = MAX_WAITING) -> None:
        self._first = CountedThreads(threads, "long-text")
        self._second = CountedThreads(1, "long-text-second")
        self._room = threads + max_waiting

    async def run_bounded(self, work: Callable[[], T]) -> T:
        """Return the result of ``work`` in the thread. Raises Busy, and starts nothing, if too many texts wait."""
        return await self._first.run(work, self._room)

    async def run_unbounded(self, work: Callable[[], T]) -> T:
        """Return the result of ``work`` in the second thread: a medium text, or the second half of a request."""
        return await self._second.run(work)


TEXT_EXECUTOR: Final = TextExecutor()


class SearchesFirst:
    """Long work in a thread pauses while a search waits for its answer, but works a third of the time at least.

    Without it, an import at full speed takes the processor time of the searchers and of the event loop.
    """

    def __init__(
        self,
        searching: Callable[[], bool],
        *,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._searching = searching
        self._clock = clock
        self._sleep = sleep
        self._resumed = clock()

    def make_way(self) -> None:
        """Pause while a search waits, at most ``PAUSE_PER_WORK`` times as long as the work since the last pause."""
        now = self._clock()
        until = now + PAUSE_PER_WORK * (now - self._resumed)
        while self._clock() < until and self._searching():
            self._sleep(PAUSE_S)
        self._resumed = self._clock()


class ChunkWriteLimiter:
    """Limit of the chunks on their way to the writer, so that a commit of all of them stays short.

    Requests beyond the limit wait in order of arrival; a request that would wait too long is shed. Serves one event
    loop.
    """

    def __init__(self, at_once: int = CHUNKS_AT_ONCE, waiting: int = CHUNKS_WAITING) -> None:
        self._at_once = at_once
        self._max_waiting = waiting
        self._in_flight = 0
        self._queue: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def slot(self, chunks: int) -> AsyncIterator[None]:
        """Wait until ``chunks`` chunks may be sent, and count them in the block. Raises Busy if too many wait."""
        if self._queue or not self._fits(chunks):
            if self._queue and sum(count for count, _ in self._queue) + chunks > self._max_waiting:
                raise Busy("too many long texts are waiting for the writer", retry_after_ms=1000)
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._queue.append((chunks, waiter))
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._in_flight -= chunks  # the slot was granted but will not be used
                self._admit()
                raise
        else:
            self._in_flight += chunks
        try:
            yield
        finally:
            self._in_flight -= chunks
            self._admit()

    def _fits(self, chunks: int) -> bool:
        return not self._in_flight or self._in_flight + chunks <= self._at_once

    def _admit(self) -> None:
        while self._queue:
            chunks, waiter = self._queue[0]
            if waiter.cancelled():
                self._queue.popleft()
            elif self._fits(chunks):
                self._queue.popleft()
                self._in_flight += chunks
                waiter.set_result(None)
            else:
                return


class VectorWaitLimiter:
    """Unanswered requests for vectors to the extractor, at most ``MAX_VECTOR_WAITS``, and a pause after a failed one.

    A request counts until the extractor has replied, even if its client has disconnected.
    """

    def __init__(self) -> None:
        self._pending: set[asyncio.Task[VectorsAwaited]] = set()
        self._stopped = False
        self._pause_ms = 0
        self._not_before_ns = 0

    def __len__(self) -> int:
        return len(self._pending)

    def is_open(self, now_ns: int) -> bool:
        """Return whether one more request may be sent now."""
        return not self._stopped and now_ns >= self._not_before_ns and len(self._pending) < MAX_VECTOR_WAITS

    def add(self, reply: asyncio.Task[VectorsAwaited]) -> None:
        """Count the request until ``reply`` is done."""
        self._pending.add(reply)
        reply.add_done_callback(self._on_reply)

    def on_success(self) -> None:
        """End the series of failures: the next one pauses for ``FIRST_PAUSE_MS`` again."""
        self._pause_ms = self._not_before_ns = 0

    def on_failure(self, now_ns: int) -> None:
        """Pause, twice as long as the last time. Concurrent failures count once."""
        if now_ns >= self._not_before_ns:
            self._pause_ms = min(LONGEST_PAUSE_MS, max(FIRST_PAUSE_MS, 2 * self._pause_ms))
            self._not_before_ns = now_ns + self._pause_ms * 1_000_000

    def stop(self) -> None:
        """Cancel all requests, and allow no more."""
        self._stopped = True
        for reply in self._pending:
            reply.cancel()

    def _on_reply(self, reply: asyncio.Task[VectorsAwaited]) -> None:
        self._pending.discard(reply)
        if not reply.cancelled():
            reply.exception()  # marks the exception as retrieved if no request waits any more
