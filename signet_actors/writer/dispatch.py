"""Which handler serves which command; a command of ``protocol/`` without a handler is a type error."""

from __future__ import annotations

from typing import Any, Final, Union, assert_never

from signet_actors.features.handlers import handlers
from signet_actors.protocol.checkpoints import RecordCheckpoint
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
from signet_actors.protocol.session_memories import RecordFeedback
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
    TransactionCommand,
    WriterCommand,
    WriterReply,
)
from signet_actors.store.command_context import CommandContext
from signet_actors.writer.commands import (
    batch_forget,
    checkpoints,
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
    session_memories,
    session_summaries,
    sessions,
    transcripts,
)

HANDLERS: Final = handlers("writes")
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
    handler = HANDLERS.get(type(command))
    if handler is not None:
        if isinstance(command, JobReport):
            return leases.report(context, command, handler)
        reply: WriterReply = handler(context, command)
        return reply
    match command:
        case Remember():
            if command.memory.source_id is not None:
                group = chunks.by_source(context, command.memory)
                if group is not None:
                    return group
            key = command.memory.idempotency_key
            if key is not None:
                chunks.refuse_chunked_key(context, key, command.memory)
            return memories.remember(context, command.memory, command.principal)
        case RememberChunks():
            return chunks.remember(context, command)
        case ImportMemories():
            return import_memories.import_memories(context, command)
        case ModifyMemory():
            return memory_changes.modify(context, command.patch, command.principal, command.read)
        case ModifyMany():
            return ManyModified(
                results=[_modify_one(context, patch, command.principal, command.read) for patch in command.patches]
            )
        case ForgetMemory():
            return memory_changes.forget(context, command)
        case ForgetMany():
            return batch_forget.forget(context, command)
        case RecoverMemory():
            return memory_changes.recover(context, command)
        case PurgeStep():
            return purge.step(context, command)
        case LeaseJobs():
            return leases.lease(context, command)
        case RenewLease():
            return leases.renew(context, command)
        case CompleteJob():
            return leases.complete(context, command)
        case FailJob():
            return leases.fail(context, command)
        case ReleaseJobs():
            return leases.release(context, command)
        case ReapLeases():
            return jobs.reap(context, command)
        case RequeueJobs():
            return jobs.requeue(context, command)
        case ReconcileJobs():
            return jobs.reconcile(context, command)
        case ApplyProposals():
            return proposals.apply(context, command)
        case StoreHints():
            return hints.store(context, command)
        case StoreVector():
            return embeddings.store_vector(context, command)
        case FindUnembedded():
            return embeddings.find_unembedded(context, command)
        case StoreSecondVectors():
            return embeddings.store_second_vectors(context, command)
        case ApproveProposal():
            return reviews.approve(context, command)
        case RejectProposal():
            return reviews.reject(context, command)
        case UndoRun():
            return reviews.undo(context, command)
        case ReserveCalls():
            return provider_usage.reserve(context, command)
        case RecordUsage():
            return provider_usage.record(context, command)
        case AdvanceHighWaterMark():
            return purge.advance_high_water_mark(context, command)
        case RecordSessions():
            return sessions.record(context, command)
        case SetBypass():
            return sessions.set_bypass(context, command)
        case RecordCheckpoint():
            return checkpoints.record(context, command)
        case RecordFeedback():
            return session_memories.record_feedback(context, command)
        case StoreTurns():
            return transcripts.store(context, command)
        case ForgetTranscript():
            return transcripts.forget(context, command)
        case StoreSummary():
            return session_summaries.store(context, command)
        case RecordNote():
            return session_summaries.record_note(context, command)
        case FindForgottenNotes():
            return session_summaries.find_forgotten_notes(context, command)
        case DropNotes():
            return session_summaries.drop_notes(context, command)
        case EndIdleSessions():
            return session_summaries.end_idle(context, command)
        case _:
            assert_never(command)


def _modify_one(context: CommandContext, patch: MemoryPatch, principal: Principal, read: ReadScope) -> Modified:
    context.heartbeat()
    with context.tx.savepoint():
        return memory_changes.modify(context, patch, principal, read)
