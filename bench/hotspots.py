"""The functions that use the CPU time of gateway, searcher and writer: ``python -m bench.hotspots``.

Two runs of the daemon on one workspace, one with recalls and one with remembers, because a mixed profile explains
neither. Latencies of these runs are not meaningful; ``bench.load`` measures those.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from bench.daemon import Daemon, leave_on_sigterm, throw_away_workspace
from bench.figures import write_result
from bench.loaded_daemon import WARM_UP, LoadedDaemon
from bench.sampled_tree import SAMPLED
from bench.sampling import DIRECTORY_VARIABLE, INTERVAL_S, Profile

SAMPLED_TREE = "bench.sampled_tree"
_SCAFFOLD = ("<frozen", "bench/", str(Path(__file__).parent))


def _begin_anew(processes: dict[str, int]) -> None:
    """Discard the samples so far, which are mostly of imports."""
    for name, pid in processes.items():
        if name.startswith(SAMPLED):
            os.kill(pid, signal.SIGUSR1)


def collect(directory: Path) -> list[Profile]:
    """Return the profiles in ``directory``, and delete them."""
    profiles = []
    for path in sorted(directory.glob("*.json")):
        profiles.append(msgspec.json.decode(path.read_bytes(), type=Profile))
        path.unlink()
    return profiles


def table_of(profile: Profile, requests: int, title: str, *, rows: int) -> Table:
    """Return a table of the most expensive functions, in CPU microseconds per request."""
    per_sample_us = INTERVAL_S * 1e6 / max(1, requests)
    table = Table(title=f"{profile.name}, {title}: {profile.samples * per_sample_us:.0f} µs of CPU a request")
    for column in ("with what it calls", "µs", "itself", "µs"):
        table.add_column(column, justify="right" if column == "µs" else "left", overflow="fold")
    below = [(where, count) for where, count in profile.below.items() if not where.startswith(_SCAFFOLD)][:rows]
    itself = list(profile.itself.items())[:rows]
    for (outer, outer_count), (inner, inner_count) in zip(below, itself, strict=False):
        table.add_row(outer, f"{outer_count * per_sample_us:.0f}", inner, f"{inner_count * per_sample_us:.0f}")
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.hotspots", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each kind of load")
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args(arguments)
    leave_on_sigterm()
    console = Console(width=None if sys.stdout.isatty() else 180)
    result: dict[str, list[Profile]] = {}
    with throw_away_workspace() as workspace:
        profiles = workspace.parent / "profiles"
        profiles.mkdir()
        subject = LoadedDaemon(Daemon(workspace), seed=options.seed, console=Console(stderr=True))
        with subject.daemon:
            subject.grow_to(options.memories)
        environment = {DIRECTORY_VARIABLE: str(profiles)}
        for kind in ("recall", "remember"):
            subject.daemon = Daemon(workspace, module=SAMPLED_TREE, environment=environment)
            with subject.daemon:
                requests = subject.recalls(30_000) if kind == "recall" else subject.remembers(30_000)
                subject.load(requests[:WARM_UP], 1, options.seconds)
                _begin_anew(subject.daemon.processes())
                answered = subject.load(requests[WARM_UP:], options.clients, options.seconds)
            count = len(answered.latencies_ms)
            subject.say(f"{kind}: {count} requests, {len(answered.failed)} failed")
            result[kind] = collect(profiles)
            for profile in result[kind]:
                console.print(table_of(profile, count, kind, rows=options.rows))
    console.print(str(write_result("profile", result)), highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
