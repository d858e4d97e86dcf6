"""``extract``: extract facts from a memory, get a proposal for each from the decider, and send them to the writer.

All calls to models and embedders are made first. Then one message carries the whole result, and one transaction of the
writer applies what passes the gates and completes the job.

Source: memory-pipeline.txt "Extraction Stage", "Decision Stage", "Controlled Writes"; docs/decisions.md 16-19.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from signet_actors.config.schema import Config
from signet_actors.domain import jobs
from signet_actors.domain.extraction.answers import EXTRACTION
from signet_actors.domain.extraction.facts import (
    ExtractionResult,
    Fact,
    RejectedFact,
    parse_extraction,
    worth_extracting,
)
from signet_actors.domain.extraction.gates import PipelineMode
from signet_actors.domain.extraction.junk_filter import filter_junk
from signet_actors.domain.extraction.masking import masked_extraction
from signet_actors.domain.extraction.proposals import Proposal, with_suspicion
from signet_actors.errors import ErrorCode, NoDecision, ProviderError, ProviderErrorKind, SignetError, UnusableAnswer
from signet_actors.extractor.job_runner import JobRun, Pause
from signet_actors.extractor.jobs.model_job import ModelJob
from signet_actors.extractor.prompts import extraction_prompt
from signet_actors.extractor.resources import Resources
from signet_actors.protocol.decider import Decide, Decided, FactOrigin
from signet_actors.protocol.pipeline import ApplyProposals
from signet_actors.runtime.clock import new_id
from signet_actors.runtime.sync_points import sync_point

if TYPE_CHECKING:
    from signet_actors.providers.embedding import AsyncEmbedder, Encoded

UNDECIDED = "undecided"
"""Why a fact has no proposal if the model gave no usable decision on it."""
_SLOTS_PER_CALL = 2
"""Jobs per model call: while one job waits for the model, the facts of another are decided on and written."""
_MAX_CALLS_PER_FACT = 6
"""Timeouts that the decider may use up for one fact: two tries, each with a wait for a slot, a call, and a cleanup."""
_DECISION_MARGIN_MS = 30_000
_DECIDER_PAUSE_MS = 5_000
_DECIDER_UNAVAILABLE = frozenset({ErrorCode.UNAVAILABLE, ErrorCode.BUSY, ErrorCode.NOT_APPLIED})
"""The decider has not accepted the request, which is not the job's fault. If it accepted the request repeatedly and
never replied, the fact may have crashed it: then the attempt fails, so that retries end (docs/reliability.md R8)."""


class _ModeAtStart(NamedTuple):
    """The configuration's limits on a run at the time when it started."""

    mode: PipelineMode
    autonomous_frozen: bool


class _Decisions(NamedTuple):
    """What the decider replied about each fact that the junk filter kept, and the facts without a proposal."""

    decided: Sequence[Decided] = ()
    rejected: tuple[RejectedFact, ...] = ()


