"""Recall beside a large import, and after it: ``python -m bench.large_store [--memories 1000000]``.

Two clients recall all the time, each five times a second, while the memories are imported at full speed, while the
caches catch up, after a restart, and beside a backup. ``/health`` is requested by a separate process. The requests of
the import are generated beforehand into a file, so the import makes no pauses. Nothing is asserted.

Source: docs/performance.md "Targets" (during and after an import or backup: p99 at most 100 ms, no 503).
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import struct
import sys
import time
from collections.abc import Awaitable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console

from bench.closed_loops import Answered, closed_loop, run
from bench.daemon import Daemon, DaemonFailed, leave_on_sigterm, pss_bytes, throw_away_workspace
from bench.figures import Spread, circumstances, spread, write_result
from bench.health_probe import HealthProbe
from bench.loaded_daemon import IMPORT_LINES, EvenSample, LoadedDaemon
from bench.report import Line, show
from bench.texts import Asked, Texts

SETTINGS: Final = "backup: {intervalMs: 0, keep: 1}\n"
IMPORT_CLIENTS: Final = 2
RECALL_CLIENTS: Final = 2
RECALL_EVERY_S: Final = 0.2
FIRST: Final = 10_000
"""Memories that are stored before the measured import, for the recalls to ask about."""
SAMPLE: Final = 20_000
QUESTIONS: Final = 4_000
SETTLED_S: Final = 15.0
CATCH_UP_BUDGET_S: Final = 900.0
BACKUP_BUDGET_S: Final = 900.0
P99_MS: Final = 100.0
_LENGTH: Final = struct.Struct("<I")


class IndexingPart(msgspec.Struct):
    """The part of health or of a recall's meta that tells what is not indexed yet."""

    pending: int


class HealthPart(msgspec.Struct):
    """The part of ``/health`` that is read."""

    status: str
    indexing: IndexingPart | None = None


class MetaPart(msgspec.Struct):
    """The part of a recall's meta that is read."""

    timings: dict[str, Any]
    indexing: IndexingPart | None = None


class RecallPart(msgspec.Struct):
    """The part of a recall's response that is read."""

    results: list[msgspec.Raw]
    meta: MetaPart


