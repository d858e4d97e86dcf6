"""Write the result of an extract job and complete the job in one transaction: all of it or nothing, and exactly once.

DESIGN.md, "What a run may write", describes the three checks that make this idempotent, and the bounds of the store
(``protection_reason``). Only ``domain.extraction.gates`` decides which proposals may be applied: in the transaction
that writes, on the memory as it is now, under the stricter of the writer's own flags and the run's mode.

Source: memory-pipeline.txt "Controlled Writes"; memory-system.txt "History and Audit Trail"; docs/decisions.md 16, 39;
docs/reliability.md R6 and R7; docs/security.md "Poisoned memories".
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import msgspec

from signet_actors.domain.extraction import gates
from signet_actors.domain.extraction.facts import DEFAULT_FACT_TYPE, FACT_TYPES, MAX_FACTS, short
from signet_actors.domain.extraction.gates import GateOutcome, PipelineFlags, PipelineMode, ProposalOutcome, Reason
from signet_actors.domain.extraction.proposals import DESTRUCTIVE, MAX_CANDIDATES, Proposal
from signet_actors.domain.jobs import EXTRACT
from signet_actors.domain.memories import AGGREGATE, DERIVED
from signet_actors.domain.normalization import collapsed, content_hash
from signet_actors.errors import InvalidRequest, SignetError
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Failure, Principal
from signet_actors.protocol.pipeline import REJECTED_COUNTER, AppliedProposal, ApplyProposals, ProposalsApplied
from signet_actors.protocol.writer import ForgetMemory, MemoryPatch, NewMemory, Vector
from signet_actors.store.command_context import CommandContext
from signet_actors.store.errors import ConstraintViolated
from signet_actors.store.writes import jobs as job_rows
from signet_actors.store.writes import memories as memory_rows
from signet_actors.store.writes import proposals as proposal_rows
from signet_actors.store.writes import provider_usage
from signet_actors.store.writes.leases import ActiveLease
from signet_actors.store.writes.memories import StoredRow
from signet_actors.store.writes.proposals import NewRun, ProposalRow
from signet_actors.writer.commands import deletion, graph_pipeline, history, leases, memories, memory_changes
from signet_actors.writer.commands.graph import Contributor
from signet_actors.writer.commands.graph_pipeline import GraphAdditions, StoredFact
from signet_actors.writer.commands.leases import MEMORY_GONE

SOURCE_CHANGED = "source_changed"
OTHER_SCOPE = "other_scope"
CONSTRAINT = "constraint"
OWN_SOURCE = "own_source"
FENCED = "fenced"
REASON_ERASED = "not kept: it may quote a memory that was erased"
"""The history's reason for a change whose own reason must not be stored."""
_MAX_REASONS = 32
_MAX_REJECTED_CHARS = 300


class ProposalResult(NamedTuple):
    """The result of a proposal. ``review``: a person may still decide otherwise."""

    outcome: ProposalOutcome
    reason: str | None = None
    memory_id: str | None = None
    version: int | None = None
    review: bool = False


class _Run(NamedTuple):
    """What all proposals of one report share."""

    command: ApplyProposals
    job: ActiveLease
    source: StoredRow
    flags: PipelineFlags
    outdated: bool
    seqs: dict[str, int]
    """Row numbers of the memories that the model was shown and that still exist, by id."""

    def shown(self, ordinal: int) -> set[str]:
        """Return the ids of the memories that the proposal's reason may quote."""
        proposal = self.command.proposals[ordinal]
        shown = set(self.command.shown[ordinal] if self.command.shown else ())
        return shown if proposal.target_id is None else shown | {proposal.target_id}

    def reason(self, ordinal: int) -> str | None:
        """Return the model's reason for its proposal, or None if it may quote a memory that was erased meanwhile.

        Departs: a reason may quote any memory that the model was shown. ``shown_memories`` records which these were; if
        one of them was erased already, the reason is not stored (docs/reliability.md R23).
        """
        return self.command.proposals[ordinal].reason if self.shown(ordinal) <= self.seqs.keys() else None


