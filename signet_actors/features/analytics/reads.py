"""What is stored of the figures. Source: docs/compatibility.md "Analytics and telemetry"."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET

from signet_actors.features.analytics.api import (
    TOTALS,
    ErrorEvent,
    FindFigures,
    MinuteFigures,
    ProviderUsage,
    StoredFigures,
    Totals,
)
from signet_actors.features.analytics.rules import MAX_ERRORS, MAX_SAMPLES
from signet_actors.store.engine import Snapshot

_TOTALS: Final = "SELECT t.figures FROM analytics_totals t WHERE t.name = :name"
_MINUTES: Final = "SELECT m.figures FROM analytics_minutes m WHERE m.minute >= :since ORDER BY m.minute"
_ERRORS: Final = (
    "SELECT e.created_at, e.stage, e.code, e.message, e.memory_id, e.actor FROM error_events e"
    " ORDER BY e.seq DESC LIMIT :limit"
)
_PROVIDERS: Final = (
    "SELECT u.provider, CAST(sum(u.calls) AS bigint), CAST(sum(u.failures) AS bigint), CAST(sum(u.took_ms) AS bigint)"
    " FROM provider_usage u GROUP BY u.provider ORDER BY u.provider"
)
_JOBS: Final = (
    "SELECT {} - {} FROM memory_jobs j WHERE j.status = 'completed' AND j.leased_at IS NOT NULL"
    " ORDER BY j.completed_at DESC LIMIT :limit"
)


def found(snapshot: Snapshot, asked: FindFigures) -> StoredFigures:
    """Return the parts that are asked for; the others are empty."""
    wanted, unix_ms = asked.parts, snapshot.dialect.unix_ms
    text = snapshot.value(_TOTALS, {"name": TOTALS}) if "totals" in wanted else None
    providers = snapshot.rows(_PROVIDERS) if "providers" in wanted else []
    jobs_sql = _JOBS.format(unix_ms("j.completed_at"), unix_ms("j.leased_at"))
    jobs = snapshot.rows(jobs_sql, {"limit": MAX_SAMPLES}) if "jobs" in wanted else []
    errors = snapshot.rows(_ERRORS, {"limit": MAX_ERRORS}) if "errors" in wanted else []
    minutes = snapshot.rows(_MINUTES, {"since": asked.since}) if "minutes" in wanted else []
    return StoredFigures(
        totals=None if text is None else msgspec.json.decode(text, type=Totals),
        providers={name: ProviderUsage(*figures) for name, *figures in providers},
        jobs_ms=[max(0.0, float(took)) for (took,) in jobs],
        errors=[_error(*row) for row in errors],
        minutes=[msgspec.json.decode(text, type=MinuteFigures) for (text,) in minutes],
    )


def _error(at: str, stage: str, code: str, message: str, memory_id: str | None, actor: str | None) -> ErrorEvent:
    return ErrorEvent(
        timestamp=at, stage=stage, code=code, message=message, memory_id=memory_id or UNSET, actor=actor or UNSET
    )


READS: Final = {FindFigures: found}
