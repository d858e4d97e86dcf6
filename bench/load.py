"""Speed and footprint of a live daemon, each figure beside its target and a floor of the same run: ``make bench``.

The load generator is this one process; the daemon is a process tree on a throw-away workspace, asked over loopback
HTTP. Clients are closed loops: each sends its next request when the last one is answered, so a latency is what a
caller waits, and throughput is what so many callers get. The machine's cores are shared by both sides; the CPU time of
each process is therefore reported beside the latencies. Nothing is asserted.

Source: targets.md of the design; the workload (texts, questions, filters) is described in ``bench/texts.py``.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import uvloop
from rich.console import Console
from rich.table import Table

from bench.client import Connection, ProtocolError, encode_request
from bench.daemon import Daemon, DaemonFailed, cpu_ms, leave_on_sigterm, pss_bytes, throw_away_workspace
from bench.figures import Spread, circumstances, spread, write_result
from bench.floor import embedding_floor, keyword_floor, vector_floor, write_floor
from bench.texts import Asked, Made, Texts

WRITE_CLIENTS: Final = (1, 16, 64)
RECALL_CLIENTS: Final = (1, 8)
MIXED_CLIENTS: Final = 32
RECALL_SHARE: Final = 0.8
IMPORT_CLIENTS: Final = 2
IMPORT_LINES: Final = 400
IMPORT_TARGET_PER_S: Final = 5_000
WARM_UP: Final = 60
PROBE_EVERY_S: Final = 0.02
SETTLE_S: Final = 3.0
"""After a load: the last touches are flushed and the log is folded back, then the daemon is idle."""
FLOOR_SAMPLES: Final = 400
BUSY: Final = 503

RECALL_TARGETS: Final[dict[int, tuple[float, float, float]]] = {
    1_000: (3, 8, 500),
    10_000: (4, 10, 400),
    100_000: (8, 20, 250),
    1_000_000: (25, 60, 80),
}
"""p50 and p95 in milliseconds at one client, requests a second at eight."""
READY_TARGETS_S: Final[dict[int, float]] = {0: 2, 1_000: 2, 10_000: 2, 100_000: 4}
PSS_TARGETS_MB: Final[dict[int, float]] = {1_000: 300, 10_000: 300, 100_000: 600}


class RecallMetaPart(msgspec.Struct):
    """What is read of a recall's ``meta``."""

    timings: dict[str, Any]


class RecalledPart(msgspec.Struct):
    """What is read of a result."""

    content: str


class RecallPart(msgspec.Struct):
    """What is read of a recall's answer."""

    results: list[RecalledPart]
    meta: RecallMetaPart


class Usage:
    """CPU time of the tree and of this process between entering and leaving."""

    def __init__(self, processes: dict[str, int]) -> None:
        self._processes = processes
        self._before: dict[str, float] = {}
        self.spent_ms: dict[str, float] = {}
        self.wall_s = 0.0

    @contextmanager
    def measured(self) -> Iterator[None]:
        self._before = {name: cpu_ms(pid) for name, pid in self._processes.items()}
        own = time.process_time()
        began = time.perf_counter()
        try:
            yield
        finally:
            self.wall_s = time.perf_counter() - began
            self.spent_ms = {name: cpu_ms(pid) - self._before[name] for name, pid in self._processes.items()}
            self.spent_ms["load generator"] = (time.process_time() - own) * 1000

    def each(self, count: int) -> dict[str, float]:
        """CPU milliseconds of each process per request."""
        return {name: round(spent / max(1, count), 3) for name, spent in self.spent_ms.items()}


class Answered:
    """Latencies and refusals of one phase."""

    def __init__(self) -> None:
        self.latencies_ms: list[float] = []
        self.refused = 0
        self.failed: list[str] = []