def apply(context: CommandContext, command: ApplyProposals) -> ProposalsApplied | Failure:
    """Give every proposal its outcome, history event and row, and complete the job.

    If the memory's text has changed since the job was leased, nothing of the old text is written; the job that follows
    reads the new one. A lost lease is counted and returned as a failure. Raises ``InvalidRequest``.
    """
    if len(command.proposals) > MAX_FACTS:
        raise InvalidRequest(f"a job has at most {MAX_FACTS} proposals", field="proposals")
    if command.shown and len(command.shown) != len(command.proposals):
        raise InvalidRequest("shown must be given for every proposal, or for none", field="shown")
    if any(len(ids) > MAX_CANDIDATES for ids in command.shown):
        raise InvalidRequest(f"a model is shown at most {MAX_CANDIDATES} memories", field="shown")
    if command.mode not in set(PipelineMode):
        raise InvalidRequest(f"unknown mode {command.mode!r}", field="mode")
    earlier = _earlier_report(context, command)
    if earlier is not None:
        return earlier
    try:
        job = leases.active_lease(context, command.job_id, command.lease_id)
    except SignetError as lost:
        count(context, {FENCED: 1})
        return Failure(lost.code, lost.detail)
    leases.require_kind(job, EXTRACT)
    source = None if job.memory_id is None else memory_rows.by_id(context.tx, job.memory_id)
    if source is None or source.is_deleted:
        leases.complete_leased(context, job, MEMORY_GONE)
        return ProposalsApplied(None, command.mode, [])
    flags = gates.restrict(
        gates.flags_of(context.config.memory.pipeline_v2),
        PipelineMode(command.mode),
        autonomous_frozen=command.autonomous_frozen,
    )
    mode = gates.pipeline_mode(flags)
    outdated = job.leased_hash not in {None, source.content_hash}
    run = _Run(command, job, source, flags, outdated, _seqs_of_shown(context, command))
    row = NewRun(
        id=command.run_id,
        job_id=command.job_id,
        memory_id=source.id,
        agent_id=source.agent_id,
        mode=mode,
        provider=command.provider,
        model=command.model,
        proposals=len(command.proposals),
        created_at=context.now,
    )
    proposal_rows.insert_run(context.tx, row)
    results = [_apply_one(context, run, ordinal) for ordinal in range(len(command.proposals))]
    added = _graph_additions(context, run, results)
    outcomes = Counter(result.outcome for result in results)
    proposal_rows.set_counts(context.tx, command.run_id, _json(outcomes))
    count(context, _counters(command, results))
    leases.complete_leased(context, job, _json(_result(command, mode, outcomes, added)))
    return ProposalsApplied(command.run_id, mode, results)


def _graph_additions(context: CommandContext, run: _Run, results: list[AppliedProposal]) -> GraphAdditions | None:
    """Store the relations of the run, where the pipeline may write; return what they added. They never fail the run."""
    command, flags = run.command, run.flags
    writes = gates.pipeline_mode(flags) in {PipelineMode.CONTROLLED_WRITE, PipelineMode.FULL}
    if run.outdated or not writes or flags.confirm_changes or not command.entities:
        return None
    if not context.config.memory.pipeline_v2.graph.enabled:
        return None
    facts = [
        StoredFact(made.memory_id, collapsed(fact.content), fact.confidence)
        for made in results
        if made.memory_id is not None
        # A short memory is a fact itself, and is not stored again.
        and (made.outcome in {ProposalOutcome.CREATED, ProposalOutcome.UPDATED} or made.memory_id == run.source.id)
        for fact in (command.proposals[made.ordinal].fact,)
    ]
    source = job_rows.job_memories(context.tx, [run.source.id])[run.source.id]
    memory = Contributor(source.id, run.source.seq, source.agent_id, source.content, source.created_at)
    added = graph_pipeline.persist(context, memory, command.entities, facts)
    count(context, {"graph.failed": int(added is None)})
    return added


def count(context: CommandContext, counts: dict[str, int]) -> None:
    """Increase the counters of the current UTC day."""
    for name, number in counts.items():
        if number:
            provider_usage.count(context.tx, context.now[:10], name, number)


def target_of(row: StoredRow | None) -> gates.Target | None:
    """Return the memory in the form that the gates need, or None if it was deleted."""
    if row is None or row.is_deleted:
        return None
    return gates.Target(id=row.id, version=row.version, pinned=bool(row.pinned), content=row.content)


