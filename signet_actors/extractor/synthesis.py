"""The text of ``MEMORY.md``, made by a model while the gateway waits; not a durable job, and nothing is stored.

Source: docs/guides/working-memory.md; docs/decisions.md 14, 18; docs/reliability.md R11.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from signet_actors.config.pipeline_schema import ExtractionConfig, PipelineV2Config
from signet_actors.config.schema import Config
from signet_actors.domain.providers import NO_PROVIDER, ModelState
from signet_actors.errors import Unavailable
from signet_actors.extractor.resources import Resources
from signet_actors.protocol.extractor import Synthesize, Synthesized
from signet_actors.protocol.header import Header
from signet_actors.providers.llm.provider_manager import ProviderManager

if TYPE_CHECKING:
    from signet_actors.runtime.processes.async_actor import AsyncActor, AsyncRef

_OFF = "memory.pipelineV2.synthesis is switched off"


def own_model(pipeline: PipelineV2Config) -> ExtractionConfig:
    """Return the provider for ``MEMORY.md``; ``none`` if it is that of the extraction, or switched off.

    The key of the extraction is not sent to another address.
    """
    own, extraction = pipeline.synthesis, pipeline.extraction
    if not _is_on(pipeline) or _is_that_of_extraction(pipeline):
        return msgspec.structs.replace(extraction, provider="none")
    base = extraction if own.provider == "extraction" else ExtractionConfig()
    return msgspec.structs.replace(
        extraction,
        provider=extraction.provider if own.provider == "extraction" else own.provider,
        model=own.model or base.model,
        endpoint=own.endpoint or base.endpoint,
        api_key_env=own.api_key_env or ("" if own.endpoint else base.api_key_env),
    )


def _is_on(pipeline: PipelineV2Config) -> bool:
    return pipeline.enabled and pipeline.synthesis.enabled


def _is_that_of_extraction(pipeline: PipelineV2Config) -> bool:
    own = pipeline.synthesis
    return own.provider == "extraction" and not (own.model or own.endpoint or own.api_key_env)


class SynthesisModel:
    """The model, which is that of the extraction unless the configuration names another one."""

    def __init__(self, resources: Resources, actor: AsyncActor, writer: AsyncRef, changed: Callable[[], None]) -> None:
        self._resources = resources
        self._actor = actor
        self._running = False
        self._own = ProviderManager(
            own_model(resources.pipeline), actor.clock, actor.log.bind(model_of="synthesis"), writer, changed=changed
        )

    def start(self) -> None:
        """Select a provider, if the configuration names one, and again when that is necessary, until ``close``."""
        if not self._running and own_model(self._resources.pipeline).provider != NO_PROVIDER:
            self._running = True
            self._actor.spawn(self._own.run())

    def reconfigure(self, config: Config) -> None:
        """Use ``config`` from the next call on."""
        self._own.reconfigure(own_model(config.memory.pipeline_v2))
        self.start()

    async def of(self, asked: Synthesize, header: Header) -> Synthesized:
        """Return the model's answer. Raises ProviderError, and Unavailable after the caller's deadline."""
        model = self._model()
        if model is None:
            raise Unavailable(_OFF)
        left_s = (header.deadline_ns - self._resources.actor.clock.monotonic_ns()) / 1e9
        try:
            async with asyncio.timeout(max(0.0, left_s)):
                answer = await model.generate(
                    asked.prompt,
                    timeout_ms=self._resources.pipeline.synthesis.timeout_ms,
                    max_tokens=asked.max_tokens,
                )
        except TimeoutError as error:
            raise Unavailable("the model did not answer in time") from error
        return Synthesized(answer.text, model.model)

    def state(self) -> ModelState | None:
        """Return the model's state, None if it is switched off."""
        model = self._model()
        return None if model is None else model.state()

    async def close(self) -> None:
        await self._own.close()

    def _model(self) -> ProviderManager | None:
        pipeline = self._resources.pipeline
        if not _is_on(pipeline):
            return None
        return self._resources.model if _is_that_of_extraction(pipeline) else self._own
