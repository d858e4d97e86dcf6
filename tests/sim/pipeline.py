"""The pipeline in virtual time: the real writer, leases, job runners, jobs, decider, guards and circuit breakers.

The model fails, messages are lost and duplicated, processes crash and hang, and the wall clock jumps.

``python -m tests.sim.pipeline --seed 17`` replays a run; ``--seeds 10000`` tries so many, ``--first`` from another
number on, ``--jobs`` in so many processes.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import msgspec

from signet_actors.config.pipeline_schema import ExtractionConfig
from signet_actors.config.schema import Config
from signet_actors.domain.extraction.answers import AnswerFormat
from signet_actors.domain.providers import Selection
from signet_actors.errors import ProviderError, ProviderErrorKind
from signet_actors.extractor.job_runner import JobRunner
from signet_actors.protocol.leases import FailJob, JobsLeased, LeasedJob, LeaseRenewed, RenewLease
from signet_actors.protocol.message import Principal
from signet_actors.protocol.pipeline import ApplyProposals, ReleaseJobs, StoreHints
from signet_actors.protocol.writer import NewMemory, Remember, Remembered, WriterReply
from signet_actors.providers.llm import provider_manager
from signet_actors.providers.llm.provider import Availability, Generated
from signet_actors.providers.llm.select import Selected
from signet_actors.runtime.messaging.envelope import decode_header
from signet_actors.runtime.supervision.children import ChildSpec
from signet_actors.searcher.reader import Reader
from signet_actors.store.sqlite.connect import open_reader, open_writer
from signet_actors.store.sqlite.reader import read_engine
from signet_actors.writer.dispatch import MAILBOX
from tests.sim.async_processes import AsyncIncarnation, DeciderIncarnation, ExtractorIncarnation, IncarnationLoop
from tests.sim.daemon import SimDaemon, watched
from tests.sim.faults import EIO_POINTS, POINTS, Fault, Weather, weather_of
from tests.sim.processes import INCARNATIONS, Incarnation, Killed, WriterIncarnation
from tests.sim.run import empty_database, every_second, private_directory
from tests.sim.seeds import Run, main
from tests.sim.workload import Idempotency, Ledger, Refused, Unknown, insisting
from tests.sim.world import NS, Script, World
from tests.support.scripted_model import ScriptedModel, data_of, stage_of
from tests.support.scripted_provider import Act, Asked
from tests.support.store_room import broken_invariants

TREE = (
    ChildSpec("writer", "writer", core=True),
    ChildSpec("retention", "retention", core=False),
    ChildSpec("gateway", "gateway", core=True),
    ChildSpec("decider", "decider", core=False),
    ChildSpec("extractor", "extractor", core=False),
    ChildSpec("quarantine", "quarantine", core=False, after_crash_of="extractor"),
)
ROLES = tuple(spec.role for spec in TREE if not spec.after_crash_of)
PIPELINE_POINTS = (
    "extractor.leased",
    "extractor.prompt_sent",
    "extractor.parsed",
    "extractor.embed_done",
    "extractor.apply_sent",
    "decider.prompt_sent",
)
CLOCK_JUMPS_MS = (-5_000, 3_600_000, -3_600_000, 10 * 365 * 86_400_000, -10 * 365 * 86_400_000)
LEASE_MS = 10_000
CLIENTS = 2
FAULTS_END_S = 10.0
LIVENESS_S = 400.0
POISON: Mapping[str, str] = {"nightshade": "extraction", "hemlock": "decision"}
"""A process that calls the model in this stage for a text with this word is killed."""
CALM = Weather(delay_s=(0.0001, 0.001), lost=0.0, doubled=0.0, work_s=(0.0002, 0.001))
GARBAGE = ("", "I am sorry", '{"facts": [', "[1, 2]", '{"action": "destroy"}')
"""Unusable answers. A readable answer without a valid decision ends the fact, as documented."""
_INCARNATIONS = {
    **INCARNATIONS,
    "extractor": ExtractorIncarnation,
    "quarantine": ExtractorIncarnation,
    "decider": DeciderIncarnation,
}


@dataclass(frozen=True)
class Model:
    """The behaviour of the model: seconds per answer, shares of failing calls, and its outages.

    ``away`` holds ``(from_s, until_s, how)``; how is ``refuses``, ``hangs`` or ``limits``.
    """

    takes_s: tuple[float, float] = (0.01, 0.2)
    garbage: float = 0.0
    errors: float = 0.0
    hangs: float = 0.0
    away: tuple[tuple[float, float, str], ...] = ()


def model_of(rng: random.Random) -> Model:
    """Return the model of a seed; a third of the seeds have no failures."""
    shares = (0.0, 0.0, 0.05, 0.25)
    away = []
    for _ in range(rng.choice((0, 0, 1, 2))):
        since = rng.uniform(1.0, FAULTS_END_S - 3)
        away.append((since, since + rng.uniform(0.5, 6.0), rng.choice(("refuses", "hangs", "limits"))))
    return Model(
        takes_s=(0.01, rng.choice((0.1, 1.0, 4.0))),
        garbage=rng.choice(shares),
        errors=rng.choice(shares),
        hangs=rng.choice(shares),
        away=tuple(away),
    )


def config_of(rng: random.Random) -> Config:
    """Return a configuration with short leases and pauses; some seeds also use hints and updates."""
    config = msgspec.convert(
        {
            "embedding": {"provider": "none"},
            "memory": {
                "pipelineV2": {
                    "extraction": {
                        "provider": "ollama",
                        "timeout": 5_000,
                        "concurrency": rng.choice((1, 2, 4)),
                        "breaker": {"cooldownMs": 1_000, "maxCooldownMs": 8_000},
                    },
                    "worker": {"leaseTimeoutMs": LEASE_MS},
                    "hints": {"enabled": rng.random() < 0.3},
                    "autonomous": {"allowUpdateDelete": rng.random() < 0.5},
                }
            },
        },
        Config,
    )
    assert isinstance(config, Config)
    return config


def faults_for(seed: int) -> list[Fault]:
    """Return up to ten faults of this seed, of a random half of the kinds."""
    rng = random.Random(f"pipeline faults {seed}")
    kinds = rng.sample(("kill", "stop", "point", "pipeline point", "eio", "cut", "clock"), rng.randint(1, 5))
    faults = []
    for _ in range(rng.randint(1, 10)):
        at_s, kind = round(rng.uniform(1.0, FAULTS_END_S - 4), 4), rng.choice(kinds)
        match kind:
            case "kill":
                faults.append(Fault(at_s, kind, rng.choice((*ROLES, "extractor", "extractor", "decider"))))
            case "stop":
                faults.append(Fault(at_s, kind, rng.choice(ROLES), round(rng.uniform(0.1, 4.0), 4)))
            case "cut":
                faults.append(Fault(at_s, kind, rng.choice(("extractor", "decider")), round(rng.uniform(1.0, 14.0), 4)))
            case "clock":
                faults.append(Fault(at_s, kind, "", rng.choice(CLOCK_JUMPS_MS)))
            case "pipeline point":
                faults.append(Fault(at_s, "point", rng.choice(PIPELINE_POINTS), rng.randint(1, 8)))
            case _:
                points = EIO_POINTS if kind == "eio" else POINTS
                faults.append(Fault(at_s, kind, rng.choice(points), rng.randint(1, 30)))
    return sorted(faults)


class Witness:
    """Derives from the extractor's messages which leases it assumes to hold."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._decode = msgspec.msgpack.Decoder(MAILBOX).decode
        self._asked_by: dict[str, Incarnation] = {}
        self._renewals: dict[str, str] = {}
        self._grants: dict[str, Any] = {}

    def said(self, incarnation: Incarnation, parts: list[bytes]) -> None:
        command, message_id = self._decode(parts[1]), decode_header(parts[0]).message_id
        self._asked_by[message_id] = incarnation
        match command:
            case RenewLease():
                self._renewals[message_id] = command.lease_id
            case FailJob() | ApplyProposals() | StoreHints():
                self._over(command.lease_id)
            case ReleaseJobs():
                for held in command.leases:
                    self._over(held.lease_id)
            case _:
                pass

    def heard(self, incarnation: Incarnation, message_id: str, body: Any) -> None:
        if self._asked_by.get(message_id) is not incarnation:
            return  # a reply to an earlier incarnation, which never learns of these leases
        if isinstance(body, JobsLeased):
            new = [job for job in body.jobs if job.lease_id not in self._grants]
            for grant in self._ledger.granted(incarnation, JobsLeased(new, body.expires_ns), LEASE_MS):
                self._grants[grant.job.lease_id] = grant
        elif isinstance(body, LeaseRenewed):
            grant = self._grants.get(self._renewals.get(message_id, ""))
            if grant is not None:
                grant.expires_ns = max(grant.expires_ns, body.expires_ns)

    def _over(self, lease_id: str) -> None:
        if lease_id in self._grants:
            self._grants[lease_id].over = True