async def closed_loop(
    host: str,
    port: int,
    requests: Iterator[bytes],
    answered: Answered,
    until: float,
    *,
    keep: Callable[[float, bytes], None] | None = None,
) -> None:
    """One client: the next request when the last is answered, until they end or the clock says ``until``."""
    connection = await Connection.open(host, port)
    try:
        for request in requests:
            before = time.perf_counter()
            if before >= until:
                return
            status, body = await connection.exchange(request)
            took_ms = (time.perf_counter() - before) * 1000
            if status == 200:
                answered.latencies_ms.append(took_ms)
                if keep is not None:
                    keep(took_ms, body)
            elif status == BUSY:
                answered.refused += 1
            else:
                answered.failed.append(f"{status}: {body[:200].decode(errors='replace')}")
    except (ProtocolError, TimeoutError, OSError) as error:
        answered.failed.append(repr(error))
    finally:
        connection.close()


async def probe(host: str, port: int, answered: Answered, until: float) -> None:
    """``/health`` at fixed times, whether the last one was quick or not: a late answer counts from when it was due."""
    connection = await Connection.open(host, port)
    request = encode_request("GET", "/health", host=f"{host}:{port}")
    due = time.perf_counter()
    try:
        while due < until:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            await connection.exchange(request)
            answered.latencies_ms.append((time.perf_counter() - due) * 1000)
            due += PROBE_EVERY_S
    except (ProtocolError, TimeoutError, OSError) as error:
        answered.failed.append(repr(error))
    finally:
        connection.close()


