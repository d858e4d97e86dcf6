"""Statements about ``provider_usage``, the calls of each model by UTC day, and the counters of the pipeline.

Source: docs/decisions.md 18.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from signet_actors.store.sqlite.transaction import WriteTransaction


class Usage(NamedTuple):
    """What calls used, and what of it was reserved before and is released now."""

    day: str
    provider: str
    model: str
    calls: int
    tokens_in: int
    tokens_out: int
    cost_microusd: int
    reserved_tokens: int
    unused_calls: int


_OF_DAY: Final = (
    "SELECT coalesce(sum(calls), 0), coalesce(sum(tokens_in + tokens_out + tokens_reserved), 0)"
    " FROM provider_usage WHERE day = ? AND provider = ?"
)
_RESERVE: Final = (
    "INSERT INTO provider_usage (day, provider, model, calls, tokens_reserved) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (day, provider, model) DO UPDATE SET calls = calls + excluded.calls,"
    " tokens_reserved = tokens_reserved + excluded.tokens_reserved"
)
_RECORD: Final = (
    "INSERT INTO provider_usage (day, provider, model, calls, tokens_in, tokens_out, cost_microusd)"
    " VALUES (:day, :provider, :model, :calls, :tokens_in, :tokens_out, :cost_microusd)"
    " ON CONFLICT (day, provider, model) DO UPDATE SET tokens_in = tokens_in + excluded.tokens_in,"
    " tokens_out = tokens_out + excluded.tokens_out, cost_microusd = cost_microusd + excluded.cost_microusd,"
    " tokens_reserved = max(0, tokens_reserved - :reserved_tokens),"
    " calls = max(0, calls + excluded.calls - :unused_calls)"
)
_COUNT: Final = (
    "INSERT INTO pipeline_counters (day, name, count) VALUES (?, ?, ?)"
    " ON CONFLICT (day, name) DO UPDATE SET count = count + excluded.count"
)
_DELETE_USAGE: Final = (
    "DELETE FROM provider_usage WHERE (day, provider, model) IN"
    " (SELECT day, provider, model FROM provider_usage WHERE day < ? LIMIT ?)"
)
_DELETE_COUNTERS: Final = (
    "DELETE FROM pipeline_counters WHERE (day, name) IN (SELECT day, name FROM pipeline_counters WHERE day < ? LIMIT ?)"
)


def of_day(tx: WriteTransaction, day: str, provider: str) -> tuple[int, int]:
    """Return ``(calls, tokens)`` of the provider on that day, with what is reserved."""
    calls, tokens = tx.one(_OF_DAY, (day, provider)) or (0, 0)
    return calls, tokens


def reserve(tx: WriteTransaction, day: str, provider: str, model: str, *, calls: int, tokens: int) -> None:
    """Count calls and tokens before they are used."""
    tx.execute(_RESERVE, (day, provider, model, calls, tokens))


def record(tx: WriteTransaction, usage: Usage) -> None:
    """Replace what was reserved by what was used."""
    tx.execute(_RECORD, usage._asdict())


def count(tx: WriteTransaction, day: str, name: str, number: int) -> None:
    """Increase a counter of the pipeline."""
    tx.execute(_COUNT, (day, name, number))


def delete_before(tx: WriteTransaction, day: str, limit: int) -> int:
    """Delete at most ``limit`` rows of earlier days, of usage and then of counters; return their number."""
    tx.execute(_DELETE_USAGE, (day, limit))
    deleted = tx.changes()
    tx.execute(_DELETE_COUNTERS, (day, limit - deleted))
    return deleted + tx.changes()
