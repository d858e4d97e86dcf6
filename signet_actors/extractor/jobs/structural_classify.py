"""``structural_classify``: a model sorts the facts of one entity into its aspects, and may find contradictions.

Source: memory-pipeline.txt "Structural Classification", "Semantic Contradiction Detection"; docs/decisions.md 19.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

import msgspec

from signet_actors.config.pipeline_schema import PipelineV2Config
from signet_actors.domain import jobs
from signet_actors.domain.extraction.answers import CLASSIFICATION
from signet_actors.domain.extraction.masking import masked
from signet_actors.domain.graph.classification import Classified, parse_classification
from signet_actors.domain.graph.names import EXTRACTED, canonical_name
from signet_actors.domain.graph.supersession import MAX_COMPARED, Words, conflict, needs_model
from signet_actors.errors import SignetError, UnusableAnswer
from signet_actors.extractor.job_runner import JobRun
from signet_actors.extractor.jobs.model_job import ModelJob
from signet_actors.extractor.prompts import classification_prompt
from signet_actors.features.classification import api
from signet_actors.protocol.decider import CheckContradiction
from signet_actors.runtime.sync_points import sync_point

_READ_MS: Final = 10_000
_MARGIN_MS: Final = 30_000
MAX_CHECKED: Final = 10
"""Pairs of facts about which a model is asked, of one job."""
_SIBLINGS: Final = 5 * MAX_COMPARED


class StructuralClassify(ModelJob):
    """The kind ``structural_classify``."""

    name = jobs.STRUCTURAL_CLASSIFY
    needs_role = "searcher"

    def switched_off(self, pipeline: PipelineV2Config) -> str | None:
        reasons = {
            "graph.enabled is false": not pipeline.graph.enabled,
            "mutationsFrozen is true": pipeline.mutations_frozen,
            "shadowMode is true": pipeline.shadow_mode,
        }
        return super().switched_off(pipeline) or next((reason for reason, holds in reasons.items() if holds), None)

    async def work(self, run: JobRun) -> None:
        resources = self._resources
        part = msgspec.json.decode(run.job.payload or "", type=api.EntityPart)
        asks = resources.pipeline.semantic_contradiction_enabled
        query = api.FindUnclassified(part, resources.pipeline.structural.classify_batch_size, _SIBLINGS if asks else 0)
        answered = await resources.actor.ask_searcher(query, trace_id=run.trace_id, timeout_ms=_READ_MS)
        found = answered.read(api.EntityFacts)
        if not found.facts:
            await run.report(api.StoreClassification(job_id=run.job.id, lease_id=run.job.lease_id))
            return
        prompt = classification_prompt(found, resources.rng)
        sync_point("extractor.prompt_sent")
        answer = await resources.model.generate(
            prompt, timeout_ms=resources.pipeline.extraction.timeout_ms, answer=CLASSIFICATION
        )
        said = parse_classification(answer.text, len(found.facts), asks_type=found.entity_type == EXTRACTED)
        if said is None:
            raise UnusableAnswer("the answer contained no aspect of a fact")
        conflicts = await self._conflicts(run, found, said) if asks else ()
        sync_point("extractor.classified")
        assignments = tuple(msgspec.structs.replace(one, aspect=masked(one.aspect)) for one in said.assignments)
        report = api.StoreClassification(
            job_id=run.job.id,
            lease_id=run.job.lease_id,
            attribute_ids=tuple(fact.id for fact in found.facts),
            assignments=assignments,
            entity_type=said.entity_type,
            through=found.facts[-1].seq,
            conflicts=conflicts,
        )
        await run.report(report)

    async def _conflicts(
        self, run: JobRun, found: api.EntityFacts, said: Classified
    ) -> tuple[api.SemanticConflict, ...]:
        """Return the contradictions that a model sees; those that it cannot be asked about now are left out."""
        resources, conflicts = self._resources, []
        timeout_ms = resources.pipeline.semantic_contradiction_timeout_ms + _MARGIN_MS
        for older, newer in islice(_pairs(found, said), MAX_CHECKED):
            check = CheckContradiction(newer.content, older.content)
            try:
                async with resources.decider_slots:
                    answer = await resources.decider.ask(check, trace_id=run.trace_id, timeout_ms=timeout_ms)
            except SignetError as error:
                resources.actor.log.info("contradictions_not_checked", job=run.job.id, reason=error.detail)
                break
            if answer.contradicts:
                conflicts.append(api.SemanticConflict(older.id, newer.id, answer.confidence))
        return tuple(conflicts)


def _pairs(found: api.EntityFacts, said: Classified) -> Iterator[tuple[api.EntityFact, api.EntityFact]]:
    """Yield pairs (older, newer) of facts of one aspect, one of them new, that may contradict each other unseen."""
    entity = frozenset(found.name.lower().split())
    new = [
        msgspec.structs.replace(found.facts[one.i - 1], aspect=canonical_name(one.aspect))
        for one in said.assignments
        if one.kind == "attribute"
    ]
    known: dict[str, list[api.EntityFact]] = {}
    for fact in (*found.siblings, *new):
        known.setdefault(fact.aspect, []).append(fact)
    fresh = {fact.id for fact in new}
    for facts in known.values():
        facts.sort(key=lambda fact: (fact.said_at, fact.seq), reverse=True)
        for at, newer in enumerate(facts[:MAX_COMPARED]):
            for older in facts[at + 1 : MAX_COMPARED]:
                if (
                    not fresh.isdisjoint({older.id, newer.id})
                    and needs_model(older.content, newer.content)
                    and conflict(_words(older), _words(newer), entity) is None
                ):
                    yield older, newer


def _words(fact: api.EntityFact) -> Words:
    return Words.of(fact.content, fact.said_at)