class PipelineDaemon(SimDaemon):
    """The daemon with extractor, decider and their model."""

    def __init__(
        self, world: World, weather: Weather, workspace: Path, model: Model, ledger: Ledger, config: Config
    ) -> None:
        self.model = model
        self.crashes: list[str] = []
        self.graves: list[IncarnationLoop] = []
        self.witness = Witness(ledger)
        self.prompts: Counter[str] = Counter()
        self.mind = ScriptedModel(
            {"Since then": {"action": "update", "targetId": 1, "confidence": 0.9, "reason": "new"}}
        )
        self._reader: Reader | None = None
        self._replies = msgspec.msgpack.Decoder(WriterReply)
        self._grants_to_lose = 0
        self.grants_lost = 0
        super().__init__(
            world, weather, workspace, empty_database(), tree=TREE, incarnations=_INCARNATIONS, config=config
        )
        self.network.swallows = self._swallows

    def suffer(self, fault: Fault) -> None:
        if fault.kind == "grant":
            self._grants_to_lose += int(fault.amount)
        super().suffer(fault)

    def _swallows(self, to: str, parts: list[bytes]) -> bool:
        """Return True if the reply contains leased jobs and such a reply is to be lost."""
        if not self._grants_to_lose or to != "extractor":
            return False
        reply = self._replies.decode(parts[1])
        if not isinstance(reply, JobsLeased) or not reply.jobs:
            return False
        self._grants_to_lose -= 1
        self.grants_lost += 1
        return True

    def reader(self) -> Reader:
        """A searcher's view of the store."""
        if self._reader is None:
            index = self.workspace.root / "index"
            self._reader = Reader(read_engine(self.workspace.database), index, self.world, read_timeout_ms=10_000)
        return self._reader

    def bury(self) -> None:
        """Run the tasks of killed processes to their end."""
        former, self.running = self.running, None
        try:
            while self.graves:
                self.graves.pop().bury()
        finally:
            self.running = former

    def close(self) -> None:
        super().close()
        self.bury()
        if self._reader is not None:
            self._reader.close()

    def away(self) -> str | None:
        """Return how the model is unavailable now, or None."""
        now_s = (self.world.now_ns - NS) / NS
        return next((how for since, until, how in self.model.away if since <= now_s < until), None)


