"""Decisions of people about a run: approve or reject a proposal, or undo a whole run.

Repeating a decision has no further effect. A change that was made meanwhile is never overwritten: an approval requires
the target as the model saw it, an undo requires each memory as the run left it.

Source: docs/decisions.md 16; memory-pipeline.txt "Controlled Writes".
Departs: a proposal that was blocked only because updates and deletions are switched off can be approved too: the switch
restricts the pipeline, not people. The bounds of ``protection_reason`` hold for approvals as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from signet_actors.domain.extraction import gates
from signet_actors.domain.extraction.facts import Fact
from signet_actors.domain.extraction.gates import ProposalOutcome, Reason
from signet_actors.domain.extraction.proposals import Proposal
from signet_actors.domain.normalization import collapsed
from signet_actors.domain.permissions import PERSON_ACTOR_TYPE
from signet_actors.errors import NotFound
from signet_actors.features.runs.api import UndoReply, UndoRequest, UndoResult
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Asked, Principal
from signet_actors.protocol.pipeline import ApproveProposal, RejectProposal, ReviewDecided
from signet_actors.protocol.writer import ForgetMemory, MemoryPatch, RecoverMemory
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import history as history_rows
from signet_actors.store.writes import memories as memory_rows
from signet_actors.store.writes import proposals as proposal_rows
from signet_actors.store.writes.memories import StoredRow
from signet_actors.store.writes.proposals import ProposalRow
from signet_actors.writer.commands import graph_pipeline, history, memories, memory_changes
from signet_actors.writer.commands.memories import REMEMBERED_AGAIN
from signet_actors.writer.commands.proposals import count, derive, find_duplicate, protection_reason, target_of

RUN_UNDONE = "run_undone"
"""The note of a proposal that was waiting for review when its run was undone."""
APPROVED = "approved in review"
"""The history's reason for an approval without a reason."""


class _Reviewable(NamedTuple):
    """A proposal that can be reviewed, with its source memory and its target."""

    row: ProposalRow
    source: StoredRow
    target: StoredRow | None


def approve(context: CommandContext, command: ApproveProposal) -> ReviewDecided:
    """Apply the proposal on behalf of the person, or return a status that tells why it stays pending."""
    found = _find_reviewable(context, command.id, command.read)
    if isinstance(found, ReviewDecided):
        return found
    row, source, target = found
    if row.review_state != "pending":
        return _already_decided(row, "approved")
    if command.principal.actor_type != PERSON_ACTOR_TYPE:
        return ReviewDecided(row.id, "autonomous_denied", memory_id=row.target_id)
    if row.fact_content is None:
        return ReviewDecided(row.id, "content_gone", memory_id=row.target_id)
    if source.is_deleted:
        return ReviewDecided(row.id, "source_gone", memory_id=row.target_id)
    text = collapsed(command.content or row.fact_content)
    if row.action == "delete" and command.content is not None:
        return ReviewDecided(row.id, "deletion_has_no_text", memory_id=row.target_id)
    if row.action == "add":
        return _approve_addition(context, row, source, text, command)
    verdict = gates.gate_approved(
        _proposal(row, text),
        gates.flags_of(context.config.memory.pipeline_v2),
        target=_as_proposed(context, row, target),
        duplicate_of=find_duplicate(context, target, text) if target is not None and row.action == "update" else None,
    )
    if verdict.reason is not None or target is None:
        reason = verdict.reason or Reason.TARGET_GONE
        version = None if target is None else target.version
        return ReviewDecided(row.id, reason.value, memory_id=row.target_id, current_version=version)
    protected_because = protection_reason(source, target)
    if protected_because is not None:
        return ReviewDecided(row.id, protected_because, memory_id=row.target_id, current_version=target.version)
    evidence = _evidence(context, row, {"review": "approved"})
    why = command.reason or APPROVED
    new_version: int | None
    if row.action == "delete":
        forgotten = memory_changes.forget(
            context,
            ForgetMemory(
                id=target.id, reason=why, principal=command.principal, if_version=target.version, read=command.read
            ),
            evidence=evidence,
        )
        status, new_version = forgotten.status, forgotten.new_version
    else:
        patch = MemoryPatch(id=target.id, reason=why, content=text, if_version=target.version)
        modified = memory_changes.modify(context, patch, command.principal, command.read, evidence=evidence)
        status, new_version = modified.status, modified.new_version
    if status not in {"deleted", "updated"}:
        return ReviewDecided(row.id, status, memory_id=target.id, current_version=target.version)
    _mark_approved(context, row, command, target.id, new_version)
    return ReviewDecided(
        row.id, "approved", memory_id=target.id, current_version=target.version, new_version=new_version
    )


