"""Which handler serves which command; a command without a handler is a type error."""

from __future__ import annotations

from typing import assert_never

from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Idempotency, Principal
from signet_actors.protocol.pipeline import (
    ApplyProposals,
    ApproveProposal,
    ReconcileJobs,
    RecordUsage,
    RejectProposal,
    ReleaseJobs,
    RequeueJobs,
    ReserveCalls,
    StoreHints,
    StoreVector,
    UndoRun,
)
from signet_actors.protocol.writer import (
    AdvanceHighWaterMark,
    CompleteJob,
    FailJob,
    ForgetMany,
    ForgetMemory,
    ImportMemories,
    LeaseJobs,
    ManyModified,
    MemoryPatch,
    Modified,
    ModifyMany,
    ModifyMemory,
    PurgeStep,
    ReapLeases,
    RecoverMemory,
    Remember,
    RememberChunks,
    RenewLease,
    WriterReply,
)
from signet_actors.writer.command_context import Session
from signet_actors.writer.commands import (
    batch_forget,
    chunks,
    hints,
    import_memories,
    jobs,
    leases,
    memories,
    proposals,
    provider_usage,
    purge,
    reviews,
    store_vector,
)

Effect = (
    Remember
    | RememberChunks
    | ImportMemories
    | ModifyMemory
    | ModifyMany
    | ForgetMemory
    | ForgetMany
    | RecoverMemory
    | PurgeStep
    | LeaseJobs
    | RenewLease
    | CompleteJob
    | FailJob
    | ReleaseJobs
    | ReapLeases
    | RequeueJobs
    | ReconcileJobs
    | ApplyProposals
    | StoreHints
    | StoreVector
    | ApproveProposal
    | RejectProposal
    | UndoRun
    | ReserveCalls
    | RecordUsage
    | AdvanceHighWaterMark
)
"""The commands that run in a transaction."""


FREES_SPACE = (ForgetMemory, ForgetMany, PurgeStep, ReapLeases, AdvanceHighWaterMark)
"""The commands that are tried also while the disk is full."""


def idempotency_of(command: Effect) -> Idempotency | None:
    """The client's key, for the commands that carry one."""
    return getattr(command, "idempotency", None)


def keeps_reply(command: Effect) -> bool:
    """Whether the reply is kept for a retry. A ``ForgetMany`` without targets only asks for an earlier reply: to keep
    its own would use up the client's key for nothing."""
    if isinstance(command, ReconcileJobs):
        return False  # to look once more does no harm, and a look that finds nothing writes nothing
    return not isinstance(command, ForgetMany) or bool(command.targets)


def execute(session: Session, command: Effect) -> WriterReply:
    """The command's rows are changed inside the caller's savepoint; raises ``SignetError`` for a refusal."""
    match command:
        case Remember():
            group = chunks.by_source(session, command.memory)
            if group is not None:
                return group
            key = command.memory.idempotency_key
            if key is not None:
                chunks.refuse_chunked_key(session, key, command.memory)
            return memories.remember(session, command)
        case RememberChunks():
            return chunks.remember(session, command)
        case ImportMemories():
            return import_memories.import_memories(session, command)
        case ModifyMemory():
            return memories.modify(session, command.patch, command.principal, command.read)
        case ModifyMany():
            return ManyModified(
                results=[_modify_one(session, patch, command.principal, command.read) for patch in command.patches]
            )
        case ForgetMemory():
            return memories.forget(session, command)
        case ForgetMany():
            return batch_forget.forget(session, command)
        case RecoverMemory():
            return memories.recover(session, command)
        case PurgeStep():
            return purge.step(session, command)
        case LeaseJobs():
            return leases.lease(session, command)
        case RenewLease():
            return leases.renew(session, command)
        case CompleteJob():
            return leases.complete(session, command)
        case FailJob():
            return leases.fail(session, command)
        case ReleaseJobs():
            return leases.release(session, command)
        case ReapLeases():
            return jobs.reap(session, command)
        case RequeueJobs():
            return jobs.requeue(session, command)
        case ReconcileJobs():
            return jobs.reconcile(session, command)
        case ApplyProposals():
            return proposals.apply(session, command)
        case StoreHints():
            return hints.store(session, command)
        case StoreVector():
            return store_vector.store(session, command)
        case ApproveProposal():
            return reviews.approve(session, command)
        case RejectProposal():
            return reviews.reject(session, command)
        case UndoRun():
            return reviews.undo(session, command)
        case ReserveCalls():
            return provider_usage.reserve(session, command)
        case RecordUsage():
            return provider_usage.record(session, command)
        case AdvanceHighWaterMark():
            return purge.advance_mark(session, command)
        case _:
            assert_never(command)


def _modify_one(session: Session, patch: MemoryPatch, principal: Principal, read: ReadScope) -> Modified:
    with session.tx.savepoint():
        return memories.modify(session, patch, principal, read)
