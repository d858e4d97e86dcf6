"""Which function serves which command."""

from __future__ import annotations

from typing import Any, Final, Union

from signet_actors.features.checkpoints.api import RecordCheckpoint
from signet_actors.features.handlers import handlers
from signet_actors.protocol.leases import (
    AdvanceHighWaterMark,
    CompleteJob,
    FailJob,
    JobReport,
    LeaseJobs,
    ReapLeases,
    RenewLease,
)
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Principal
from signet_actors.protocol.pipeline import (
    ApplyProposals,
    ApproveProposal,
    FindUnembedded,
    ReconcileJobs,
    RecordUsage,
    RejectProposal,
    ReleaseJobs,
    RequeueJobs,
    ReserveCalls,
    StoreHints,
    StoreSecondVectors,
    StoreVector,
    UndoRun,
)
from signet_actors.protocol.session_summaries import (
    DropNotes,
    EndIdleSessions,
    FindForgottenNotes,
    RecordNote,
    StoreSummary,
)
from signet_actors.protocol.sessions import RecordSessions, SetBypass
from signet_actors.protocol.transcripts import ForgetTranscript, StoreTurns
from signet_actors.protocol.writer import (
    ChunksRemembered,
    ForgetMany,
    ForgetMemory,
    ImportMemories,
    ManyForgotten,
    ManyModified,
    MemoryPatch,
    Modified,
    ModifyMany,
    ModifyMemory,
    PurgeStep,
    RecoverMemory,
    Remember,
    RememberChunks,
    Remembered,
    TransactionCommand,
    WriterCommand,
    WriterReply,
)
from signet_actors.store.command_context import CommandContext
from signet_actors.writer.commands import (
    batch_forget,
    chunks,
    embeddings,
    hints,
    import_memories,
    jobs,
    leases,
    memories,
    memory_changes,
    proposals,
    provider_usage,
    purge,
    reviews,
    session_summaries,
    sessions,
    transcripts,
)


def _remember(context: CommandContext, command: Remember) -> Remembered | ChunksRemembered:
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


def _remember_chunks(context: CommandContext, command: RememberChunks) -> ChunksRemembered | Remembered:
    return chunks.of_later_compaction(context, command.memory) or chunks.remember(context, command)


def _modify(context: CommandContext, command: ModifyMemory) -> Modified:
    return memory_changes.modify(context, command.patch, command.principal, command.read)


def _modify_many(context: CommandContext, command: ModifyMany) -> ManyModified:
    return ManyModified([_modify_one(context, patch, command.principal, command.read) for patch in command.patches])


def _modify_one(context: CommandContext, patch: MemoryPatch, principal: Principal, read: ReadScope) -> Modified:
    context.heartbeat()
    with context.tx.savepoint():
        return memory_changes.modify(context, patch, principal, read)


HANDLERS: Final[dict[type, Any]] = {
    **handlers("writes"),
    Remember: _remember,
    RememberChunks: _remember_chunks,
    ImportMemories: import_memories.import_memories,
    ModifyMemory: _modify,
    ModifyMany: _modify_many,
    ForgetMemory: memory_changes.forget_with_facts,
    ForgetMany: batch_forget.forget,
    RecoverMemory: memory_changes.recover_with_facts,
    PurgeStep: purge.step,
    LeaseJobs: leases.lease,
    RenewLease: leases.renew,
    CompleteJob: leases.complete,
    FailJob: leases.fail,
    ReleaseJobs: leases.release,
    ReapLeases: jobs.reap,
    RequeueJobs: jobs.requeue,
    ReconcileJobs: jobs.reconcile,
    ApplyProposals: proposals.apply,
    StoreHints: hints.store,
    StoreVector: embeddings.store_vector,
    FindUnembedded: embeddings.find_unembedded,
    StoreSecondVectors: embeddings.store_second_vectors,
    ApproveProposal: reviews.approve,
    RejectProposal: reviews.reject,
    UndoRun: reviews.undo,
    ReserveCalls: provider_usage.reserve,
    RecordUsage: provider_usage.record,
    AdvanceHighWaterMark: purge.advance_high_water_mark,
    RecordSessions: sessions.record,
    SetBypass: sessions.set_bypass,
    StoreTurns: transcripts.store,
    ForgetTranscript: transcripts.forget,
    StoreSummary: session_summaries.store,
    RecordNote: session_summaries.record_note,
    FindForgottenNotes: session_summaries.find_forgotten_notes,
    DropNotes: session_summaries.drop_notes,
    EndIdleSessions: session_summaries.end_idle,
}
MAILBOX: Final[Any] = Union[WriterCommand, *HANDLERS]
"""What the writer is sent."""

ON_FULL_DISK = (ForgetMemory, ForgetMany, ForgetTranscript, PurgeStep, ReapLeases, AdvanceHighWaterMark, SetBypass)
"""The commands that are tried even while the disk is full: what frees space, and that memory is off for a session."""

_REPEATABLE = (
    ReconcileJobs,
    FindUnembedded,
    StoreSecondVectors,
    RecordSessions,
    SetBypass,
    RecordCheckpoint,
    FindForgottenNotes,
    DropNotes,
    EndIdleSessions,
)
"""The commands that are safe to repeat, and that write nothing when nothing is missing."""


def keeps_reply(command: TransactionCommand, reply: WriterReply) -> bool:
    """Return whether the reply is stored for retries.

    A ``ForgetMany`` without targets only asks for an earlier reply; storing its own would use up the client's key. One
    that has completed no target is sent again.
    """
    if isinstance(command, _REPEATABLE):
        return False
    return not isinstance(reply, ManyForgotten) or bool(reply.results)


def execute(context: CommandContext, command: TransactionCommand) -> WriterReply:
    """Run the command's handler. Raises ``SignetError`` for a refusal; the caller owns transaction and savepoint."""
    handler = HANDLERS[type(command)]
    if isinstance(command, JobReport):
        return leases.report(context, command, handler)
    reply: WriterReply = handler(context, command)
    return reply
