"""Calls of each model by UTC day, and the counters of the pipeline. Source: docs/decisions.md 18."""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.protocol.pipeline import RecordUsage
from signet_actors.store.engine import WriteTransaction

_OF_DAY: Final = (
    "SELECT CAST(coalesce(sum(u.calls), 0) AS bigint),"
    " CAST(coalesce(sum(u.tokens_in + u.tokens_out + u.tokens_reserved), 0) AS bigint)"
    " FROM provider_usage u WHERE u.day = :day AND u.provider = :provider"
)
_RESERVE: Final = (
    "INSERT INTO provider_usage (day, provider, model, calls, tokens_reserved)"
    " VALUES (:day, :provider, :model, :calls, :tokens)"
    " ON CONFLICT (day, provider, model) DO UPDATE SET calls = provider_usage.calls + excluded.calls,"
    " tokens_reserved = provider_usage.tokens_reserved + excluded.tokens_reserved"
)
_RECORD: Final = (
    "INSERT INTO provider_usage"
    " (day, provider, model, calls, tokens_in, tokens_out, cost_microusd, failures, took_ms)"
    " VALUES (:day, :provider, :model, :calls, :tokens_in, :tokens_out, :cost_microusd, :failures, :took_ms)"
    " ON CONFLICT (day, provider, model) DO UPDATE SET"
    " tokens_in = provider_usage.tokens_in + excluded.tokens_in,"
    " tokens_out = provider_usage.tokens_out + excluded.tokens_out,"
    " cost_microusd = provider_usage.cost_microusd + excluded.cost_microusd,"
    " failures = provider_usage.failures + excluded.failures, took_ms = provider_usage.took_ms + excluded.took_ms,"
    " tokens_reserved = CASE WHEN provider_usage.tokens_reserved > :reserved_tokens"
    " THEN provider_usage.tokens_reserved - :reserved_tokens ELSE 0 END,"
    " calls = CASE WHEN provider_usage.calls + excluded.calls > :unused_calls"
    " THEN provider_usage.calls + excluded.calls - :unused_calls ELSE 0 END"
)
_COUNT: Final = (
    "INSERT INTO pipeline_counters (day, name, count) VALUES (:day, :name, :number)"
    " ON CONFLICT (day, name) DO UPDATE SET count = pipeline_counters.count + excluded.count"
)
_DELETE_USAGE: Final = (
    "DELETE FROM provider_usage WHERE (day, provider, model) IN"
    " (SELECT u.day, u.provider, u.model FROM provider_usage u WHERE u.day < :day LIMIT :limit)"
)
_DELETE_COUNTERS: Final = (
    "DELETE FROM pipeline_counters WHERE (day, name) IN"
    " (SELECT c.day, c.name FROM pipeline_counters c WHERE c.day < :day LIMIT :limit)"
)


def of_day(tx: WriteTransaction, day: str, provider: str) -> tuple[int, int]:
    """Return ``(calls, tokens)`` of the provider on that day, with what is reserved."""
    calls, tokens = tx.one(_OF_DAY, {"day": day, "provider": provider}) or (0, 0)
    return calls, tokens


def reserve(tx: WriteTransaction, day: str, provider: str, model: str, *, calls: int, tokens: int) -> None:
    """Count calls and tokens before they are used."""
    tx.execute(_RESERVE, {"day": day, "provider": provider, "model": model, "calls": calls, "tokens": tokens})


def record(tx: WriteTransaction, usage: RecordUsage) -> None:
    """Replace what was reserved by what was used; a negative number counts as none."""
    values = msgspec.structs.asdict(usage).items()
    tx.execute(_RECORD, {name: max(0, value) if isinstance(value, int) else value for name, value in values})


def count(tx: WriteTransaction, day: str, name: str, number: int) -> None:
    tx.execute(_COUNT, {"day": day, "name": name, "number": number})


def delete_before(tx: WriteTransaction, day: str, limit: int) -> int:
    """Delete at most ``limit`` rows of earlier days, of usage and then of counters; return their number."""
    tx.execute(_DELETE_USAGE, {"day": day, "limit": limit})
    deleted = tx.changes()
    tx.execute(_DELETE_COUNTERS, {"day": day, "limit": limit - deleted})
    return deleted + tx.changes()
