"""The effect of maintenance on requests: the same mixed load with and without background work of the daemon.

``python -m bench.isolation`` runs 32 clients (80 % recall, 20 % remember) in four phases: alone, disturbed, disturbed,
alone. A disturbed phase has retention sweeps (of memories whose times were changed in the stopped daemon's database),
backups, a bulk import and a scrape of ``/metrics`` each second. At the end every acknowledged memory is looked up.

Source: docs/performance.md "Isolation targets". Departs: models and re-embedding are measured by ``bench.pipeline``.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import apsw
import msgspec
from rich.console import Console

from bench.client import BlockingClient
from bench.closed_loops import Answered, closed_loop, run, run_clients
from bench.cpu_usage import CpuUsage
from bench.daemon import Daemon, DaemonFailed, leave_on_sigterm, throw_away_workspace
from bench.figures import Spread, circumstances, spread, write_result
from bench.health_probe import HealthProbe
from bench.loaded_daemon import IMPORT_LINES, LoadedDaemon
from bench.mixed_load import Mixed
from bench.recall_phase import warm_up
from bench.report import Line, show

SETTINGS: Final = """\
retention: {intervalMs: 604800000, tombstoneRetentionMs: 3600000, batchLimit: 500}
backup: {intervalMs: 0, keep: 1}
"""
CLIENTS: Final = 32
ORDER: Final = ("alone", "disturbed", "disturbed", "alone")
SWEEP_EVERY_S: Final = 0.5
SWEEP_ROWS: Final = 500
MOST_DOOMED: Final = 50_000
SCRAPE_EVERY_S: Final = 1.0
BACKUP_ASKED_S: Final = 0.5
IMPORT_BATCHES_PER_S: Final = 15
"""More than can be imported, so that the import does not end before the phase."""
DOOMED: Final = "doomed"
FORGOTTEN_AT_ONCE: Final = 200
END_BUDGET_S: Final = 120.0
P95_RATIO: Final = 2.0
HEALTH_P99_MS: Final = 50.0
NOTES: Final = (
    "Models and re-embedding are not among the disturbances: bench.pipeline measures them.",
    "Clients, disturbances and daemon share the machine's cores: part of the ratio is the CPU that upkeep takes.",
)


class RememberedPart(msgspec.Struct):
    """The part of a remember response that is read."""

    id: str | None = None
    ids: list[str] = []


class Phase:
    """One phase of the mixed load, alone or disturbed, and its results."""

    def __init__(self) -> None:
        self.recalls_ms: list[float] = []
        self.remembers_ms: list[float] = []
        self.health_ms: list[float] = []
        self.health_failed: list[str] = []
        self.refused = 0
        self.failed: list[str] = []
        self.wall_s = 0.0

    def add(self, mixed: Mixed, answered: Answered, probe: HealthProbe, wall_s: float) -> None:
        """Add the results of another phase of the same kind."""
        recalls, remembers = mixed.split(answered)
        self.recalls_ms += recalls
        self.remembers_ms += remembers
        self.health_ms += probe.found.latencies_ms
        self.health_failed += probe.found.failed
        self.refused += answered.refused
        self.failed += answered.failed
        self.wall_s += wall_s

    def figures(self) -> dict[str, Any]:
        """Return all results, for the table and the file."""
        return {
            "per_s": round((len(self.recalls_ms) + len(self.remembers_ms)) / max(self.wall_s, 1e-9), 1),
            "recall_ms": spread(self.recalls_ms),
            "remember_ms": spread(self.remembers_ms),
            "health_ms": spread(self.health_ms),
            "health_failed": self.health_failed[:5],
            "refused": self.refused,
            "failed": len(self.failed),
            "first_failures": self.failed[:5],
        }


class Maintenance:
    """The disturbances: each kind is a closed loop that runs concurrently with the clients."""

    def __init__(self, subject: LoadedDaemon, seconds: float) -> None:
        self._subject = subject
        self._sweep = subject.post("/api/repair/retention-sweep")
        self._backup = subject.post("/api/repair/backup")
        self._scrape = subject.get("/metrics")
        batches = max(1, int(seconds * IMPORT_BATCHES_PER_S))
        self._imports = [subject.import_of(subject.memories(IMPORT_LINES)) for _ in range(batches)]
        self.sweeps, self.backups, self.scrapes, self.imports = (
            Answered(keep_bodies=True),
            Answered(keep_bodies=True),
            Answered(),
            Answered(keep_bodies=True),
        )

    def loops(self, until: float) -> list[Any]:
        """Return the loops, to be awaited together."""
        address = self._subject.daemon.address

        def endless(request: bytes) -> Iterator[tuple[int, bytes]]:
            return enumerate(itertools.repeat(request))

        return [
            closed_loop(address, endless(self._sweep), self.sweeps, until, every_s=SWEEP_EVERY_S),
            closed_loop(address, endless(self._backup), self.backups, until, every_s=BACKUP_ASKED_S),
            closed_loop(address, endless(self._scrape), self.scrapes, until, every_s=SCRAPE_EVERY_S),
            closed_loop(address, enumerate(self._imports), self.imports, until),
        ]

    def figures(self) -> dict[str, Any]:
        """Return what the disturbances did; a phase in which nothing was purged, copied or imported proves nothing."""
        every = {"sweeps": self.sweeps, "backups": self.backups, "scrapes": self.scrapes, "imports": self.imports}
        return {
            "purged_rows": sum(msgspec.json.decode(body)["affected"] for body in self.sweeps.bodies),
            "imported_lines": sum(msgspec.json.decode(body)["imported"] for body in self.imports.bodies),
            "backups_seen": len({msgspec.json.decode(body)["running"] for body in self.backups.bodies} - {None}),
            **{
                name: {
                    "latency_ms": spread(answered.latencies_ms),
                    "refused": answered.refused,
                    "failed": answered.failed[:5],
                }
                for name, answered in every.items()
            },
        }


class Isolation:
    """One run on one workspace."""

    def __init__(self, daemon: Daemon, options: argparse.Namespace, console: Console) -> None:
        self._daemon = daemon
        self._options = options
        self._subject = LoadedDaemon(daemon, seed=options.seed, console=console)
        self._acknowledged: set[str] = set()
        self.found: dict[str, Any] = {"circumstances": circumstances(), "settings": SETTINGS, "notes": NOTES}

    def run(self) -> None:
        """Fill the store, run the phases, and look up the acknowledged memories; raises DaemonFailed."""
        subject, options = self._subject, self._options
        with self._daemon:
            subject.grow_to(options.memories)
            doomed = doomed_rows(ORDER.count("disturbed") * options.rounds, options.seconds)
            self._doom(doomed)
        age_forgotten(self._daemon.workspace / "memory" / "memories.db")
        phases = {"alone": Phase(), "disturbed": Phase()}
        upkeep: list[dict[str, Any]] = []
        cpu: dict[str, dict[str, float]] = {}
        with self._daemon as daemon:
            warm_up(subject, options.seconds)
            for name in ORDER * options.rounds:
                usage = CpuUsage(daemon.processes())
                with usage.measured():
                    disturbance = self._turn(phases[name], disturbed=name == "disturbed")
                cpu[name] = {who: cpu.get(name, {}).get(who, 0.0) + ms for who, ms in usage.spent_ms.items()}
                if disturbance is not None:
                    upkeep.append(disturbance.figures())
                    self._until_backup_ended()
        self.found |= {name: phase.figures() for name, phase in phases.items()}
        self.found["upkeep"] = upkeep
        self.found["cpu_ms"] = cpu
        self.found["doomed"] = doomed
        self.found["memories"] = options.memories
        self.found["acknowledged"] = len(self._acknowledged)
        self.found["lost"] = lost(self._daemon.workspace / "memory" / "memories.db", self._acknowledged)
        self.found["log_tail"] = subject.complaints()
        self.found["load_average_after"] = os.getloadavg()[0]

    def _turn(self, phase: Phase, *, disturbed: bool) -> Maintenance | None:
        subject, seconds = self._subject, self._options.seconds
        mixed = Mixed(subject, seconds, self._options.seed)
        upkeep = Maintenance(subject, seconds) if disturbed else None
        answered = Answered(keep_bodies=True)
        probe = HealthProbe(self._daemon.address)
        with probe.running():
            began = time.perf_counter()
            until = began + seconds
            clients = run_clients(self._daemon.address, mixed.requests, CLIENTS, answered, until)
            if upkeep is None:
                run(clients)
            else:
                run(_together(clients, upkeep.loops(until)))
            wall_s = time.perf_counter() - began
        phase.add(mixed, answered, probe, wall_s)
        for at, body in zip(answered.at, answered.bodies, strict=True):
            if not mixed.recalls[at]:
                kept = msgspec.json.decode(body, type=RememberedPart)
                self._acknowledged.update(kept.ids, [kept.id] if kept.id else ())
        subject.say(f"{'disturbed' if disturbed else 'alone'}: {len(answered.latencies_ms)} requests in {wall_s:.1f} s")
        return upkeep

    def _doom(self, rows: int) -> None:
        """Store and forget that many memories, for the sweeps to purge."""
        subject = self._subject
        filling = subject.import_all(subject.memories(rows), CpuUsage({}), sourceType=DOOMED)
        subject.say(f"{rows:,} memories to forget; {filling.refused} batches were refused at first")
        forgotten = 0
        deadline = time.perf_counter() + END_BUDGET_S
        while forgotten < rows:
            count = self._forget()
            forgotten += count
            if not count or time.perf_counter() > deadline:
                raise DaemonFailed(f"only {forgotten} of {rows} memories could be forgotten")
        subject.say(f"{forgotten:,} memories forgotten")

    def _forget(self) -> int:
        wish = {"sourceType": DOOMED, "limit": FORGOTTEN_AT_ONCE, "reason": "to be purged"}
        preview = self._ask("POST", "/api/memory/forget", {**wish, "mode": "preview"})
        token = preview["confirmToken"]
        done = self._ask("POST", "/api/memory/forget", {**wish, "mode": "execute", "confirm_token": token})
        deleted: int = done["deleted"]
        return deleted

    def _until_backup_ended(self) -> None:
        """Wait until the disturbances have ended: the check of a large backup takes longer than its phase."""
        deadline = time.perf_counter() + END_BUDGET_S
        while (state := self._ask("GET", "/api/repair/backup"))["running"] is not None:
            if time.perf_counter() > deadline:
                raise DaemonFailed(f"the backup does not end: {state}")
            time.sleep(0.1)
        if state["last"] is None or not state["last"]["success"]:
            raise DaemonFailed(f"the backup failed: {state['last']}")

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        address = self._daemon.address
        raw = None if body is None else msgspec.json.encode(body)
        status, answer = BlockingClient(address.host, address.port).exchange(method, path, raw)
        if status != 200:
            raise DaemonFailed(f"{method} {path} was answered {status}: {answer[:200]!r}")
        return msgspec.json.decode(answer)


async def _together(clients: Any, upkeep: Sequence[Any]) -> None:
    """Wait for the clients, and let the disturbances finish their last requests."""
    await asyncio.gather(clients, *upkeep)


def doomed_rows(turns: int, seconds: float) -> int:
    """Return as many rows as the sweeps of all phases can purge, each a full step, within reason."""
    return min(MOST_DOOMED, turns * math.ceil(seconds / SWEEP_EVERY_S) * SWEEP_ROWS)


def age_forgotten(database: Path) -> None:
    """Set the time of every forgotten memory of the stopped daemon to two hours ago."""
    moment = datetime.now(UTC) - timedelta(hours=2)
    connection = apsw.Connection(str(database))
    try:
        connection.execute(
            "UPDATE memories SET deleted_at = ? WHERE is_deleted = 1",
            (moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),),
        )
    finally:
        connection.close()


def lost(database: Path, acknowledged: set[str]) -> int:
    """Return how many of the acknowledged memories are not in the database of the stopped daemon."""
    connection = apsw.Connection(str(database))
    try:
        stored = {row[0] for row in connection.execute("SELECT id FROM memories WHERE is_deleted = 0")}
    finally:
        connection.close()
    return len(acknowledged - stored)


def lines_of(found: dict[str, Any]) -> list[Line]:
    """Return the table: the disturbed figures with the same load alone as their floor."""
    alone, disturbed = found["alone"], found["disturbed"]
    lines: list[Line] = []
    for kind in ("recall", "remember"):
        quiet: Spread = alone[f"{kind}_ms"]
        busy: Spread = disturbed[f"{kind}_ms"]
        lines += [
            Line(f"{kind} p50", busy.p50, "ms", floor=quiet.p50),
            Line(f"{kind} p95", busy.p95, "ms", floor=quiet.p95),
            Line(f"{kind} p99", busy.p99, "ms", floor=quiet.p99),
        ]
    quiet_p95 = alone["recall_ms"].p95
    upkeep = found["upkeep"]
    return [
        Line("requests answered", disturbed["per_s"], "/s", floor=alone["per_s"]),
        *lines,
        Line("recall p95, times alone", disturbed["recall_ms"].p95 / max(quiet_p95, 1e-9), "", limit=P95_RATIO),
        Line("/health p99", disturbed["health_ms"].p99, "ms", limit=HEALTH_P99_MS, floor=alone["health_ms"].p99),
        Line("/health failed", len(disturbed["health_failed"]), "", limit=0),
        Line("refused (503)", disturbed["refused"], "", floor=alone["refused"]),
        Line("failed", disturbed["failed"] + alone["failed"], "", limit=0),
        Line(f"lost of {found['acknowledged']:,} acknowledged", found["lost"], "", limit=0),
        Line("rows purged meanwhile (vectors, memories)", sum(turn["purged_rows"] for turn in upkeep), ""),
        Line("lines imported meanwhile", sum(turn["imported_lines"] for turn in upkeep), ""),
        Line("backups begun meanwhile", sum(turn["backups_seen"] for turn in upkeep), ""),
        Line("sweep p95", max(turn["sweeps"]["latency_ms"].p95 for turn in upkeep), "ms"),
        Line("scrape of /metrics p95", max(turn["scrapes"]["latency_ms"].p95 for turn in upkeep), "ms"),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0 if everything could be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.isolation", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each turn")
    parser.add_argument("--rounds", type=int, default=1, help="of four turns: alone, disturbed, disturbed, alone")
    parser.add_argument("--seed", type=int, default=7, help="of the made-up texts")
    options = parser.parse_args(arguments)
    leave_on_sigterm()
    progress = Console(stderr=True)
    console = Console(width=None if sys.stdout.isatty() else 120)
    with throw_away_workspace() as workspace:
        isolation = Isolation(Daemon(workspace, settings=SETTINGS), options, progress)
        try:
            isolation.run()
        except DaemonFailed as error:
            progress.print(f"[red]{error}[/red]", highlight=False)
            return 1
    lines = lines_of(isolation.found)
    show(
        lines,
        console,
        title=f"{CLIENTS} clients (80 % recall, 20 % remember) beside sweep, backup, import and /metrics",
        floor="the same load alone, in turns; " + " ".join(NOTES),
    )
    for complaint in isolation.found["log_tail"]:
        progress.print(f"log: {complaint}", highlight=False, markup=False)
    console.print(str(write_result("isolation", {**isolation.found, "lines": lines})), highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
