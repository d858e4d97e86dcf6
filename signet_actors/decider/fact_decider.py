"""Decide on one fact: get candidates from a searcher, ask a model, and validate its answer.

Source: memory-pipeline.txt "Decision Stage", "Semantic Contradiction Detection"; docs/decisions.md 14, 16, 19.
Departs: a fact is compared only with memories of its own owner, visibility, project and scope, and never with the
memory that it was extracted from; a failed call is repeated once before the decision fails.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from signet_actors.config.pipeline_schema import ExtractionConfig
from signet_actors.decider.prompts import contradiction_prompt, decision_prompt
from signet_actors.domain.extraction import proposals
from signet_actors.domain.extraction.answers import CONTRADICTION, DECISION
from signet_actors.domain.extraction.contradiction import SemanticAnswer, parse_semantic
from signet_actors.domain.extraction.junk_filter import echo_of_recalled
from signet_actors.domain.extraction.masking import masked_all, masked_proposal
from signet_actors.errors import ProviderError, ProviderErrorKind
from signet_actors.protocol.decider import Decide, Decided
from signet_actors.protocol.header import Header
from signet_actors.protocol.searcher import FindCandidates
from signet_actors.providers.llm.provider_manager import ProviderManager
from signet_actors.runtime.processes.async_actor import AsyncActor
from signet_actors.runtime.sync_points import sync_point

_SEARCH_MS = 10_000
_MAX_CALLS = 2


class FactDecider:
    """Decides on facts; stateless between two of them."""

    def __init__(self, actor: AsyncActor, model: ProviderManager) -> None:
        self._actor = actor
        self._model = model

    async def decide(self, asked: Decide, frames: Sequence[bytes], header: Header) -> Decided:
        """Return what to do with the fact. Raises ProviderError if no model is available."""
        candidates = await self._candidates(asked, frames, header.trace_id)
        echo = echo_of_recalled(asked.fact.content, asked.origin.created_at, candidates)
        if echo is not None:
            return Decided(None, echo=echo)
        shown = tuple(candidate.id for candidate in candidates)
        if not candidates:
            return Decided(proposals.propose_add(asked.fact))
        prompt = decision_prompt(asked.fact, candidates, self._actor.rng)
        warnings: list[str] = []
        timed_out = False
        for calls in range(1, _MAX_CALLS + 1):
            began_ns = self._actor.clock.monotonic_ns()
            try:
                sync_point("decider.prompt_sent")
                answer = await self._model.generate(prompt, timeout_ms=self._extraction.timeout_ms, answer=DECISION)
            except ProviderError as error:
                if not (error.costs_attempt and self._model.healthy_since(began_ns)):
                    raise
                warnings.append(f"Decision failed: {error.detail}")
                timed_out = error.kind is ProviderErrorKind.TIMEOUT
                continue
            timed_out = False
            decision = proposals.parse_decision(answer.text, asked.fact, candidates)
            if decision.parsed and (decision.proposal is not None or calls == _MAX_CALLS):
                proposal = decision.proposal
                warned = decision.warnings
                if proposal is not None:
                    proposal = await self._check_contradiction(proposal, candidates)
                if self._actor.config.redaction.memories:
                    warned = masked_all(warned)
                    proposal = None if proposal is None else masked_proposal(proposal)
                return Decided(proposal, warned, shown, calls)
            warnings += decision.warnings
        return Decided(None, tuple(warnings), shown, _MAX_CALLS, failed=True, timed_out=timed_out)

    @property
    def _extraction(self) -> ExtractionConfig:
        return self._actor.config.memory.pipeline_v2.extraction

    async def _candidates(self, asked: Decide, frames: Sequence[bytes], trace_id: str) -> list[proposals.Candidate]:
        search, origin = self._actor.config.search, asked.origin
        found = await self._actor.ask_searcher(
            FindCandidates(
                asked.fact.content,
                origin.agent_id,
                origin.visibility,
                origin.project,
                origin.scope,
                without=(origin.memory_id,),
                limit=proposals.MAX_CANDIDATES,
                fusion=search.fusion,
                alpha=search.alpha,
                min_score=search.min_score,
                pool=search.pool,
                vector_model=asked.vector_model if frames else None,
            ),
            trace_id=trace_id,
            timeout_ms=_SEARCH_MS,
            frames=frames,
        )
        return found.candidates

    async def _check_contradiction(
        self, proposal: proposals.Proposal, candidates: Sequence[proposals.Candidate]
    ) -> proposals.Proposal:
        """Return the proposal with a model's verdict on contradiction, if a check applies; failures leave a warning."""
        pipeline = self._actor.config.memory.pipeline_v2
        if not proposals.proposal_needs_semantic_check(
            proposal, candidates, enabled=pipeline.semantic_contradiction_enabled
        ):
            return proposal
        target = proposals.proposal_target(proposal, candidates)
        assert target is not None
        try:
            said = await self.ask_contradiction(proposal.fact.content, target.content)
        except ProviderError as error:
            return structs.replace(proposal, warnings=(*proposal.warnings, f"Not checked: {error.detail}"))
        if not said.parsed:
            return structs.replace(
                proposal, warnings=(*proposal.warnings, "Not checked: the answer could not be parsed")
            )
        return proposals.with_semantic(proposal, said.contradicts)

    async def ask_contradiction(self, first: str, second: str) -> SemanticAnswer:
        """Return what a model says about the two statements. Raises ProviderError."""
        timeout_ms = self._actor.config.memory.pipeline_v2.semantic_contradiction_timeout_ms
        prompt = contradiction_prompt(first, second, self._actor.rng)
        answer = await self._model.generate(prompt, timeout_ms=timeout_ms, answer=CONTRADICTION)
        return parse_semantic(answer.text)
