"""Repairs that people ask for are on record, and held to a least time between two and to a number an hour.

The record is the limit's memory: it is written in the repair's own transaction, so that neither a restart nor a crash
forgets one, and a retry with its ``Idempotency-Key`` gets its first answer and is no repair of its own.

Source: architecture.txt "Repair Actions"; memory-pipeline.txt "Configuration Reference" (``repair``);
docs/compatibility.md "Repair gate".
Departs: only a repair that did something counts. ``autonomous.frozen`` stops no person here: it is the brake of what
nobody asked for.
"""

from __future__ import annotations

from typing import Final

from signet_actors.domain.timestamps import epoch_ms
from signet_actors.errors import ErrorCode, SignetError
from signet_actors.protocol.message import Principal
from signet_actors.writer.command_context import CommandContext
from signet_actors.writer.commands import history

SYSTEM: Final = "system"
"""The ``memory_id`` under which the trail has what was done to no memory in particular."""
REQUEUE_DEAD: Final = "requeueDeadJobs"
_HOUR_MS: Final = 3_600_000


def enforce_rate(context: CommandContext, action: str, *, cooldown_ms: int, hourly_budget: int) -> None:
    """The repair may run now; raises ``SignetError`` (``rate_limited``), which says when it may."""
    rows = context.tx.rows(
        "SELECT created_at FROM memory_history WHERE memory_id = ? AND reason = ? ORDER BY seq DESC LIMIT ?",
        (SYSTEM, action, hourly_budget),
    )
    ages = [context.now_ms - (epoch_ms(moment) or 0) for (moment,) in rows]
    ages = [age for age in ages if 0 <= age < _HOUR_MS]  # one that lies ahead is of a clock that went back
    if ages and ages[0] < cooldown_ms:
        raise _refused(
            f"{action} ran less than {cooldown_ms / 1000:g} s ago; nothing was applied", cooldown_ms - ages[0]
        )
    if len(ages) >= hourly_budget:
        raise _refused(f"{action} ran {hourly_budget} times within an hour; nothing was applied", _HOUR_MS - ages[-1])


def record(context: CommandContext, action: str, principal: Principal, *, affected: int) -> None:
    """The repair is in the trail."""
    history.record(context, SYSTEM, "none", principal, reason=action, metadata={"repair": action, "affected": affected})


def _refused(detail: str, wait_ms: int) -> SignetError:
    return SignetError(detail, code=ErrorCode.RATE_LIMITED, retry_after_ms=wait_ms)
