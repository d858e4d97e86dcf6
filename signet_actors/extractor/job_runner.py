"""The runner of one kind of job: leases jobs from the writer as slots become free and runs each in a task.

A runner leases nothing while its kind is paused, for example while the model's circuit is open, so that an outage costs
no attempts. An idle runner waits on one ``WatchJobs`` request at the writer. Each ``LeaseJobs`` request lists the
leases that the runner has, so that the writer can hand out again jobs of a reply that was lost. DESIGN.md "How an
attempt ends" lists the outcomes.

Source: memory-pipeline.txt "Worker Model"; docs/decisions.md 11-15; docs/reliability.md R6-R8, R11.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from signet_actors.config.schema import Config
from signet_actors.domain.jobs import PoisonJobs
from signet_actors.errors import ErrorCode, ProviderError, SignetError
from signet_actors.features.analytics.rules import job_error
from signet_actors.operations.pipeline import JobRunnerReport
from signet_actors.protocol.leases import FailJob, LeasedJob, LeaseJobs, RenewLease
from signet_actors.protocol.message import Request
from signet_actors.protocol.pipeline import HeldLease, JobMemory, ReleaseJobs, WatchJobs
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.sync_points import sync_point

if TYPE_CHECKING:
    from signet_actors.runtime.processes.async_actor import AsyncActor, AsyncRef

R = TypeVar("R")

WATCH_MS = 25_000
"""How long the writer may hold a ``WatchJobs`` request before it replies that there is no job."""
_REPLY_TIMEOUT_MS = 10_000
_DRAIN_REPLY_TIMEOUT_MS = 300
_REPORT_PAUSE_S = 0.2
_FULL_PAUSE_S = 2.0
_RENEWALS_PER_LEASE = 3


class Pause(NamedTuple):
    """Why a kind takes no jobs now, and for how long at least; ``for_ms`` None means until something changes."""

    reason: str
    for_ms: int | None = None


class JobKind(Protocol):
    """The interface of a job kind; each file in ``jobs/`` provides one."""

    name: str

    def slots(self, config: Config) -> int:
        """Return how many jobs of this kind may run at once."""

    def pause(self, config: Config) -> Pause | None:
        """Return why no job may be taken now, None if jobs may be taken."""

    def limit(self) -> int:
        """Return how many jobs may run at once in the present state of the model; at most ``slots``."""

    def healthy_since(self, moment_ns: int) -> bool:
        """Return True if the model or embedder has answered a call after ``moment_ns`` (monotonic)."""

    async def work(self, run: JobRun) -> None:
        """Work on the job and report its result through ``run``."""


class LeaseLost(SignetError):
    """Another process has the lease; nothing was applied."""


class JobRun:
    """One attempt at one job, under its lease."""

    def __init__(self, job: LeasedJob, writer: AsyncRef, clock: Clock, trace_id: str) -> None:
        self.job = job
        self.trace_id = trace_id
        self.began_ns = clock.monotonic_ns()
        self._writer = writer

    @property
    def subject(self) -> JobMemory:
        """The memory that the job is about. Only a job about a session has none."""
        assert self.job.subject is not None, "the writer leases no job whose memory was deleted"
        return self.job.subject

    async def report(self, request: Request[R], frames: Sequence[bytes] = ()) -> R:
        """Send ``request`` to the writer and return its reply after the commit.

        Raises LeaseLost, or the writer's error about the request itself. If the writer is busy or unavailable, the
        request is sent again for as long as the lease is renewed. It carries the lease id, so repeating a committed
        request changes nothing.
        """
        while True:
            sync_point("extractor.apply_sent")
            try:
                return await self._writer.ask(
                    request, trace_id=self.trace_id, timeout_ms=_REPLY_TIMEOUT_MS, frames=frames
                )
            except SignetError as error:
                if error.code is ErrorCode.LEASE_LOST:
                    raise LeaseLost from error
                if error.code not in _TRANSIENT:
                    raise
                full = error.code is ErrorCode.STORAGE_FULL
                await asyncio.sleep((error.retry_after_ms or 0) / 1000 + (_FULL_PAUSE_S if full else _REPORT_PAUSE_S))


_TRANSIENT = frozenset(
    {
        ErrorCode.BUSY,
        ErrorCode.UNAVAILABLE,
        ErrorCode.NOT_APPLIED,
        ErrorCode.OUTCOME_UNKNOWN,
        ErrorCode.STORAGE_FULL,
        ErrorCode.MUTATIONS_FROZEN,
    }
)


class JobRunner:
    """Leases and runs jobs of one kind; ``poison_jobs`` says for each lease request whether to include such."""

    def __init__(
        self,
        kind: JobKind,
        actor: AsyncActor,
        writer: AsyncRef,
        poison_jobs: Callable[[], PoisonJobs] = lambda: PoisonJobs.INCLUDED,
    ) -> None:
        self._poison_jobs = poison_jobs
        self._kind = kind
        self._actor = actor
        self._writer = writer
        self._log = actor.log.bind(job_kind=kind.name)
        self._running: dict[asyncio.Task[None], str] = {}
        """The lease id of each running attempt."""
        self._lease_reply_lost = False
        """Whether the writer may have leased jobs in a reply that was lost."""
        self._watching: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._paused_because = ""
        self._draining = False
        self._loop_task: asyncio.Task[None] | None = None
        self.done = 0
        self.failed = 0
        self.returned = 0
        self.fenced = 0

    def wake(self) -> None:
        """Check again for work: the configuration, the model or the number of free slots has changed."""
        self._changed.set()

    def pause(self) -> Pause | None:
        """Return why no jobs are taken now; its time left changes."""
        return self._kind.pause(self._actor.config)

    def state(self) -> JobRunnerReport:
        """Return the state. Attempts are done, failed (they count), returned (given back) or fenced (lease lost)."""
        pause = self.pause()
        return JobRunnerReport(
            kind=self._kind.name,
            slots=self._kind.slots(self._actor.config),
            running=len(self._running),
            paused_because=None if pause is None else pause.reason,
            done=self.done,
            failed=self.failed,
            returned=self.returned,
            fenced=self.fenced,
        )

    def start(self) -> None:
        """Start to lease and run jobs, until ``drain``."""
        self._loop_task = self._actor.spawn(self._run())

    async def _run(self) -> None:
        while not self._draining:
            self._changed.clear()
            pause = self.pause()
            self._note_pause(pause)
            free = 0 if pause is not None else self._free()
            if free == 0 and not self._lease_reply_lost:
                await self._wait_for_change(None if pause is None else pause.for_ms)
            elif not await self._lease_jobs(free) and free:
                await self._wait_for_jobs()

    def _free(self) -> int:
        return max(0, min(self._kind.slots(self._actor.config), self._kind.limit()) - len(self._running))

    async def drain(self, within_s: float) -> None:
        """Lease no more jobs; wait up to ``within_s`` for running ones, then give the attempts of the rest back."""
        self._draining = True
        self.wake()
        until = asyncio.get_running_loop().time() + within_s
        if self._loop_task is not None:
            await asyncio.wait({self._loop_task}, timeout=within_s)
        if self._watching is not None:
            self._watching.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=max(0.0, until - asyncio.get_running_loop().time()))
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

    def _note_pause(self, pause: Pause | None) -> None:
        reason = "" if pause is None else pause.reason
        if reason != self._paused_because:
            self._paused_because = reason
            if reason:
                self._log.info("jobs_paused", reason=reason)
            else:
                self._log.info("jobs_resumed")

    async def _wait_for_change(self, for_ms: int | None) -> None:
        try:
            async with asyncio.timeout(None if for_ms is None else max(for_ms, 1) / 1000):
                await self._changed.wait()
        except TimeoutError:
            pass

    async def _lease_jobs(self, free: int) -> bool:
        """Lease up to ``free`` jobs and start them; return False if the writer has none that may run now."""
        lease_ms = self._actor.config.memory.pipeline_v2.worker.lease_timeout_ms
        try:
            leased = await self._writer.ask(
                LeaseJobs((self._kind.name,), free, lease_ms, tuple(self._running.values()), self._poison_jobs()),
                # Well below the length of a lease: jobs of a lost reply are requested again before they expire.
                timeout_ms=min(_REPLY_TIMEOUT_MS, lease_ms // _RENEWALS_PER_LEASE),
                trace_id="",
            )
        except SignetError as error:
            self._lease_reply_lost |= error.code is ErrorCode.OUTCOME_UNKNOWN
            self._log.info("lease_request_failed", reason=error.detail)
            await self._wait_for_change(self._actor.config.memory.pipeline_v2.worker.poll_ms)
            return True
        self._lease_reply_lost = False
        for job in leased.jobs:
            sync_point("extractor.leased")
            task = self._actor.spawn(self._run_attempt(job, lease_ms))
            self._running[task] = job.lease_id
            task.add_done_callback(self._on_attempt_end)
        return bool(leased.jobs)

    def _on_attempt_end(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        self.wake()

    async def _wait_for_jobs(self) -> None:
        """Wait until the writer reports a job or something changes here; the request at the writer stays open."""
        if self._watching is None or self._watching.done():
            self._watching = self._actor.spawn(self._watch())
        await self._changed.wait()

    async def _watch(self) -> None:
        try:
            await self._writer.ask(
                WatchJobs((self._kind.name,), WATCH_MS, self._poison_jobs()),
                timeout_ms=WATCH_MS + _REPLY_TIMEOUT_MS,
                trace_id="",
            )
        except SignetError:
            await asyncio.sleep(self._actor.config.memory.pipeline_v2.worker.poll_ms / 1000)
        self.wake()

    async def _run_attempt(self, job: LeasedJob, lease_ms: int) -> None:
        """Run one attempt, renew its lease meanwhile, and report how it ended."""
        run = JobRun(job, self._writer, self._actor.clock, trace_id=job.id)
        log = self._log.bind(job=job.id, memory=job.memory_id, attempt=job.attempt)
        renewal = asyncio.create_task(self._renew_lease(job, lease_ms))
        work = asyncio.create_task(self._kind.work(run))
        try:
            await asyncio.wait({renewal, work}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise LeaseLost
            work.result()
        except LeaseLost:
            self.fenced += 1
            log.warning("fenced", reason="the lease was lost; nothing was applied")
        except asyncio.CancelledError:
            await self._stop(work)
            await self._give_back(job, "the daemon is stopping")
            raise
        except ProviderError as error:
            if error.costs_attempt and self._kind.healthy_since(run.began_ns):
                await self._fail(job, error.detail, job_error(self._kind.name, error))
            else:
                await self._give_back(job, error.detail, job_error(self._kind.name, error))
        except SignetError as error:
            log.warning("job_failed", reason=error.detail)
            await self._fail(job, error.detail, job_error(self._kind.name, error))
        except Exception as error:
            log.exception("job_crashed")
            await self._fail(job, f"the job crashed with {type(error).__name__}")
        else:
            self.done += 1
        finally:
            await self._stop(renewal)
            await self._stop(work)

    async def _stop(self, task: asyncio.Task[None]) -> None:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})

    async def _renew_lease(self, job: LeasedJob, lease_ms: int) -> None:
        """Renew the lease until it is lost. It also counts as lost if the writer is unavailable for a whole lease."""
        lost_at_ns = self._actor.clock.monotonic_ns() + lease_ms * 1_000_000
        while True:
            await asyncio.sleep(lease_ms / _RENEWALS_PER_LEASE / 1000)
            try:
                await self._writer.ask(
                    RenewLease(job.id, job.lease_id, lease_ms), timeout_ms=_REPLY_TIMEOUT_MS, trace_id=job.id
                )
            except SignetError as error:
                if error.code is ErrorCode.LEASE_LOST or self._actor.clock.monotonic_ns() >= lost_at_ns:
                    return
            else:
                lost_at_ns = self._actor.clock.monotonic_ns() + lease_ms * 1_000_000

    async def _fail(self, job: LeasedJob, reason: str, code: str | None = None) -> None:
        if await self._report_end(FailJob(job.id, job.lease_id, reason, code), job):
            self.failed += 1

    async def _give_back(self, job: LeasedJob, reason: str, code: str | None = None) -> None:
        """Give the attempt back; the writer delays the job, longer each time, behind others of its kind."""
        self._log.info("attempt_returned", job=job.id, reason=reason)
        if await self._report_end(ReleaseJobs((HeldLease(job.id, job.lease_id),), reason, code), job):
            self.returned += 1

    async def _report_end(self, request: Request[object], job: LeasedJob) -> bool:
        """Report the end of an attempt once; return False, and count it as fenced, if the lease was lost.

        If the report fails for another reason, the lease reaper acts when the lease has expired.
        """
        try:
            timeout_ms = _DRAIN_REPLY_TIMEOUT_MS if self._draining else _REPLY_TIMEOUT_MS
            await self._writer.ask(request, timeout_ms=timeout_ms, trace_id=job.id)
        except SignetError as error:
            self._log.warning("attempt_end_not_reported", job=job.id, reason=error.detail)
            if error.code is ErrorCode.LEASE_LOST:
                self.fenced += 1
                return False
        return True
