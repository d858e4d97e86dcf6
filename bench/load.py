"""Speed and footprint of a live daemon, each figure with its target and a floor of the same run: ``make bench``.

The load generator is this process; the daemon runs on a temporary workspace and gets requests over loopback HTTP.
Clients are closed loops: each sends its next request when the last one is answered. Both sides share the machine's
cores, so the CPU time of each process is reported too. Nothing is asserted.

Source: docs/performance.md "Targets"; the workload (texts, questions, filters) is described in ``bench/texts.py``.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console

from bench.closed_loops import Answered
from bench.cpu_usage import CpuUsage
from bench.daemon import Daemon, DaemonFailed, leave_on_sigterm, pss_bytes, throw_away_workspace
from bench.figures import circumstances, spread, write_result
from bench.floor import KeywordFloor, embedding_floor, vector_floor, write_floor
from bench.loaded_daemon import WARM_UP, LoadedDaemon, must_have_worked
from bench.mixed_load import measure_mixed
from bench.recall_phase import measure_recall, warm_up
from bench.report import RECALL_CLIENTS, lines_of, show
from bench.texts import Texts

WRITE_CLIENTS: Final = (1, 16, 64)
MIXED_CLIENTS: Final = 32
SETTLE_S: Final = 3.0
"""The time after a load in which the last accesses are stored and the log is checkpointed, before the daemon is idle.
"""
FLOOR_SAMPLES: Final = 400
FLOOR_BUILD_S: Final = 90.0
"""The time limit for building the floor's FTS5 index; a larger size has no floor."""


class Plan(msgspec.Struct, frozen=True):
    """What a run measures, and for how long each."""

    memories: tuple[int, ...] = (1_000, 10_000)
    seconds: float = 6.0
    idle_s: float = 10.0
    seed: int = 7
    floors: bool = True


