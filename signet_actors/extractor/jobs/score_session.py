"""``score_session``: a model judges how memory served a session. Source: memory-pipeline.txt "Continuity Scoring"."""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.config.pipeline_schema import PipelineV2Config
from signet_actors.domain import jobs
from signet_actors.domain.extraction.answers import SESSION_SCORE
from signet_actors.domain.extraction.masking import masked
from signet_actors.domain.extraction.prompts import MAX_JUDGED_CHARS
from signet_actors.domain.session_summaries import SummaryPart
from signet_actors.errors import UnusableAnswer
from signet_actors.extractor.job_runner import JobRun
from signet_actors.extractor.jobs.model_job import ModelJob
from signet_actors.extractor.prompts import session_score_prompt
from signet_actors.extractor.session_samples import read_sample
from signet_actors.features.session_scores.api import FindShown, ShownMemories, StoreScore
from signet_actors.features.session_scores.rules import SHORT_ID_CHARS, parse_session_score, short_ids

_READ_MS: Final = 10_000
MAX_JUDGED: Final = 50
END_CHARS: Final = 4_000


class ScoreSession(ModelJob):
    """The kind ``score_session``."""

    name = jobs.SCORE_SESSION
    needs_role = "searcher"

    def switched_off(self, pipeline: PipelineV2Config) -> str | None:
        return super().switched_off(pipeline) or (None if pipeline.summary.enabled else "summary.enabled is false")

    async def work(self, run: JobRun) -> None:
        resources = self._resources
        part = msgspec.json.decode(run.job.payload or "", type=SummaryPart)
        query = FindShown(part.session_key, part.agent_id, MAX_JUDGED, chars=2 * MAX_JUDGED_CHARS)
        answered = await resources.actor.ask_searcher(query, trace_id=run.trace_id, timeout_ms=_READ_MS)
        found = answered.read(ShownMemories)
        ids = short_ids(memory.id for memory in found.memories)
        shown = [(short_id, memory) for memory in found.memories if (short_id := _short(memory.id)) in ids]
        sample = await read_sample(resources.actor, part, run.trace_id)
        prompt = session_score_prompt(
            run.subject.content,
            sample.text()[-END_CHARS:],
            [(short_id, memory.content) for short_id, memory in shown],
            resources.rng,
        )
        answer = await resources.model.generate(
            prompt, timeout_ms=resources.pipeline.extraction.timeout_ms, answer=SESSION_SCORE
        )
        score = parse_session_score(answer.text, ids, len(shown))
        if score is None:
            raise UnusableAnswer("the answer contained no score of the session")
        score = msgspec.structs.replace(score, reasoning=masked(score.reasoning))
        judged = tuple(memory.id for _, memory in shown)
        report = StoreScore(
            job_id=run.job.id,
            lease_id=run.job.lease_id,
            score=score,
            recalled=found.count,
            judged=judged,
        )
        await run.report(report)


def _short(memory_id: str) -> str:
    return memory_id[-SHORT_ID_CHARS:].lower()