class Bench:
    """One run: a workspace that grows from size to size, and the figures found on the way."""

    def __init__(self, workspace: Path, options: argparse.Namespace, console: Console) -> None:
        self.workspace = workspace
        self.options = options
        self.console = console
        self.texts = Texts(options.seed)
        self.known: list[Made] = []
        self.daemon = Daemon(workspace, settings=options.settings or "")
        self.found: dict[str, Any] = {
            "circumstances": circumstances(),
            "settings": options.settings,
            "imports": {},
            "sizes": {},
            "writes": {},
            "floors": {},
        }

    def run(self) -> None:
        """Every phase; raises DaemonFailed when the daemon cannot be had."""
        try:
            self._start_at(0)
            for size in self.options.memories:
                self.grow_to(size)
                self._measure_recall(size)
                self._measure_footprint(size)
                self._restart_at(size)
            self._measure_floors()
            self._measure_mixed()
            for clients in WRITE_CLIENTS:
                self._measure_writes(clients)
            self.found["log_tail"] = self._complaints()
        finally:
            self.daemon.stop()
        self.found["load_average_after"] = os.getloadavg()[0]

    # phases

    def _start_at(self, size: int) -> None:
        self.daemon.start()
        self.found.setdefault("ready_s", {})[str(size)] = round(self.daemon.ready_s, 3)
        self.say(f"ready in {self.daemon.ready_s:.2f} s with {size} memories")

    def _restart_at(self, size: int) -> None:
        self.daemon.stop()
        self._start_at(size)

    def grow_to(self, size: int) -> None:
        """The store holds ``size`` memories."""
        missing = size - len(self.known)
        if missing <= 0:
            return
        made = [self.texts.memory() for _ in range(missing)]
        batches = [self._import(made[begin : begin + IMPORT_LINES]) for begin in range(0, missing, IMPORT_LINES)]
        answers: list[tuple[int, bytes]] = []
        usage = Usage(self.daemon.processes())
        with usage.measured():
            answered = self.load(batches, IMPORT_CLIENTS, 1200, answers)
        self.known += made
        self._must_have_worked(answered, "filling")
        stored = [msgspec.json.decode(body) for _, body in answers]
        if answered.refused or sum(answer["imported"] for answer in stored) != missing:
            raise DaemonFailed(f"filling: {answered.refused} batches and some lines were refused")
        self.found["imports"][str(size)] = {
            "memories": missing,
            "per_s": round(missing / usage.wall_s, 1),
            "latency_ms": spread(answered.latencies_ms),
            "cpu_ms_per_memory": usage.each(missing),
        }
        self.say(f"{size} memories; {missing} imported in {usage.wall_s:.1f} s")

    def _measure_recall(self, size: int) -> None:
        figures: dict[str, Any] = {}
        self.load(self.recalls(WARM_UP), 1, self.options.seconds)
        for clients in RECALL_CLIENTS:
            asked = self.texts.questions(self.known, 6000)
            usage = Usage(self.daemon.processes())
            stages: dict[str, list[float]] = {}
            hits = {"identifiers": 0, "identifiers first": 0, "no hit": 0}
            answers: list[tuple[int, bytes]] = []
            health = Answered()
            with usage.measured():
                answered = self.load(
                    [self._recall(question) for question in asked], clients, self.options.seconds, answers, health
                )
            self._must_have_worked(answered, f"recall with {clients} clients")
            for at, body in answers:
                answer = msgspec.json.decode(body, type=RecallPart)
                for stage in answer.meta.timings["stages"]:
                    stages.setdefault(stage["name"], []).append(stage["durationMs"])
                hits["no hit"] += not answer.results
                identifier = asked[at].identifier
                if identifier is not None and asked[at].body["query"] == identifier and not asked[at].filtered:
                    hits["identifiers"] += 1
                    hits["identifiers first"] += bool(answer.results) and identifier in answer.results[0].content
            count = len(answered.latencies_ms)
            figures[f"{clients} clients"] = {
                "latency_ms": spread(answered.latencies_ms),
                "per_s": round(count / usage.wall_s, 1),
                "cpu_ms_per_recall": usage.each(count),
                "stages_ms": {name: spread(values) for name, values in stages.items()},
                "health_ms": spread(health.latencies_ms),
                "refused": answered.refused,
                **hits,
            }
            self.say(f"recall, {size} memories, {clients} clients: {count} requests in {usage.wall_s:.1f} s")
        self.found["sizes"][str(size)] = figures

    def _measure_footprint(self, size: int) -> None:
        time.sleep(SETTLE_S)
        processes = self.daemon.processes()
        usage = Usage(processes)
        with usage.measured():
            time.sleep(self.options.idle)
        tree = {name: spent for name, spent in usage.spent_ms.items() if name != "load generator"}
        self.found["sizes"][str(size)]["idle_cpu_percent"] = round(sum(tree.values()) / usage.wall_s / 10, 2)
        self.found["sizes"][str(size)]["idle_cpu_ms"] = tree
        memory = {name: pss_bytes(pid) for name, pid in processes.items()}
        self.found["sizes"][str(size)]["pss_bytes"] = {**memory, "sum": sum(memory.values())}
        database = self.workspace / "memory" / "memories.db"
        self.found["sizes"][str(size)]["database_bytes"] = database.stat().st_size if database.exists() else 0

    def _measure_mixed(self) -> None:
        """Recalls and remembers at once, with ``/health`` asked at fixed times beside them."""
        rng = random.Random(self.options.seed)
        questions = iter(self.recalls(20_000))
        kinds = ["recall" if rng.random() < RECALL_SHARE else "remember" for _ in range(20_000)]
        writes = iter(self.remembers(kinds.count("remember")))
        mixed = [next(questions) if kind == "recall" else next(writes) for kind in kinds]
        usage = Usage(self.daemon.processes())
        health = Answered()
        by_kind: dict[str, list[float]] = {"recall": [], "remember": []}
        answers: list[tuple[int, bytes]] = []
        took: list[float] = []
        with usage.measured():
            answered = self.load(mixed, MIXED_CLIENTS, self.options.seconds, answers, health, took)
        for (at, _), latency in zip(answers, took, strict=True):
            by_kind[kinds[at]].append(latency)
        self._must_have_worked(answered, "mixed load")
        count = len(answered.latencies_ms)
        self.found["mixed"] = {
            "clients": MIXED_CLIENTS,
            "per_s": round(count / usage.wall_s, 1),
            "recall_ms": spread(by_kind["recall"]),
            "remember_ms": spread(by_kind["remember"]),
            "health_ms": spread(health.latencies_ms),
            "cpu_ms_per_request": usage.each(count),
            "refused": answered.refused,
        }
        self.say(f"mixed load, {MIXED_CLIENTS} clients: {count} requests in {usage.wall_s:.1f} s")

    def _measure_writes(self, clients: int) -> None:
        requests = self.remembers(int(self.options.seconds * 2500))
        self.load(requests[:WARM_UP], clients, self.options.seconds)
        before = self._writer()
        usage = Usage(self.daemon.processes())
        with usage.measured():
            answered = self.load(requests[WARM_UP:], clients, self.options.seconds)
        after = self._writer()
        self._must_have_worked(answered, f"remember with {clients} clients")
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
        self.say(f"remember, {clients} clients: {count} in {usage.wall_s:.1f} s")

    def _measure_floors(self) -> None:
        directory = self.workspace.parent / "floors"
        made = [self.texts.memory() for _ in range(4000)]
        floors: dict[str, Any] = {
            "write": [
                write_floor(directory, made, rows_per_commit=rows, budget_s=1.5) for rows in (1, *WRITE_CLIENTS[1:])
            ],
            "embedding_ms": embedding_floor(made[:FLOOR_SAMPLES]),
        }
        for size in self.options.memories:
            known = self.known[:size]
            questions = self.texts.questions(known, FLOOR_SAMPLES)
            floors[str(size)] = {
                "keyword_ms": keyword_floor(directory, known, questions, budget_s=4),
                "vector_ms": vector_floor(size),
            }
        floors["health_ms"] = spread(self.load([self._get("/health")] * 800, 1, 2).latencies_ms)
        shutil.rmtree(directory, ignore_errors=True)
        self.found["floors"] = floors
        self.say("floors measured")

    # requests

    def say(self, text: str) -> None:
        """A line of progress, on stderr."""
        self.console.print(f"[dim]{text}[/dim]", highlight=False)

    def load(
        self,
        requests: Sequence[bytes],
        clients: int,
        seconds: float,
        answers: list[tuple[int, bytes]] | None = None,
        health: Answered | None = None,
        took: list[float] | None = None,
    ) -> Answered:
        """``requests`` dealt out over so many clients, for at most ``seconds``; answers with their request's index."""
        host, port = self.daemon.address.host, self.daemon.address.port
        answered = Answered()
        dealt = iter(enumerate(requests))

        async def client(until: float) -> None:
            current = 0

            def mine() -> Iterator[bytes]:
                nonlocal current
                for current, request in dealt:  # noqa: B007 - `keep` reads the index
                    yield request

            def keep(latency_ms: float, body: bytes) -> None:
                if answers is not None:
                    answers.append((current, body))
                if took is not None:
                    took.append(latency_ms)

            await closed_loop(host, port, mine(), answered, until, keep=keep)

        async def all_of_them() -> None:
            until = time.perf_counter() + seconds
            loops = [client(until) for _ in range(clients)]
            prober = None if health is None else asyncio.create_task(probe(host, port, health, until))
            await asyncio.gather(*loops)
            if prober is not None:
                prober.cancel()
                await asyncio.gather(prober, return_exceptions=True)

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(all_of_them())
        return answered

    def _get(self, path: str) -> bytes:
        return encode_request("GET", path, host=self._host)

    def _remember(self, made: Made) -> bytes:
        return encode_request("POST", "/api/memory/remember", host=self._host, body=msgspec.json.encode(made.body()))

    def _import(self, memories: Sequence[Made]) -> bytes:
        lines = b"\n".join(msgspec.json.encode(made.body()) for made in memories)
        return encode_request("POST", "/api/memory/import", host=self._host, body=lines)

    def _recall(self, asked: Asked) -> bytes:
        return encode_request("POST", "/api/memory/recall", host=self._host, body=msgspec.json.encode(asked.body))

    def remembers(self, count: int) -> list[bytes]:
        """Requests to store so many new memories."""
        return [self._remember(self.texts.memory()) for _ in range(count)]

    def recalls(self, count: int) -> list[bytes]:
        """Requests about what is stored by ``grow_to``, every second one with a filter."""
        return [self._recall(asked) for asked in self.texts.questions(self.known, count)]

    @property
    def _host(self) -> str:
        return f"{self.daemon.address.host}:{self.daemon.address.port}"

    def _writer(self) -> dict[str, Any]:
        report = self.daemon.get("/api/status")["writer"]
        if report is None:
            raise DaemonFailed("the writer does not answer")
        found: dict[str, Any] = report
        return {name: found[name] for name in ("commits", "rows")}

    def _must_have_worked(self, answered: Answered, phase: str) -> None:
        if answered.failed:
            raise DaemonFailed(f"{phase}: {len(answered.failed)} requests failed, the first with {answered.failed[0]}")

    def _complaints(self) -> list[str]:
        """Lines of the daemon's log at warning and above; a run that has some measured something else."""
        lines: list[str] = []
        for path in sorted((self.workspace / ".daemon" / "logs").glob("*.log")):
            lines += [
                line
                for line in path.read_text(errors="replace").splitlines()
                if '"level":"warning"' in line or '"level":"error"' in line or '"level":"critical"' in line
            ]
        return lines[-20:]


