"""The resources that all jobs share: model, embedder, decider, current configuration, and counts of rejected facts.

Source: memory-pipeline.txt "Worker Model", "Controlled Writes"; docs/decisions.md 5, 14, 22.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from signet_actors.config.pipeline_schema import ExtractionConfig, PipelineV2Config
from signet_actors.config.schema import Config, EmbeddingConfig
from signet_actors.domain.extraction.gates import PipelineMode, flags_of, pipeline_mode
from signet_actors.domain.normalization import collapsed
from signet_actors.errors import ConfigError, ProviderError, ProviderErrorKind
from signet_actors.providers.llm.provider_manager import ProviderManager
from signet_actors.runtime.processes.async_actor import AsyncActor, AsyncRef

if TYPE_CHECKING:
    from signet_actors.providers.embedding import AsyncEmbedder, Encoded


_DECISIONS_PER_CALL = 2
"""Facts at the decider per model call: while one waits for the model, another's candidates are searched."""


def extraction_config(config: Config) -> ExtractionConfig:
    """Return the provider configuration; provider ``none`` if no part of the pipeline needs a model."""
    pipeline = config.memory.pipeline_v2
    if pipeline.enabled or pipeline.reranker.use_extraction_model:
        return pipeline.extraction
    return msgspec.structs.replace(pipeline.extraction, provider="none")


def _embedder_config(embedding: EmbeddingConfig) -> EmbeddingConfig:
    """Return the settings that an embedder depends on, without the caller's wait time."""
    return msgspec.structs.replace(embedding, wait_ms=0)


class Resources:
    """Resources of one extractor. ``rejected`` counts, by reason, facts that were rejected as no memory."""

    def __init__(self, actor: AsyncActor, writer: AsyncRef, decider: AsyncRef, model: ProviderManager) -> None:
        self.actor = actor
        self.writer = writer
        self.decider = decider
        self.model = model
        self.rejected: Counter[str] = Counter()
        self.decider_slots = asyncio.Semaphore(_DECISIONS_PER_CALL * self.pipeline.extraction.concurrency)
        """Limits the facts of all jobs that are at the decider; further ones wait here, not in its mailbox."""
        self._embedder: AsyncEmbedder | None = None
        self._embedder_of: EmbeddingConfig | None = None
        self._loading = asyncio.Lock()
        self._embedded_ns = -1

    @property
    def rng(self) -> random.Random:
        return self.actor.rng

    @property
    def pipeline(self) -> PipelineV2Config:
        return self.actor.config.memory.pipeline_v2

    @property
    def mode(self) -> PipelineMode:
        return pipeline_mode(flags_of(self.pipeline))

    def reconfigure(self, config: Config) -> None:
        """Use ``config`` from the next call on."""
        self.model.reconfigure(extraction_config(config))
        self.decider_slots = asyncio.Semaphore(_DECISIONS_PER_CALL * config.memory.pipeline_v2.extraction.concurrency)

    async def embedder(self) -> AsyncEmbedder | None:
        """Return the configured embedder, loaded at its first use; None if embedding is switched off.

        Raises ``ProviderError`` (UNAVAILABLE) if it cannot be loaded.
        """
        async with self._loading:
            while self._embedder_of != (wanted := _embedder_config(self.actor.config.embedding)):
                # Imported late: this costs a quarter of a second and tens of megabytes, which an idle process saves.
                from signet_actors.providers.select import for_event_loop, make_embedder  # noqa: PLC0415

                try:
                    made = await asyncio.to_thread(make_embedder, wanted)
                except ConfigError as error:
                    raise ProviderError(ProviderErrorKind.UNAVAILABLE, error.detail) from error
                await self._close_embedder()
                self._embedder = None if made is None else for_event_loop(made)
                self._embedder_of = wanted
            return self._embedder

    async def embed(self, texts: Sequence[str]) -> tuple[AsyncEmbedder, Encoded] | None:
        """Return the embedder, one vector per text and their codes; None without texts or if embedding is switched off.

        White space in the texts is collapsed first.
        """
        embedder = await self.embedder()
        if embedder is None or not texts:
            return None
        encoded = await embedder.encode_async([collapsed(text) for text in texts])
        self._embedded_ns = self.actor.clock.monotonic_ns()
        return embedder, encoded

    def embedded_since(self, moment_ns: int) -> bool:
        """Return True if a text was embedded after ``moment_ns`` (monotonic)."""
        return self._embedded_ns > moment_ns

    async def close(self) -> None:
        """Close the model's provider and the embedder with all their sockets and processes."""
        await self.model.close()
        await self._close_embedder()

    async def _close_embedder(self) -> None:
        former, self._embedder = self._embedder, None
        if former is not None:
            await former.close()
