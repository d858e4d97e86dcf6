"""Clients and workers of the simulated daemon, and a ledger of everything that was acknowledged to them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from signet_actors.domain.extraction.facts import Fact
from signet_actors.domain.extraction.proposals import Proposal
from signet_actors.errors import Busy, ErrorCode, OutcomeUnknown, Unavailable
from signet_actors.protocol.leases import (
    CompleteJob,
    FailJob,
    JobsLeased,
    LeasedJob,
    LeaseJobs,
    LeaseRenewed,
    RenewLease,
)
from signet_actors.protocol.message import Failure, Idempotency, Principal, Request
from signet_actors.protocol.pipeline import ApplyProposals, HeldLease, JobsReleased, ReleaseJobs, WatchJobs
from signet_actors.protocol.writer import (
    ForgetMemory,
    MemoryPatch,
    ModifyMemory,
    NewMemory,
    RecoverMemory,
    Remember,
    Remembered,
)
from tests.sim.daemon import SimDaemon
from tests.sim.processes import ClientIncarnation, Incarnation
from tests.sim.world import NS, Promise, Script

PRINCIPAL = Principal(changed_by="sim")
TRIES = 12
LEASE_MS = 4_000
KINDS = ("extract", "embed")
FACTS_OF_A_JOB = 2
SLOW = 0.15
"""Share of jobs that take about as long as their lease lasts, while there are faults."""
REFUSED = frozenset({ErrorCode.BUSY, ErrorCode.NOT_APPLIED, ErrorCode.UNAVAILABLE, ErrorCode.STORAGE_FULL})


class Refused(Exception):
    """The request was certainly not applied."""


class Unknown(Exception):
    """The request may have been applied."""


@dataclass
class Known:
    """A memory as its client expects it. ``unsure``: a change of it has an unknown outcome."""

    id: str
    content: str
    version: int = 1
    deleted: bool = False
    unsure: bool = False


@dataclass
class Grant:
    """A leased job and the process that holds it."""

    job: LeasedJob
    worker: str
    granted_ns: int
    expires_ns: int
    incarnation: Incarnation
    over: bool = False

    @property
    def ended(self) -> bool:
        """Return True if the lease was given up or its holder was killed."""
        return self.over or not self.incarnation.alive


@dataclass
class Ledger:
    """What was acknowledged, refused and left unknown; ``wrong`` lists violations found during the run."""

    known: dict[str, Known] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    open: set[str] = field(default_factory=set)
    grants: dict[str, list[Grant]] = field(default_factory=dict)
    completed: Counter[str] = field(default_factory=Counter)
    results: dict[str, str] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)
    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def granted(self, incarnation: Incarnation, leased: JobsLeased, lease_ms: int = LEASE_MS) -> list[Grant]:
        """Record the leases; a job that another live holder still has is a violation."""
        worker = incarnation.name
        grants = []
        for job in leased.jobs:
            granted_ns = leased.expires_ns - lease_ms * 1_000_000
            for other in self.grants.get(job.id, []):
                if not other.ended and other.job.lease_id != job.lease_id and other.expires_ns > granted_ns:
                    self.wrong.append(f"job {job.id} is leased twice: {other.worker} and {worker}")
            if job.attempt > job.max_attempts:
                self.wrong.append(f"job {job.id} has attempt {job.attempt} of {job.max_attempts}")
            grant = Grant(job, worker, granted_ns, leased.expires_ns, incarnation)
            self.grants.setdefault(job.id, []).append(grant)
            grants.append(grant)
        return grants


def answer_of(daemon: SimDaemon, name: str, request: Request[Any]) -> Generator[Promise | float, Any, Any]:
    """Return the writer's reply to the request of the process ``name``; raises Refused or Unknown."""
    incarnation = daemon.incarnation(name)
    if not isinstance(incarnation, ClientIncarnation):
        raise Refused
    try:
        answer = yield incarnation.ask(request)
    except (Busy, Unavailable):
        raise Refused from None
    except OutcomeUnknown:
        raise Unknown from None
    if isinstance(answer, Failure):
        if answer.code in REFUSED:
            raise Refused
        if answer.code is ErrorCode.OUTCOME_UNKNOWN:
            raise Unknown
    return answer


def insisting(daemon: SimDaemon, ledger: Ledger, request: Request[Any]) -> Generator[Promise | float, Any, Any]:
    """Send the request with the same key until it is answered; raises Refused or Unknown after many tries."""
    unknown = False
    for attempt in range(TRIES):
        try:
            answer = yield from answer_of(daemon, "gateway", request)
        except Refused:
            ledger.answers["refused"] += 1
        except Unknown:
            ledger.answers["unknown"] += 1
            unknown = True
        else:
            return answer
        yield 0.05 * 1.6**attempt
    raise Unknown if unknown else Refused


def client(daemon: SimDaemon, ledger: Ledger, name: str, rng: random.Random, until_ns: int) -> Script:
    """Remember, change, forget and recover memories, one after the other."""
    mine: list[Known] = []
    number = 0
    while daemon.world.now_ns < until_ns:
        number += 1
        sure = [known for known in mine if not known.unsure]
        if not sure or rng.random() < 0.55:
            known = yield from _remember(daemon, ledger, f"{name} says number {number}", keyed=rng.random() < 0.7)
            if known is not None:
                mine.append(known)
        else:
            yield from _change(daemon, ledger, rng.choice(sure), number, rng)
        yield rng.uniform(0.0, 0.4)


