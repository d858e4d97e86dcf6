"""The ordered purge, one bounded step at a time, and the clock's high-water mark.

The order matters: links, then vectors, then the tombstones. A tombstone whose links or vectors still exist waits for
the next sweep.

Source: memory-system.txt "Retention Worker"; docs/reliability.md R16, R23.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec

from signet_actors.errors import InvalidRequest
from signet_actors.protocol.leases import AdvanceHighWaterMark, HighWaterMark
from signet_actors.protocol.writer import Purged, PurgeStep
from signet_actors.runtime.sync_points import sync_point
from signet_actors.writer.byte_budget import ByteBudget
from signet_actors.writer.command_context import CommandContext
from signet_actors.writer.commands import embeddings, entity_mentions, history, memory_changes

_EXPIRED = "m.is_deleted = 1 AND m.deleted_at < ?"
_CHANGES_KEPT = 50_000
_MARK, _LEAP = "retention_high_water_mark", "retention_suspected_leap_since"


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
    rows = context.tx.rows(
        f"SELECT m.id FROM memories m WHERE {_EXPIRED}"
        " AND EXISTS (SELECT 1 FROM memory_entity_mentions x WHERE x.memory_id = m.id) ORDER BY m.deleted_at LIMIT ?",
        (cutoff, limit),
    )
    return sum(entity_mentions.remove(context, memory_id) for (memory_id,) in rows)


def _embeddings(context: CommandContext, cutoff: str, limit: int) -> int:
    rows = context.tx.rows(
        f"SELECT m.seq, m.id FROM memories m WHERE {_EXPIRED}"
        " AND EXISTS (SELECT 1 FROM embeddings e WHERE e.source_type = 'memory' AND e.source_id = m.id)"
        " ORDER BY m.deleted_at LIMIT ?",
        (cutoff, limit),
    )
    for seq, memory_id in rows:
        embeddings.remove(context, memory_id)
        context.tx.execute("UPDATE memories SET embedding_seq = NULL, embedding_model = NULL WHERE seq = ?", (seq,))
    return len(rows)


def _tombstones(context: CommandContext, cutoff: str, limit: int) -> tuple[int, bool]:
    rows = context.tx.rows(
        f"SELECT m.seq, m.id, m.tags, octet_length(m.content) FROM memories m WHERE {_EXPIRED}"
        " AND NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.source_type = 'memory' AND e.source_id = m.id)"
        " AND NOT EXISTS (SELECT 1 FROM memory_entity_mentions x WHERE x.memory_id = m.id)"
        " ORDER BY m.deleted_at LIMIT ?",
        (cutoff, limit),
    )
    budget = ByteBudget()
    for count, (seq, memory_id, tags, size) in enumerate(rows):
        context.heartbeat()
        if budget.used_up or not history.erase_most(context, memory_id, budget):
            return count, True
        memory_changes.remove_row(context, seq, memory_id, tags)
        budget.spend(size)
    return len(rows), len(rows) >= limit


def _pipeline_runs(context: CommandContext, cutoff: str, limit: int) -> int:
    """Delete runs with their proposals, before the history to which they refer."""
    return _delete(context, "pipeline_runs", "seq", "created_at < ?", cutoff, limit)


def _provider_usage(context: CommandContext, cutoff: str, limit: int) -> int:
    """Delete daily counts of days before the cutoff."""
    context.tx.execute(
        "DELETE FROM provider_usage WHERE (day, provider, model) IN"
        " (SELECT day, provider, model FROM provider_usage WHERE day < ? LIMIT ?)",
        (cutoff[:10], limit),
    )
    usage = context.tx.changes()
    context.tx.execute(
        "DELETE FROM pipeline_counters WHERE (day, name) IN"
        " (SELECT day, name FROM pipeline_counters WHERE day < ? LIMIT ?)",
        (cutoff[:10], limit - usage),
    )
    return usage + context.tx.changes()


def _history(context: CommandContext, cutoff: str, limit: int) -> tuple[int, bool]:
    budget = ByteBudget()
    found = context.tx.rows(
        "SELECT seq, coalesce(octet_length(old_content), 0) + coalesce(octet_length(new_content), 0)"
        " FROM memory_history WHERE created_at < ? LIMIT ?",
        (cutoff, limit),
    )
    rows = []
    for seq, size in found:
        if budget.used_up:
            break
        rows.append(seq)
        budget.spend(size)
    context.tx.execute(
        "DELETE FROM memory_history WHERE seq IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(rows).decode(),),
    )
    return len(rows), len(rows) < len(found) or len(found) >= limit


def _completed_jobs(context: CommandContext, cutoff: str, limit: int) -> int:
    return _delete(context, "memory_jobs", "seq", "status = 'completed' AND completed_at < ?", cutoff, limit)


def _dead_jobs(context: CommandContext, cutoff: str, limit: int) -> int:
    return _delete(context, "memory_jobs", "seq", "status = 'dead' AND failed_at < ?", cutoff, limit)


def _request_replies(context: CommandContext, cutoff: str, limit: int) -> int:
    cutoff_ms = int(datetime.fromisoformat(cutoff).timestamp() * 1000)
    return prune_replies(context, cutoff_ms, limit)


def prune_replies(context: CommandContext, cutoff_ms: int, limit: int) -> int:
    """Delete replies stored before ``cutoff_ms``, and trim the change feed to its limit."""
    count = _delete(context, "request_replies", "request_id", "created_ms < ?", cutoff_ms, limit)
    context.tx.execute(
        "DELETE FROM memory_changes WHERE change IN (SELECT change FROM memory_changes WHERE change <"
        " (SELECT max(change) - ? FROM memory_changes) ORDER BY change LIMIT ?)",
        (_CHANGES_KEPT, limit),
    )
    return count


def _delete(context: CommandContext, table: str, key: str, where: str, cutoff: str | int, limit: int) -> int:
    context.tx.execute(
        f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} WHERE {where} LIMIT ?)", (cutoff, limit)
    )
    return context.tx.changes()


_STEPS: dict[str, Callable[[CommandContext, str, int], int | tuple[int, bool]]] = {
    "graph_links": _graph_links,
    "embeddings": _embeddings,
    "tombstones": _tombstones,
    "pipeline_runs": _pipeline_runs,
    "history": _history,
    "completed_jobs": _completed_jobs,
    "dead_jobs": _dead_jobs,
    "provider_usage": _provider_usage,
    "request_replies": _request_replies,
}


def advance_high_water_mark(context: CommandContext, command: AdvanceHighWaterMark) -> HighWaterMark:
    """Advance the mark to ``now`` if accepted; store or clear a suspected leap of the clock."""
    previous = context.tx.one("SELECT value FROM store_meta WHERE key = ?", (_MARK,))
    leap = context.tx.one("SELECT value FROM store_meta WHERE key = ?", (_LEAP,))
    if command.accept:
        _put(context, _MARK, command.now)
    if command.suspected_leap_since is None:
        context.tx.execute("DELETE FROM store_meta WHERE key = ?", (_LEAP,))
    else:
        _put(context, _LEAP, command.suspected_leap_since)
    return HighWaterMark(
        previous=None if previous is None else previous[0], suspected_leap_since=None if leap is None else leap[0]
    )


def _put(context: CommandContext, key: str, value: str) -> None:
    context.tx.execute(
        "INSERT INTO store_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )
