"""What jobs work with: the model, the embedder, the decider, the configuration in force, and the count of junk.

Source: memory-pipeline.txt "Worker Model", "Controlled Writes"; docs/decisions.md 5, 14, 22.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from signet_actors.config.schema import Config, EmbeddingConfig, ExtractionConfig, PipelineV2Config
from signet_actors.domain.extraction.gates import PipelineMode, flags_of, pipeline_mode
from signet_actors.domain.normalization import collapsed
from signet_actors.errors import ConfigError, ProviderError, ProviderErrorKind
from signet_actors.providers.llm.provider_manager import ProviderManager
from signet_actors.runtime.processes.async_actor import AsyncActor, AsyncRef

if TYPE_CHECKING:
    from signet_actors.providers.embedding import AsyncEmbedder, Vectors


_DECISIONS_PER_CALL = 2
"""While one fact asks the model, another has its candidates looked up."""


def extraction_config(config: Config) -> ExtractionConfig:
    """Who answers prompts: nobody is looked for where no part of the pipeline would ask."""
    pipeline = config.memory.pipeline_v2
    if pipeline.enabled or pipeline.reranker.use_extraction_model:
        return pipeline.extraction
    return msgspec.structs.replace(pipeline.extraction, provider="none")


def _embedder_config(embedding: EmbeddingConfig) -> EmbeddingConfig:
    """What an embedder is made of: how long somebody waits for it is none of that."""
    return msgspec.structs.replace(embedding, wait_ms=0)


class Resources:
    """Shared by all jobs of one extractor. ``turned_away`` counts by reason what was no memory."""

    def __init__(self, actor: AsyncActor, writer: AsyncRef, decider: AsyncRef, model: ProviderManager) -> None:
        self.actor = actor
        self.writer = writer
        self.decider = decider
        self.model = model
        self.turned_away: Counter[str] = Counter()
        self.decider_slots = asyncio.Semaphore(_DECISIONS_PER_CALL * self.pipeline.extraction.concurrency)
        """Facts that are with the decider at once, of all jobs: what is more waits here, and not in its queue."""
        self._embedder: AsyncEmbedder | None = None
        self._embedder_of: EmbeddingConfig | None = None
        self._loading = asyncio.Lock()
        self._embedded_ns = -1

    @property
    def rng(self) -> random.Random:
        """The process's randomness."""
        return self.actor.rng

    @property
    def pipeline(self) -> PipelineV2Config:
        """The configuration in force."""
        return self.actor.config.memory.pipeline_v2

    @property
    def mode(self) -> PipelineMode:
        """How far a run may go by the configuration in force."""
        return pipeline_mode(flags_of(self.pipeline))

    def reconfigure(self, config: Config) -> None:
        """The next call is made as ``config`` says."""
        self.model.reconfigure(extraction_config(config))
        self.decider_slots = asyncio.Semaphore(_DECISIONS_PER_CALL * config.memory.pipeline_v2.extraction.concurrency)

    async def embedder(self) -> AsyncEmbedder | None:
        """The embedder of the configuration in force, loaded at its first use; None where there is to be none.

        Raises ``ProviderError`` (UNAVAILABLE) where it cannot be had.
        """
        async with self._loading:
            while self._embedder_of != (wanted := _embedder_config(self.actor.config.embedding)):
                # Its import and tables cost a quarter of a second and tens of megabytes, which an idle process saves.
                from signet_actors.providers.select import for_event_loop, make_embedder  # noqa: PLC0415

                try:
                    made = await asyncio.to_thread(make_embedder, wanted)
                except ConfigError as error:
                    raise ProviderError(ProviderErrorKind.UNAVAILABLE, error.detail) from error
                await self._close_embedder()
                self._embedder = None if made is None else for_event_loop(made)
                self._embedder_of = wanted
            return self._embedder

    async def embed(self, texts: Sequence[str]) -> tuple[AsyncEmbedder, Vectors] | None:
        """One row for each text, read on one line, and by whom; None where vectors are switched off."""
        embedder = await self.embedder()
        if embedder is None or not texts:
            return None
        vectors = await embedder.embed_async([collapsed(text) for text in texts])
        self._embedded_ns = self.actor.clock.monotonic_ns()
        return embedder, vectors

    def embedded_since(self, moment_ns: int) -> bool:
        """True when something was embedded after ``moment_ns`` (monotonic)."""
        return self._embedded_ns > moment_ns

    async def close(self) -> None:
        """No socket and no process of a provider is left."""
        await self.model.close()
        await self._close_embedder()

    async def _close_embedder(self) -> None:
        former, self._embedder = self._embedder, None
        if former is not None:
            await former.close()
