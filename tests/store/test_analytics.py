"""Stored figures: errors of jobs in a ring, minutes of a day, usage of providers, durations of jobs."""

from __future__ import annotations

from pathlib import Path

from signet_actors.domain.timestamps import iso
from signet_actors.features.analytics import reads
from signet_actors.features.analytics.api import (
    EndpointUsage,
    ErrorEvent,
    FindFigures,
    MinuteFigures,
    StoredFigures,
    StoreFigures,
    Totals,
)
from signet_actors.features.analytics.rules import MAX_ERRORS
from signet_actors.features.telemetry import reads as telemetry
from signet_actors.features.telemetry.api import FindEvents, StoreEvents, TelemetryEvent
from signet_actors.operations.pipeline import LatencyReport
from signet_actors.protocol.leases import CompleteJob, FailJob
from signet_actors.protocol.pipeline import HeldLease, RecordUsage, ReleaseJobs
from signet_actors.protocol.writer import PurgeStep
from tests.support.pipeline_harness import PipelineHarness

NONE = LatencyReport()


def stored(room: PipelineHarness, *parts: str, since: str = "") -> StoredFigures:
    with room.reader.open_snapshot() as snapshot:
        return reads.found(snapshot, FindFigures(parts, since))


def minute(at: str, requests: int = 1) -> MinuteFigures:
    return MinuteFigures(minute=at, requests=requests, errors=0, remember=NONE, recall=NONE, mutate=NONE)


def test_an_attempt_that_failed_or_was_given_back_is_recorded_once_with_its_memory(tmp_path: Path) -> None:
    room = PipelineHarness(tmp_path)
    first, second = (room.remember(text).id for text in ("the first text", "the second text"))
    job, other = room.take_all(limit=2)
    room.ask(FailJob(job.id, job.lease_id, "the secret words of the first text", "EXTRACTION_TIMEOUT"))
    room.ask(ReleaseJobs((HeldLease(other.id, other.lease_id),), "away", "EXTRACTION_PARSE_FAIL"))
    found = stored(room, "errors").errors
    assert [(error.code, error.stage, error.memory_id) for error in found] == [
        ("EXTRACTION_PARSE_FAIL", "extraction", second),
        ("EXTRACTION_TIMEOUT", "extraction", first),
    ]
    assert "secret words" not in str(found)


def test_the_newest_errors_are_kept(tmp_path: Path) -> None:
    room = PipelineHarness(tmp_path)
    for start in range(0, MAX_ERRORS + 100, 100):
        errors = tuple(
            ErrorEvent(
                timestamp=iso(start + at),
                stage="mutation",
                code="MUTATION_CONFLICT",
                message="m",
                actor=f"{start + at}",
            )
            for at in range(100)
        )
        room.ask(StoreFigures(totals=Totals(), minute=minute(iso(start)), errors=errors))
    found = stored(room, "errors").errors
    assert len(found) == MAX_ERRORS
    assert (found[0].actor, found[-1].actor) == (str(MAX_ERRORS + 99), "100")


def test_minutes_are_kept_for_a_day_and_the_sums_are_replaced(tmp_path: Path) -> None:
    room = PipelineHarness(tmp_path)
    assert stored(room, "totals").totals is None
    for at, count in (
        ("2026-02-20T10:00:00.000Z", 1),
        ("2026-02-21T09:00:00.000Z", 2),
        ("2026-02-21T10:00:01.000Z", 3),
    ):
        totals = Totals(
            since="2026-01-01", endpoints={"GET /x": EndpointUsage(count, 0, 1.5)}, samples={"recall": [count]}
        )
        room.ask(StoreFigures(totals=totals, minute=minute(at, count)))
    found = stored(room, "totals", "minutes")
    assert found.totals == totals
    assert [row.requests for row in found.minutes] == [2, 3]
    assert [row.requests for row in stored(room, "minutes", since="2026-02-21T09:30").minutes] == [3]


def test_usage_of_providers_is_summed_over_days_and_jobs_have_durations(tmp_path: Path) -> None:
    room = PipelineHarness(tmp_path)
    for day, calls, failures in (("2026-02-20", 2, 1), ("2026-02-21", 3, 0)):
        room.ask(RecordUsage("ollama", "m", day, calls=calls, failures=failures, took_ms=1500))
    usage = stored(room, "providers").providers["ollama"]
    assert (usage.calls, usage.failures, usage.total_latency_ms) == (5, 1, 3000)
    room.remember("a text with a job")
    job = room.take()
    room.clock.advance(250)
    room.ask(CompleteJob(job.id, job.lease_id))
    assert stored(room, "jobs").jobs_ms == [250.0]


def test_telemetry_is_found_by_name_and_time_and_deleted_by_age(tmp_path: Path) -> None:
    room = PipelineHarness(tmp_path)
    rows = tuple(TelemetryEvent(iso(at), name, {"ms": at}) for at, name in ((1, "a"), (2, "b"), (3, "a")))
    room.ask(StoreEvents(events=rows))
    with room.reader.open_snapshot() as snapshot:
        assert telemetry.found(snapshot, FindEvents(10, event="a")).events == [rows[2], rows[0]]
        assert telemetry.found(snapshot, FindEvents(10, since=iso(2), until=iso(2))).events == [rows[1]]
        assert telemetry.found(snapshot, FindEvents(1)).durations == {"a": [3]}
    assert room.ask(PurgeStep(step="telemetry_events", cutoff=iso(3), limit=1)).count == 1
    with room.reader.open_snapshot() as snapshot:
        assert telemetry.found(snapshot, FindEvents(10)).events == [rows[2], rows[1]]
