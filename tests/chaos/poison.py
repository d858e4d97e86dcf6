"""Measure what poison jobs cost other jobs: the number of jobs per second with and without them.

``python -m tests.chaos.poison --jobs 300 --poison 1`` prints a table and asserts nothing. Runs with and without poison
jobs alternate, each with a new daemon; the model takes some time for each call, so that the rate depends on the use of
the slots and not on the load of the machine.

Source: docs/reliability.md R8.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from typing import NamedTuple

from tests.chaos.pipeline_crashes import kill_asker, remember
from tests.support.bus_harness import eventually
from tests.support.live_daemon import live_daemon
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_provider import Act, Asked, Fault, ScriptedProvider

POISON = "nightshade"
CALL_S = 0.15
SHARE_LEFT = 0.1
"""The rate is measured until this many jobs are left: the last ones do not fill every slot."""
CONFIG = """
memory:
  pipelineV2:
    extraction:
      provider: {provider}
      endpoint: {url}
      concurrency: 4
"""


class Measured(NamedTuple):
    """One run: ordinary jobs per second until a tenth was left, the longest time without a completed job, the time
    until all had ended, the incarnations of the extractor, and the ordinary jobs that ended dead.
    """

    jobs_per_s: float
    stood_s: float
    all_s: float
    incarnations: int
    innocent_dead: int


def measure(jobs: int, poison: int, within_s: float, *, apart: bool) -> Measured:
    """Queue ``jobs`` ordinary notes and ``poison`` poison notes before the work begins, and measure.

    The poison notes are ``apart`` from each other, or close together in the middle.
    """
    model = ScriptedModel()
    with (
        ScriptedProvider(thinks_s=CALL_S) as provider,
        live_daemon(config=CONFIG.format(provider="none", url=provider.url), pipeline=True) as daemon,
    ):

        def script(asked: Asked) -> Act | Fault:
            if asked.prompt.startswith("You turn a note") and POISON in asked.prompt:
                kill_asker(daemon, asked)
                return "hang"
            return model(asked)

        places = [(number + 1) * jobs // (poison + 1) if apart else jobs // 2 for number in range(poison)]
        stored = 0
        for number, place in enumerate(places):
            remember(daemon, range(stored, place))
            daemon.api.remember(f"The service {POISON}-{number} kills whoever reads of it.")
            stored = place
        remember(daemon, range(stored, jobs))
        daemon.stop()
        provider.script = script
        daemon.configure(CONFIG.format(provider="ollama", url=provider.url))
        daemon.start()
        eventually(lambda: bool(provider.asked), within_s=60, what="work begins")
        innocent = (
            " FROM memory_jobs j JOIN memories m ON m.id = j.memory_id WHERE j.job_type = 'extract'"
            f" AND m.content NOT LIKE '%{POISON}%' AND j.status IN ('completed', 'dead')"
        )
        eventually(
            lambda: daemon.read(f"SELECT count(*){innocent}")[0][0] >= jobs,
            within_s=within_s,
            what="the innocent jobs have ended",
        )
        ends = daemon.read(
            f"SELECT j.status, unixepoch(coalesce(j.completed_at, j.failed_at), 'subsec'){innocent} ORDER BY 2"
        )
        incarnations = [
            line for line in daemon.log() if line.get("event") == "spawned" and line.get("child") == "extractor"
        ]
    at_s = [float(moment) for _, moment in ends]
    most = int(jobs * (1 - SHARE_LEFT))
    return Measured(
        most / (at_s[most] - at_s[0]),
        max(after - before for before, after in itertools.pairwise(at_s)),
        at_s[-1] - at_s[0],
        len(incarnations) - 1,  # one is the incarnation of the daemon in which the jobs were queued
        sum(status == "dead" for status, _ in ends),
    )


def main() -> int:
    """Run the command line; the exit code is 0 if everything could be measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--poison", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--apart", action="store_true", help="the poison spread evenly, not close together")
    parser.add_argument("--within-s", type=float, default=300.0)
    options = parser.parse_args()
    rates: dict[int, list[float]] = {0: [], options.poison: []}
    for _ in range(options.rounds):
        for poison, measured in rates.items():
            found = measure(options.jobs, poison, options.within_s, apart=options.apart)
            measured.append(found.jobs_per_s)
            sys.stdout.write(
                f"{poison} poison: {found.jobs_per_s:.1f} jobs/s, at most {found.stood_s:.1f} s without any,"
                f" all after {found.all_s:.1f} s, {found.incarnations} incarnations of the extractor,"
                f" {found.innocent_dead} innocent dead\n"
            )
    share = statistics.median(rates[options.poison]) / statistics.median(rates[0])
    sys.stdout.write(
        f"with {options.poison} poison among {options.jobs} jobs: {100 * share:.0f} % of the rate without\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