class SimModel:
    """The model behind the guard of one incarnation."""

    name = "ollama"
    model = "qwen3:4b"
    endpoint = "http://127.0.0.1:11434"
    structured = True

    def __init__(self, daemon: PipelineDaemon, incarnation: AsyncIncarnation) -> None:
        self._daemon = daemon
        self._incarnation = incarnation

    async def generate(
        self, prompt: str, *, timeout_ms: int, max_tokens: int | None = None, answer: AnswerFormat | None = None
    ) -> Generated:
        daemon, model, rng = self._daemon, self._daemon.model, self._daemon.world.rng
        stage = stage_of(prompt)
        daemon.prompts[stage] += 1
        if any(stage == at and word in data_of(prompt)[0] for word, at in POISON.items()):
            self._incarnation.struck()
            raise Killed
        away = daemon.away()
        if away is None and daemon.faulty and rng.random() < model.hangs:
            away = "hangs"
        if away == "hangs":
            await asyncio.sleep(timeout_ms / 1000)
            raise ProviderError(ProviderErrorKind.TIMEOUT, "no answer in time")
        await asyncio.sleep(rng.uniform(*model.takes_s))
        if away == "refuses":
            raise ProviderError(ProviderErrorKind.UNAVAILABLE, "nobody listens")
        if away == "limits":
            raise ProviderError(ProviderErrorKind.RATE_LIMITED, "too many calls", retry_after_ms=2_000)
        if daemon.faulty and rng.random() < model.errors:
            raise ProviderError(ProviderErrorKind.HTTP, "status 500", status=500)
        if daemon.faulty and rng.random() < model.garbage:
            return Generated(rng.choice(GARBAGE if stage == "extraction" else GARBAGE[:2]), 10, 10)
        act = daemon.mind(Asked("POST", "/api/generate", {}, None, prompt, (), 0))
        assert isinstance(act, Act)
        return Generated(act.text or "", 10, 10)

    async def available(self) -> Availability:
        return Availability(self._daemon.away() is None, "as it is")

    async def close(self) -> None:
        """Do nothing: no connection is open."""


