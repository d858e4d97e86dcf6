"""Figures of the pipeline that the metrics and the pipeline's status derive from the same counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from signet_actors.config.schema import Config
from signet_actors.domain.jobs import JOB_KINDS
from signet_actors.domain.timestamps import epoch_ms
from signet_actors.operations.pipeline import JunkReport, UsageReport
from signet_actors.protocol.extractor import ExtractorStatus
from signet_actors.protocol.pipeline import REJECTED_COUNTER
from signet_actors.protocol.pipeline_queries import KindQueue, PipelineStatus

_KINDS: Final = tuple(kind.name for kind in JOB_KINDS)


def junk_report(counters: Mapping[str, int]) -> JunkReport:
    """Return the junk counts that ``counters`` contain."""
    by_reason = with_prefix(counters, REJECTED_COUNTER)
    rejected, facts = sum(by_reason.values()), counters.get("facts", 0)
    seen = rejected + facts
    rate = round(rejected / seen, 4) if seen else None
    return JunkReport(rate=rate, rejected=rejected, facts=facts, by_reason=by_reason)


def with_prefix(counters: Mapping[str, int], prefix: str) -> dict[str, int]:
    """Return the counters whose name begins with ``prefix``, without it."""
    return {name.removeprefix(prefix): count for name, count in counters.items() if name.startswith(prefix)}


def known_kinds(queues: Iterable[KindQueue]) -> list[KindQueue]:
    """Return the queue of every known job kind, empty ones included."""
    counted = {queue.kind: queue for queue in queues}
    return [counted.get(name, KindQueue(name)) for name in _KINDS]


def all_kinds(queues: list[KindQueue]) -> list[KindQueue]:
    """Return the known kinds, then the unknown ones that have jobs."""
    return known_kinds(queues) + [queue for queue in queues if queue.kind not in _KINDS]


def age_s(moment: str | None, now_ms: int) -> float | None:
    """Return the seconds since ``moment``, at least 0; None without a moment."""
    then_ms = None if moment is None else epoch_ms(moment)
    return None if then_ms is None else max(0, now_ms - then_ms) / 1000


def pending_by_kind(status: PipelineStatus | None) -> dict[str, int]:
    """Return the pending jobs of each kind; empty without a status."""
    return {} if status is None else {queue.kind: queue.pending for queue in status.queues}


def used(rows: Iterable[UsageReport], provider: str) -> tuple[int, int]:
    """Return the calls and the tokens that count against the provider's limits of the day."""
    own = [row for row in rows if row.provider == provider]
    return (
        sum(row.calls for row in own),
        sum(row.tokens_in + row.tokens_out + row.tokens_reserved for row in own),
    )


def waiting_reasons(pending: Mapping[str, int], config: Config, extractor: ExtractorStatus | None) -> list[str]:
    """Return why pending jobs (by kind) wait for more than a free slot; empty if none do (docs/decisions.md 14)."""
    if extractor is None:
        count = sum(pending.values())
        if not count:
            return []
        if not config.memory.pipeline_v2.enabled:
            why = "the pipeline is switched off (memory.pipelineV2.enabled)"
        else:
            why = "the extractor does not respond"
        return [f"{_jobs_wait(count)}: {why}; memories stay searchable"]
    paused = [runner for runner in extractor.runners if runner.paused_because and pending.get(runner.kind)]
    if not paused:
        return []
    reasons = "; ".join(f"{runner.kind}: {runner.paused_because}" for runner in paused)
    count = sum(pending[runner.kind] for runner in paused)
    return [f"{_jobs_wait(count)}; waiting uses no attempts, and memories stay searchable. {reasons}"]


def _jobs_wait(count: int) -> str:
    return "1 job waits" if count == 1 else f"{count} jobs wait"
