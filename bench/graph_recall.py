"""What the knowledge graph costs a recall over HTTP: ``python -m bench.graph_recall --memories 100000``.

Two daemons run on the same store with the graph of ``bench.graph_cost``; one has ``graph.enabled: false``. They get the
same questions in turns, so that both meet the same circumstances: the CPU time of all their processes, and latencies.
Then the daemon with the graph gets questions while the process that finds communities (Louvain) runs beside it, in
turns with quiet ones.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console

from bench.client import encode_request
from bench.closed_loops import Answered, closed_loop, run
from bench.cpu_usage import CpuUsage
from bench.daemon import Daemon, leave_on_sigterm
from bench.figures import circumstances, spread, write_result
from bench.graph_cost import make_graph
from bench.recall_in_process import fill
from bench.texts import Texts
from signet_actors.providers.embedded import EmbeddedEmbedder

TURN: Final = 100
"""Questions of one turn."""
PART: Final = 10
"""Questions over one connection, between two looks whether the process has ended."""
WARM_UP: Final = 200
HANG_S: Final = 300.0
SETTLE_S: Final = 10.0
"""From the start until the searchers have counted what they have to read."""
_SETTINGS: Final = (
    "backup: {intervalMs: 0, keep: 1}\nembedding: {provider: embedded}\nmemory: {pipelineV2: {graph: {enabled: %s}}}\n"
)


class Side:
    """A daemon, and what its recalls cost."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.usage = CpuUsage(daemon.processes())
        self.answered = Answered()

    def ask(self, bodies: Sequence[bytes], answered: Answered) -> None:
        """Send recalls, one after the other; raises RuntimeError if one fails."""
        address = self.daemon.address
        host = f"{address.host}:{address.port}"
        requests = [encode_request("POST", "/api/memory/recall", host=host, body=body) for body in bodies]
        run(closed_loop(address, iter(enumerate(requests)), answered, time.perf_counter() + HANG_S))
        if answered.failed or answered.refused:
            raise RuntimeError(f"a recall failed: {answered.failed[:1]}")

    def figures(self) -> dict[str, Any]:
        """Return latencies, and the CPU milliseconds of each process per recall."""
        cpu = self.usage.each(len(self.answered.latencies_ms))
        return {"latency_ms": spread(self.answered.latencies_ms), "cpu_ms": cpu, "cpu_ms_in_all": round(_tree(cpu), 2)}


def _tree(cpu: dict[str, float]) -> float:
    return sum(spent for name, spent in cpu.items() if name != "load generator")


def compare(sides: dict[str, Side], bodies: Sequence[bytes]) -> None:
    """Ask the sides in turns."""
    for start in range(0, len(bodies), TURN):
        for side in sides.values():
            with side.usage.measured():
                side.ask(bodies[start : start + TURN], side.answered)


def beside_communities(side: Side, bodies: Sequence[bytes]) -> dict[str, Any]:
    """Return the latencies of recalls while communities are sought, and of as many before."""
    quiet, meanwhile, took = Answered(), Answered(), []
    others = itertools.cycle(bodies[::-1])
    command = [sys.executable, "-m", "signet_actors.searcher.communities", str(side.daemon.workspace)]
    for start in range(0, len(bodies), 2 * TURN):
        for part in range(start, start + TURN, PART):
            side.ask(bodies[part : part + PART], quiet)
        began = time.perf_counter()
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": os.getcwd()}
        ) as process:
            while process.poll() is None:
                side.ask([next(others) for _ in range(PART)], meanwhile)
        took.append(round(time.perf_counter() - began, 1))
        if process.returncode:
            raise RuntimeError(f"the communities ended with code {process.returncode}")
    return {
        "quiet_ms": spread(quiet.latencies_ms),
        "beside_ms": spread(meanwhile.latencies_ms),
        "communities_s": took,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0 if it could be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.graph_recall", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7, help="of the made-up texts")
    parser.add_argument("--store", type=Path, help="a directory to keep the stores in; default: a throw-away one")
    options = parser.parse_args(arguments)
    leave_on_sigterm()
    progress, console = Console(stderr=True), Console(width=None if sys.stdout.isatty() else 120)
    with tempfile.TemporaryDirectory(prefix="signet-bench-", ignore_cleanup_errors=True) as place:
        graph, plain = (options.store or Path(place)) / "graph", (options.store or Path(place)) / "plain"
        known = fill(graph / "memory", options.memories, options.seed, EmbeddedEmbedder(), progress)
        make_graph(graph / "memory" / "memories.db", options.seed)
        if not plain.exists():
            shutil.copytree(graph, plain)
        asked = Texts(options.seed + 1).questions(known, options.questions + WARM_UP)
        bodies = [msgspec.json.encode(each.body) for each in asked]
        with Daemon(graph, settings=_SETTINGS % "true") as one, Daemon(plain, settings=_SETTINGS % "false") as other:
            for daemon in (one, other):
                time.sleep(SETTLE_S)
                while daemon.get("/health")["indexing"]["pending"]:
                    time.sleep(1)
            sides = {"with": Side(one), "without": Side(other)}
            for side in sides.values():
                side.ask(bodies[:WARM_UP], Answered())
            compare(sides, bodies[WARM_UP:])
            found: dict[str, Any] = {name: side.figures() for name, side in sides.items()}
            found["communities"] = beside_communities(sides["with"], bodies[WARM_UP : WARM_UP + 10 * TURN])
        found["circumstances"] = circumstances()
    for name, figures in found.items():
        console.print(f"{name}: {figures}", highlight=False)
    console.print(str(write_result("graph-recall", found)), highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