def simulate(
    seed: int,
    faults: list[Fault] | None = None,
    *,
    model: Model | None = None,
    config: Config | None = None,
    weather: Weather | None = None,
    notes: tuple[str, ...] = (),
    until_s: float = FAULTS_END_S,
    liveness_s: float = LIVENESS_S,
) -> Run:
    """Run ``seed`` with its own faults, model, configuration and weather, or with the given ones. ``notes`` are
    remembered first. Faults end after ``until_s``; then everything must recover.
    """
    rng = random.Random(f"pipeline {seed}")
    faults = faults_for(seed) if faults is None else faults
    own_weather, own_model, own_config = weather_of(rng), model_of(rng), config_of(rng)
    run, world, ledger = Run(seed, faults), World(seed), Ledger()
    with private_directory() as directory, _writable_only_by_the_writer(run) as watching:
        daemon = PipelineDaemon(
            world, weather or own_weather, directory, model or own_model, ledger, config or own_config
        )
        watching.append(daemon)
        onlooker = open_reader(daemon.workspace.database)
        watched(daemon)
        try:
            with _model_of(daemon):
                for fault in faults:
                    world.call_later(fault.at_s, daemon.suffer, fault)
                if notes:
                    world.play(_reader_aloud(daemon, ledger, notes))
                for number in range(CLIENTS if not notes else 0):
                    world.play(_client(daemon, ledger, f"client-{number}", random.Random(f"{seed} {number}"), until_s))
                world.run_until(NS + int(until_s * NS))
                daemon.faulty = False

                def settled() -> bool:
                    return not world.running_scripts and not daemon.not_up() and not _waiting(onlooker)

                world.run_until(world.now_ns + int(liveness_s * NS), every_second(world, settled))
                run.settled_s = (world.now_ns - NS) / NS - until_s
                if not settled():
                    run.wrong.append(f"it never came right: {_waiting(onlooker)} wait, not up: {daemon.not_up()}")
                run.wrong += ledger.wrong + daemon.crashes
                run.wrong += _broken_promises(ledger, onlooker)
                run.jobs = {
                    content: tuple(job)
                    for content, *job in onlooker.execute(
                        "SELECT m.content, j.status, j.attempts, j.releases, j.error,"
                        " coalesce(j.completed_at, j.failed_at)"
                        " FROM memory_jobs j JOIN memories m ON m.id = j.memory_id WHERE j.job_type = 'extract'"
                    )
                }
                run.seen = _seen(onlooker) + ledger.answers + daemon.prompts
                run.seen["grants lost"] = daemon.grants_lost
        finally:
            watched(None)
            daemon.close()
            onlooker.close()
        last = open_writer(daemon.workspace.database, busy=lambda _: False)
        run.wrong += broken_invariants(last)
        last.close()
    world.note(sorted(run.seen.items()), sorted(run.jobs.items()))
    run.trace = world.trace
    run.virtual_s = world.now_ns / NS
    return run


def outage(seed: int, how: str) -> Run:
    """Run with a model outage of ten minutes from the middle of the first jobs on: no job may lose an attempt."""
    model = Model(away=((1.3, 601.3, how),))
    notes = tuple(f"The service outage {number} uses engine outage-{number}." for number in range(12))
    calm_config = config_of(random.Random(f"outage {seed}"))
    run = simulate(seed, [], model=model, config=calm_config, weather=CALM, notes=notes, until_s=602.0)
    for note in notes:
        status, attempts, *_ = run.jobs.get(note, ("lost", 0))
        if (status, attempts) != ("completed", 1):
            run.wrong.append(f"an outage cost an attempt: {note!r} is {run.jobs.get(note)}")
    if not run.seen["given back"]:
        run.wrong.append("no attempt was ever given back: there was no outage")
    return run


