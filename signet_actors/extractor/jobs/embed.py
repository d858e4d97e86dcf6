"""``embed``: compute the vector of a memory that has none of the configured model, several memories per call.

Texts that arrive during a call are collected for the next one. If a batch fails, its texts are tried one by one, so
that one text that the server rejects does not affect others. While the server is unavailable, no job is taken; the
pause doubles each time.

Source: memory-pipeline.txt "Embedding Tracker"; docs/decisions.md 5, 14 and 23.
Departs: texts are embedded in batches and not one at a time, and there is no poll: jobs come by event.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from signet_actors.config.schema import Config
from signet_actors.domain import jobs
from signet_actors.domain.timestamps import iso
from signet_actors.errors import ProviderError, ProviderErrorKind, SignetError
from signet_actors.extractor.job_runner import JobRun, Pause
from signet_actors.extractor.resources import Resources
from signet_actors.operations.embeddings import Tracker
from signet_actors.protocol.extractor import VectorsAwaited
from signet_actors.protocol.pipeline import StoreVector

if TYPE_CHECKING:
    from signet_actors.providers.embedding import AsyncEmbedder, Encoded

MIN_BACKOFF_MS: Final = 1_000
MAX_BACKOFF_MS: Final = 60_000
_BATCHES: Final = 2
"""One batch is being embedded while the next one is collected."""
_SERVER_ERRORS: Final = frozenset(
    {
        ProviderErrorKind.UNAVAILABLE,
        ProviderErrorKind.TIMEOUT,
        ProviderErrorKind.RATE_LIMITED,
        ProviderErrorKind.OVER_BUDGET,
    }
)


class Embedded(NamedTuple):
    """A vector as it is stored (raw little-endian float32), with its model, dimensions and token codes."""

    model: str
    dimensions: int
    raw: bytes
    token_codes: bytes | None


class _Waiting(NamedTuple):
    text: str
    vector: asyncio.Future[Embedded]


class Embed:
    """The kind ``embed``; it collects texts of several jobs into one call."""

    name = jobs.EMBED

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._waiting: list[_Waiting] = []
        self._call_task: asyncio.Task[None] | None = None
        self._backoff_ms = 0
        self._backoff_until_ns = 0
        self._backoff_reason = ""
        self._processed = 0
        self._failed = 0
        self._skipped_cycles = 0
        self._last_cycle_at: str | None = None
        self._draining = False
        self.waits = VectorWaiters()

    def slots(self, config: Config) -> int:
        return _BATCHES * config.memory.pipeline_v2.embedding_tracker.batch_size

    def limit(self) -> int:
        """Return 1 after a failure until a call has succeeded, else all slots."""
        return 1 if self._backoff_ms else self.slots(self._resources.actor.config)

    def pause(self, config: Config) -> Pause | None:
        if not config.memory.pipeline_v2.embedding_tracker.enabled:
            return Pause("memory.pipelineV2.embeddingTracker.enabled is false")
        if config.embedding.provider == "none":
            return Pause("embedding.provider is none")
        left_ns = self._backoff_until_ns - self._resources.actor.clock.monotonic_ns()
        if left_ns > 0:
            return Pause(self._backoff_reason, -(-left_ns // 1_000_000))
        return None

    def healthy_since(self, moment_ns: int) -> bool:
        return self._resources.embedded_since(moment_ns)

    @property
    def is_away(self) -> bool:
        """Return whether the last call failed and another one is due, or was until a minute ago."""
        since_ns = self._resources.actor.clock.monotonic_ns() - self._backoff_until_ns
        return self._backoff_ms > 0 and since_ns < MAX_BACKOFF_MS * 1_000_000

    def reconfigured(self) -> None:
        """End the backoff: the configuration may name another provider now."""
        self._backoff_ms = self._backoff_until_ns = 0

    def tracker(self) -> Tracker:
        """Return the tracker's state. A cycle is a call; a skipped cycle is a pause because of an outage."""
        return Tracker(
            running=self.pause(self._resources.actor.config) is None,
            processed=self._processed,
            failed=self._failed,
            skipped_cycles=self._skipped_cycles,
            last_cycle_at=self._last_cycle_at,
        )

    async def stored(self, versions: Mapping[str, int], wait_ms: int) -> VectorsAwaited:
        """Wait for the vectors of these memory versions; return which are stored. See ``AwaitVectors``."""
        if not versions or self._draining or self._backoff_ms or self.pause(self._resources.actor.config) is not None:
            # During backoff, callers must not wait for the one job that probes the server.
            return VectorsAwaited([])
        return await self.waits.stored(versions, wait_ms / 1000)

    def stop_waits(self) -> None:
        """Resolve all waiting requests as not stored, and accept no new ones: the process is draining."""
        self._draining = True
        self.waits.cancel_all()

    async def work(self, run: JobRun) -> None:
        subject = run.subject
        stored = False
        try:
            vector = await self._vector(subject.content)
            answer = await run.report(
                StoreVector(
                    run.job.id,
                    run.job.lease_id,
                    subject.content_hash,
                    vector.model,
                    vector.dimensions,
                    vector.token_codes,
                ),
                [vector.raw],
            )
            stored = answer.stored
        finally:
            self.waits.ended(subject.id, subject.version, stored=stored)
        self._processed += 1

    async def _vector(self, text: str) -> Embedded:
        waiting = _Waiting(text, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._call_task is None or self._call_task.done():
            self._call_task = self._resources.actor.spawn(self._call())
        return await waiting.vector

    async def _call(self) -> None:
        """Embed queued texts in batches until the queue is empty."""
        try:
            while self._waiting:
                size = self._resources.pipeline.embedding_tracker.batch_size
                batch, self._waiting = self._waiting[:size], self._waiting[size:]
                await self._embed(batch)
        finally:
            for left in self._waiting:
                left.vector.cancel()
            self._waiting = []

    async def _embed(self, batch: list[_Waiting]) -> None:
        """Embed one batch; set the result or the error of each of its texts."""
        batch = [waiting for waiting in batch if not waiting.vector.done()]
        if not batch:
            return
        try:
            embedded = await self._resources.embed([waiting.text for waiting in batch])
            if embedded is None:
                raise ProviderError(ProviderErrorKind.UNAVAILABLE, "embedding.provider is none")
        except ProviderError as error:
            if len(batch) > 1 and error.kind not in _SERVER_ERRORS:
                for waiting in batch:
                    await self._embed([waiting])
                return
            self._fail(batch, error)
            if not self._resources.embedded_since(
                self._resources.actor.clock.monotonic_ns() - MIN_BACKOFF_MS * 1_000_000
            ):
                self._back_off(error)
        except asyncio.CancelledError:
            for waiting in batch:
                waiting.vector.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - every waiting job must get a result
            self._fail(batch, error)
        else:
            self._deliver(batch, *embedded)
        self._last_cycle_at = iso(self._resources.actor.clock.wall_ms())

    def _deliver(self, batch: list[_Waiting], embedder: AsyncEmbedder, encoded: Encoded) -> None:
        self._backoff_ms = 0
        for waiting, vector, codes in zip(batch, *encoded, strict=True):
            if not waiting.vector.done():
                raw = vector.astype("<f4").tobytes()
                waiting.vector.set_result(Embedded(embedder.model, embedder.dimensions, raw, codes))

    def _fail(self, batch: list[_Waiting], error: Exception) -> None:
        self._failed += len(batch)
        for waiting in batch:
            if not waiting.vector.done():
                waiting.vector.set_exception(error)

    def _back_off(self, error: SignetError) -> None:
        """Take no job for a while, twice as long as the last time."""
        self._backoff_ms = min(MAX_BACKOFF_MS, max(MIN_BACKOFF_MS, 2 * self._backoff_ms))
        wait_ms = max(self._backoff_ms, error.retry_after_ms or 0)
        self._backoff_until_ns = self._resources.actor.clock.monotonic_ns() + wait_ms * 1_000_000
        self._backoff_reason = error.detail
        self._skipped_cycles += 1
        self.waits.cancel_all()


MAX_ENDS: Final = 1024
"""Ends of jobs that are kept: some seconds of the fastest server's work. Requests arrive within milliseconds."""


class _End(NamedTuple):
    version: int
    stored: bool


class _Waiter(NamedTuple):
    version: int
    stored: asyncio.Future[bool]


class VectorWaiters:
    """Requests that wait until the vectors of memories are stored, or until they cannot be for a while.

    A vector counts as stored when the writer has confirmed it to a job that read the memory at the awaited version or a
    later one. Recent ends of jobs are kept, because a job can finish before the request that waits for it arrives.

    Source: docs/decisions.md 23.
    """

    def __init__(self) -> None:
        self._waiting: defaultdict[str, list[_Waiter]] = defaultdict(list)
        self._ends: dict[str, _End] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    async def stored(self, versions: Mapping[str, int], within_s: float) -> VectorsAwaited:
        """Wait until the attempts at all the memories have ended; return which have a vector of that version."""
        waiters = {memory_id: self._waiter(memory_id, version) for memory_id, version in versions.items()}
        try:
            _, late = await asyncio.wait([waiter.stored for waiter in waiters.values()], timeout=within_s)
        finally:
            for memory_id, waiter in waiters.items():
                self._leave(memory_id, waiter)
        stored = [memory_id for memory_id, (_, told) in waiters.items() if told.done() and told.result()]
        return VectorsAwaited(stored, late=bool(late))

    def ended(self, memory_id: str, version: int, *, stored: bool) -> None:
        """Record the end of an attempt that read the memory at ``version``; resolve the requests that wait for it."""
        self._ends.pop(memory_id, None)
        self._ends[memory_id] = _End(version, stored)
        while len(self._ends) > MAX_ENDS:
            del self._ends[next(iter(self._ends))]
        for waiter in self._waiting.get(memory_id, ()):
            if version >= waiter.version:
                _report_end(waiter, stored=stored)

    def cancel_all(self) -> None:
        """Resolve all waiting requests as not stored, because there will be no vectors for a while."""
        for waiters in self._waiting.values():
            for waiter in waiters:
                _report_end(waiter, stored=False)

    def _waiter(self, memory_id: str, version: int) -> _Waiter:
        waiter = _Waiter(version, asyncio.get_running_loop().create_future())
        self._waiting[memory_id].append(waiter)
        end = self._ends.get(memory_id)
        if end is not None and end.version >= version:
            _report_end(waiter, stored=end.stored)
        return waiter

    def _leave(self, memory_id: str, waiter: _Waiter) -> None:
        waiters = self._waiting[memory_id]
        waiters[:] = [other for other in waiters if other.stored is not waiter.stored]
        if not waiters:
            del self._waiting[memory_id]


def _report_end(waiter: _Waiter, *, stored: bool) -> None:
    if not waiter.stored.done():
        waiter.stored.set_result(stored)
