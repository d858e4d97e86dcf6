"""Which function serves which command."""

from __future__ import annotations

from typing import Any, Final, Union

from signet_actors.features.aggregate_recall.api import SaveAnswer
from signet_actors.features.checkpoints.api import RecordCheckpoint
from signet_actors.features.classification.api import StoreClassification
from signet_actors.features.communities.api import DropCommunities, GetGraphStamp, StoreCommunities
from signet_actors.features.duplicates.api import MergePair, NoteCompared
from signet_actors.features.entities.api import MERGE, UNMERGE
from signet_actors.features.handlers import encoding, handlers
from signet_actors.features.projection.api import StoreProjection
from signet_actors.features.repairs.api import REEMBED, RELEASE, EnterRepair, MeasureStore, RecordRepair
from signet_actors.features.runs.api import UNDO_RUN
from signet_actors.protocol import leases as lease_messages
from signet_actors.protocol import pipeline as pipeline_messages
from signet_actors.protocol import session_summaries as summary_messages
from signet_actors.protocol import writer as messages
from signet_actors.protocol.message import Asked, message_of
from signet_actors.protocol.sessions import RecordSessions, SetBypass
from signet_actors.protocol.transcripts import ForgetTranscript, StoreTurns
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import agents
from signet_actors.writer.commands import (
    answers,
    chunks,
    duplicates,
    embeddings,
    entity_merges,
    graph_pipeline,
    hints,
    import_memories,
    jobs,
    leases,
    memories,
    memory_changes,
    proposals,
    provider_usage,
    purge,
    repairs,
    reviews,
    session_summaries,
    sessions,
    supersession,
    transcripts,
)


def _remember(context: CommandContext, command: messages.Remember) -> messages.Remembered | messages.ChunksRemembered:
    later = chunks.of_later_compaction(context, command.memory)
    if later is not None:
        return later
    if command.memory.source_id is not None:
        group = chunks.by_source(context, command.memory)
        if group is not None:
            return group
    key = command.memory.idempotency_key
    if key is not None:
        chunks.refuse_chunked_key(context, key, command.memory)
    stored = memories.remember(context, command.memory, command.principal)
    memory_changes.replace_summary(context, command.memory, command.principal, (stored.id,))
    is_newly_pinned = stored.deduped and command.memory.pinned and not stored.pinned
    if is_newly_pinned and not memories.is_sent_again(context, command.memory):
        return memory_changes.pin(context, stored, command.memory.agent_id, command.principal)
    return stored


def _remember_chunks(
    context: CommandContext, command: messages.RememberChunks
) -> messages.ChunksRemembered | messages.Remembered:
    return chunks.of_later_compaction(context, command.memory) or chunks.remember(context, command)


def _modify(context: CommandContext, command: messages.ModifyMemory) -> messages.Modified:
    return memory_changes.modify(context, command.patch, command.principal, command.read)


def _modify_many(context: CommandContext, command: messages.ModifyMany) -> messages.ManyModified:
    return messages.ManyModified([_modify_one(context, patch, command) for patch in command.patches])


def _modify_one(
    context: CommandContext, patch: messages.MemoryPatch, command: messages.ModifyMany
) -> messages.Modified:
    others = {other.id for other in command.patches}
    context.heartbeat()
    with context.tx.savepoint():
        return memory_changes.modify(context, patch, command.principal, command.read, without=others)


