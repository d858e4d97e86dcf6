"""``embed``: a memory without a vector of the configured model gets one.

Source: memory-pipeline.txt "Embedding Tracker"; decisions.md 5 and 23.
"""

from __future__ import annotations

from signet_actors.config.schema import Config
from signet_actors.domain import jobs
from signet_actors.extractor.lane import JobRun, Pause
from signet_actors.extractor.workshop import Workshop
from signet_actors.protocol.pipeline import StoreVector

_SLOTS = 4


class Embed:
    """See the module."""

    name = jobs.EMBED

    def __init__(self, shop: Workshop) -> None:
        self._shop = shop

    def slots(self, config: Config) -> int:
        return min(_SLOTS, config.memory.pipeline_v2.embedding_tracker.batch_size)

    def limit(self) -> int:
        return _SLOTS

    def pause(self, config: Config) -> Pause | None:
        if not config.memory.pipeline_v2.embedding_tracker.enabled:
            return Pause("memory.pipelineV2.embeddingTracker.enabled is false")
        if config.embedding.provider == "none":
            return Pause("embedding.provider is none")
        return None

    def healthy_since(self, moment_ns: int) -> bool:
        return self._shop.embedded_since(moment_ns)

    async def work(self, run: JobRun) -> None:
        subject = run.subject
        embedded = await self._shop.embed([subject.content])
        if embedded is None:
            return
        embedder, vectors = embedded
        await run.report(
            StoreVector(run.job.id, run.job.lease_id, subject.content_hash, embedder.model, embedder.dimensions),
            [vectors[0].astype("<f4").tobytes()],
        )
