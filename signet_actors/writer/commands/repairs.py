"""Rate limits of repairs that people request: a cooldown between two repairs, and a budget per hour.

The limit is computed from history events, which are written in the repair's own transaction, so no restart or crash
forgets one. A retry with its ``Idempotency-Key`` gets the first reply and does not count as a repair.

Source: architecture.txt "Repair Actions"; memory-pipeline.txt "Configuration Reference" (``repair``);
docs/compatibility.md "Repair gate".
Departs: only a repair that changed something counts, and ``autonomous.frozen`` does not stop what a person requests.
"""

from __future__ import annotations

from typing import Final

from signet_actors.domain.timestamps import epoch_ms
from signet_actors.errors import ErrorCode, SignetError
from signet_actors.protocol.message import Principal
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import history as history_rows
from signet_actors.writer.commands import history

SYSTEM: Final = "system"
"""The ``memory_id`` of history events that concern no particular memory."""
REQUEUE_DEAD: Final = "requeueDeadJobs"
_HOUR_MS: Final = 3_600_000


def enforce_rate(context: CommandContext, action: str, *, cooldown_ms: int, hourly_budget: int) -> None:
    """Raise ``SignetError`` (``rate_limited``), with the time to wait, unless the repair may run now."""
    moments = history_rows.times_of(context.tx, SYSTEM, action, hourly_budget)
    ages = [context.now_ms - (epoch_ms(moment) or 0) for moment in moments]
    ages = [age for age in ages if 0 <= age < _HOUR_MS]  # a negative age: the clock was set back
    if ages and ages[0] < cooldown_ms:
        raise _refused(
            f"{action} ran less than {cooldown_ms / 1000:g} s ago; nothing was applied", cooldown_ms - ages[0]
        )
    if len(ages) >= hourly_budget:
        raise _refused(f"{action} ran {hourly_budget} times within an hour; nothing was applied", _HOUR_MS - ages[-1])


def record(context: CommandContext, action: str, principal: Principal, *, affected: int) -> None:
    history.record(context, SYSTEM, "none", principal, reason=action, metadata={"repair": action, "affected": affected})


def _refused(detail: str, wait_ms: int) -> SignetError:
    return SignetError(detail, code=ErrorCode.RATE_LIMITED, retry_after_ms=wait_ms)