def lost_lease_replies(seed: int, *, away: bool = False) -> Run:
    """Run with lost replies of lease requests while leases last for minutes: no job may wait for its lease to expire or
    lose an attempt; with ``away`` the model becomes unavailable at the same moment.
    """
    notes = tuple(f"The service mute {number} uses engine mute-{number}." for number in range(12))
    lease_ms = 300_000
    config = config_of(random.Random(f"unheard {seed}"))
    pipeline = config.memory.pipeline_v2
    worker = msgspec.structs.replace(pipeline.worker, lease_timeout_ms=lease_ms)
    memory = msgspec.structs.replace(config.memory, pipeline_v2=msgspec.structs.replace(pipeline, worker=worker))
    config = msgspec.structs.replace(config, memory=memory)
    model = Model(away=((3.0, 40.0, "refuses"),)) if away else Model()
    faults = [Fault(0.5, "grant", "extractor", 2), Fault(2.0, "grant", "extractor", 1)]
    until_s = 42.0 if away else FAULTS_END_S
    run = simulate(seed, faults, model=model, config=config, weather=CALM, notes=notes, until_s=until_s)
    if run.seen["grants lost"] < 3:
        run.wrong.append(f"only {run.seen['grants lost']} answers were lost")
    for note in notes:
        status, attempts, *_ = run.jobs.get(note, ("lost", 0))
        if (status, attempts) != ("completed", 1):
            run.wrong.append(f"a lost answer cost an attempt: {note!r} is {run.jobs.get(note)}")
    if run.settled_s > lease_ms / 1000 / 2:
        run.wrong.append(f"jobs waited for their leases to expire: {run.settled_s:.0f} s")
    return run


def expired_leases(seed: int) -> Run:
    """Run without lease renewal and with a model that often takes longer than a lease: workers then find their job
    leased to another attempt.
    """

    async def never(_runner: JobRunner, _job: LeasedJob, _lease_ms: int) -> None:
        await asyncio.get_running_loop().create_future()

    notes = tuple(f"The service slow {number} uses engine slow-{number}. Its port is {number}." for number in range(12))
    config = config_of(random.Random(f"overtaken {seed}"))
    pipeline = config.memory.pipeline_v2
    extraction = msgspec.structs.replace(pipeline.extraction, timeout_ms=60_000, concurrency=8)
    pipeline = msgspec.structs.replace(pipeline, extraction=extraction)
    config = msgspec.structs.replace(config, memory=msgspec.structs.replace(config.memory, pipeline_v2=pipeline))
    real, JobRunner._renew_lease = JobRunner._renew_lease, never  # type: ignore[method-assign]
    try:
        run = simulate(seed, [], model=Model(takes_s=(1.0, 14.0)), config=config, weather=CALM, notes=notes)
    finally:
        JobRunner._renew_lease = real  # type: ignore[method-assign]
    if not run.seen["fenced"]:
        run.wrong.append("nobody was ever fenced")
    return run


def poison_jobs(seed: int, word: str) -> Run:
    """Run with two notes that kill each process that sends them to the model: only their jobs may end dead."""
    innocent = [f"The service garden {number} uses engine garden-{number}." for number in range(16)]
    deadly = [f"The service garden {number} uses engine {word}-{number}." for number in (3, 9)]
    notes = (*innocent[:3], deadly[0], *innocent[3:9], deadly[1], *innocent[9:])
    config = config_of(random.Random(f"poison {seed}"))
    run = simulate(seed, [], model=Model(), config=config, weather=CALM, notes=notes, liveness_s=3_000.0)
    for note in notes:
        status, attempts, *_ = run.jobs.get(note, ("lost", 0))
        if note in deadly and (status, attempts) != ("dead", 3):
            run.wrong.append(f"poison is not dead: {note!r} is {run.jobs.get(note)}")
        if note in innocent and status != "completed":
            run.wrong.append(f"poison took another with it: {note!r} is {run.jobs.get(note)}")
    return run


def sentences_of(note: str) -> set[str]:
    """Return the facts that the scripted model extracts from a note."""
    return {f"{part}." for part in note.rstrip(".").split(". ")}


def _client(daemon: SimDaemon, ledger: Ledger, name: str, rng: random.Random, until_s: float) -> Script:
    """Return unique notes of one to three sentences."""
    number = 0
    while daemon.world.now_ns < NS + int(until_s * NS):
        number += 1
        said = []
        for part in range(rng.randint(1, 3)):
            opening = "Since then the" if rng.random() < 0.2 else "The"
            said.append(f"{opening} service {name} number {number} uses engine {name}-{number}-{part}.")
        yield from _remember(daemon, ledger, " ".join(said))
        yield rng.uniform(0.2, 2.0)


