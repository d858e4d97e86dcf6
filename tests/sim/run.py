"""One simulated run of writer, job queue, leases and supervisor, and its violations.

``python -m tests.sim.run --seed 17`` replays a run; ``--seeds 5000`` runs that many, ``--first`` sets the first seed,
``--jobs`` the number of processes.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import apsw

from signet_actors.runtime.clock import SystemClock
from signet_actors.store.sqlite.connect import open_reader, open_writer
from signet_actors.store.sqlite.migrate import migrate
from tests.sim.daemon import SPAWNS_A_MINUTE, SimDaemon, watched
from tests.sim.faults import SAFE_AFTER_S, Fault, faults_of, weather_of
from tests.sim.seeds import Run, main
from tests.sim.workload import FACTS_OF_A_JOB, SLOW, Ledger, client, safe_until_ns, worker
from tests.sim.world import NS, World
from tests.support.store_room import broken_invariants

CLIENTS = 3
LIVENESS_S = 180.0
"""The limit on the recovery after the last fault; the run stops as soon as everything has recovered."""


def faults_for(seed: int) -> list[Fault]:
    """Return the faults of this seed."""
    return faults_of(random.Random(f"faults {seed}"))


def simulate(seed: int, faults: list[Fault] | None = None, *, slow: float = SLOW, until_s: float = SAFE_AFTER_S) -> Run:
    """Run ``seed`` with its own faults or with the given ones; ``slow`` is the share of long jobs. Clients send new
    requests for some seconds; faults end after ``until_s``.
    """
    faults = faults_for(seed) if faults is None else faults
    run = Run(seed, faults)
    world = World(seed)
    with private_directory() as directory:
        daemon = SimDaemon(world, weather_of(world.rng), directory, empty_database())
        onlooker = open_reader(daemon.workspace.database)  # keeps the log when the writer exits
        watched(daemon)
        ledger = Ledger()
        try:
            for fault in faults:
                world.call_later(fault.at_s, daemon.suffer, fault)
            for number in range(CLIENTS):
                rng = random.Random(f"client {seed} {number}")
                world.play(client(daemon, ledger, f"client-{number}", rng, safe_until_ns(SAFE_AFTER_S)))
            for name in ("extractor-1", "extractor-2"):
                world.play(worker(daemon, ledger, name, random.Random(f"{name} {seed}"), slow))
            workers = 2
            world.run_until(safe_until_ns(until_s))
            daemon.faulty = False

            def settled() -> bool:
                return world.running_scripts == workers and not daemon.not_up() and _jobs_left(onlooker) == 0

            world.run_until(world.now_ns + int(LIVENESS_S * NS), every_second(world, settled))
            if not settled():
                run.wrong.append(
                    f"it never came right: {world.running_scripts - workers} clients wait,"
                    f" {_jobs_left(onlooker)} jobs left, not up: {daemon.not_up()}"
                )
            run.wrong += ledger.wrong
            run.wrong += _broken_promises(ledger, onlooker)
            if daemon.busiest_minute() > SPAWNS_A_MINUTE:
                run.wrong.append(
                    f"a restart storm: {daemon.busiest_minute()} incarnations of one child within a minute"
                )
        finally:
            watched(None)
            daemon.close()
            onlooker.close()
        last = open_writer(daemon.workspace.database, busy=lambda _: False)
        run.wrong += broken_invariants(last)
        last.close()
        run.seen = ledger.answers + Counter(resent=daemon.resent, incarnations=sum(map(len, daemon.spawned.values())))
    world.note(sorted(ledger.answers.items()), sorted(ledger.completed.items()))
    run.trace = world.trace
    run.virtual_s = world.now_ns / NS
    return run


_RUNS = """
    SELECT r.job_id, r.id, (SELECT count(*) FROM memory_proposals p WHERE p.run_id = r.id) FROM pipeline_runs r
"""


def _broken_promises(ledger: Ledger, connection: apsw.Connection) -> Iterator[str]:
    rows = {row[0]: row[1:] for row in connection.execute("SELECT id, content, version, is_deleted FROM memories")}
    stored = Counter(str(content).split(" [")[0] for content, _, _ in rows.values())
    for known in ledger.known.values():
        row = rows.get(known.id)
        if row is None:
            yield f"answered and lost: {known}"
        elif not known.unsure and row != (known.content, known.version, int(known.deleted)):
            yield f"answered {known} but stored {row}"
    for content, count in stored.items():
        if count > 1:
            yield f"stored {count} times: {content}"
    for content in ledger.refused:
        if stored[content]:
            yield f"refused as not applied, and stored: {content}"
    for job_id, count in ledger.completed.items():
        if count > 1:
            yield f"job {job_id} was completed {count} times"
    kept = dict(connection.execute("SELECT id, result FROM memory_jobs WHERE status = 'completed'"))
    for job_id, result in ledger.results.items():
        if kept.get(job_id) != result:
            yield f"job {job_id} was completed with {result!r} and has {kept.get(job_id)!r}"
    runs = {job_id: (run_id, proposals) for job_id, run_id, proposals in connection.execute(_RUNS)}
    for job_id, run_id in ledger.runs.items():
        if runs.get(job_id) != (run_id, FACTS_OF_A_JOB):
            yield f"job {job_id} was applied by {run_id} and has {runs.get(job_id)}"
    for job_id in runs:
        facts = [stored[f"{job_id} came to fact {number}"] for number in range(FACTS_OF_A_JOB)]
        if facts not in ([1] * FACTS_OF_A_JOB, [0] * FACTS_OF_A_JOB):
            yield f"job {job_id} had its effect {facts} times"
    missing = connection.execute(
        "SELECT count(*) FROM memories WHERE id NOT IN (SELECT memory_id FROM memory_jobs WHERE memory_id IS NOT NULL)"
    ).fetchone()
    if missing and missing[0]:
        yield f"{missing[0]} memories without a job"


def _jobs_left(connection: apsw.Connection) -> int:
    row = connection.execute("SELECT count(*) FROM memory_jobs WHERE status IN ('pending', 'leased')").fetchone()
    return int(row[0]) if row else 0


def every_second(world: World, check: Callable[[], bool]) -> Callable[[], bool]:
    """Return ``check``, limited to one call per virtual second, since it costs a query."""
    asked_ns = 0

    def asked() -> bool:
        nonlocal asked_ns
        if world.now_ns - asked_ns < NS:
            return False
        asked_ns = world.now_ns
        return check()

    return asked


@cache
def empty_database() -> Path:
    """Return an empty, migrated database that is created once per process."""
    path = Path(tempfile.mkdtemp(prefix="signet-sim-")) / "memories.db"
    connection = open_writer(path, busy=lambda _: False)
    migrate(connection, path, SystemClock())
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()  # the copied file then contains everything
    connection.close()
    return path


@contextmanager
def private_directory() -> Iterator[Path]:
    """Return a directory in memory if possible: syncing to a disk proves nothing here and takes time."""
    memory = Path("/dev/shm")
    directory = tempfile.mkdtemp(prefix="signet-sim-", dir=memory if memory.is_dir() else None)
    try:
        yield Path(directory) / "workspace"
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(simulate, "tests.sim.run"))
