"""How attempts at jobs end, and that each of them is counted once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from signet_actors.config.schema import Config
from signet_actors.errors import ErrorCode, ProviderError, ProviderErrorKind, SignetError, UnusableAnswer
from signet_actors.extractor.job_runner import JobRun, JobRunner, Pause
from signet_actors.extractor.jobs.extract import Extract
from signet_actors.extractor.jobs.model_job import ModelJob
from signet_actors.extractor.jobs.score_session import ScoreSession
from signet_actors.extractor.jobs.summarize import Summarize
from signet_actors.protocol.control import RESTARTING, UP, ChildState, TreeChanged
from signet_actors.protocol.leases import CompleteJob, FailJob, JobsLeased, LeasedJob, LeaseJobs
from signet_actors.protocol.pipeline import JobMemory, ReleaseJobs, WatchJobs
from signet_actors.runtime.clock import SystemClock

AWAY = ProviderError(ProviderErrorKind.UNAVAILABLE, "the model is away")
SUBJECT = JobMemory("memory", "text", "hash", 1, "fact", 0.5, "default", "global", "2026-01-01T00:00:00.000Z")


class Writer:
    """Leases one job; refuses the report about it with ``refusal``, if there is one."""

    def __init__(self, refusal: ErrorCode | None = None) -> None:
        self.refusal = refusal
        self.leased = False
        self.reports: list[type] = []
        self.reported = asyncio.Event()

    async def ask(self, request: Any, *, trace_id: str = "", timeout_ms: int, frames: Sequence[bytes] = ()) -> Any:
        assert timeout_ms > 0
        match request:
            case LeaseJobs():
                jobs = [] if self.leased else [LeasedJob("job", "fake", "lease", 1, 3, "memory", None, SUBJECT)]
                self.leased = True
                return JobsLeased(jobs, 0)
            case WatchJobs():
                await asyncio.Event().wait()
            case FailJob() | ReleaseJobs() | CompleteJob():
                self.reports.append(type(request))
                self.reported.set()
                if self.refusal is not None:
                    raise SignetError("refused", code=self.refusal)
            case _:
                raise AssertionError(request)
        return None


class FakeKind:
    """A kind whose one job reports a result, or fails with ``error``."""

    name = "fake"

    def __init__(self, error: Exception | None) -> None:
        self.error = error

    def slots(self, config: Config) -> int:
        return 1

    def pause(self, config: Config) -> Pause | None:
        return None

    def limit(self) -> int:
        return 1

    def healthy_since(self, moment_ns: int) -> bool:
        return True

    async def work(self, run: JobRun) -> None:
        if self.error is not None:
            raise self.error
        await run.report(CompleteJob(run.job.id, run.job.lease_id, "{}"))


def attempt(error: Exception | None, refusal: ErrorCode | None) -> tuple[dict[str, int], list[type]]:
    """Run one attempt; return the counts of its ends that are not zero, and the reports."""
    writer = Writer(refusal)

    async def until_it_ended() -> dict[str, int]:
        loop = asyncio.get_running_loop()
        log = structlog.get_logger()
        actor: Any = SimpleNamespace(clock=SystemClock(), config=Config(), log=log, spawn=loop.create_task)
        runner = JobRunner(FakeKind(error), actor, writer)  # type: ignore[arg-type]
        runner.start()
        async with asyncio.timeout(60):
            await writer.reported.wait()
            await runner.drain(60.0)
        state = runner.state()
        ends = {"done": state.done, "failed": state.failed, "returned": state.returned, "fenced": state.fenced}
        return {end: count for end, count in ends.items() if count}

    return asyncio.run(until_it_ended()), writer.reports


@pytest.mark.parametrize(
    ("error", "refusal", "end", "report"),
    [
        (None, None, "done", CompleteJob),
        (UnusableAnswer("no JSON"), None, "failed", FailJob),
        (RuntimeError("a bug"), None, "failed", FailJob),
        (AWAY, None, "returned", ReleaseJobs),
        (None, ErrorCode.LEASE_LOST, "fenced", CompleteJob),
        (UnusableAnswer("no JSON"), ErrorCode.LEASE_LOST, "fenced", FailJob),
        (AWAY, ErrorCode.LEASE_LOST, "fenced", ReleaseJobs),
        (UnusableAnswer("no JSON"), ErrorCode.UNAVAILABLE, "failed", FailJob),
        (AWAY, ErrorCode.UNAVAILABLE, "returned", ReleaseJobs),
    ],
)
def test_each_attempt_is_counted_once_by_its_end(
    error: Exception | None, refusal: ErrorCode | None, end: str, report: type
) -> None:
    assert attempt(error, refusal) == ({end: 1}, [report])


@pytest.mark.parametrize(("kind", "role"), [(Extract, "decider"), (Summarize, "searcher"), (ScoreSession, "searcher")])
def test_no_attempt_is_spent_while_the_process_that_a_job_asks_is_away(kind: type[ModelJob], role: str) -> None:
    actor = SimpleNamespace(clock=SystemClock(), tree=TreeChanged([]))
    job = kind(SimpleNamespace(actor=actor, model=SimpleNamespace(waits=lambda: None)))  # type: ignore[arg-type]
    name = f"{role}-1"
    for children, waits in (
        ([], True),
        ([ChildState(name, role, RESTARTING, 1, 0, None)], True),
        ([ChildState(name, role, UP, 2, 1, 1)], False),
        ([ChildState(name, role, UP, 2, 1, 1), ChildState(f"{role}-2", role, RESTARTING, 1, 0, None)], False),
    ):
        actor.tree = TreeChanged(children)
        pause = job.pause(Config())
        assert (pause.reason if pause else None) == (f"no {role} is up" if waits else None)