def _reader_aloud(daemon: SimDaemon, ledger: Ledger, notes: tuple[str, ...]) -> Script:
    yield 1.0
    for note in notes:
        yield from _remember(daemon, ledger, note)


def _remember(daemon: SimDaemon, ledger: Ledger, content: str) -> Script:
    memory = NewMemory(content=content, type="fact", importance=0.5)
    request = Remember(memory, Principal(changed_by="sim"), idempotency=Idempotency(content, "digest"))
    try:
        answer = yield from insisting(daemon, ledger, request)
    except (Refused, Unknown):
        return
    ledger.answers["remembered"] += 1
    if not isinstance(answer, Remembered) or answer.deduped:
        ledger.wrong.append(f"a new memory {content!r} was answered {answer}")
        return
    ledger.results[answer.id] = content


def _broken_promises(ledger: Ledger, connection: apsw.Connection) -> Iterator[str]:
    rows = dict(connection.execute("SELECT id, version FROM memories"))
    contents = dict(connection.execute("SELECT id, content FROM memories"))
    jobs: dict[str, list[tuple[Any, ...]]] = {}
    sql = "SELECT memory_id, id, status, attempts, max_attempts FROM memory_jobs WHERE job_type = 'extract'"
    for memory_id, *job in connection.execute(sql):
        jobs.setdefault(memory_id, []).append(tuple(job))
    facts: dict[str, set[str]] = {}
    for job_id, text in connection.execute("SELECT job_id, fact_content FROM memory_proposals"):
        facts.setdefault(job_id, set()).add(text)
    for memory_id, content in ledger.results.items():
        if memory_id not in rows:
            yield f"answered and lost: {content}"
        if rows.get(memory_id) != 1:
            continue  # a proposal changed it; the invariants check its history
        if contents[memory_id] != content:
            yield f"answered {content!r}, stored {contents[memory_id]!r}"
        if len(jobs.get(memory_id, [])) != 1:
            yield f"{content!r} has {len(jobs.get(memory_id, []))} extract jobs"
            continue
        ((job_id, status, attempts, most),) = jobs[memory_id]
        if status not in {"completed", "dead"}:
            yield f"a stranded job: {content!r} is {status}"
        elif status == "dead" and attempts != most:
            yield f"{content!r} is dead after {attempts} of {most} attempts"
        elif status == "completed":
            found, expected = facts.get(job_id, set()), sentences_of(content)
            if not found <= expected or (attempts < most and found != expected):
                yield f"{content!r} came to {found} in attempt {attempts}"
    yield from wrong_rows(connection)