def _approve_addition(
    context: CommandContext, row: ProposalRow, source: StoredRow, text: str, command: ApproveProposal
) -> ReviewDecided:
    """Store the fact as a new memory beside its source."""
    verdict = gates.gate_approved(
        _proposal(row, text),
        gates.flags_of(context.config.memory.pipeline_v2),
        target=None,
        duplicate_of=find_duplicate(context, source, text),
    )
    if verdict.reason is not None:
        return ReviewDecided(row.id, verdict.reason.value, memory_id=verdict.existing_id)
    model = proposal_rows.model_of_run(context.tx, row.run_id) or ""
    evidence = _evidence(context, row, {"review": "approved"})
    why = command.reason or APPROVED
    derived = memories.Derived(gates.EXTRACTED_WHY, model, row.fact_confidence, evidence, why)
    made = derive(context, source, text, row.fact_type, command.principal, derived)
    if made.outcome is not ProposalOutcome.CREATED:
        return ReviewDecided(row.id, made.reason or made.outcome.value, memory_id=made.memory_id)
    _mark_approved(context, row, command, made.memory_id, made.version)
    return ReviewDecided(row.id, "approved", memory_id=made.memory_id, new_version=made.version)


def _mark_approved(
    context: CommandContext, row: ProposalRow, command: ApproveProposal, memory_id: str | None, version: int | None
) -> None:
    """Close the proposal as approved, and record the memory that came of it."""
    proposal_rows.mark_approved(
        context.tx,
        row.id,
        outcome=ProposalOutcome.APPROVED,
        reviewed_by=command.principal.changed_by,
        now=context.now,
        memory_id=memory_id,
        version=version,
    )
    count(context, {"review.approved": 1})


def reject(context: CommandContext, command: RejectProposal) -> ReviewDecided:
    """Close the proposal as rejected."""
    found = _find_reviewable(context, command.id, command.read)
    if isinstance(found, ReviewDecided):
        return found
    row, _, target = found
    if row.review_state != "pending":
        return _already_decided(row, "rejected")
    evidence = _evidence(context, row, {"review": "rejected"})
    _reject(context, row, command.principal, command.reason or "rejected in review", evidence)
    count(context, {"review.rejected": 1})
    return ReviewDecided(
        row.id, "rejected", memory_id=row.target_id, current_version=None if target is None else target.version
    )


def undo(context: CommandContext, asked: Asked[UndoRequest]) -> UndoReply:
    """Undo every change of the run, and reject what of it is still pending review. Raises NotFound.

    Changes that cannot be undone are kept; the results name each with its reason: changed_since, remembered_since,
    gone, recovered_since, duplicate_content_hash, retention_expired, history_purged, approved_by_a_person.

    Departs: what a person approved is kept too, because the run did not do that.
    """
    run_id, principal = asked.caller.path["run"], asked.caller.principal
    read = asked.caller.read
    run = proposal_rows.run(context.tx, run_id)
    if run is None or not _may_see(context, run.memory_id, run.agent_id, read):
        raise NotFound("Run not found")
    rows = proposal_rows.of_run(context.tx, run_id)
    if run.undone_at is not None:
        results = [result for row in rows if (result := _earlier_undo_result(row)) is not None]
        return _undo_reply(run_id, "already_undone", results, sum(row.undo_note == RUN_UNDONE for row in rows))
    results = [result for row in rows if (result := _undo(context, row, principal, read)) is not None]
    source = memory_rows.by_id(context.tx, run.memory_id)
    if source is not None:
        graph_pipeline.take_back(context, run.job_id, source)
    waiting = [row for row in rows if row.review_state == "pending"]
    for row in waiting:
        evidence = _evidence(context, row, {"review": "rejected", "undo": True})
        _reject(context, row, principal, _undo_reason(row), evidence, note=RUN_UNDONE)
    proposal_rows.mark_run_undone(context.tx, run_id, undone_at=context.now, undone_by=principal.changed_by)
    reply = _undo_reply(run_id, "undone", results, len(waiting))
    count(context, {"undone": reply.undone, "review.closed": len(waiting)})
    return reply


