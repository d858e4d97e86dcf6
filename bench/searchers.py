"""Throughput and CPU per recall with different numbers of searcher processes, on one store.

``python -m bench.searchers --memories 10000 --searchers 1,2,3``. The daemon is restarted for each number, on the same
workspace. On a machine with few cores a further searcher shares them with the gateway and the load generator; the CPU
per recall shows the cost without that effect.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from bench.cpu_usage import LOAD_GENERATOR
from bench.daemon import Daemon, DaemonFailed, leave_on_sigterm, pss_bytes, throw_away_workspace
from bench.figures import Spread, circumstances, write_result
from bench.loaded_daemon import LoadedDaemon
from bench.recall_phase import measure_recall, warm_up

CLIENTS: Final = (1, 8, 32)
SEARCHER: Final = "searcher"


def settings_for(searchers: int) -> str:
    """Return an ``agent.yaml`` with that many searcher processes."""
    return f"searcher: {{processes: {searchers}}}\n"


def by_role(each: Mapping[str, float]) -> dict[str, float]:
    """Return the CPU per recall with all searchers as one figure, without the load generator."""
    roles: dict[str, float] = {}
    for name, spent in each.items():
        if name != LOAD_GENERATOR:
            role = "searchers" if name.startswith(SEARCHER) else name
            roles[role] = round(roles.get(role, 0.0) + spent, 3)
    return roles


def measure(subject: LoadedDaemon, numbers: Sequence[int], seconds: float, memories: int) -> dict[str, Any]:
    """Return the figures of each number of searchers; raises DaemonFailed."""
    found: dict[str, Any] = {}
    for number in numbers:
        subject.daemon.settings = settings_for(number)
        with subject.daemon as daemon:
            subject.grow_to(memories)
            warm_up(subject, seconds)
            pids = {name: pid for name, pid in daemon.processes().items() if name.startswith(SEARCHER)}
            if len(pids) != number:
                raise DaemonFailed(f"{len(pids)} searchers run, not {number}")
            subject.say(f"{number} searcher(s)")
            found[str(number)] = {
                **{f"{clients} clients": measure_recall(subject, clients, seconds) for clients in CLIENTS},
                "pss_bytes": {name: pss_bytes(pid) for name, pid in pids.items()},
            }
            found[str(number)]["log_tail"] = subject.complaints()
    return found


def show(found: Mapping[str, Any], console: Console) -> None:
    """Print the table."""
    table = Table(title="Searcher processes", caption="CPU: milliseconds a recall, all searchers together")
    columns = ("searchers", "clients", "recalls/s", "p50 ms", "p95 ms", "refused", "CPU searchers", "gateway", "writer")
    for column in columns:
        table.add_column(column, justify="right")
    for number, figures in found.items():
        for clients in CLIENTS:
            phase = figures[f"{clients} clients"]
            took: Spread = phase["latency_ms"]
            cpu = by_role(phase["cpu_ms_per_recall"])
            table.add_row(
                number,
                str(clients),
                f"{phase['per_s']:,.0f}",
                f"{took.p50:.1f}",
                f"{took.p95:.1f}",
                str(phase["refused"]),
                *(f"{cpu.get(role, 0.0):.2f}" for role in ("searchers", "gateway", "writer")),
            )
        table.add_section()
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0 if everything could be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.searchers", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--searchers", type=_numbers, default=(1, 2, 3), help="numbers of processes, e.g. 1,2,3")
    parser.add_argument("--seconds", type=float, default=6.0, help="longest time of one measured phase")
    parser.add_argument("--seed", type=int, default=7, help="of the made-up texts")
    options = parser.parse_args(arguments)
    leave_on_sigterm()
    progress = Console(stderr=True)
    console = Console(width=None if sys.stdout.isatty() else 120)
    result: dict[str, Any] = {"circumstances": circumstances(), "memories": options.memories}
    with throw_away_workspace() as workspace:
        subject = LoadedDaemon(Daemon(workspace), seed=options.seed, console=progress)
        try:
            result["searchers"] = measure(subject, options.searchers, options.seconds, options.memories)
        except DaemonFailed as error:
            progress.print(f"[red]{error}[/red]", highlight=False)
            return 1
    result["load_average_after"] = os.getloadavg()[0]
    show(result["searchers"], console)
    console.print(str(write_result("searchers", result)), highlight=False)
    return 0


def _numbers(text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a list of numbers: {text}") from None
    if not all(1 <= number <= 64 for number in numbers):
        raise argparse.ArgumentTypeError("1 to 64 searchers")
    return numbers


if __name__ == "__main__":
    sys.exit(main())