def find_duplicate(context: CommandContext, like: StoredRow, text: str) -> str | None:
    """Return the id of the live memory with the content ``text`` in the scope of ``like``, which is no mere answer."""
    found = memories.live_by_hash(context, _memory(like, text), content_hash(text))
    return None if found is None or found.source_type == AGGREGATE else found.id


def _apply_one(context: CommandContext, run: _Run, ordinal: int) -> AppliedProposal:
    """Apply one proposal or not, and record either in history and proposals."""
    proposal = run.command.proposals[ordinal]
    text = collapsed(proposal.fact.content)
    verdict, protected = _evaluate(context, run, proposal, text)
    event_id, proposal_id = context.new_id(), context.new_id()
    metadata = gates.history_metadata(
        proposal,
        verdict,
        run_id=run.command.run_id,
        source_memory_id=run.source.id,
        extraction_model=run.command.model,
        fact_count=len(run.command.proposals),
        entity_count=len(run.command.entities),
    )
    metadata |= {"proposalId": proposal_id, "ordinal": ordinal, "extractionProvider": run.command.provider}
    if run.reason(ordinal) is None:
        del metadata["decisionReason"]
    by = Principal(changed_by=gates.changed_by(verdict), actor_type="pipeline")
    evidence = history.Evidence(event_id, run.command.job_id, metadata)
    if protected is not None:
        result = protected
    elif verdict.changes:
        result = _carry_out(context, run, ordinal, text, verdict, by, evidence)
    else:
        reason = None if verdict.reason is None else verdict.reason.value
        review = verdict.review_needed and verdict.outcome in {ProposalOutcome.REVIEW, ProposalOutcome.BLOCKED}
        result = ProposalResult(verdict.outcome, reason, verdict.existing_id, review=review)
    if result.outcome not in {ProposalOutcome.CREATED, ProposalOutcome.UPDATED, ProposalOutcome.DELETED}:
        if verdict.changes or protected is not None:
            metadata.pop("recordedReason", None)
            metadata |= _not_applied_metadata(result)
        reason = result.reason or result.outcome
        history.record(context, run.source.id, "none", by, reason=reason, evidence=evidence)
    _store(context, run, ordinal, proposal_id, event_id, result)
    return AppliedProposal(ordinal, result.outcome.value, result.reason, result.memory_id, result.version)


def _evaluate(
    context: CommandContext, run: _Run, proposal: Proposal, text: str
) -> tuple[GateOutcome, ProposalResult | None]:
    """Return the decision of the gates, and the result if the store's bounds stop a proposal that passed them."""
    target = memory_rows.by_id(context.tx, proposal.target_id) if proposal.target_id is not None else None
    if target is not None and target.agent_id != run.source.agent_id:
        target = None  # another agent's memory looks like a missing one
    verdict = gates.gate(
        proposal,
        run.flags,
        min_confidence=context.config.memory.pipeline_v2.extraction.min_confidence,
        target=target_of(target),
        duplicate_of=find_duplicate(context, run.source, text) if proposal.action in {"add", "update"} else None,
    )
    protected_because = (
        protection_reason(run.source, target) if proposal.action in DESTRUCTIVE and target is not None else None
    )
    if not verdict.changes and verdict.outcome is not ProposalOutcome.REVIEW:
        if run.outdated or protected_because is not None:  # an approval could not be carried out
            verdict = msgspec.structs.replace(verdict, review_needed=False)
        return verdict, None
    if run.outdated:
        return verdict, ProposalResult(ProposalOutcome.SKIPPED, SOURCE_CHANGED)
    return verdict, None if protected_because is None else ProposalResult(ProposalOutcome.BLOCKED, protected_because)


def protection_reason(source: StoredRow, target: StoredRow) -> str | None:
    """Return why no proposal may change this memory, whatever gates and approvals allow; None if one may.

    Protected are the source of the fact, every memory in another scope, and constraints. A person who wants the change
    makes it directly.
    """
    if target.id == source.id:
        return OWN_SOURCE
    if _scope(target) != _scope(source):
        return OTHER_SCOPE
    return CONSTRAINT if target.type == "constraint" else None


def _scope(row: StoredRow) -> tuple[str, str, str | None, str | None]:
    return row.agent_id, row.visibility, row.project, row.scope