def _remember(
    daemon: SimDaemon, ledger: Ledger, content: str, *, keyed: bool
) -> Generator[Promise | float, Any, Known | None]:
    memory = NewMemory(content=content, type="fact", importance=0.5)
    key = Idempotency(content, "digest") if keyed else None
    request = Remember(memory, PRINCIPAL, idempotency=key)
    try:
        if keyed:
            answer = yield from insisting(daemon, ledger, request)
        else:
            answer = yield from answer_of(daemon, "gateway", request)
    except Refused:
        ledger.refused.add(content)
        return None
    except Unknown:
        ledger.open.add(content)
        return None
    ledger.answers["remembered"] += 1
    if not isinstance(answer, Remembered) or answer.content != content or answer.deduped:
        ledger.wrong.append(f"a new memory was answered {answer}")
        return None
    if answer.id in ledger.known:
        ledger.wrong.append(f"two memories have the id {answer.id}")
    known = ledger.known[answer.id] = Known(answer.id, content)
    return known


def _change(
    daemon: SimDaemon, ledger: Ledger, known: Known, number: int, rng: random.Random
) -> Generator[Promise | float, Any, None]:
    key = Idempotency(f"{known.id} {number}", "digest")
    content = known.content
    request: Request[Any]
    if known.deleted:
        request = RecoverMemory(known.id, "sim", PRINCIPAL, idempotency=key)
    elif rng.random() < 0.3:
        request = ForgetMemory(known.id, "sim", PRINCIPAL, idempotency=key)
    else:
        content = f"{known.content.split(' [')[0]} [changed {number}]"
        patch = MemoryPatch(id=known.id, reason="sim", content=content)
        request = ModifyMemory(patch, PRINCIPAL, idempotency=key)
    try:
        answer = yield from insisting(daemon, ledger, request)
    except Refused:
        return
    except Unknown:
        known.unsure = True
        return
    version = getattr(answer, "version", None) or getattr(answer, "new_version", None)
    ledger.answers[type(request).__name__] += 1
    if version != known.version + 1:
        ledger.wrong.append(f"{request} on version {known.version} was answered {answer}")
        known.unsure = True
        return
    known.version += 1
    known.content = content
    if not isinstance(request, ModifyMemory):
        known.deleted = isinstance(request, ForgetMemory)


def worker(daemon: SimDaemon, ledger: Ledger, name: str, rng: random.Random, slow: float = SLOW) -> Script:
    """Lease jobs like an extractor, work for a shorter or longer time than the lease lasts, and report. ``slow`` is the
    share of long jobs while there are faults.
    """
    while True:
        incarnation = daemon.incarnation(name)
        try:
            leased = yield from answer_of(daemon, name, LeaseJobs(KINDS, rng.randint(1, 6), LEASE_MS))
        except (Refused, Unknown):
            leased = None
        if incarnation is None or not isinstance(leased, JobsLeased) or not leased.jobs:
            yield rng.uniform(0.3, 0.8)
            if rng.random() < 0.5:
                try:
                    yield from answer_of(daemon, name, WatchJobs(KINDS, 2_000))
                    ledger.answers["called"] += 1
                except (Refused, Unknown):
                    continue
            continue
        for grant in ledger.granted(incarnation, leased):
            yield from _work(daemon, ledger, grant, rng, slow)
            if not incarnation.alive:
                break  # the next incarnation does not know the other jobs


def _work(
    daemon: SimDaemon, ledger: Ledger, grant: Grant, rng: random.Random, slow: float
) -> Generator[Promise | float, Any, None]:
    incarnation = daemon.incarnation(grant.worker)
    job = grant.job
    yield rng.uniform(3.0, 7.0) if daemon.faulty and rng.random() < slow else rng.uniform(0.01, 0.1)
    if incarnation is None or not incarnation.alive:
        return
    if rng.random() < 0.3:
        try:
            renewed = yield from answer_of(daemon, grant.worker, RenewLease(job.id, job.lease_id, LEASE_MS))
        except (Refused, Unknown):
            renewed = None
        if isinstance(renewed, LeaseRenewed):
            grant.expires_ns = renewed.expires_ns
    report = _report(grant, rng)
    grant.over = True
    try:
        answer = yield from answer_of(daemon, grant.worker, report)
    except (Refused, Unknown):
        return
    if isinstance(answer, Failure):
        if answer.code is not ErrorCode.LEASE_LOST:
            ledger.wrong.append(f"{report} was answered {answer}")
        ledger.answers["fenced"] += 1
    elif isinstance(answer, JobsReleased):
        ledger.answers["released"] += answer.released
    elif not isinstance(report, FailJob):
        ledger.completed[job.id] += 1
        if isinstance(report, ApplyProposals) and answer.run_id is not None:
            ledger.runs[job.id] = report.run_id
            ledger.answers["applied"] += 1
        elif isinstance(report, CompleteJob):
            ledger.results[job.id] = str(report.result)


def _report(grant: Grant, rng: random.Random) -> Request[Any]:
    """Return the worker's report on a job: failed, provider unavailable, completed, or facts."""
    job = grant.job
    chance = rng.random()
    if chance < 0.1:
        return FailJob(job.id, job.lease_id, "sim")
    if chance < 0.2:
        return ReleaseJobs((HeldLease(job.id, job.lease_id),), "sim")
    if chance < 0.5 or job.kind != "extract":
        return CompleteJob(job.id, job.lease_id, f"{grant.worker} {job.attempt} {job.lease_id}")
    facts = tuple(
        Proposal("add", Fact(f"{job.id} came to fact {number}", "fact", 0.9), 0.9, "sim")
        for number in range(FACTS_OF_A_JOB)
    )
    return ApplyProposals(job.id, job.lease_id, f"run {job.lease_id}", "full", "sim", "sim", facts)


def safe_until_ns(safe_s: float) -> int:
    """Return when the clients send no more new requests."""
    return NS + int(safe_s * NS)
