"""The effect of the pipeline on requests, and its speed.

``python -m bench.pipeline``. Isolation: a model that hangs for 30 s on each call and 500 queued jobs, with clients that
recall and remember, in the phases alone, hung, hung, alone; each phase is a new run of the daemon, and a separate
process requests ``/health``. Throughput: as many jobs with a model that answers at once are extracted, decided,
embedded and stored while clients recall. Nothing is asserted.

Source: docs/reliability.md R11; docs/performance.md "Isolation targets".
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

import apsw
from rich.console import Console

from bench.closed_loops import Answered, run, run_clients
from bench.cpu_usage import CpuUsage
from bench.daemon import Daemon, DaemonFailed, leave_on_sigterm, throw_away_workspace
from bench.figures import Spread, circumstances, spread, write_result
from bench.health_probe import HealthProbe
from bench.isolation import Phase
from bench.loaded_daemon import LoadedDaemon, must_have_worked
from bench.mixed_load import Mixed
from bench.model_server import MODEL, model_server
from bench.recall_phase import warm_up
from bench.report import Line, show

P95_RATIO: Final = 1.5
HEALTH_P99_MS: Final = 50.0
JOBS_PER_S: Final = 50.0
ORDER: Final = ("alone", "hung", "hung", "alone")
QUEUE_CLIENTS: Final = 16
SHARE_BEFORE: Final = 0.05
"""The measurement begins when this many jobs have ended, so that it does not include the start of the processes."""
SHARE_LEFT: Final = 0.1
"""The rate is measured until this many jobs are left: the last ones do not fill every slot."""
DRAIN_BUDGET_S: Final = 300.0


def settings(provider: str, url: str = "", concurrency: int = 2) -> str:
    """Return the configuration of one run of the daemon."""
    endpoint = f", endpoint: {url}, model: '{MODEL}'" if url else ""
    return (
        "memory: {pipelineV2: {extraction: {provider: "
        f"{provider}{endpoint}, concurrency: {concurrency}}}, hints: {{enabled: false}}}}}}\n"
    )


class PipelineBench:
    """One run on one workspace."""

    def __init__(self, daemon: Daemon, options: argparse.Namespace, console: Console) -> None:
        self._daemon = daemon
        self._options = options
        self._subject = LoadedDaemon(daemon, seed=options.seed, console=console)
        self.found: dict[str, Any] = {"circumstances": circumstances(), "options": vars(options)}

    def run(self) -> None:
        """Run both parts, throughput first, because isolation leaves queued jobs; raises DaemonFailed."""
        self._daemon.settings = "memory: {pipelineV2: {enabled: false}}\n"
        with self._daemon:
            self._subject.grow_to(self._options.memories)
        self.found["throughput"] = self._throughput()
        phases = {"alone": Phase(), "hung": Phase()}
        for name in ORDER:
            self._turn(phases[name], hung=name == "hung")
        self.found |= {name: phase.figures() for name, phase in phases.items()}
        self.found["load_average_after"] = os.getloadavg()[0]

    # isolation

    def _turn(self, phase: Phase, *, hung: bool) -> None:
        subject, options = self._subject, self._options
        with model_server(options.hang_s) as url:
            self._daemon.settings = settings("ollama", url) if hung else settings("none")
            with self._daemon as daemon:
                queue = subject.remembers(options.jobs)
                must_have_worked(subject.load(queue, QUEUE_CLIENTS, DRAIN_BUDGET_S), "queueing")
                warm_up(subject, options.seconds)
                mixed = Mixed(subject, options.seconds, options.seed)
                answered = Answered()
                probe = HealthProbe(daemon.address)
                with probe.running():
                    began = time.perf_counter()
                    run(run_clients(daemon.address, mixed.requests, options.clients, answered, began + options.seconds))
                    wall_s = time.perf_counter() - began
                phase.add(mixed, answered, probe, wall_s)
        subject.say(f"{'hung' if hung else 'alone'}: {len(answered.latencies_ms)} requests in {wall_s:.1f} s")

    # throughput

    def _throughput(self) -> dict[str, Any]:
        """Measure recalls alone and during the jobs, and how many jobs end per second."""
        subject, options = self._subject, self._options
        self._daemon.settings = settings("none")
        with self._daemon:
            warm_up(subject, options.seconds)
            alone = subject.load(subject.recalls(4_000), options.recall_clients, options.seconds)
            must_have_worked(alone, "recalls alone")
            must_have_worked(
                subject.load(subject.remembers(options.rate_jobs), QUEUE_CLIENTS, DRAIN_BUDGET_S), "queueing"
            )
        with model_server() as url:
            self._daemon.settings = settings("ollama", url, options.concurrency)
            with self._daemon as daemon:
                queued = self._under_way()
                usage = CpuUsage(daemon.processes())
                beside = Answered()
                recalls = subject.recalls(20_000)
                done: list[tuple[float, int]] = [(time.perf_counter(), 0)]
                with usage.measured():
                    while done[-1][1] < (options.rate_jobs - queued) * (1 - SHARE_LEFT):
                        if time.perf_counter() - done[0][0] > DRAIN_BUDGET_S:
                            raise DaemonFailed(f"only {done[-1][1]} of {options.rate_jobs} jobs ended")
                        run(
                            run_clients(
                                daemon.address, recalls, options.recall_clients, beside, time.perf_counter() + 0.25
                            )
                        )
                        done.append((time.perf_counter(), self._ended() - queued))
                must_have_worked(beside, "recalls beside jobs")
        if len(done) == 1:
            raise DaemonFailed("the jobs were over before anything could be measured: more of them are needed")
        # The rate covers the whole time, including the pauses between two queries.
        rate = done[-1][1] / (done[-1][0] - done[0][0])
        subject.say(f"{done[-1][1]} jobs in {done[-1][0] - done[0][0]:.1f} s; {queued} had ended before")
        return {
            "jobs_per_s": round(rate, 1),
            "jobs": done[-1][1],
            "ended_before": queued,
            "cpu_ms_per_job": usage.each(max(1, done[-1][1])),
            "recall_alone_ms": spread(alone.latencies_ms),
            "recall_beside_ms": spread(beside.latencies_ms),
        }

    def _under_way(self) -> int:
        """Wait until that many jobs have ended: the processes have then selected and loaded what they need."""
        until = time.perf_counter() + DRAIN_BUDGET_S
        while (ended := self._ended()) < self._options.rate_jobs * SHARE_BEFORE:
            if time.perf_counter() > until:
                raise DaemonFailed("no job ends")
            time.sleep(0.02)
        return ended

    def _ended(self) -> int:
        database = self._daemon.workspace / "memory" / "memories.db"
        connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            sql = "SELECT count(*) FROM memory_jobs WHERE job_type = 'extract' AND status IN ('completed', 'dead')"
            return int(connection.execute(sql).get)
        finally:
            connection.close()


def lines_of(found: dict[str, Any]) -> list[Line]:
    """Return the table; the floor is the same load without a model."""
    alone, hung, jobs = found["alone"], found["hung"], found["throughput"]
    lines: list[Line] = []
    for kind in ("recall", "remember"):
        quiet: Spread = alone[f"{kind}_ms"]
        busy: Spread = hung[f"{kind}_ms"]
        lines += [
            Line(f"{kind} p95 beside a hung model", busy.p95, "ms", floor=quiet.p95),
            Line(f"{kind} p95, times alone", busy.p95 / max(quiet.p95, 1e-9), "", limit=P95_RATIO),
        ]
    recall: Spread = jobs["recall_beside_ms"]
    quiet_recall: Spread = jobs["recall_alone_ms"]
    return [
        *lines,
        Line(
            "/health p99 beside a hung model", hung["health_ms"].p99, "ms", HEALTH_P99_MS, None, alone["health_ms"].p99
        ),
        Line("refused, failed", alone["refused"] + hung["refused"] + alone["failed"] + hung["failed"], "", limit=0),
        Line("extract jobs", jobs["jobs_per_s"], "/s", least=JOBS_PER_S),
        Line("recall p95 beside the jobs", recall.p95, "ms", floor=quiet_recall.p95),
        Line("recall p95, times alone", recall.p95 / max(quiet_recall.p95, 1e-9), "", limit=P95_RATIO),
        *(Line(f"CPU a job, {who}", ms, "ms") for who, ms in sorted(jobs["cpu_ms_per_job"].items())),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0 if everything could be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--memories", type=int, default=2_000)
    parser.add_argument("--jobs", type=int, default=500, help="queued in each turn")
    parser.add_argument("--rate-jobs", type=int, default=1_000, help="queued where the rate is taken")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each turn")
    parser.add_argument("--clients", type=int, default=8, help="of the mixed load")
    parser.add_argument("--recall-clients", type=int, default=1, help="beside the jobs")
    parser.add_argument("--concurrency", type=int, default=4, help="calls to the model at once, where it answers")
    parser.add_argument("--hang-s", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=7, help="of the made-up texts")
    options = parser.parse_args(arguments)
    leave_on_sigterm()
    progress = Console(stderr=True)
    console = Console(width=None if sys.stdout.isatty() else 120)
    with throw_away_workspace() as workspace:
        bench = PipelineBench(Daemon(workspace), options, progress)
        try:
            bench.run()
        except DaemonFailed as error:
            progress.print(f"[red]{error}[/red]", highlight=False)
            return 1
    lines = lines_of(bench.found)
    show(lines, console, title="The pipeline", floor="the same load with no model at work")
    console.print(str(write_result("pipeline", {**bench.found, "lines": lines})), highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