# the report


class Line(msgspec.Struct, frozen=True):
    """One line of the table. ``floor`` is what the machine allows; ``limit`` and ``least`` are the target."""

    figure: str
    measured: float
    unit: str
    limit: float | None = None
    least: float | None = None
    floor: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the target holds; None without one."""
        if self.limit is not None:
            return self.measured <= self.limit
        if self.least is not None:
            return self.measured >= self.least
        return None


def lines_of(found: dict[str, Any]) -> list[Line]:
    """The figures of a run that have a target or are needed to read those that have one."""
    lines: list[Line] = []
    floors = found["floors"]
    write_floors = {floor.rows_per_commit: floor for floor in floors["write"]}
    lines += [
        Line(f"import to {int(name):,} memories", done["per_s"], "/s", least=IMPORT_TARGET_PER_S)
        for name, done in found["imports"].items()
    ]
    for name, writes in found["writes"].items():
        clients = int(name)
        took: Spread = writes["latency_ms"]
        floor = write_floors[clients]
        label = f"remember, {clients} client{'s' if clients > 1 else ''}"
        lines += [
            Line(label, writes["per_s"], "/s", least=1500 if clients == 16 else None, floor=floor.rows_per_s),
            Line(f"{label}, p50", took.p50, "ms", limit=2.5 if clients == 1 else None, floor=floor.commit_ms.p50),
            Line(f"{label}, p95", took.p95, "ms"),
            Line(f"{label}, p99", took.p99, "ms", limit=15 if clients == 1 else None, floor=floor.commit_ms.p99),
            Line(f"{label}, rows per commit", writes["rows_per_commit"], ""),
        ]
    for name, figures in found["sizes"].items():
        lines += _recall_lines(int(name), figures, floors)
    mixed = found["mixed"]
    lines += [
        Line(f"mixed load ({mixed['clients']} clients, 80 % recall)", mixed["per_s"], "/s"),
        Line("mixed load, recall p95", mixed["recall_ms"].p95, "ms"),
        Line("mixed load, remember p95", mixed["remember_ms"].p95, "ms"),
        Line("mixed load, /health p99", mixed["health_ms"].p99, "ms", limit=50, floor=floors["health_ms"].p99),
    ]
    lines += [
        Line(f"ready, {int(name):,} memories", seconds, "s", limit=READY_TARGETS_S.get(int(name)))
        for name, seconds in found["ready_s"].items()
    ]
    return lines


def _recall_lines(size: int, figures: dict[str, Any], floors: dict[str, Any]) -> list[Line]:
    p50, p95, rate = RECALL_TARGETS.get(size, (None, None, None))
    alone, many = figures["1 clients"], figures["8 clients"]
    parts = floors[str(size)]
    keyword: Spread = parts["keyword_ms"]
    vector: Spread = parts["vector_ms"]
    edge: Spread = floors["health_ms"]
    label = f"recall at {size:,}"
    cpu = {name: spent for name, spent in alone["cpu_ms_per_recall"].items() if name != "load generator"}
    return [
        Line(f"{label}, p50", alone["latency_ms"].p50, "ms", limit=p50, floor=keyword.p50 + vector.p50 + edge.p50),
        Line(f"{label}, p95", alone["latency_ms"].p95, "ms", limit=p95, floor=keyword.p95 + vector.p95 + edge.p95),
        Line(f"{label}, p99", alone["latency_ms"].p99, "ms"),
        Line(f"{label}, 8 clients", many["per_s"], "/s", least=rate),
        Line(f"{label}, 8 clients, p95", many["latency_ms"].p95, "ms"),
        Line(f"{label}, 8 clients, /health p99", many["health_ms"].p99, "ms", limit=50),
        *(Line(f"{label}, CPU of {name}", spent, "ms each") for name, spent in cpu.items() if spent >= 0.01),
        Line(f"identifiers first at {size:,}", _share(alone, many), "%", least=100),
        Line(f"idle CPU at {size:,}", figures["idle_cpu_percent"], "% of a core", limit=1),
        Line(f"memory (PSS) at {size:,}", figures["pss_bytes"]["sum"] / 1e6, "MB", limit=PSS_TARGETS_MB.get(size)),
    ]


def _share(*phases: dict[str, Any]) -> float:
    asked = sum(phase["identifiers"] for phase in phases)
    return 100.0 * sum(phase["identifiers first"] for phase in phases) / asked if asked else 100.0


def show(lines: Sequence[Line], console: Console) -> None:
    """The table on the terminal."""
    table = Table(title="Signet under load", caption="floor: the same work without the daemon, same run")
    table.add_column("figure")
    for name in ("measured", "target", "floor", "ratio"):
        table.add_column(name, justify="right")
    table.add_column("")
    for line in lines:
        target = "" if line.met is None else f"≤ {line.limit:g}" if line.limit is not None else f"≥ {line.least:g}"
        ratio = ""
        if line.floor:
            larger, smaller = sorted((line.floor, line.measured), reverse=True)
            ratio = f"{larger / smaller:.1f}" if smaller else ""
        verdict = {None: "", True: "[green]met[/green]", False: "[red]missed[/red]"}[line.met]
        floor = f"{line.floor:,.2f}" if line.floor else ""
        table.add_row(line.figure, f"{line.measured:,.2f} {line.unit}".rstrip(), target, floor, ratio, verdict)
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 when everything could be measured, whatever came out."""
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--memories", type=_sizes, default=(1_000, 10_000), help="sizes, ascending, e.g. 1000,10000,100000"
    )
    parser.add_argument("--seconds", type=float, default=6.0, help="longest time of one measured phase")
    parser.add_argument("--idle", type=float, default=10.0, help="seconds over which idle CPU is measured")
    parser.add_argument("--seed", type=int, default=7, help="of the made-up texts")
    parser.add_argument("--settings", type=_text, metavar="FILE", help="an agent.yaml for the daemon")
    options = parser.parse_args(arguments)
    leave_on_sigterm()
    progress = Console(stderr=True)
    console = Console(width=None if sys.stdout.isatty() else 120)
    began = time.perf_counter()
    with throw_away_workspace() as workspace:
        bench = Bench(workspace, options, progress)
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


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"cannot be read: {error}") from error


def _sizes(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(part.replace("_", "")) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a list of numbers: {text}") from None
    if not sizes or list(sizes) != sorted(set(sizes)) or not 100 <= sizes[0] <= sizes[-1] <= 1_000_000:
        raise argparse.ArgumentTypeError("sizes must ascend, from 100 to 1000000")
    return sizes


if __name__ == "__main__":
    sys.exit(main())