def _carry_out(
    context: CommandContext,
    run: _Run,
    ordinal: int,
    text: str,
    verdict: GateOutcome,
    by: Principal,
    evidence: history.Evidence,
) -> ProposalResult:
    proposal = run.command.proposals[ordinal]
    if proposal.action == "add":
        return _add(context, run, ordinal, text, by, evidence)
    assert proposal.target_id is not None
    read = ReadScope(agent_id=run.source.agent_id, scope=run.source.scope)
    why = run.reason(ordinal) or REASON_ERASED
    if proposal.action == "delete":
        forgotten = memory_changes.forget(
            context,
            ForgetMemory(
                id=proposal.target_id,
                reason=why,
                principal=by,
                if_version=proposal.target_version,
                read=read,
            ),
            evidence=evidence,
        )
        if forgotten.status != "deleted":
            return ProposalResult(ProposalOutcome.SKIPPED, forgotten.status)
        return ProposalResult(verdict.outcome, None, forgotten.id, forgotten.new_version)
    patch = MemoryPatch(
        id=proposal.target_id,
        reason=why,
        content=text,
        if_version=proposal.target_version,
        vector=_vector(run.command, ordinal),
    )
    modified = memory_changes.modify(context, patch, by, read, evidence=evidence)
    if modified.status != "updated":
        return ProposalResult(ProposalOutcome.SKIPPED, modified.status, modified.duplicate_memory_id)
    return ProposalResult(verdict.outcome, None, modified.id, modified.new_version)


def _add(
    context: CommandContext, run: _Run, ordinal: int, text: str, by: Principal, evidence: history.Evidence
) -> ProposalResult:
    fact = run.command.proposals[ordinal].fact
    why = run.reason(ordinal) or REASON_ERASED
    derived = memories.Derived(gates.EXTRACTED_WHY, run.command.model, fact.confidence, evidence, why)
    return derive(context, run.source, text, fact.type, by, derived, _vector(run.command, ordinal))


def derive(
    context: CommandContext,
    source: StoredRow,
    text: str,
    type_name: str,
    by: Principal,
    derived: memories.Derived,
    vector: Vector | None = None,
) -> ProposalResult:
    """Insert a new memory in the scope of its source, never pinned or tagged: prefixes in the text have no effect."""
    memory = _memory(
        source,
        text,
        type=type_name if type_name in FACT_TYPES else DEFAULT_FACT_TYPE,
        importance=min(1.0, max(0.0, derived.confidence)),
        vector=vector,
    )
    digest = content_hash(text)
    try:
        with context.tx.savepoint():
            deletion.make_room(context, memories.live_by_hash(context, memory, digest), memory.source_type, by)
            made = memories.insert(context, memory, by, digest, derived=derived)
            context.insert_buffer.flush()
    except ConstraintViolated:
        context.insert_buffer.discard()
        context.row_cache.clear()
        return ProposalResult(ProposalOutcome.DEDUPED, Reason.DUPLICATE_CONTENT, find_duplicate(context, source, text))
    return ProposalResult(ProposalOutcome.CREATED, None, made.id, made.version)


def _memory(source: StoredRow, text: str, **fields: Any) -> NewMemory:
    fields.setdefault("type", DEFAULT_FACT_TYPE)
    fields.setdefault("importance", 0.0)
    return NewMemory(
        content=text,
        who=gates.PIPELINE_ACTOR,
        project=source.project,
        scope=source.scope,
        agent_id=source.agent_id,
        visibility=source.visibility,
        source_type=DERIVED,
        source_id=source.id,
        **fields,
    )


def _vector(command: ApplyProposals, ordinal: int) -> Vector | None:
    frame = command.vectors[ordinal] if ordinal < len(command.vectors) else -1
    if frame < 0:
        return None
    codes = command.token_codes[frame] if frame < len(command.token_codes) else None
    return Vector(command.vector_model, command.dimensions, frame, codes)


def _not_applied_metadata(result: ProposalResult) -> dict[str, object]:
    """Return the event metadata of a proposal that passed the gates and was not applied all the same."""
    key = {ProposalOutcome.SKIPPED: "skippedReason", ProposalOutcome.BLOCKED: "blockedReason"}.get(
        result.outcome, "recordedReason"
    )
    metadata: dict[str, object] = {"outcome": result.outcome, key: result.reason, "reviewNeeded": result.review}
    if result.memory_id is not None:
        metadata["dedupedExistingId"] = result.memory_id
    return metadata


