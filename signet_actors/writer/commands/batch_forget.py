"""Forget a set of memories, and count deletions against the limit that requires a confirm token.

The count is stored in the database, so it survives restarts, and it is compared inside the transaction, so concurrent
requests cannot exceed the limit together.

Source: memory-api.txt "POST /api/memory/forget"; signet_actors/domain/forget_budget.py.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from signet_actors.domain import forget_budget
from signet_actors.domain.written_forms import INDEXED_CHARS
from signet_actors.errors import ErrorCode, SignetError
from signet_actors.protocol.writer import ForgetMany, ForgetMemory, ForgetTarget, Forgotten, ManyForgotten
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import chunks as chunk_rows
from signet_actors.store.writes import memories as memory_rows
from signet_actors.store.writes import store_meta
from signet_actors.writer.byte_budget import ByteBudget
from signet_actors.writer.commands import memory_changes


def forget(context: CommandContext, command: ForgetMany) -> ManyForgotten:
    """Return one outcome for each target, as far as one transaction may go, and the remaining targets.

    Raises a ``SignetError`` if a required confirmation is missing.
    """
    deletions = forget_budget.parse_deletions(store_meta.value(context.tx, forget_budget.STORE_KEY))
    matching = max(command.matching, len(command.targets))
    recent = forget_budget.recently_deleted(deletions, context.now_ms)
    if not command.confirmed and forget_budget.needs_confirmation(matching, recent):
        raise SignetError("confirm_token is required", code=ErrorCode.CONFIRM_REQUIRED)
    results: list[Forgotten] = []
    budget = ByteBudget()
    for target in command.targets:
        context.heartbeat()
        size = memory_rows.content_bytes(context.tx, target.id)
        outcome = None if budget.used_up else _forget_one(context, command, target, budget)
        if outcome is None:
            break
        results.append(outcome)
        budget.spend(size)
        budget.spend_indexed(min(size, 3 * INDEXED_CHARS))  # of Chinese, three bytes each
    deleted = sum(outcome.status == "deleted" for outcome in results)
    if deleted:
        kept = forget_budget.with_deletion(deletions, context.now_ms, deleted)
        store_meta.put(context.tx, forget_budget.STORE_KEY, forget_budget.deletions_text(kept))
    return ManyForgotten(results=results, remaining=list(command.targets[len(results) :]))


def _forget_one(
    context: CommandContext, command: ForgetMany, target: ForgetTarget, budget: ByteBudget
) -> Forgotten | None:
    targets = {other.id for other in command.targets}
    if command.hard:
        with context.tx.savepoint():
            return _erase(context, command, target, budget, without=targets)
    with context.tx.savepoint():
        return memory_changes.forget_with_facts(
            context,
            ForgetMemory(
                id=target.id,
                reason=command.reason,
                principal=command.principal,
                if_version=target.version,
                read=command.read,
            ),
            without=targets,
        )


def _erase(
    context: CommandContext, command: ForgetMany, target: ForgetTarget, budget: ByteBudget, without: Collection[str]
) -> Forgotten | None:
    """Erase what the pipeline has made of the memory, then the memory; None if the budget was used up before that."""
    read, row = command.read, memory_rows.readable_by_id(context.tx, target.id, command.read)
    facts: list[str] = []
    parts = [] if row is None else [part for part in chunk_rows.other_parts(context.tx, row) if part not in without]
    if row is not None and target.version in {None, row.version}:
        facts = [fact.id for fact in memory_changes.facts_of(context, row) if fact.id not in without]
    for fact_id in facts:
        if memory_changes.erase(context, fact_id, None, command.reason, command.principal, read, budget) is None:
            return None
    version, principal = target.version, command.principal
    done = memory_changes.erase(context, target.id, version, command.reason, principal, read, budget)
    return None if done is None else msgspec.structs.replace(done, facts=facts, parts=parts)