class Extract(ModelJob):
    """The kind ``extract``; a job's result is sent to the writer in one message."""

    name = jobs.EXTRACT
    needs_role = "decider"

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources)
        self._decider_pause_until_ns = 0
        self._decider_pause_reason = ""

    def slots(self, config: Config) -> int:
        return _SLOTS_PER_CALL * config.memory.pipeline_v2.extraction.concurrency

    def pause(self, config: Config) -> Pause | None:
        waits = self._decider_pause() if config.memory.pipeline_v2.enabled else None
        return waits or super().pause(config)

    def _decider_pause(self) -> Pause | None:
        left_ns = self._decider_pause_until_ns - self._resources.actor.clock.monotonic_ns()
        return Pause(self._decider_pause_reason, left_ns // 1_000_000 + 1) if left_ns > 0 else None

    async def work(self, run: JobRun) -> None:
        resources = self._resources
        mode_at_start = _ModeAtStart(resources.mode, resources.pipeline.autonomous.frozen)
        content, injected = self.own_text(run)
        if not worth_extracting(content):
            reason = "echo_marked" if injected else "too_short"
            await self._apply(run, mode_at_start, ExtractionResult(), _Decisions(), Counter({reason: 1}), None)
            return
        settings = resources.pipeline.extraction
        prompt = extraction_prompt(content, resources.rng)
        sync_point("extractor.prompt_sent")
        answer = await resources.model.generate(prompt, timeout_ms=settings.timeout_ms, answer=EXTRACTION)
        result = parse_extraction(answer.text)
        sync_point("extractor.parsed")
        if not result.parsed:
            raise UnusableAnswer(result.warnings[0])
        lost = result.repaired or result.dropped
        if lost and not (result.facts or result.entities) and run.job.attempt < run.job.max_attempts:
            raise UnusableAnswer("the answer contained nothing usable")
        if resources.actor.config.redaction.memories:
            result = masked_extraction(result)
        facts = filter_junk(result.facts, content)
        vectors = await self._embedded(facts.kept, run)
        sync_point("extractor.embed_done")
        decided = await self._decide_all(run, facts.kept, vectors)
        decided = [_mark_suspicious(one, content) for one in decided]
        rejected_counts = Counter(str(junk.reason) for junk in facts.rejected)
        rejected_counts.update(one.echo for one in decided if one.echo is not None)
        undecided = tuple(
            RejectedFact(fact, one.echo or UNDECIDED)
            for fact, one in zip(facts.kept, decided, strict=True)
            if one.proposal is None
        )
        decisions = _Decisions(decided, (*facts.rejected, *undecided))
        await self._apply(run, mode_at_start, result, decisions, rejected_counts, vectors)

    async def _embedded(self, facts: Sequence[Fact], run: JobRun) -> tuple[AsyncEmbedder, Encoded] | None:
        """The facts' vectors; None while they cannot be had, which holds nothing up: the embed job makes them then."""
        try:
            return await self._resources.embed([fact.content for fact in facts])
        except ProviderError as error:
            self._resources.actor.log.info("facts_without_vectors", job=run.job.id, reason=error.detail)
            return None

    async def _decide_all(
        self, run: JobRun, facts: Sequence[Fact], vectors: tuple[AsyncEmbedder, Encoded] | None
    ) -> list[Decided]:
        """Return one decision per fact, in order; the first failure cancels the others."""
        asked = [asyncio.create_task(self._decide(run, fact, at, vectors)) for at, fact in enumerate(facts)]
        try:
            return await asyncio.gather(*asked)
        finally:
            for task in asked:
                task.cancel()

    async def _decide(
        self, run: JobRun, fact: Fact, index: int, vectors: tuple[AsyncEmbedder, Encoded] | None
    ) -> Decided:
        """Ask the decider about one fact. Raises ProviderError, which spends no attempt, if it cannot decide now."""
        subject = run.subject
        frames, model = [], None
        if vectors is not None and vectors[1].vectors[index].any():
            frames, model = [vectors[1].vectors[index].astype("<f4").tobytes()], vectors[0].model
        origin = FactOrigin(
            subject.id, subject.agent_id, subject.visibility, subject.project, subject.scope, subject.created_at
        )
        try:
            async with self._resources.decider_slots:
                decided = await self._resources.decider.ask(
                    Decide(fact, origin, model), trace_id=run.trace_id, timeout_ms=self._decision_ms(), frames=frames
                )
        except SignetError as error:
            if error.code in _DECIDER_UNAVAILABLE:
                self._pause_for_decider(error)
                raise ProviderError(ProviderErrorKind.UNAVAILABLE, f"no decision: {error.detail}") from error
            if error.code is ErrorCode.OUTCOME_UNKNOWN:
                raise NoDecision("the decider accepted a fact but did not reply", timed_out=True) from error
            raise
        if decided.failed and run.job.attempt < run.job.max_attempts:
            raise NoDecision(decided.warnings[-1], timed_out=decided.timed_out)
        return decided

    def _decision_ms(self) -> int:
        """Return a timeout that exceeds all of the decider's own deadlines for one fact."""
        pipeline = self._resources.pipeline
        return (
            _MAX_CALLS_PER_FACT * pipeline.extraction.timeout_ms
            + pipeline.semantic_contradiction_timeout_ms
            + _DECISION_MARGIN_MS
        )

    def _pause_for_decider(self, error: SignetError) -> None:
        """Take no job for a while: extraction would cost calls without a result."""
        for_ms = max(error.retry_after_ms or 0, _DECIDER_PAUSE_MS)
        self._decider_pause_until_ns = self._resources.actor.clock.monotonic_ns() + for_ms * 1_000_000
        self._decider_pause_reason = f"the decider failed: {error.detail}"

    async def _apply(
        self,
        run: JobRun,
        mode_at_start: _ModeAtStart,
        result: ExtractionResult,
        decisions: _Decisions,
        rejected_counts: Counter[str],
        vectors: tuple[AsyncEmbedder, Encoded] | None,
    ) -> None:
        """Send the whole result of the job to the writer."""
        resources = self._resources
        proposals: list[Proposal] = []
        shown: list[tuple[str, ...]] = []
        places: list[int] = []
        frames: list[bytes] = []
        token_codes: list[bytes | None] = []
        warnings = list(result.warnings)
        for index, one in enumerate(decisions.decided):
            warnings += one.warnings
            if one.proposal is None:
                continue
            proposals.append(one.proposal)
            shown.append(one.candidate_ids)
            if vectors is not None and one.proposal.action in {"add", "update"} and vectors[1].vectors[index].any():
                places.append(len(frames))
                frames.append(vectors[1].vectors[index].astype("<f4").tobytes())
                token_codes.append(vectors[1].token_codes[index])
            else:
                places.append(-1)
        await run.report(
            ApplyProposals(
                job_id=run.job.id,
                lease_id=run.job.lease_id,
                run_id=new_id(resources.actor.clock, resources.rng),
                mode=mode_at_start.mode,
                autonomous_frozen=mode_at_start.autonomous_frozen,
                provider=resources.model.name,
                model=resources.model.model,
                proposals=tuple(proposals),
                entities=result.entities,
                warnings=tuple(warnings),
                shown=tuple(shown),
                vectors=tuple(places) if frames else (),
                token_codes=tuple(token_codes),
                vector_model=vectors[0].model if vectors is not None and frames else "",
                dimensions=vectors[0].dimensions if vectors is not None and frames else 0,
                repaired=result.repaired,
                dropped=result.dropped,
                rejected_counts=dict(rejected_counts),
                rejected=decisions.rejected,
            ),
            frames,
        )
        resources.rejected.update(rejected_counts)


def _mark_suspicious(decided: Decided, note: str) -> Decided:
    """Return the decision; mark its proposal if the fact looks like an instruction that the note does not support."""
    if decided.proposal is None:
        return decided
    return structs.replace(decided, proposal=with_suspicion(decided.proposal, note))