HANDLERS: Final[dict[type, Any]] = {
    **handlers("writes"),
    messages.Remember: _remember,
    messages.RememberChunks: _remember_chunks,
    messages.ImportMemories: import_memories.import_memories,
    messages.ModifyMemory: _modify,
    messages.ModifyMany: _modify_many,
    messages.ForgetMemory: memory_changes.forget_with_facts,
    messages.ForgetMany: memory_changes.forget_many,
    messages.RecoverMemory: memory_changes.recover_with_facts,
    messages.PurgeStep: purge.step,
    lease_messages.LeaseJobs: leases.lease,
    lease_messages.RenewLease: leases.renew,
    lease_messages.CompleteJob: leases.complete,
    lease_messages.FailJob: leases.fail,
    pipeline_messages.ReleaseJobs: leases.release,
    lease_messages.ReapLeases: jobs.reap,
    pipeline_messages.RequeueJobs: jobs.requeue,
    pipeline_messages.ReconcileJobs: jobs.reconcile,
    pipeline_messages.ApplyProposals: proposals.apply,
    pipeline_messages.SettleAttributes: supersession.sweep,
    StoreClassification: graph_pipeline.classify,
    pipeline_messages.StoreHints: hints.store,
    pipeline_messages.StoreVector: embeddings.store_vector,
    pipeline_messages.FindUnembedded: embeddings.find_unembedded,
    pipeline_messages.StoreSecondVectors: embeddings.store_second_vectors,
    pipeline_messages.ApproveProposal: reviews.approve,
    pipeline_messages.RejectProposal: reviews.reject,
    message_of(RELEASE): encoding(repairs.release_leases),
    message_of(REEMBED): encoding(repairs.reembed),
    MergePair: encoding(duplicates.merge),
    NoteCompared: encoding(duplicates.note_compared),
    message_of(UNDO_RUN): encoding(reviews.undo),
    SaveAnswer: encoding(answers.save),
    message_of(MERGE): encoding(entity_merges.merge),
    message_of(UNMERGE): encoding(entity_merges.unmerge),
    pipeline_messages.ReserveCalls: provider_usage.reserve,
    pipeline_messages.RecordUsage: provider_usage.record,
    lease_messages.AdvanceHighWaterMark: purge.advance_high_water_mark,
    RecordSessions: sessions.record,
    SetBypass: sessions.set_bypass,
    StoreTurns: transcripts.store,
    ForgetTranscript: transcripts.forget,
    summary_messages.StoreSummary: session_summaries.store,
    summary_messages.RecordNote: session_summaries.record_note,
    summary_messages.FindForgottenNotes: session_summaries.find_forgotten_notes,
    summary_messages.DropNotes: session_summaries.drop_notes,
    summary_messages.EndIdleSessions: session_summaries.end_idle,
}
MAILBOX: Final[Any] = Union[messages.WriterCommand, *HANDLERS]
"""What the writer is sent."""

ON_FULL_DISK = (
    messages.ForgetMemory,
    messages.ForgetMany,
    ForgetTranscript,
    messages.PurgeStep,
    EnterRepair,
    RecordRepair,
    lease_messages.ReapLeases,
    lease_messages.AdvanceHighWaterMark,
    SetBypass,
)
"""The commands that are tried even while the disk is full: what frees space, and that memory is off for a session."""

_REPEATABLE = (
    EnterRepair,
    MeasureStore,
    NoteCompared,
    StoreProjection,
    pipeline_messages.ReconcileJobs,
    pipeline_messages.SettleAttributes,
    GetGraphStamp,
    StoreCommunities,
    DropCommunities,
    pipeline_messages.FindUnembedded,
    pipeline_messages.StoreSecondVectors,
    RecordSessions,
    SetBypass,
    RecordCheckpoint,
    summary_messages.FindForgottenNotes,
    summary_messages.DropNotes,
    summary_messages.EndIdleSessions,
)
"""The commands that are safe to repeat, and that write nothing when nothing is missing."""


def _storing_agent(command: messages.TransactionCommand) -> str | None:
    """Return the agent for which a request stores something; None for a request that finds only what is readable."""
    if isinstance(command, messages.Remember | messages.RememberChunks):
        return command.memory.agent_id
    if isinstance(command, StoreTurns | ForgetTranscript):
        return command.agent_id
    return command.caller.agent_id if isinstance(command, Asked) else None


def keeps_reply(command: messages.TransactionCommand, reply: messages.WriterReply) -> bool:
    """Return whether the reply is stored for retries.

    A ``ForgetMany`` without targets only asks for an earlier reply; storing its own would use up the client's key. One
    that has completed no target is sent again.
    """
    if isinstance(command, _REPEATABLE):
        return False
    return not isinstance(reply, messages.ManyForgotten) or bool(reply.results)


def execute(context: CommandContext, command: messages.TransactionCommand) -> messages.WriterReply:
    """Run the command's handler. Raises ``SignetError`` for a refusal; the caller owns transaction and savepoint."""
    handler = HANDLERS[type(command)]
    agent_id = _storing_agent(command)
    if agent_id is not None:
        agents.refuse_archived(context, agent_id)
    if isinstance(command, lease_messages.JobReport):
        return leases.report(context, command, handler)
    reply: messages.WriterReply = handler(context, command)
    return reply