class Phase:
    """The recalls and health requests of one phase."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.recalls = Answered(keep_bodies=True)
        self.health = Answered()
        self.most_pending = 0
        self.states: set[str] = set()
        self.wall_s = 0.0

    def figures(self) -> dict[str, Any]:
        """Return the figures for the table and the file."""
        answers = [msgspec.json.decode(body, type=RecallPart) for body in self.recalls.bodies]
        stages: dict[str, list[float]] = {}
        for answer in answers:
            for stage in answer.meta.timings["stages"]:
                stages.setdefault(stage["name"], []).append(stage["durationMs"])
        return {
            "stages_ms": {name: spread(values) for name, values in stages.items()},
            "seconds": round(self.wall_s, 1),
            "recall_ms": spread(self.recalls.latencies_ms),
            "recalls_that_name_missing": sum(answer.meta.indexing is not None for answer in answers),
            "recalls_without_hit": sum(not answer.results for answer in answers),
            "refused": self.recalls.refused,
            "failed": self.recalls.failed[:5],
            "health_ms": spread(self.health.latencies_ms),
            "health_states": sorted(self.states),
            "most_pending": self.most_pending,
        }


class LargeStore:
    """One run on one workspace."""

    def __init__(self, daemon: Daemon, options: argparse.Namespace, requests: Path, console: Console) -> None:
        self._daemon, self._options, self._requests = daemon, options, requests
        self._subject = LoadedDaemon(daemon, seed=options.seed, console=console)
        self._asked: list[Asked] = []
        self.found: dict[str, Any] = {"circumstances": circumstances(), "memories": options.memories, "phases": {}}

    def run(self) -> None:
        """Run all phases; raises DaemonFailed."""
        subject, options = self._subject, self._options
        subject.grow_to(min(FIRST, options.memories // 10))
        self._asked = self._prepare()
        self._import()
        self._measure("after", self._caught_up(), CATCH_UP_BUDGET_S)
        self._measure("settled", asyncio.sleep(SETTLED_S), SETTLED_S + 1)
        self.found["pss_bytes"] = sum(pss_bytes(pid) for pid in self._daemon.processes().values())
        self.found["database_bytes"] = self._database.stat().st_size
        self._measure("backup", self._backup(), BACKUP_BUDGET_S)
        self._daemon.stop()
        self._daemon.start()
        self.found["restart_ready_s"] = round(self._daemon.ready_s, 2)
        subject.say(f"ready again in {self._daemon.ready_s:.2f} s")
        self._measure("after restart", self._caught_up(), CATCH_UP_BUDGET_S)
        self.found["log_tail"] = subject.complaints()
        self.found["load_average_after"] = os.getloadavg()[0]

    @property
    def _database(self) -> Path:
        return self._daemon.workspace / "memory" / "memories.db"

    def _prepare(self) -> list[Asked]:
        """Write the requests of the import to the file; return questions about some of their memories."""
        subject, texts = self._subject, Texts(self._options.seed, stream=2)
        sample = EvenSample(SAMPLE, self._options.seed)
        left = self._options.memories - subject.size
        with self._requests.open("wb") as file:
            while left:
                made = [texts.memory() for _ in range(min(IMPORT_LINES, left))]
                for one in made:
                    sample.offer(one)
                request = subject.import_of(made)
                file.write(_LENGTH.pack(len(request)) + request)
                left -= len(made)
        subject.say(f"{self._options.memories - subject.size:,} memories generated")
        return Texts(self._options.seed, stream=3).questions(sample.kept, QUESTIONS)

    def _import(self) -> None:
        subject, address = self._subject, self._daemon.address
        done = Answered(keep_bodies=True)
        batches = enumerate(_read_requests(self._requests))
        far = time.perf_counter() + 3600.0

        async def import_all() -> None:
            await asyncio.gather(*(closed_loop(address, batches, done, far) for _ in range(IMPORT_CLIENTS)))

        phase = self._measure("import", import_all(), 3600.0)
        imported = sum(msgspec.json.decode(body)["imported"] for body in done.bodies)
        missing = self._options.memories - subject.size - imported
        if missing:  # a batch whose outcome is unknown (504) may have been stored
            subject.say(f"{missing:,} memories without a 200 ({done.refused} requests refused): {done.failed[:1]}")
        self.found["import_unanswered"] = missing
        subject.size = self._options.memories - missing
        self.found["import_per_s"] = round(imported / phase.wall_s, 1)

    def _measure(self, name: str, work: Awaitable[Any], budget_s: float) -> Phase:
        """Recall, and watch health, until ``work`` is done."""
        phase, address = Phase(name), self._daemon.address
        probe = HealthProbe(address)
        began = time.perf_counter()

        async def whole() -> None:
            asked = enumerate(itertools.cycle([self._subject.recall_of(question) for question in self._asked]))
            until = began + budget_s

            async def client(number: int) -> None:
                await asyncio.sleep(number * RECALL_EVERY_S / RECALL_CLIENTS)
                await closed_loop(address, asked, phase.recalls, until, every_s=RECALL_EVERY_S)

            others = [asyncio.ensure_future(client(number)) for number in range(RECALL_CLIENTS)]
            others.append(asyncio.ensure_future(self._watch(phase)))
            try:
                await asyncio.wait_for(work, budget_s)
            except TimeoutError:
                phase.recalls.failed.append(f"{name} did not end within {budget_s:.0f} s")
            finally:
                for other in others:
                    other.cancel()
                await asyncio.gather(*others, return_exceptions=True)

        with probe.running():
            run(whole())
            phase.wall_s = time.perf_counter() - began
        for latency_ms in probe.found.latencies_ms:
            phase.health.add(0, 200, b"", latency_ms)
        phase.health.failed += probe.found.failed
        self.found["phases"][name] = phase.figures()
        figures: Spread = self.found["phases"][name]["recall_ms"]
        self._subject.say(
            f"{name}: {phase.wall_s:.1f} s, recall p50 {figures.p50:.1f} p99 {figures.p99:.1f}"
            f" worst {figures.worst:.1f} ms, {phase.recalls.refused} refused, {phase.most_pending:,} pending"
        )
        return phase

    async def _watch(self, phase: Phase) -> None:
        """Note what health says, once in half a second."""
        while True:
            health = await asyncio.to_thread(self._health)
            phase.states.add(health.status)
            if health.indexing is not None:
                phase.most_pending = max(phase.most_pending, health.indexing.pending)
            await asyncio.sleep(0.5)

    def _health(self) -> HealthPart:
        return msgspec.convert(self._daemon.get("/health"), HealthPart)

    async def _caught_up(self) -> None:
        """Wait until health names no backlog for two heartbeats."""
        quiet = 0
        while quiet < 4:
            await asyncio.sleep(0.5)
            health = await asyncio.to_thread(self._health)
            quiet = quiet + 1 if health.indexing is None or not health.indexing.pending else 0

    async def _backup(self) -> None:
        """Ask for a backup and wait until it is made and verified."""
        answered = Answered(keep_bodies=True)
        begin = iter([(0, self._subject.post("/api/repair/backup"))])
        await closed_loop(self._daemon.address, begin, answered, time.perf_counter() + 60)
        if not answered.bodies:
            raise DaemonFailed(f"the backup was refused: {answered.failed[:1]}")
        state: dict[str, Any] = {"running": True}
        while state["running"] is not None:
            await asyncio.sleep(0.25)
            state = await asyncio.to_thread(self._daemon.get, "/api/repair/backup")
        if state["last"] is None or not state["last"]["success"]:
            raise DaemonFailed(f"the backup failed: {state['last']}")


def _read_requests(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while head := file.read(_LENGTH.size):
            yield file.read(_LENGTH.unpack(head)[0])


def lines_of(found: dict[str, Any]) -> list[Line]:
    """Return the table."""
    lines = [Line("import", found["import_per_s"], "/s")]
    for name, phase in found["phases"].items():
        recalls: Spread = phase["recall_ms"]
        lines += [
            Line(f"{name}: seconds", phase["seconds"], "s"),
            Line(f"{name}: recall p50", recalls.p50, "ms"),
            Line(f"{name}: recall p99", recalls.p99, "ms", limit=P99_MS),
            Line(f"{name}: recall, longest", recalls.worst, "ms"),
            Line(f"{name}: refused or failed", phase["refused"] + len(phase["failed"]), "", limit=0),
            Line(f"{name}: /health p99", phase["health_ms"].p99, "ms", limit=50),
            Line(f"{name}: most memories not indexed yet", phase["most_pending"], ""),
        ]
    lines.append(Line("ready after a restart", found["restart_ready_s"], "s"))
    lines.append(Line("memory (PSS), settled", found["pss_bytes"] / 1e6, "MB"))
    lines.append(Line("database", found["database_bytes"] / 1e6, "MB"))
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0 if it could be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.large_store", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--memories", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=7, help="of the made-up texts")
    parser.add_argument("--settings", type=Path, metavar="FILE", help="an agent.yaml for the daemon")
    options = parser.parse_args(arguments)
    leave_on_sigterm()
    console = Console(stderr=True)
    settings = SETTINGS + (options.settings.read_text() if options.settings else "")
    with throw_away_workspace() as workspace, Daemon(workspace, settings=settings) as daemon:
        store = LargeStore(daemon, options, workspace.parent / "requests", console)
        store.run()
    out = Console(width=None if sys.stdout.isatty() else 120)
    show(lines_of(store.found), out, title="Recall beside a large import", floor="none")
    print(write_result("large-store", store.found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
