"""The better vectors of the provider ``auto``, which follow the first ones in the background.

Every memory has a vector of the embedded model from its own transaction. Here a few texts at a time get one of MiniLM,
in a thread of low priority, in the order of their commits. The model is loaded when there is something to do, and freed
when there was nothing for long. While writes take long, the pauses are as long.

Source: docs/decisions.md 23 and 57; docs/quality.md "Two vectors".
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Final

from signet_actors.config.embedding_models import second_space
from signet_actors.config.schema import Config, EmbeddingConfig
from signet_actors.domain.jobs import SECOND_VECTOR
from signet_actors.domain.normalization import collapsed
from signet_actors.errors import ConfigError, ProviderError, SignetError
from signet_actors.protocol.pipeline import FindUnembedded, SecondVector, StoreSecondVectors, UnembeddedFound, WatchJobs

if TYPE_CHECKING:
    from signet_actors.providers.embedding import AsyncEmbedder
    from signet_actors.runtime.processes.async_actor import AsyncActor, AsyncRef

BATCH: Final = 16
WATCH_MS: Final = 25_000
IDLE_S: Final = 300.0
"""After so long without a text, the model is freed."""
COLLECT_S: Final = 0.25
"""Memories that come one by one are collected for so long."""
_FIRST_AFTER_S: Final = 5.0
"""A process that a text made crash has settled by then, and its next crash does not count as one at the start."""
_REPLY_TIMEOUT_MS: Final = 10_000
_AGAIN_S: Final = 2.0


class SecondVectors:
    """Makes the missing second vectors of one store."""

    def __init__(self, actor: AsyncActor, writer: AsyncRef) -> None:
        self._actor, self._writer = actor, writer
        self._changed = asyncio.Event()
        self._after = 0
        self._embedder: AsyncEmbedder | None = None
        self._unusable = False
        self._used_s = time.monotonic()
        self._tasks: set[asyncio.Task[None]] = set()
        self.stored = 0

    def start(self) -> None:
        """Look for memories without a second vector, until ``close``."""
        self._spawn(self._run())

    def reconfigure(self) -> None:
        """Begin again: another model may be configured."""
        self._after, self._unusable = 0, False
        self._changed.set()

    async def close(self) -> None:
        """Stop, and free the model."""
        for task in self._tasks:
            task.cancel()
        await self._free()

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._actor.spawn(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run(self) -> None:
        await asyncio.sleep(_FIRST_AFTER_S)
        watching = None
        while True:
            self._changed.clear()
            if self._unusable or not _wanted(self._actor.config):
                await self._free()
                await self._changed.wait()
                continue
            # The writer holds this request before it looks: so it misses no memory that comes in between.
            if watching is None or watching.done():
                watching = self._spawn(self._watch())
            try:
                if await self._step():
                    continue
            except ConfigError as error:
                self._unusable = True
                self._actor.log.info("second_vectors_unavailable", reason=error.detail)
                continue
            except SignetError as error:
                self._actor.log.info("second_vectors_delayed", reason=error.detail)
                await asyncio.sleep(_AGAIN_S)
                continue
            await self._changed.wait()
            if time.monotonic() - self._used_s > IDLE_S:
                await self._free()

    async def _watch(self) -> None:
        try:
            await self._writer.ask(
                WatchJobs((SECOND_VECTOR,), WATCH_MS), timeout_ms=WATCH_MS + _REPLY_TIMEOUT_MS, trace_id=""
            )
        except SignetError:
            await asyncio.sleep(_AGAIN_S)
        self._changed.set()

    async def _step(self) -> bool:
        """Make the vectors of the next memories; return False if none is left."""
        began = time.monotonic()
        request = FindUnembedded(self._after, BATCH)
        found = await self._writer.ask(request, timeout_ms=_REPLY_TIMEOUT_MS, trace_id="")
        waited_s = time.monotonic() - began
        if found.texts:
            waited_s += await self._embed(found)
        self._after = found.next
        await asyncio.sleep(waited_s if found.more else COLLECT_S)
        return found.more

    async def _embed(self, found: UnembeddedFound) -> float:
        """Embed and store; return how long the writer took for it, in seconds. A text that fails gets no vector."""
        embedder = await self._loaded()
        self._used_s = time.monotonic()
        vectors, frames = [], []
        try:
            encoded = await embedder.encode_async([collapsed(text.content) for text in found.texts])
        except ProviderError as error:
            self._actor.log.warning("second_vectors_failed", reason=error.detail, texts=len(found.texts))
            return 0.0
        for text, vector, codes in zip(found.texts, *encoded, strict=True):
            if vector.any():
                vectors.append(SecondVector(text.memory_id, text.content_hash, codes))
                frames.append(vector.astype("<f4").tobytes())
        began = time.monotonic()
        if vectors:
            answer = await self._writer.ask(
                StoreSecondVectors(vectors), timeout_ms=_REPLY_TIMEOUT_MS, trace_id="", frames=frames
            )
            self.stored += answer.stored
        return time.monotonic() - began

    async def _loaded(self) -> AsyncEmbedder:
        """Return the model, loaded if it is not. Raises ``ConfigError`` where it cannot be."""
        if self._embedder is None:
            # Imported late: an idle process saves tens of megabytes.
            from signet_actors.providers.select import for_event_loop, make_embedder  # noqa: PLC0415

            made = await asyncio.to_thread(make_embedder, EmbeddingConfig(provider="minilm"))
            assert made is not None
            self._embedder = for_event_loop(made)
        return self._embedder

    async def _free(self) -> None:
        former, self._embedder = self._embedder, None
        if former is not None:
            await former.close()


def _wanted(config: Config) -> bool:
    return second_space(config.embedding) is not None and config.memory.pipeline_v2.embedding_tracker.enabled
