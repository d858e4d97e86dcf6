"""How long requests wait after ``kill -9``: ``python -m bench.recovery [--memories 1000] [--times 20] [--seconds 60]``.

Each child is killed ``--times`` times, ``PAUSE_S`` apart, and the supervisor a quarter as often. Then children chosen
at random are killed every ``EVERY_S`` for ``--seconds``. After each kill, a memory is stored and asked for, again and
again until both are answered 200: that is "served". "Replaced" is when the daemon's status shows another process in
the role. A daemon that has ended by itself, because its writer crashed too often, is started again at once, as a
service manager does.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Final

import msgspec
from rich.console import Console
from rich.table import Table

from bench.client import BlockingClient
from bench.daemon import Daemon, DaemonFailed, leave_on_sigterm, throw_away_workspace
from bench.figures import Spread, circumstances, spread, write_result
from bench.loaded_daemon import LoadedDaemon

PAUSE_S: Final = 5.0
EVERY_S: Final = 0.9
BUDGET_S: Final = 60.0
_BETWEEN_TRIES_S: Final = 0.005


class Waits:
    """The waiting times after the kills of one kind, in milliseconds."""

    def __init__(self) -> None:
        self.served: list[float] = []
        self.replaced: list[float] = []


class Killer:
    """Kills processes of ``daemon`` and asks it until it answers."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._numbers = count()
        self.starts = 0

    def kill(self, role: str, waits: Waits, *, until_replaced: bool) -> None:
        """Kill ``role`` and note how long it takes to be served, and to be replaced. Raises DaemonFailed."""
        self._wait(lambda: role in self._daemon.processes(), time.perf_counter(), role)
        former = self._daemon.processes()[role]
        began = time.perf_counter()
        with suppress(ProcessLookupError):
            os.kill(former, signal.SIGKILL)
        if role == "supervisor":
            self._daemon.stop()
            self._daemon.start()
        self._wait(self._is_served, began, role)
        waits.served.append((time.perf_counter() - began) * 1000)
        if until_replaced:
            self._wait(lambda: self._daemon.processes().get(role, former) != former, began, role)
            waits.replaced.append((time.perf_counter() - began) * 1000)

    def _is_served(self) -> bool:
        client = BlockingClient(self._daemon.address.host, self._daemon.address.port)
        number = next(self._numbers)
        memory = msgspec.json.encode({"content": f"Crane {number} was inspected on pier {number % 7}."})
        question = msgspec.json.encode({"query": f"which pier has crane {number}?"})
        return all(
            client.exchange("POST", path, body)[0] == 200
            for path, body in (("/api/memory/remember", memory), ("/api/memory/recall", question))
        )

    def _wait(self, is_done: Callable[[], bool], began: float, role: str) -> None:
        while True:
            try:
                if is_done():
                    return
            except (OSError, DaemonFailed):
                pass
            if self._daemon.has_ended:
                self._daemon.start()
                self.starts += 1
            if time.perf_counter() - began > BUDGET_S:
                raise DaemonFailed(f"{BUDGET_S:.0f} s after the kill of {role} the daemon did not answer")
            time.sleep(_BETWEEN_TRIES_S)


def measure(daemon: Daemon, times: int, seconds: float, rng: random.Random, progress: Console) -> dict[str, Waits]:
    """Return the waits by role, and those of random kills. Raises DaemonFailed."""
    killer, found = Killer(daemon), {}
    roles = [role for role in daemon.processes() if role != "supervisor"]
    for role, often in [*((role, times) for role in roles), ("supervisor", -(-times // 4))]:
        found[role] = Waits()
        for _ in range(often):
            killer.kill(role, found[role], until_replaced=True)
            time.sleep(PAUSE_S)
        progress.print(f"[dim]{role}: {often} kills[/dim]", highlight=False)
    waits = found[f"any child, every {EVERY_S} s"] = Waits()
    until = time.perf_counter() + seconds
    while (now := time.perf_counter()) < until:
        killer.kill(rng.choice(roles), waits, until_replaced=False)
        time.sleep(max(0.0, now + EVERY_S - time.perf_counter()))
    progress.print(f"[dim]the daemon ended by itself {killer.starts} times[/dim]", highlight=False)
    return found


def table_of(found: dict[str, tuple[Spread, Spread]]) -> Table:
    """Return the table of seconds."""
    table = Table(title="seconds after kill -9", caption="served: a remember and a recall were answered 200")
    table.add_column("killed")
    for column in ("n", "served p50", "p95", "longest", "replaced p50", "p95"):
        table.add_column(column, justify="right")
    for role, (served, replaced) in found.items():
        times = [served.p50, served.p95, served.worst, *((replaced.p50, replaced.p95) if replaced.count else ())]
        table.add_row(role, str(served.count), *(f"{each / 1000:.2f}" for each in times))
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0 if it could be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.recovery", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--memories", type=int, default=1000)
    parser.add_argument("--times", type=int, default=20, help="how often each child is killed")
    parser.add_argument("--seconds", type=float, default=60.0, help="of random kills")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args(arguments)
    leave_on_sigterm()
    progress, console = Console(stderr=True), Console(width=None if sys.stdout.isatty() else 120)
    try:
        with throw_away_workspace() as workspace, Daemon(workspace) as daemon:
            LoadedDaemon(daemon, seed=options.seed, console=progress).grow_to(options.memories)
            daemon.wait_for_vectors()
            waits = measure(daemon, options.times, options.seconds, random.Random(options.seed), progress)
    except DaemonFailed as error:
        progress.print(str(error), style="red", highlight=False, markup=False)
        return 1
    found = {role: (spread(each.served), spread(each.replaced)) for role, each in waits.items()}
    console.print(table_of(found))
    result = {"circumstances": circumstances(), "memories": options.memories, "milliseconds": found}
    console.print(str(write_result("recovery", result)), highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
