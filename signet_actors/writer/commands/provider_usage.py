"""Usage of model providers by UTC day, and the daily caps on it.

A call is counted before it is made: if a process crashes in between, the cap is reached too early, but never exceeded.

Source: docs/decisions.md 18.
"""

from __future__ import annotations

from signet_actors.protocol.pipeline import CallsReserved, RecordUsage, ReserveCalls, UsageRecorded
from signet_actors.writer.command_context import CommandContext


def reserve(context: CommandContext, command: ReserveCalls) -> CallsReserved:
    """Count the calls if the provider's daily caps allow all of them, else count none."""
    day = context.now[:10]
    calls, tokens = context.tx.one(
        "SELECT coalesce(sum(calls), 0), coalesce(sum(tokens_in + tokens_out + tokens_reserved), 0)"
        " FROM provider_usage WHERE day = ? AND provider = ?",
        (day, command.provider),
    ) or (0, 0)
    wanted_calls, wanted_tokens = max(0, command.calls), max(0, command.tokens)
    granted = _within(calls + wanted_calls, command.call_limit) and _within(tokens + wanted_tokens, command.token_limit)
    if not granted:
        return CallsReserved(False, day, calls, tokens)
    context.tx.execute(
        "INSERT INTO provider_usage (day, provider, model, calls, tokens_reserved) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET calls = calls + excluded.calls,"
        " tokens_reserved = tokens_reserved + excluded.tokens_reserved",
        (day, command.provider, command.model, wanted_calls, wanted_tokens),
    )
    return CallsReserved(True, day, calls + wanted_calls, tokens + wanted_tokens)


def record(context: CommandContext, command: RecordUsage) -> UsageRecorded:
    """Replace the reservation by the actual usage, on the day on which the calls began."""
    context.tx.execute(
        "INSERT INTO provider_usage (day, provider, model, calls, tokens_in, tokens_out, cost_microusd)"
        " VALUES (:day, :provider, :model, :calls, :tokens_in, :tokens_out, :cost)"
        " ON CONFLICT DO UPDATE SET tokens_in = tokens_in + excluded.tokens_in,"
        " tokens_out = tokens_out + excluded.tokens_out, cost_microusd = cost_microusd + excluded.cost_microusd,"
        " tokens_reserved = max(0, tokens_reserved - :reserved), calls = max(0, calls + excluded.calls - :unused)",
        {
            "day": command.day,
            "calls": max(0, command.calls),
            "provider": command.provider,
            "model": command.model,
            "tokens_in": max(0, command.tokens_in),
            "tokens_out": max(0, command.tokens_out),
            "cost": max(0, command.cost_microusd),
            "reserved": max(0, command.reserved_tokens),
            "unused": max(0, command.unused_calls),
        },
    )
    return UsageRecorded()


def _within(count: int, limit: int | None) -> bool:
    return limit is None or count <= limit
