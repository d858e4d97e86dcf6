"""``prospective_index``: let a model write the questions that a memory may answer, and index them for recall.

Source: memory-pipeline.txt "Prospective Indexing (Hints)".
"""

from __future__ import annotations

from signet_actors.config.schema import Config
from signet_actors.domain import jobs
from signet_actors.domain.extraction.answers import HINTS
from signet_actors.domain.extraction.facts import worth_extracting
from signet_actors.domain.extraction.hints import parse_hints
from signet_actors.domain.extraction.injected_text import without_injected
from signet_actors.domain.extraction.masking import masked_all
from signet_actors.errors import UnusableAnswer
from signet_actors.extractor.job_runner import JobRun, Pause
from signet_actors.extractor.jobs.availability import model_limit, model_pause
from signet_actors.extractor.prompts import hints_prompt
from signet_actors.extractor.resources import Resources
from signet_actors.protocol.pipeline import StoreHints

_SLOTS = 2


class ProspectiveIndex:
    """The kind ``prospective_index``."""

    name = jobs.PROSPECTIVE_INDEX

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def slots(self, config: Config) -> int:  # noqa: ARG002 - fixed
        return _SLOTS

    def limit(self) -> int:
        return model_limit(self._resources.model, _SLOTS)

    def pause(self, config: Config) -> Pause | None:
        if not config.memory.pipeline_v2.enabled:
            return Pause("memory.pipelineV2.enabled is false")
        if not config.memory.pipeline_v2.hints.enabled:
            return Pause("memory.pipelineV2.hints.enabled is false")
        return model_pause(self._resources.model)

    def healthy_since(self, moment_ns: int) -> bool:
        return self._resources.model.healthy_since(moment_ns)

    async def work(self, run: JobRun) -> None:
        settings = self._resources.pipeline.hints
        content, injected = without_injected(run.subject.content)
        if injected and not worth_extracting(content):
            await run.report(StoreHints(run.job.id, run.job.lease_id, ()))
            return
        prompt = hints_prompt(content, settings.max_count, self._resources.rng)
        answer = await self._resources.model.generate(prompt, timeout_ms=settings.timeout_ms, answer=HINTS)
        said = parse_hints(answer.text, content, settings.max_count)
        if not said.parsed:
            raise UnusableAnswer(said.warnings[0])
        hints = masked_all(said.hints) if self._resources.actor.config.redaction.memories else said.hints
        await run.report(StoreHints(run.job.id, run.job.lease_id, hints))
