"""What is stored of the figures. Source: docs/compatibility.md "Analytics and telemetry"."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET

from signet_actors.domain.timestamps import epoch_ms, iso
from signet_actors.features.analytics.api import (
    TOTALS,
    CountPrompts,
    ErrorEvent,
    FindFigures,
    MinuteFigures,
    PromptsReply,
    ProviderUsage,
    StoredFigures,
    Totals,
)
from signet_actors.features.analytics.rules import (
    MAX_ERRORS,
    MAX_PROJECTS,
    MAX_SAMPLES,
    PromptRow,
    add,
    counted,
    latency_of,
)
from signet_actors.features.searches.api import MAX_READ
from signet_actors.features.searches.reads import NO_CHECK, first_since, newest
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads.pipeline import usage_since

HOUR_MS: Final = 3_600_000
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
_OF_PERIOD: Final = (
    "FROM searches s WHERE s.agent_id = :agent_id AND s.seq >= :first AND s.created_at >= :since"
    f" AND (:project IS NULL OR s.project = :project) AND {NO_CHECK}"
)
_COUNTS: Final = (
    "SELECT s.project, s.skipped, sum(s.kind = 'prompt'), sum(s.kind = 'prompt' AND s.given > 0), sum(s.characters)"
    f" {_OF_PERIOD} GROUP BY s.project, s.skipped"
)
_HOURS: Final = f"SELECT (:now_ms - {{}}) / :hour_ms AS hour, count(*) {_OF_PERIOD} AND s.kind = 'prompt' GROUP BY hour"
_TOOK: Final = (
    "SELECT p.duration_ms FROM (SELECT s.duration_ms, s.project, s.skipped FROM searches s WHERE s.agent_id = :agent_id"
    f" AND s.seq >= :newest AND s.kind = 'prompt' AND {NO_CHECK} ORDER BY s.seq DESC LIMIT :limit) p"
    " WHERE p.skipped IS NULL AND (:project IS NULL OR p.project = :project)"
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
        days=usage_since(snapshot, asked.since[:10]) if "days" in wanted else [],
    )


def _error(at: str, stage: str, code: str, message: str, memory_id: str | None, actor: str | None) -> ErrorEvent:
    return ErrorEvent(
        timestamp=at, stage=stage, code=code, message=message, memory_id=memory_id or UNSET, actor=actor or UNSET
    )


def prompts(snapshot: Snapshot, asked: CountPrompts) -> PromptsReply:
    """Return what came of the agent's prompts. Only searches of the period are read, and the last 1,000 prompts.

    Of each, only those among the newest ``MAX_READ`` searches of the agent.
    """
    request, now_ms = asked.request, epoch_ms(asked.now) or 0
    since = iso(now_ms - request.hours * HOUR_MS)
    own = {"agent_id": asked.agent_id, "project": request.project}
    began = first_since(snapshot, since)
    first, complete = (None, True) if began is None else newest(snapshot, asked.agent_id, began, MAX_READ)
    period = own | {"first": first, "since": since}
    rows = [PromptRow(*row) for row in snapshot.rows(_COUNTS, period)]
    ages = _HOURS.format(snapshot.dialect.unix_ms("s.created_at"))
    of_all = newest(snapshot, asked.agent_id, 0, MAX_READ)[0]
    took = snapshot.rows(_TOOK, own | {"newest": of_all, "limit": MAX_SAMPLES})
    by_hour = [0] * request.hours
    reply = PromptsReply(
        since=since,
        by_hour=by_hour,
        projects=counted(rows)[:MAX_PROJECTS],
        ms=latency_of([each for (each,) in took]),
        complete=complete,
    )
    for row in rows:
        add(reply, row)
    for hour, count in snapshot.rows(ages, period | {"now_ms": now_ms, "hour_ms": HOUR_MS}):
        by_hour[-1 - min(max(0, hour), request.hours - 1)] += count
    return reply


READS: Final = {FindFigures: found, CountPrompts: prompts}
