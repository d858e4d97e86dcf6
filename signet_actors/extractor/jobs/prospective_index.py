"""``prospective_index``: let a model write the questions that a memory may answer, and index them for recall.

Source: memory-pipeline.txt "Prospective Indexing (Hints)".
"""

from __future__ import annotations

from signet_actors.config.pipeline_schema import PipelineV2Config
from signet_actors.domain import jobs
from signet_actors.domain.extraction.answers import HINTS
from signet_actors.domain.extraction.facts import worth_extracting
from signet_actors.domain.extraction.hints import parse_hints
from signet_actors.domain.extraction.masking import masked_all
from signet_actors.errors import UnusableAnswer
from signet_actors.extractor.job_runner import JobRun
from signet_actors.extractor.jobs.model_job import ModelJob
from signet_actors.extractor.prompts import hints_prompt
from signet_actors.protocol.pipeline import StoreHints


class ProspectiveIndex(ModelJob):
    """The kind ``prospective_index``."""

    name = jobs.PROSPECTIVE_INDEX
    at_once = 2

    def switched_off(self, pipeline: PipelineV2Config) -> str | None:
        return super().switched_off(pipeline) or (None if pipeline.hints.enabled else "hints.enabled is false")

    async def work(self, run: JobRun) -> None:
        settings = self._resources.pipeline.hints
        content, injected = self.own_text(run)
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
