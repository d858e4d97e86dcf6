"""Usage of model providers by UTC day, and the daily caps on it.

A call is counted before it is made: if a process crashes in between, the cap is reached too early, but never exceeded.

Source: docs/decisions.md 18.
"""

from __future__ import annotations

from signet_actors.protocol.pipeline import CallsReserved, RecordUsage, ReserveCalls, UsageRecorded
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import provider_usage as usage_rows


def reserve(context: CommandContext, command: ReserveCalls) -> CallsReserved:
    """Count the calls if the provider's daily caps allow all of them, else count none."""
    day = context.now[:10]
    calls, tokens = usage_rows.of_day(context.tx, day, command.provider)
    wanted_calls, wanted_tokens = max(0, command.calls), max(0, command.tokens)
    granted = _within(calls + wanted_calls, command.call_limit) and _within(tokens + wanted_tokens, command.token_limit)
    if not granted:
        return CallsReserved(False, day, calls, tokens)
    usage_rows.reserve(context.tx, day, command.provider, command.model, calls=wanted_calls, tokens=wanted_tokens)
    return CallsReserved(True, day, calls + wanted_calls, tokens + wanted_tokens)


def record(context: CommandContext, command: RecordUsage) -> UsageRecorded:
    """Replace the reservation by the actual usage, on the day on which the calls began."""
    usage_rows.record(context.tx, command)
    return UsageRecorded()


def _within(count: int, limit: int | None) -> bool:
    return limit is None or count <= limit