def _undo_reply(
    run_id: str, status: Literal["undone", "already_undone"], results: list[UndoResult], reviews_closed: int
) -> UndoReply:
    undone = sum(result.status == "undone" for result in results)
    return UndoReply(run_id, status, undone, len(results) - undone, results[::-1], reviews_closed)


def _reject(
    context: CommandContext,
    row: ProposalRow,
    principal: Principal,
    reason: str,
    evidence: history.Evidence,
    note: str | None = None,
) -> None:
    """Close the proposal as rejected, and record the reason in the history of its source memory."""
    history.record(context, row.memory_id, "none", principal, reason=reason, evidence=evidence)
    proposal_rows.mark_rejected(
        context.tx,
        row.id,
        outcome=ProposalOutcome.REJECTED,
        reviewed_by=principal.changed_by,
        now=context.now,
        undo_note=note,
    )


def _find_reviewable(context: CommandContext, proposal_id: str, read: ReadScope) -> _Reviewable | ReviewDecided:
    """Return the proposal with its memories; a target that the caller may not see, or that was purged, is None."""
    row = proposal_rows.by_id(context.tx, proposal_id)
    if row is None:
        return ReviewDecided(proposal_id, "not_found")
    source = memory_rows.readable_by_id(context.tx, row.memory_id, read)
    if source is None:
        return ReviewDecided(proposal_id, "not_found")
    if row.review_state is None:
        return ReviewDecided(proposal_id, "not_reviewable")
    target = None if row.target_id is None else memory_rows.readable_by_id(context.tx, row.target_id, read)
    return _Reviewable(row, source, target)


def _already_decided(row: ProposalRow, wanted: str) -> ReviewDecided:
    same = row.review_state == wanted
    return ReviewDecided(
        row.id,
        wanted if same else "decided_otherwise",
        already=same,
        memory_id=row.target_id or row.result_memory_id,
        new_version=row.result_version,
    )


def _proposal(row: ProposalRow, text: str) -> Proposal:
    return Proposal(
        action=row.action,
        fact=Fact(text, row.fact_type, row.fact_confidence),
        confidence=row.confidence,
        reason=row.rationale or "",
        target_id=row.target_id,
        target_version=row.target_version,
        syntactic_contradiction=bool(row.syntactic_contradiction),
        semantic_contradiction=None if row.semantic_contradiction is None else bool(row.semantic_contradiction),
    )


def _evidence(context: CommandContext, row: ProposalRow, details: dict[str, object]) -> history.Evidence:
    metadata: dict[str, object] = {
        "runId": row.run_id,
        "proposalId": row.id,
        "ordinal": row.ordinal,
        "proposedAction": row.action,
        "targetMemoryId": row.target_id,
        "sourceMemoryId": row.memory_id,
        **details,
    }
    return history.Evidence(context.new_id(), row.job_id, metadata)


def _may_see(context: CommandContext, memory_id: str, agent_id: str, read: ReadScope) -> bool:
    """Return whether the caller may see the run's memory; once it is purged, only its own agent may."""
    if memory_rows.by_id(context.tx, memory_id) is None:
        return agent_id == read.agent_id
    return memory_rows.readable_by_id(context.tx, memory_id, read) is not None


def _earlier_undo_result(row: ProposalRow) -> UndoResult | None:
    """Return the result of an earlier undo."""
    if row.outcome == ProposalOutcome.UNDONE:
        return UndoResult(row.ordinal, row.action, "undone", row.result_memory_id, None)
    if row.undo_note not in {None, RUN_UNDONE}:
        return UndoResult(row.ordinal, row.action, "kept", row.result_memory_id, row.undo_note)
    return None