class Bench:
    """One run: a store that grows from size to size, and its figures."""

    def __init__(self, daemon: Daemon, plan: Plan, console: Console) -> None:
        self._plan = plan
        self._daemon = daemon
        self._subject = LoadedDaemon(daemon, seed=plan.seed, console=console)
        self.found: dict[str, Any] = {
            "circumstances": circumstances(),
            "settings": daemon.settings,
            "imports": {},
            "sizes": {},
            "writes": {},
            "floors": {},
        }

    def run(self) -> None:
        """Run every phase; raises DaemonFailed if the daemon cannot be started."""
        subject, plan = self._subject, self._plan
        try:
            self._start_at(0)
            for size in plan.memories:
                imported = subject.grow_to(size)
                if imported is not None:
                    self.found["imports"][str(size)] = imported
                warm_up(subject, plan.seconds)
                self.found["sizes"][str(size)] = {
                    **self._complete_vectors(),
                    **{
                        f"{clients} clients": measure_recall(subject, clients, plan.seconds)
                        for clients in RECALL_CLIENTS
                    },
                    **self._footprint(),
                }
                self._daemon.stop()
                self._start_at(size)
            if plan.floors:
                self._measure_floors()
            self.found["mixed"] = measure_mixed(subject, MIXED_CLIENTS, plan.seconds, plan.seed)
            for clients in WRITE_CLIENTS:
                self._measure_writes(clients)
            self.found["log_tail"] = subject.complaints()
        finally:
            self._daemon.stop()
        self.found["load_average_after"] = os.getloadavg()[0]
        self.found["load_generator_peak_rss_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def _start_at(self, size: int) -> None:
        self._daemon.start()
        self.found.setdefault("ready_s", {})[str(size)] = round(self._daemon.ready_s, 3)
        self._subject.say(f"ready in {self._daemon.ready_s:.2f} s with {size:,} memories")

    def _complete_vectors(self) -> dict[str, Any]:
        """Wait until every memory has all its vectors; measure recalls while second ones are made, and the rate."""
        try:
            if self._daemon.vectors().complete:
                return {}
        except (DaemonFailed, KeyError):
            return {}  # a former revision, which has no report of its vectors or makes no second ones
        beside = measure_recall(self._subject, 1, self._plan.seconds)
        before, began = self._daemon.vectors().second, time.monotonic()
        self._daemon.wait_for_vectors()
        took_s, after = time.monotonic() - began, self._daemon.vectors().second
        if before is None or after is None:
            return {}
        self._subject.say(f"{after - before:,} second vectors made in {took_s:.1f} s")
        return {"beside second vectors": beside, "second_vectors_per_s": round((after - before) / took_s, 1)}

    def _footprint(self) -> dict[str, Any]:
        time.sleep(SETTLE_S)
        processes = self._daemon.processes()
        usage = CpuUsage(processes)
        with usage.measured():
            time.sleep(self._plan.idle_s)
        memory = {name: pss_bytes(pid) for name, pid in processes.items()}
        memory["fork server"] = sum(map(pss_bytes, self._daemon.unnamed_processes()))
        database = self._daemon.workspace / "memory" / "memories.db"
        return {
            "idle_cpu_percent": round(sum(usage.tree_ms.values()) / usage.wall_s / 10, 2),
            "idle_cpu_ms": usage.tree_ms,
            "pss_bytes": {**memory, "sum": sum(memory.values())},
            "database_bytes": database.stat().st_size if database.exists() else 0,
        }

    def _measure_writes(self, clients: int) -> None:
        subject, seconds = self._subject, self._plan.seconds
        requests = subject.remembers(WARM_UP + int(seconds * 2500))
        subject.load(requests[:WARM_UP], clients, seconds)
        before = self._writer()
        usage = CpuUsage(self._daemon.processes())
        answered = Answered()
        with usage.measured():
            subject.load(requests[WARM_UP:], clients, seconds, answered)
        after = self._writer()
        must_have_worked(answered, f"remember with {clients} clients")
        count = len(answered.latencies_ms)
        commits = after["commits"] - before["commits"]
        self.found["writes"][str(clients)] = {
            "latency_ms": spread(answered.latencies_ms),
            "per_s": round(count / usage.wall_s, 1),
            "commits": commits,
            "rows_per_commit": round((after["rows"] - before["rows"]) / max(1, commits), 2),
            "cpu_ms_per_remember": usage.each(count),
            "refused": answered.refused,
        }
        subject.say(f"remember, {clients} clients: {count} in {usage.wall_s:.1f} s")

    def _measure_floors(self) -> None:
        subject, sizes = self._subject, self._plan.memories
        directory = self._daemon.workspace.parent / "floors"
        made = subject.memories(4000)
        floors: dict[str, Any] = {
            "write": [
                write_floor(directory, made, rows_per_commit=rows, budget_s=1.5) for rows in (1, *WRITE_CLIENTS[1:])
            ],
            "embedding_ms": embedding_floor(made[:FLOOR_SAMPLES]),
            "health_ms": spread(subject.load([subject.get("/health")] * 800, 1, 2).latencies_ms),
        }
        questions = subject.questions(FLOOR_SAMPLES)
        texts = Texts(self._plan.seed)  # the stored texts again, in the same order
        with KeywordFloor(directory / "keyword-floor.db", build_budget_s=FLOOR_BUILD_S) as keyword:
            for size in sizes:
                built = keyword.grow_to(size, (texts.memory() for _ in itertools.count()))
                floors[str(size)] = {
                    "keyword_ms": keyword.measure(questions, budget_s=4) if built else None,
                    "vector_ms": vector_floor(size),
                }
        shutil.rmtree(directory, ignore_errors=True)
        self.found["floors"] = floors
        subject.say("floors measured")

    def _writer(self) -> dict[str, Any]:
        report = self._daemon.get("/api/status")["writer"]
        if report is None:
            raise DaemonFailed("the writer does not answer")
        found: dict[str, Any] = report
        return {name: found[name] for name in ("commits", "rows")}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0 if everything could be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--memories", type=sizes_in, default=(1_000, 10_000), help="sizes, ascending, e.g. 1000,10000,100000"
    )
    parser.add_argument("--seconds", type=float, default=6.0, help="longest time of one measured phase")
    parser.add_argument("--idle", type=float, default=10.0, help="seconds over which idle CPU is measured")
    parser.add_argument("--seed", type=int, default=7, help="of the made-up texts")
    parser.add_argument("--settings", type=text_of, metavar="FILE", help="an agent.yaml for the daemon")
    options = parser.parse_args(arguments)
    leave_on_sigterm()
    progress = Console(stderr=True)
    console = Console(width=None if sys.stdout.isatty() else 120)
    began = time.perf_counter()
    with throw_away_workspace() as workspace:
        plan = Plan(options.memories, options.seconds, options.idle, options.seed)
        bench = Bench(Daemon(workspace, settings=options.settings or ""), plan, progress)
        try:
            bench.run()
        except DaemonFailed as error:
            progress.print(f"[red]{error}[/red]", highlight=False)
            return 1
    lines = lines_of(bench.found)
    show(lines, console)
    for complaint in bench.found["log_tail"]:
        progress.print(f"log: {complaint}", highlight=False, markup=False)
    path = write_result("load", {**bench.found, "lines": lines})
    console.print(f"{path}  ({time.perf_counter() - began:.0f} s)", highlight=False)
    return 0


def text_of(path: str) -> str:
    """Return the text of the file; the type of an argument."""
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"cannot be read: {error}") from error


def sizes_in(text: str) -> tuple[int, ...]:
    """Parse numbers of memories, ascending; the type of an argument."""
    try:
        sizes = tuple(int(part.replace("_", "")) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a list of numbers: {text}") from None
    if not sizes or list(sizes) != sorted(set(sizes)) or not 100 <= sizes[0] <= sizes[-1] <= 1_000_000:
        raise argparse.ArgumentTypeError("sizes must ascend, from 100 to 1000000")
    return sizes


if __name__ == "__main__":
    sys.exit(main())
