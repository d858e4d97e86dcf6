"""Kill the pipeline's processes of a real daemon during jobs: the queue must drain with each effect exactly once.

``python -m tests.chaos.pipeline_crashes --kills 200 --seed 7`` is the long run.

Source: docs/reliability.md R6, R8.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from signet_actors.store.sqlite.connect import open_reader
from tests.chaos.seeds import SEED
from tests.sim.pipeline import sentences_of, wrong_rows
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_provider import Asked, ScriptedProvider

CONFIG = """
supervision:
  settledMs: 0
  budgets:
    writer: {{restarts: 100, windowMs: 60000}}
    decider: {{restarts: 100, windowMs: 60000}}
    extractor: {{restarts: 100, windowMs: 60000}}
    quarantine: {{restarts: 100, windowMs: 60000}}
memory:
  pipelineV2:
    worker: {{leaseTimeoutMs: 300000, maxRetries: 10}}
    structural: {{pollIntervalMs: 0}}
    extraction:
      provider: ollama
      endpoint: {url}
      concurrency: 4
"""
"""Longer than the whole test: jobs of a killed worker must become ready without waiting for the lease to expire."""
VICTIMS = ("extractor", "decider", "writer")


def note(number: int) -> str:
    """Return two unique facts that are similar enough to others for a decision by the model."""
    return f"The service {number} uses engine engine-{number}. Its owner is team number {number}."


@contextmanager
def pipeline(points: str = "") -> Iterator[tuple[LiveDaemon, ScriptedProvider]]:
    """Run a daemon whose model answers at once; ``points`` are armed in all its processes."""
    with (
        ScriptedProvider(script=ScriptedModel()) as provider,
        live_daemon(
            config=CONFIG.format(url=provider.url), environ={"SIGNET_SYNC_POINTS": points} if points else {}
        ) as daemon,
    ):
        yield daemon, provider


def remember(daemon: LiveDaemon, numbers: range) -> None:
    """Store every note; one that is refused or unanswered during a crash is sent again."""
    for number in numbers:

        def stored(number: int = number) -> bool:
            with contextlib.suppress(OSError, http.client.HTTPException):
                key = f"note-{number}"
                answer = daemon.api.post("/api/memory/remember", {"content": note(number)}, Idempotency_Key=key)
                return answer.status == 200
            return False

        eventually(stored, within_s=60, what=f"note {number} is stored")


def kill_asker(daemon: LiveDaemon, asked: Asked) -> int | None:
    """Kill the process that has called the model, unless it has exited; return its pid.

    It is found in ``/proc``: a request to the daemon from within the model would take too long.
    """
    rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    sockets = {f"socket:[{row[9]}]" for row in rows if int(row[1].rpartition(":")[2], 16) == asked.port}
    for pid in daemon.processes():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for path in Path(f"/proc/{pid}/fd").iterdir():
                if os.readlink(path) in sockets:
                    os.kill(pid, signal.SIGKILL)
                    return pid
    return None


def drained(daemon: LiveDaemon, count: int, *, within_s: float = 120) -> None:
    """Return True if every extract job has ended, and every job that classifies what they found."""
    ended = "SELECT count(*) FROM memory_jobs WHERE job_type = 'extract' AND status IN ('completed', 'dead')"
    left = "SELECT count(*) FROM memory_jobs WHERE status IN ('pending', 'leased') AND job_type <> 'embed'"
    eventually(
        lambda: daemon.read(ended)[0][0] >= count and not daemon.read(left)[0][0],
        within_s=within_s,
        what="the queue is drained",
    )


def graph_of(connection: apsw.Connection) -> tuple[int, ...]:
    """Return the numbers of entities, mentions, relations, statements of them, classified facts and finished jobs."""
    counts = (
        "entities",
        "memory_entity_mentions",
        "relations",
        "memory_relation_mentions",
        "entity_attributes WHERE aspect_id IS NOT NULL",
        "memory_jobs WHERE job_type = 'structural_classify' AND status = 'completed'",
    )
    return tuple(connection.execute(f"SELECT count(*) FROM {table}").get for table in counts)


def expected_graph(count: int) -> tuple[int, ...]:
    """Return them for ``count`` notes, each of which relates a service of its own to the engine that all use.

    Note and fact mention both entities; each service has one fact, and so one job.
    """
    return count + 1, 4 * count, count, count, count, count


def broken_promises(daemon: LiveDaemon, count: int) -> list[str]:
    """Return what is wrong in the stopped daemon's store after ``count`` notes."""
    connection = open_reader(daemon.database)
    try:
        wrong = list(wrong_rows(connection))
        jobs = Counter(
            dict(connection.execute("SELECT status, count(*) FROM memory_jobs WHERE job_type = 'extract' GROUP BY 1"))
        )
        if jobs != {"completed": count}:
            wrong.append(f"of {count} extract jobs became {dict(jobs)}")
        proposed = Counter(row[0] for row in connection.execute("SELECT fact_content FROM memory_proposals"))
        wanted = Counter(fact for number in range(count) for fact in sentences_of(note(number)))
        wrong += [f"proposed {proposed[fact]} times: {fact}" for fact in wanted if proposed[fact] != 1]
        wrong += [] if graph_of(connection) == expected_graph(count) else [f"the graph is {graph_of(connection)}"]
        stored = Counter(row[0] for row in connection.execute("SELECT content FROM memories WHERE is_deleted = 0"))
        wrong += [f"stored {stored[fact]} times: {fact}" for fact in wanted if stored[fact] != 1]
    finally:
        connection.close()
    return wrong + daemon.broken_invariants()


def run(kills: int, seed: int) -> list[str]:
    """Kill that many random processes while notes arrive and jobs run; return what was wrong in the end."""
    rng = random.Random(seed)
    remembered = 0
    with pipeline() as (daemon, provider):
        done: Counter[str] = Counter()
        while done.total() < kills:
            remember(daemon, range(remembered, remembered + 6))
            remembered += 6
            asked = len(provider.asked)
            with contextlib.suppress(AssertionError):
                eventually(lambda asked=asked: len(provider.asked) > asked, within_s=2, what="somebody is at work")
            time.sleep(rng.uniform(0.0, 0.2))  # the time until the fault, not a wait for a state
            victim = rng.choice(VICTIMS)
            with contextlib.suppress(OSError, http.client.HTTPException, AssertionError, KeyError, TypeError):
                os.kill(daemon.children()[victim], signal.SIGKILL)
                done[victim] += 1
        drained(daemon, remembered, within_s=300)
        daemon.wait_ready()
        code = daemon.stop()
        wrong = broken_promises(daemon, remembered)
    return [*wrong, *([] if code == 0 else [f"stopped with {code}"])]


def main() -> int:
    """Run the command line; the exit code is 1 if a guarantee was violated."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    began = time.monotonic()
    wrong = run(options.kills, options.seed)
    took = time.monotonic() - began
    sys.stdout.write("\n".join([*wrong[:20], f"{options.kills} kills in {took:.0f} s, {len(wrong)} broken promises\n"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