def _undo(context: CommandContext, row: ProposalRow, principal: Principal, read: ReadScope) -> UndoResult | None:
    """Undo the proposal's change, or keep it for the reason given; return None if it had changed nothing."""
    undo_change = _UNDO_BY_OUTCOME.get(row.outcome)
    if undo_change is None:
        return None
    why = undo_change(context, row, principal, read)
    if why is None:
        proposal_rows.set_outcome(context.tx, row.id, ProposalOutcome.UNDONE)
        return UndoResult(row.ordinal, row.action, "undone", row.result_memory_id, None)
    proposal_rows.set_undo_note(context.tx, row.id, why)
    return UndoResult(row.ordinal, row.action, "kept", row.result_memory_id, why)


def _result(context: CommandContext, row: ProposalRow, read: ReadScope) -> StoredRow | None:
    return None if row.result_memory_id is None else memory_rows.readable_by_id(context.tx, row.result_memory_id, read)


def _version_before_moves(context: CommandContext, row: ProposalRow, memory: StoredRow) -> int:
    """Return the memory's version without those that only gave it another project after the proposal.

    Once the proposal's event was purged they are not known, and count.
    """
    event = history_rows.former_content(context.tx, row.job_id, row.history_id)
    return memory.version - (0 if event is None else history_rows.moves_after(context.tx, memory.id, event[1]))


def _as_proposed(context: CommandContext, row: ProposalRow, target: StoredRow | None) -> gates.Target | None:
    """Return the target for the gates; that it moved since is no change of what the model saw."""
    return None if target is None else target_of(target._replace(version=_version_before_moves(context, row, target)))


def _undo_add(context: CommandContext, row: ProposalRow, principal: Principal, read: ReadScope) -> str | None:
    made = _result(context, row, read)
    if made is None or made.is_deleted:
        return "gone"
    if made.update_count or made.content_version != row.result_version:
        return "changed_since"
    if _remembered_again_since(context, made.id):
        return "remembered_since"
    command = ForgetMemory(
        id=made.id, reason=_undo_reason(row), principal=principal, force=False, if_version=made.version, read=read
    )
    status = memory_changes.forget(context, command, evidence=_evidence(context, row, {"undo": True})).status
    return None if status == "deleted" else status


def _remembered_again_since(context: CommandContext, memory_id: str, since: int = 0) -> bool:
    """Return whether the memory's text was remembered again after that event, so that a caller relies on it."""
    return history_rows.was_noted_after(context.tx, memory_id, REMEMBERED_AGAIN, since)


def _undo_update(context: CommandContext, row: ProposalRow, principal: Principal, read: ReadScope) -> str | None:
    changed = _result(context, row, read)
    if changed is None or changed.is_deleted:
        return "gone"
    if _version_before_moves(context, row, changed) != row.result_version:
        return "changed_since"
    before = history_rows.former_content(context.tx, row.job_id, row.history_id)
    if before is None or before[0] is None:
        return "history_purged"
    if _remembered_again_since(context, changed.id, since=before[1]):
        return "remembered_since"
    patch = MemoryPatch(id=changed.id, reason=_undo_reason(row), content=before[0], if_version=changed.version)
    evidence = _evidence(context, row, {"undo": True})
    status = memory_changes.modify(context, patch, principal, read, evidence=evidence).status
    return None if status == "updated" else status


def _undo_delete(context: CommandContext, row: ProposalRow, principal: Principal, read: ReadScope) -> str | None:
    deleted = _result(context, row, read)
    if deleted is None:
        return "gone"
    if not deleted.is_deleted:
        return "recovered_since"
    if deleted.content_version >= (row.result_version or 0):
        return "changed_since"
    command = RecoverMemory(id=deleted.id, reason=_undo_reason(row), principal=principal, read=read)
    status = memory_changes.recover(context, command, evidence=_evidence(context, row, {"undo": True})).status
    return None if status == "recovered" else status


_UNDO_BY_OUTCOME: dict[str, Callable[[CommandContext, ProposalRow, Principal, ReadScope], str | None]] = {
    ProposalOutcome.CREATED: _undo_add,
    ProposalOutcome.UPDATED: _undo_update,
    ProposalOutcome.DELETED: _undo_delete,
    ProposalOutcome.APPROVED: lambda *_: "approved_by_a_person",
}


def _undo_reason(row: ProposalRow) -> str:
    return f"undo of run {row.run_id}"
