"""The ordered purge, one bounded step at a time, and the clock's high-water mark.

The order matters: links, then vectors, then the tombstones. A tombstone whose links or vectors still exist waits for
the next sweep.

Source: memory-system.txt "Retention Worker"; docs/reliability.md R16, R23.
"""

from __future__ import annotations

from collections.abc import Callable

from signet_actors.errors import InvalidRequest
from signet_actors.features.audit import writes as audit
from signet_actors.features.checkpoints import writes as checkpoints
from signet_actors.features.searches import writes as searches
from signet_actors.features.session_memories import writes as session_memories
from signet_actors.features.session_scores import writes as scores
from signet_actors.features.telemetry import writes as telemetry
from signet_actors.protocol.leases import AdvanceHighWaterMark, HighWaterMark
from signet_actors.protocol.writer import Purged, PurgeStep
from signet_actors.runtime.sync_points import sync_point
from signet_actors.store.command_context import CommandContext
from signet_actors.store.findings import HISTORY_PURGED
from signet_actors.store.writes import embeddings as embedding_rows
from signet_actors.store.writes import entity_mentions, provider_usage, request_replies, store_meta
from signet_actors.store.writes import history as history_rows
from signet_actors.store.writes import memories as memory_rows
from signet_actors.store.writes import proposals as proposal_rows
from signet_actors.store.writes import purge as purge_rows
from signet_actors.store.writes import sessions as session_rows
from signet_actors.writer.byte_budget import ByteBudget
from signet_actors.writer.commands import history, memory_changes, transcripts

_CHANGES_KEPT = 50_000
_JUMP = "retention_suspected_leap_since"
"""Key in ``store_meta``, by its earlier name."""


def step(context: CommandContext, command: PurgeStep) -> Purged:
    """Delete at most ``limit`` rows of one step, and few megabytes. Raises ``InvalidRequest`` for an unknown step."""
    run = _STEPS.get(command.step)
    if run is None:
        raise InvalidRequest(f"unknown purge step {command.step!r}", field="step")
    sync_point("maintenance.mid_step")
    done = run(context, command.cutoff, command.limit)
    count, more = done if isinstance(done, tuple) else (done, done >= command.limit)
    return Purged(step=command.step, count=count, more=more)


def _graph_links(context: CommandContext, cutoff: str, limit: int) -> int:
    found = purge_rows.expired_with_links(context.tx, cutoff, limit)
    return sum(entity_mentions.remove(context.tx, memory_id, context.now, context.new_id) for memory_id in found)


def _embeddings(context: CommandContext, cutoff: str, limit: int) -> int:
    rows = purge_rows.expired_with_vectors(context.tx, cutoff, limit)
    for seq, memory_id in rows:
        embedding_rows.remove(context.tx, memory_id)
        memory_rows.clear_embedding(context.tx, seq)
    return len(rows)


def _tombstones(context: CommandContext, cutoff: str, limit: int) -> tuple[int, bool]:
    rows = purge_rows.expired_tombstones(context.tx, cutoff, limit)
    budget = ByteBudget()
    for count, (seq, memory_id, tags, size) in enumerate(rows):
        context.heartbeat()
        if budget.used_up or not history.erase_most(context, memory_id, budget):
            return count, True
        memory_changes.remove_row(context, seq, memory_id, tags)
        budget.spend(size)
    return len(rows), len(rows) >= limit


def _session_memories(context: CommandContext, cutoff: str, limit: int) -> tuple[int, bool]:
    """Delete what was asked for, what sessions were offered, their feedback and scores, of before the cutoff.

    Of what was asked for also the oldest beyond ``search.ledger_rows``.
    """
    deleted = session_memories.delete_before(context.tx, cutoff, limit)
    deleted += scores.delete_before(context.tx, cutoff, limit - deleted)
    count, more = searches.purge(context.tx, cutoff, context.config.search.ledger_rows, limit - deleted)
    return deleted + count, more or deleted + count >= limit


def _history(context: CommandContext, cutoff: str, limit: int) -> tuple[int, bool]:
    budget = ByteBudget()
    found = history_rows.created_before(context.tx, cutoff, limit)
    rows = []
    for seq, size in found:
        if budget.used_up:
            break
        rows.append(seq)
        budget.spend(size)
    if rows:
        history_rows.delete_events(context.tx, rows)
        store_meta.put_if_new(context.tx, HISTORY_PURGED, context.now)
    return len(rows), len(rows) < len(found) or len(found) >= limit


def prune_replies(context: CommandContext, cutoff_ms: int, limit: int) -> int:
    """Delete replies stored before ``cutoff_ms``, and trim the change feeds to their limit."""
    count = request_replies.delete_before(context.tx, cutoff_ms, limit)
    purge_rows.trim_changes(context.tx, _CHANGES_KEPT, limit)
    return count


_STEPS: dict[str, Callable[[CommandContext, str, int], int | tuple[int, bool]]] = {
    "graph_links": _graph_links,
    "embeddings": _embeddings,
    "tombstones": _tombstones,
    # before the history to which they refer
    "pipeline_runs": lambda context, cutoff, limit: proposal_rows.delete_runs_before(context.tx, cutoff, limit),
    "history": _history,
    "completed_jobs": lambda context, cutoff, limit: purge_rows.delete_completed_jobs(context.tx, cutoff, limit),
    "dead_jobs": lambda context, cutoff, limit: purge_rows.delete_dead_jobs(context.tx, cutoff, limit),
    "provider_usage": lambda context, cutoff, limit: provider_usage.delete_before(context.tx, cutoff[:10], limit),
    "sessions": lambda context, cutoff, limit: session_rows.delete_before(context.tx, cutoff, limit),
    "session_memories": _session_memories,
    "transcripts": transcripts.purge,
    "session_checkpoints": checkpoints.purge,
    "audit_log": audit.delete_before,
    "telemetry_events": telemetry.delete_before,
}


def advance_high_water_mark(context: CommandContext, command: AdvanceHighWaterMark) -> HighWaterMark:
    """Advance the mark to ``now`` if accepted; store or clear a suspected jump of the clock."""
    previous = store_meta.value(context.tx, store_meta.HIGH_WATER_MARK)
    jump = store_meta.value(context.tx, _JUMP)
    if command.accept:
        store_meta.put(context.tx, store_meta.HIGH_WATER_MARK, command.now)
    if command.suspected_jump_since is None:
        store_meta.delete(context.tx, _JUMP)
    else:
        store_meta.put(context.tx, _JUMP, command.suspected_jump_since)
    return HighWaterMark(previous=previous, suspected_jump_since=jump)