def _store(
    context: CommandContext, run: _Run, ordinal: int, proposal_id: str, event_id: str, result: ProposalResult
) -> None:
    proposal, reason = run.command.proposals[ordinal], run.reason(ordinal)
    seq = context.insert_buffer.next_seq("memory_proposals")
    context.insert_buffer.add(
        proposal_rows.PROPOSALS,
        ProposalRow(
            seq=seq,
            id=proposal_id,
            run_id=run.command.run_id,
            job_id=run.command.job_id,
            ordinal=ordinal,
            memory_id=run.source.id,
            action=proposal.action,
            outcome=result.outcome,
            reason=result.reason,
            rationale=reason,
            fact_content=proposal.fact.content,
            fact_type=proposal.fact.type,
            fact_confidence=proposal.fact.confidence,
            confidence=proposal.confidence,
            target_id=proposal.target_id,
            target_version=proposal.target_version,
            result_memory_id=result.memory_id,
            result_version=result.version,
            history_id=event_id,
            syntactic_contradiction=proposal.syntactic_contradiction,
            semantic_contradiction=proposal.semantic_contradiction,
            review_state="pending" if result.review else None,
            created_at=context.now,
        ),
    )
    if reason is not None:
        for memory_id in sorted(run.shown(ordinal)):
            context.insert_buffer.add(proposal_rows.SHOWN, (seq, run.seqs[memory_id]))


def _seqs_of_shown(context: CommandContext, command: ApplyProposals) -> dict[str, int]:
    ids = {memory_id for shown in command.shown for memory_id in shown}
    ids |= {proposal.target_id for proposal in command.proposals if proposal.target_id is not None}
    return memory_rows.seqs_of(context.tx, ids)


def _earlier_report(context: CommandContext, command: ApplyProposals) -> ProposalsApplied | None:
    """Return the earlier reply if the same run is reported again after its job was completed."""
    mode = proposal_rows.mode_of_run(context.tx, command.run_id, command.job_id)
    if mode is None:
        return None
    return ProposalsApplied(command.run_id, mode, proposal_rows.outcomes(context.tx, command.run_id))


def _counters(command: ApplyProposals, results: list[AppliedProposal]) -> dict[str, int]:
    counts = Counter(
        {
            "runs": 1,
            "facts": len(command.proposals),
            "entities": len(command.entities),
            "warnings": len(command.warnings),
            "repaired": command.repaired,
            "dropped": command.dropped,
        }
    )
    for result in results:
        counts[f"outcome.{result.outcome}"] += 1
        if result.reason is not None:
            counts[f"reason.{result.reason}"] += 1
    counts.update(f"flagged.{proposal.suspicion}" for proposal in command.proposals if proposal.suspicion is not None)
    for reason, number in list(command.rejected_counts.items())[:_MAX_REASONS]:
        counts[f"{REJECTED_COUNTER}{reason}"] += number
    return dict(counts)


def _result(
    command: ApplyProposals, mode: PipelineMode, outcomes: Counter[str], added: GraphAdditions | None
) -> dict[str, object]:
    """Return the result of the job.

    Departs: it counts the facts and does not repeat them. Their text is only in ``memory_proposals``, so that erasing a
    memory has one place to clean (docs/reliability.md R23). Of rejected facts, which are nowhere else, it contains the
    beginning: like the relations, it is erased with the memory that they were extracted from.
    """
    warnings = [*command.warnings, *(warning for proposal in command.proposals for warning in proposal.warnings)]
    return {
        "runId": command.run_id,
        "mode": mode,
        "provider": command.provider,
        "model": command.model,
        "facts": len(command.proposals),
        "entities": command.entities,
        "warnings": warnings,
        "outcomes": outcomes,
        "graph": added,
        "repaired": command.repaired,
        "dropped": command.dropped,
        "turnedAway": command.rejected_counts,
        "rejected": [
            {
                "content": short(one.fact.content, _MAX_REJECTED_CHARS),
                "type": one.fact.type,
                "confidence": one.fact.confidence,
                "reason": one.reason,
            }
            for one in command.rejected[:MAX_FACTS]
        ],
    }


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