_WRONG = {
    "a run with another number of proposals": (
        "SELECT r.id, r.proposals, count(p.id) FROM pipeline_runs r LEFT JOIN memory_proposals p ON p.run_id = r.id"
        " GROUP BY r.id HAVING r.proposals <> count(p.id) OR coalesce(max(p.ordinal) + 1, 0) <> r.proposals"
    ),
    "a completed job without a run": (
        "SELECT j.id, j.result FROM memory_jobs j WHERE j.job_type = 'extract' AND j.status = 'completed'"
        " AND j.result NOT LIKE '%memory_gone%' AND NOT EXISTS (SELECT 1 FROM pipeline_runs r WHERE r.job_id = j.id)"
    ),
    "a run of a job that is not completed": (
        "SELECT r.job_id, j.status FROM pipeline_runs r JOIN memory_jobs j ON j.id = r.job_id"
        " WHERE j.status <> 'completed'"
    ),
    "a proposal without its event": (
        "SELECT p.job_id, p.ordinal FROM memory_proposals p LEFT JOIN memory_history h"
        " ON h.id = p.history_id AND h.job_id = p.job_id WHERE h.id IS NULL"
    ),
    "an event without its proposal": (
        "SELECT h.id, h.event FROM memory_history h LEFT JOIN memory_proposals p ON p.history_id = h.id"
        " WHERE h.job_id IS NOT NULL AND p.id IS NULL"
    ),
    "an effect twice": (
        "SELECT content_hash, count(*) FROM memories WHERE source_type = 'pipeline-v2' AND is_deleted = 0"
        " GROUP BY content_hash HAVING count(*) > 1"
    ),
    "a fact that no proposal made": (
        "SELECT m.id, m.content FROM memories m WHERE m.source_type = 'pipeline-v2' AND 1 <>"
        " (SELECT count(*) FROM memory_proposals p WHERE p.result_memory_id = m.id AND p.outcome = 'created')"
    ),
    "an attribute twice": (
        "SELECT a.memory_id, a.entity_id, a.content FROM entity_attributes a GROUP BY 1, 2, 3 HAVING count(*) > 1"
    ),
    "an entity with two jobs": (
        "SELECT j.payload ->> 'entity', count(*) FROM memory_jobs j WHERE j.job_type = 'structural_classify'"
        " AND j.status IN ('pending', 'leased') GROUP BY 1 HAVING count(*) > 1"
    ),
    "a run that wrote and left the graph out": (
        "SELECT r.id FROM pipeline_runs r JOIN memory_jobs j ON j.id = r.job_id"
        " JOIN memories m ON m.id = r.memory_id AND m.content_hash = j.leased_hash"
        " WHERE r.mode IN ('controlled_write', 'full') AND json_array_length(j.result, '$.entities') > 0"
        " AND j.result ->> 'graph' IS NULL"
    ),
    "a classified fact without an aspect": (
        "SELECT a.id FROM entity_attributes a JOIN memories m ON m.id = a.memory_id AND m.is_deleted = 0"
        " WHERE a.aspect_id IS NULL AND a.entity_id IN (SELECT j.payload ->> 'entity' FROM memory_jobs j"
        " WHERE j.job_type = 'structural_classify' AND j.status = 'completed') AND NOT EXISTS (SELECT 1"
        " FROM memory_jobs w WHERE w.job_type = 'structural_classify' AND w.status <> 'completed'"
        " AND w.payload ->> 'entity' = a.entity_id)"
    ),
    "a created fact that is not there": (
        "SELECT p.job_id, p.ordinal FROM memory_proposals p WHERE p.outcome = 'created'"
        " AND p.result_memory_id NOT IN (SELECT id FROM memories)"
    ),
}


def wrong_rows(connection: apsw.Connection) -> Iterator[str]:
    """Return the rows that the pipeline must never leave in the store, as text."""
    for what, sql in _WRONG.items():
        for row in connection.execute(sql):
            yield f"{what}: {row}"


def _seen(connection: apsw.Connection) -> Counter[str]:
    seen = Counter(dict(connection.execute("SELECT 'job ' || status, count(*) FROM memory_jobs GROUP BY 1")))
    seen.update(dict(connection.execute("SELECT outcome, count(*) FROM memory_proposals GROUP BY 1")))
    seen.update(
        dict(connection.execute("SELECT name, sum(count) FROM pipeline_counters WHERE name = 'fenced' GROUP BY 1"))
    )
    seen["given back"] = connection.execute("SELECT sum(releases > 0) FROM memory_jobs").get or 0
    seen["tried again"] = connection.execute("SELECT sum(attempts > 1) FROM memory_jobs").get or 0
    return seen


def _waiting(connection: apsw.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM memory_jobs WHERE status IN ('pending', 'leased')").get)


@contextmanager
def _model_of(daemon: PipelineDaemon) -> Iterator[None]:
    """Make every search for a provider return the daemon's model."""

    async def select(config: ExtractionConfig, _environment: Mapping[str, str]) -> Selected:
        incarnation = daemon.running
        assert isinstance(incarnation, AsyncIncarnation)
        model = SimModel(daemon, incarnation)
        found = await model.available()
        return Selected(
            model,
            Selection(config.provider, model.name, model.model, "by the simulation", found.ok, "", model.endpoint),
        )

    real = provider_manager.select_provider
    provider_manager.select_provider = select
    try:
        yield
    finally:
        provider_manager.select_provider = real


@contextmanager
def _writable_only_by_the_writer(run: Run) -> Iterator[list[PipelineDaemon]]:
    """Record every other process that opens the database for writing."""
    watching: list[PipelineDaemon] = []

    def opened(connection: apsw.Connection) -> None:
        if watching and watching[0].running is not None and not connection.readonly("main"):
            incarnation = watching[0].running
            if not isinstance(incarnation, WriterIncarnation):
                run.wrong.append(f"{incarnation.name} opened the database for writing")

    apsw.connection_hooks.append(opened)
    try:
        yield watching
    finally:
        apsw.connection_hooks.remove(opened)


if __name__ == "__main__":
    sys.exit(main(simulate, "tests.sim.pipeline"))
