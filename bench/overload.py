"""Overload: an open loop at four times the capacity, bodies up to the limit, a thousand idle connections.

``python -m bench.overload`` measures the capacity for each workload with closed loops, then sends requests at four
times that rate (``bench/open_loop.py``), while a separate process requests ``/health``. Then every acknowledged memory
is looked up in the database of the stopped daemon. Nothing is asserted; every figure is printed with its bound.

Source: docs/reliability.md R13; docs/performance.md "Overload".
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import resource
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import uvloop
from rich.console import Console
from rich.table import Table

from bench.client import Connection, ProtocolError, encode_request
from bench.cpu_usage import CpuUsage
from bench.daemon import Daemon, DaemonFailed, leave_on_sigterm, throw_away_workspace
from bench.figures import Spread, circumstances, spread, write_result
from bench.health_probe import HealthProbe
from bench.open_loop import OpenLoop
from bench.texts import Texts
from signet_actors.store.sqlite.connect import open_reader

OVERLOAD: Final = 4
CAPACITY_S: Final = 8.0
MAX_OPEN: Final = 400
"""Connections of the open loop, fewer than the daemon accepts; a request without a free one is counted as unsent."""
IDLE_CONNECTIONS: Final = 1000
LARGEST: Final = 900_000
SMALLEST: Final = 1_000
FILLED: Final = 2000
SAMPLE_EVERY_S: Final = 0.1
RECOVERY_S: Final = 30.0
CLIENTS: Final = {"remember": 32, "recall": 16, "bodies": 16, "largest": 4}
OK: Final = 200
BUSY: Final = 503

GOODPUT_SHARE: Final = 0.8
SHED_MS: Final = 50.0
HEALTH_MS: Final = 100.0
RECOVERY_BOUND_S: Final = 2.0
RSS_MB: Final = 64.0


class Kept(msgspec.Struct):
    """The part of a remember response that is read."""

    id: str | None = None
    ids: list[str] = []


class Outcome:
    """The outcomes of the requests of one phase."""

    def __init__(self) -> None:
        self.accepted_ms: list[float] = []
        self.shed_ms: list[float] = []
        self.others: Counter[str] = Counter()
        self.unsent = 0
        self.offered = 0
        self.wall_s = 0.0

    @property
    def goodput(self) -> float:
        """Return the requests answered 200 per second."""
        return len(self.accepted_ms) / self.wall_s if self.wall_s else 0.0

    def figures(self) -> dict[str, Any]:
        return {
            "offered_per_s": round(self.offered / max(self.wall_s, 1e-9), 1),
            "goodput_per_s": round(self.goodput, 1),
            "accepted_ms": spread(self.accepted_ms),
            "shed": len(self.shed_ms),
            "shed_ms": spread(self.shed_ms),
            "unsent": self.unsent,
            "others": dict(self.others),
        }


class Requests:
    """Requests of each workload; no two contents, and no two chunks of contents, are the same."""

    def __init__(self, host: str, seed: int) -> None:
        self._host = host
        self._texts = Texts(seed)
        self._rng = random.Random(seed)
        self._serial = 0
        self._known = [self._texts.memory() for _ in range(FILLED)]
        self._sentences = [sentence for made in self._known for sentence in made.body()["content"].split(". ")]
        self._questions = self._texts.questions(self._known, 4000)

    def fill(self) -> Iterator[bytes]:
        """Store the memories that recalls query."""
        for made in self._known:
            yield self._remember(made.body()["content"])

    def of(self, workload: str) -> Iterator[bytes]:
        """Yield requests without end."""
        while True:
            yield getattr(self, f"_{workload}_request")()

    def _remember(self, content: str) -> bytes:
        body = msgspec.json.encode({"content": content})
        return encode_request("POST", "/api/memory/remember", host=self._host, body=body)

    def _remember_request(self) -> bytes:
        self._serial += 1
        return self._remember(f"{self._serial:x} {self._rng.choice(self._sentences)}")

    def _recall_request(self) -> bytes:
        body = msgspec.json.encode(self._rng.choice(self._questions).body)
        return encode_request("POST", "/api/memory/recall", host=self._host, body=body)

    def _bodies_request(self) -> bytes:
        """Return sizes over three orders of magnitude, equally many of each order."""
        return self._remember(self._content(int(SMALLEST * (LARGEST / SMALLEST) ** self._rng.random())))

    def _largest_request(self) -> bytes:
        return self._remember(self._content(LARGEST))

    def _content(self, chars: int) -> str:
        self._serial += 1
        parts: list[str] = []
        length = 0
        while length < chars:
            part = f"{self._serial:x}n{len(parts):x} {self._rng.choice(self._sentences)}."
            parts.append(part)
            length += len(part) + 1
        return " ".join(parts)[:chars]


class Watched:
    """The resident memory of all processes and the responses of ``/health`` between entering and leaving."""

    def __init__(self, daemon: Daemon, seconds: float) -> None:
        self._names = daemon.processes()
        self._address = daemon.address
        self._seconds = seconds
        self._died: list[str] = []
        self._before = self._rss_by_process()
        self._worst = dict(self._before)
        self._worst_sum = sum(self._before.values())
        self._ending = threading.Event()
        self.health_ms: list[float] = []
        self.health_failed: list[str] = []
        self.probe_late_ms: list[float] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        sampler = threading.Thread(target=self._sample)
        probe = HealthProbe(self._address)
        with probe.running():
            sampler.start()
            try:
                yield
            finally:
                self._ending.set()
                sampler.join()
        self.health_ms, self.health_failed = probe.found.latencies_ms, probe.found.failed
        self.probe_late_ms = probe.found.late_ms

    def figures(self) -> dict[str, Any]:
        return {
            "rss_growth_mb": round((self._worst_sum - sum(self._before.values())) / 2**20, 1),
            "rss_before_mb": round(sum(self._before.values()) / 2**20, 1),
            "rss_growth_by_process_mb": {
                name: round((self._worst[name] - self._before[name]) / 2**20, 1) for name in self._names
            },
            "died": self._died,
            "health_ms": spread(self.health_ms),
            "probe_late_ms": spread(self.probe_late_ms),
            "health_failed": self.health_failed[:5],
        }

    def _sample(self) -> None:
        while not self._ending.wait(SAMPLE_EVERY_S):
            now = self._rss_by_process()
            self._worst_sum = max(self._worst_sum, sum(now.values()))
            for name, rss in now.items():
                self._worst[name] = max(self._worst[name], rss)

    def _rss_by_process(self) -> dict[str, int]:
        found = {}
        for name, pid in self._names.items():
            try:
                found[name] = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
            except (OSError, IndexError):
                if name not in self._died:
                    self._died.append(name)
        return found


class LoadGenerator:
    """Sends requests to one daemon and records every response."""

    def __init__(self, host: str, port: int, kept: set[str]) -> None:
        self._host = host
        self._port = port
        self._kept = kept
        self._free: list[Connection] = []

    async def closed(self, requests: Iterator[bytes], clients: int, seconds: float) -> Outcome:
        """Run closed loops: each client sends its next request when the last one is answered."""
        outcome = Outcome()
        began = time.perf_counter()
        until = began + seconds

        async def client() -> None:
            for request in requests:
                if time.perf_counter() >= until:
                    return
                outcome.offered += 1
                await self._one(request, outcome)

        await asyncio.gather(*(client() for _ in range(clients)))
        outcome.wall_s = time.perf_counter() - began
        self._leave()
        return outcome

    def open_loop(self, requests: Iterator[bytes], per_s: float, seconds: float) -> Outcome:
        """Send a request at each due time, independent of the earlier ones; return when all are answered."""
        outcome = Outcome()

        def answered(request: bytes, status: int, body: bytes, took_ms: float) -> bool:
            return self._note(outcome, request, status, body, took_ms)

        def failed(why: str) -> None:
            outcome.others[why[:60]] += 1

        loop = OpenLoop((self._host, self._port), MAX_OPEN, answered, failed)
        outcome.wall_s = loop.run(requests, per_s, seconds)
        outcome.offered, outcome.unsent = loop.offered, loop.unsent
        return outcome

    async def time_until_calm(self, requests: Iterator[bytes], bound_ms: float) -> float:
        """Return the seconds until a request is accepted and answered within ``bound_ms``."""
        began = time.perf_counter()
        while time.perf_counter() < began + RECOVERY_S:
            outcome = Outcome()
            await self._one(next(requests), outcome)
            if outcome.accepted_ms and outcome.accepted_ms[0] <= bound_ms:
                return time.perf_counter() - began
        return RECOVERY_S

    async def _one(self, request: bytes, outcome: Outcome) -> None:
        connection = None
        try:
            connection = self._free.pop() if self._free else await Connection.open(self._host, self._port)
            before = time.perf_counter()
            status, body = await connection.exchange(request)
        except (ProtocolError, TimeoutError, OSError) as error:
            outcome.others[f"{type(error).__name__}: {error}"[:60]] += 1
            if connection is not None:
                connection.close()
            return
        if self._note(outcome, request, status, body, (time.perf_counter() - before) * 1000):
            self._free.append(connection)
        else:
            connection.close()

    def _note(self, outcome: Outcome, request: bytes, status: int, body: bytes, took_ms: float) -> bool:
        """Record the response; return whether its connection stays open."""
        if status == OK:
            outcome.accepted_ms.append(took_ms)
            if request.startswith(b"POST /api/memory/remember"):
                kept = msgspec.json.decode(body, type=Kept)
                self._kept.update(kept.ids, [kept.id] if kept.id else ())
        elif status == BUSY:
            outcome.shed_ms.append(took_ms)
        else:
            outcome.others[f"{status}: {body[:60].decode(errors='replace')}"] += 1
        return status == OK or (status == BUSY and len(request) < 64 * 1024)

    def _leave(self) -> None:
        for connection in self._free:
            connection.close()
        self._free.clear()


class Overload:
    """One run against one daemon."""

    def __init__(self, daemon: Daemon, options: argparse.Namespace, console: Console) -> None:
        self._daemon = daemon
        self._options = options
        self._console = console
        self._kept: set[str] = set()
        self.found: dict[str, Any] = {"circumstances": circumstances(), "workloads": {}}

    def run(self) -> None:
        """Run every workload and the idle connections, and check what is left on disk."""
        with self._daemon as daemon:
            address = daemon.address
            requests = Requests(f"{address.host}:{address.port}", self._options.seed)
            generator = self._generator()
            filled = self._do(generator.closed(requests.fill(), 8, 120))
            if len(filled.accepted_ms) != FILLED:
                raise DaemonFailed(f"filling: {filled.figures()}")
            for workload in self._options.workloads:
                self._console.print(f"{workload} ...")
                self.found["workloads"][workload] = self._workload(workload, requests)
            if not self._options.no_idle:
                self._console.print("idle connections ...")
                self.found["idle"] = self._idle(requests)
        self.found["lost"] = self._lost()
        self.found["kept"] = len(self._kept)
        self.found["complaints"] = self._complaints()

    def _workload(self, name: str, requests: Requests) -> dict[str, Any]:
        endless = requests.of(name)
        generator = self._generator()
        calm = self._do(generator.closed(endless, 1, 2))
        peak = self._do(generator.closed(endless, CLIENTS[name], self._options.capacity))
        watched = Watched(self._daemon, self._options.seconds)
        usage = CpuUsage(self._daemon.processes())
        with watched.running(), usage.measured():
            over = generator.open_loop(endless, max(1.0, OVERLOAD * peak.goodput), self._options.seconds)
        bound_ms = 2 * spread(calm.accepted_ms).p99 + 20
        recovered_s = self._do(generator.time_until_calm(endless, bound_ms))
        return {
            "calm_ms": spread(calm.accepted_ms),
            "peak": peak.figures(),
            "overload": over.figures(),
            "goodput_share": round(over.goodput / max(peak.goodput, 1e-9), 2),
            "p99_factor": round(spread(over.accepted_ms).p99 / max(spread(peak.accepted_ms).p99, 1e-9), 2),
            "recovered_s": round(recovered_s, 2),
            "cores": {name: round(spent / 1000 / usage.wall_s, 2) for name, spent in usage.spent_ms.items()},
            **watched.figures(),
        }

    def _idle(self, requests: Requests) -> dict[str, Any]:
        """Measure requests while a thousand connections are idle."""
        address = self._daemon.address

        async def scene() -> Outcome:
            silent = [await Connection.open(address.host, address.port) for _ in range(IDLE_CONNECTIONS)]
            try:
                outcome = Outcome()
                began = time.perf_counter()
                while time.perf_counter() < began + min(5.0, self._options.seconds):
                    generator = self._generator()  # a new connection each time
                    outcome.offered += 1
                    await generator._one(requests._remember_request(), outcome)
                    generator._leave()
                outcome.wall_s = time.perf_counter() - began
                return outcome
            finally:
                for connection in silent:
                    connection.close()

        watched = Watched(self._daemon, self._options.seconds)
        with watched.running():
            beside = self._do(scene())
        return {"connections": IDLE_CONNECTIONS, "beside": beside.figures(), **watched.figures()}

    def _lost(self) -> int:
        """Return the acknowledged memories that are not in the database."""
        connection = open_reader(self._daemon.workspace / "memory" / "memories.db")
        try:
            stored = {row[0] for row in connection.execute("SELECT id FROM memories WHERE is_deleted = 0")}
        finally:
            connection.close()
        return len(self._kept - stored)

    def _complaints(self) -> list[dict[str, Any]]:
        """Return the last log lines of the daemon at warning level or above."""
        lines = []
        for path in sorted((self._daemon.workspace / ".daemon" / "logs").glob("*.log*")):
            for line in path.read_bytes().splitlines():
                with contextlib.suppress(msgspec.DecodeError):
                    lines.append(msgspec.json.decode(line, type=dict[str, Any]))
        return [line for line in lines if line.get("level") not in {"info", "debug"}][-40:]

    def _generator(self) -> LoadGenerator:
        return LoadGenerator(self._daemon.address.host, self._daemon.address.port, self._kept)

    @staticmethod
    def _do(work: Any) -> Any:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(work)


def show(console: Console, found: dict[str, Any]) -> None:
    """Print the figures, each with its bound."""
    table = Table("workload", "figure", "found", "bound", "")
    for name, figures in found["workloads"].items():
        over, peak = figures["overload"], figures["peak"]
        rows: list[tuple[str, float, float, bool]] = [
            ("goodput, share of peak", figures["goodput_share"], GOODPUT_SHARE, True),
            ("refused p99 ms", over["shed_ms"].p99, SHED_MS, False),
            ("/health p99 ms", figures["health_ms"].p99, SHED_MS, False),
            ("/health worst ms", figures["health_ms"].worst, HEALTH_MS, False),
            ("/health failed", float(len(figures["health_failed"])), 0.0, False),
            ("processes that died", float(len(figures["died"])), 0.0, False),
            ("RSS growth MB", figures["rss_growth_mb"], RSS_MB, False),
            ("back to normal s", figures["recovered_s"], RECOVERY_BOUND_S, False),
        ]
        told = f"{name}\n{peak['goodput_per_s']}/s at peak\n{over['offered_per_s']}/s offered, {over['unsent']} unsent"
        for label, value, bound, at_least in rows:
            good = value >= bound if at_least else value <= bound
            table.add_row(
                told, label, f"{value:.2f}", f"{'>=' if at_least else '<='} {bound:g}", "" if good else "MISSED"
            )
            told = ""
        late: Spread = figures["probe_late_ms"]
        table.add_row("", "floor: a timer of the probe is late by, p99 ms", f"{late.p99:.2f}", "", "")
        table.add_row("", "cores used", ", ".join(f"{n} {c}" for n, c in figures["cores"].items() if c >= 0.01), "", "")
        if over["others"]:
            table.add_row("", "other answers", str(over["others"]), "", "")
    if "idle" in found:
        idle = found["idle"]
        beside: Spread = idle["beside"]["accepted_ms"]
        table.add_row("1,000 idle", "served beside, p99 ms", f"{beside.p99:.2f} ({beside.count})", "", "")
        table.add_row("", "refused or failed", f"{idle['beside']['shed']} {idle['beside']['others']}", "0", "")
        table.add_row("", "/health p99 ms", f"{idle['health_ms'].p99:.2f}", f"<= {SHED_MS:g}", "")
        table.add_row("", "RSS growth MB", f"{idle['rss_growth_mb']:.1f}", f"<= {RSS_MB:g}", "")
    table.add_row("all", "answered 200 and lost", f"{found['lost']} of {found['kept']}", "0", "")
    console.print(table)


def main() -> int:
    """Run the program; the exit code is 0 if the figures could be measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="length of each overload")
    parser.add_argument("--capacity", type=float, default=CAPACITY_S, help="seconds in which a capacity is measured")
    parser.add_argument("--workloads", nargs="*", choices=list(CLIENTS), default=list(CLIENTS))
    parser.add_argument("--no-idle", action="store_true", help="leave out the idle connections")
    parser.add_argument("--seed", type=int, default=11)
    options = parser.parse_args()
    leave_on_sigterm()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    console = Console()
    with throw_away_workspace() as workspace:
        overload = Overload(Daemon(workspace), options, console)
        try:
            overload.run()
        except DaemonFailed as error:
            console.print(f"[red]{error}[/red]")
            return 1
    show(console, overload.found)
    console.print(f"written to {write_result('overload', overload.found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
