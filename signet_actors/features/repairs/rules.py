"""When a repair may run, and which repairs the health of the daemon calls for.

Source: architecture.txt "Repair Actions", "Maintenance worker"; memory-pipeline.txt "Maintenance Worker";
docs/compatibility.md "Repair gate".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from signet_actors.domain.permissions import AUTONOMOUS_ACTOR_TYPES
from signet_actors.errors import ErrorCode, SignetError
from signet_actors.operations.diagnostics import DiagnosticsReport

REQUEUE: Final = "requeueDeadJobs"
RELEASE: Final = "releaseStaleLeases"
CHECK_TEXT: Final = "checkFtsConsistency"
SWEEP: Final = "retention_sweep"
REEMBED: Final = "reembedMissingMemories"
CLEAN: Final = "cleanOrphanedEmbeddings"
DEDUPLICATE: Final = "deduplicateMemories"
HOUR_MS: Final = 3_600_000
MAX_DEAD_RATE: Final = 0.01
MAX_TOMBSTONE_RATIO: Final = 0.3


class Switches(Protocol):
    """The ``autonomous`` section of the configuration."""

    @property
    def enabled(self) -> bool: ...
    @property
    def frozen(self) -> bool: ...


class RepairLimits(Protocol):
    """The ``repair`` section of the configuration."""

    @property
    def reembed_cooldown_ms(self) -> int: ...
    @property
    def reembed_hourly_budget(self) -> int: ...
    @property
    def requeue_cooldown_ms(self) -> int: ...
    @property
    def requeue_hourly_budget(self) -> int: ...
    @property
    def dedup_cooldown_ms(self) -> int: ...
    @property
    def dedup_hourly_budget(self) -> int: ...


class Limit(NamedTuple):
    """The least time between two runs of an action, and its most runs within an hour."""

    cooldown_ms: int
    hourly_budget: int


def limit_of(action: str, repair: RepairLimits) -> Limit:
    """Return the limit of an action. Those without keys of their own have that of the requeues, each by itself."""
    if action == REEMBED:
        return Limit(repair.reembed_cooldown_ms, repair.reembed_hourly_budget)
    if action == DEDUPLICATE:
        return Limit(repair.dedup_cooldown_ms, repair.dedup_hourly_budget)
    return Limit(repair.requeue_cooldown_ms, repair.requeue_hourly_budget)


def check_gate(action: str, actor_type: str, switches: Switches, limit: Limit, ages_ms: Sequence[int]) -> None:
    """Raise SignetError (forbidden, rate_limited) unless the action may run now.

    ``ages_ms``: the time since each of its last runs that changed something, the newest first. A negative one is of a
    clock that was set back, and does not count.
    """
    if switches.frozen:
        raise SignetError(
            f"{action} did not run: repairs are frozen (memory.pipelineV2.autonomous.frozen)", code=ErrorCode.FORBIDDEN
        )
    if not switches.enabled and actor_type in AUTONOMOUS_ACTOR_TYPES:
        raise SignetError(
            f"{action} did not run: agents may not repair (memory.pipelineV2.autonomous.enabled)",
            code=ErrorCode.FORBIDDEN,
        )
    ages = [age for age in ages_ms if 0 <= age < HOUR_MS]
    if ages and ages[0] < limit.cooldown_ms:
        why, wait_ms = f"less than {limit.cooldown_ms / 1000:g} s ago", limit.cooldown_ms - ages[0]
    elif len(ages) >= limit.hourly_budget:
        why, wait_ms = f"{limit.hourly_budget} times within an hour", HOUR_MS - ages[limit.hourly_budget - 1]
    else:
        return
    detail = f"{action} ran {why}; nothing was applied"
    raise SignetError(detail, code=ErrorCode.RATE_LIMITED, retry_after_ms=wait_ms)


def recommendations(report: DiagnosticsReport) -> dict[str, str]:
    """Return the repairs that the health calls for, each with its reason, in the order in which they should run."""
    found = {}
    queue, storage, index = report.queue, report.storage, report.index
    if queue is not None and queue.lease_anomalies:
        found[RELEASE] = f"{queue.lease_anomalies} jobs are leased for more than ten minutes"
    if queue is not None and queue.dead_rate > MAX_DEAD_RATE:
        found[REQUEUE] = f"{queue.dead_rate:.1%} of the ended jobs are dead"
    if index is not None and index.fts_mismatch:
        found[CHECK_TEXT] = f"the text index has {index.fts_row_count} rows for {index.memories_row_count} memories"
    if storage is not None:
        rows = storage.total_memories + storage.deleted_tombstones
        if rows and storage.deleted_tombstones / rows > MAX_TOMBSTONE_RATIO:
            found[SWEEP] = f"{storage.deleted_tombstones} of {rows} memories are deleted"
    return found
