"""Kill and stop random processes under traffic, and measure how the daemon recovers.

Every fault opens a window that ends a second after every process is up again. A 503 or 504 must overlap a window, a
broken connection the window of a fault that ended the gateway; anything else is an unexplained failure. 500, 502 and
507 are never explained.

Source: docs/reliability.md R1, R10, R15, R21, R25; docs/performance.md "Recovery targets".
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.crash_points import CONFIG
from tests.chaos.traffic import BROKEN, Book, Exchange, Traffic
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.log_tail import LogTail, wall
from tests.support.open_files import family, no_longer, one_writer_watched

CHILDREN = ("writer", "searcher-1", "searcher-2", "retention", "gateway")
WINDOW_S = 1.0
ORPHANS_S = 20.0
STOPPED_S = 0.6
"""The longest stop of a supervisor: its children keep serving and do not treat it as exited."""

OFTEN = "memory: {pipelineV2: {repair: {dedupCooldownMs: 10000, dedupHourlyBudget: 100}}}\n"
"""Twins are merged as often as can be configured."""

TARGETS_S = {
    "searcher": 0.5,
    "gateway": 0.5,
    "writer": 1.0,
    "retention": None,
    "all children": 3.0,
    "supervisor": 3.0,
    "stopped child": 5.0,
}
"""Limits on the time from the fault until every process is up.

Source: docs/performance.md "Recovery targets", docs/reliability.md R10, R21.
"""

_WAYS = (
    ("kill one", 50),
    ("kill two", 8),
    ("kill all children", 6),
    ("kill the supervisor", 8),
    ("stop one", 12),
    ("stop the supervisor", 6),
    ("kill one while it starts", 10),
)


@dataclass
class Fault:
    """A fault, its target, and the time until every process was up; times of ``time.monotonic``."""

    way: str
    roles: tuple[str, ...]
    processes: int
    begun: float
    ended: float = 0.0
    back_s: float | None = None

    @property
    def edge(self) -> bool:
        """Return True if connections may break."""
        return bool({"gateway", "supervisor"} & set(self.roles))


@dataclass
class Findings:
    """The outcome of a run."""

    seed: int
    seconds: float
    book: Book
    faults: list[Fault]
    exchanges: list[Exchange]
    unexplained: list[str]
    orphans: list[list[int]]
    two_writers: list[list[int]]
    looks: int
    broken: list[str] = field(default_factory=list)
    merged: int = 0
    bugs: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        return sum(fault.processes for fault in self.faults if fault.way.startswith("kill"))

    @property
    def stops(self) -> int:
        return sum(fault.processes for fault in self.faults if fault.way.startswith("stop"))

    @property
    def wrong(self) -> list[str]:
        return [
            *self.book.wrong,
            *self.unexplained,
            *(f"orphans {pids}" for pids in self.orphans),
            *(f"several processes have the database open for writing: {pids}" for pids in self.two_writers),
            *self.broken,
            *self.bugs,
        ]

    def recoveries(self) -> dict[str, list[float]]:
        """Return the seconds until every process was up, by target of the fault."""
        found: dict[str, list[float]] = {}
        for fault in self.faults:
            if fault.back_s is None:
                continue
            match fault.way:
                case "kill one":
                    name = fault.roles[0]
                case "kill all children":
                    name = "all children"
                case "kill the supervisor":
                    name = "supervisor"
                case "stop one":
                    name = "stopped child"
                case _:
                    continue
            found.setdefault(name, []).append(fault.back_s)
        return found

    def service_gaps(self) -> dict[str, list[float]]:
        """Return the seconds from the kill of one child to the first 200 of a later request of its kind."""
        kinds = {"writer": ("remember", "modify", "forget"), "searcher": ("recall",), "gateway": ("remember", "recall")}
        found: dict[str, list[float]] = {}
        good = sorted((each for each in self.exchanges if each.status == 200), key=lambda each: each.ended)
        for fault in self.faults:
            if fault.way != "kill one" or fault.roles[0] not in kinds:
                continue
            wanted = kinds[fault.roles[0]]
            first = next((each.ended for each in good if each.begun >= fault.begun and each.kind in wanted), None)
            if first is not None:
                found.setdefault(fault.roles[0], []).append(first - fault.begun)
        return found

    def summary(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return {
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
            "requests": len(self.exchanges),
            "requests_per_s": round(len(self.exchanges) / self.seconds, 1),
            "statuses": {str(status): count for status, count in Counter(e.status for e in self.exchanges).items()},
            "acknowledged": self.book.acknowledged,
            "memories": self.book.memories,
            "faults": Counter(fault.way for fault in self.faults),
            "kills": self.kills,
            "stops": self.stops,
            "lost": len(self.book.lost),
            "doubled": len(self.book.doubled),
            "changed": len(self.book.changed),
            "phantom": len(self.book.phantom),
            "unexplained": len(self.unexplained),
            "one_writer": {"looks": self.looks, "violations": len(self.two_writers)},
            "orphans": len(self.orphans),
            "replaced_s": {name: quantiles(values) for name, values in sorted(self.recoveries().items())},
            "served_again_s": {name: quantiles(values) for name, values in sorted(self.service_gaps().items())},
            "wrong": self.wrong[:50],
        }


def quantiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "count": len(ordered),
        "p50": round(ordered[len(ordered) // 2], 3),
        "p95": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))], 3),
        "max": round(ordered[-1], 3),
    }


class RandomFaults:
    """Applies one fault after the other to the daemon; ``tail`` follows the incarnations in the log."""

    def __init__(self, daemon: LiveDaemon, traffic: Traffic, rng: random.Random) -> None:
        self.daemon = daemon
        self.traffic = traffic
        self.rng = rng
        self.tail = LogTail(daemon.workspace)
        self.faults: list[Fault] = []
        self.orphans: list[list[int]] = []

    def run(self, seconds: float) -> None:
        """Apply faults until the time is over and every process is up."""
        until = time.monotonic() + seconds
        self.tail.look()
        while time.monotonic() < until:
            (way,) = self.rng.choices([name for name, _ in _WAYS], [weight for _, weight in _WAYS])
            self._do(way)
            time.sleep(self.rng.uniform(0.0, 0.6))
        self.daemon.wait_ready()

    def _do(self, way: str) -> None:
        match way:
            case "kill one":
                self._hit(way, [self.rng.choice(CHILDREN)], signal.SIGKILL)
            case "kill two":
                self._hit(way, self.rng.sample(CHILDREN, 2), signal.SIGKILL)
            case "kill all children":
                self._hit(way, list(CHILDREN), signal.SIGKILL)
            case "stop one":
                self._hit(way, [self.rng.choice(CHILDREN)], signal.SIGSTOP)
            case "kill one while it starts":
                self._hit(way, [self.rng.choice(CHILDREN)], signal.SIGKILL, again=True)
            case "kill the supervisor":
                self._kill_the_supervisor()
            case "stop the supervisor":
                self._stop_the_supervisor()

    def _hit(self, way: str, names: list[str], number: signal.Signals, *, again: bool = False) -> None:
        """Kill these children and wait for their replacement; ``again``: kill the next incarnation too, before it is
        ready.
        """
        dead = {name: self.tail.incarnations[name].pid for name in names}
        roles = tuple(name.partition("-")[0] for name in names)
        fault = Fault(way, roles, len(names), time.monotonic())
        self.faults.append(fault)
        began = wall()
        for pid in dead.values():
            os.kill(pid, number)
        if again:
            (name,) = names
            eventually(
                lambda: self.tail.look() and self.tail.incarnations[name].pid != dead[name],
                within_s=30,
                what="a restart",
            )
            time.sleep(self.rng.uniform(0.0, 0.3))
            dead = {name: self.tail.incarnations[name].pid}
            try:
                os.kill(dead[name], signal.SIGKILL)
            except ProcessLookupError:
                pass
            else:
                fault.processes += 1
        up = self.tail.replaced(dead)
        fault.back_s = up - began
        self._over(fault)

    def _kill_the_supervisor(self) -> None:
        process = self.daemon.process
        assert process is not None
        fault = Fault("kill the supervisor", ("supervisor",), 1, time.monotonic())
        self.faults.append(fault)
        children = [pid for pid in family(process.pid) if pid != process.pid]
        self.daemon.kill_supervisor()
        left = no_longer(children, within_s=ORPHANS_S)
        if left:
            self.orphans.append(left)
        self.tail.forget_incarnations()
        began = time.monotonic()
        self.daemon.start()
        fault.back_s = time.monotonic() - began
        for name in CHILDREN:
            self.tail.incarnation(name, 1)
        self._over(fault)

    def _stop_the_supervisor(self) -> None:
        """Stop the supervisor; its children keep serving."""
        process = self.daemon.process
        assert process is not None
        fault = Fault("stop the supervisor", ("supervisor",), 1, time.monotonic())
        self.faults.append(fault)
        process.send_signal(signal.SIGSTOP)
        time.sleep(self.rng.uniform(0.1, STOPPED_S))
        process.send_signal(signal.SIGCONT)
        self._over(fault)

    def _over(self, fault: Fault) -> None:
        self.daemon.wait_ready()
        fault.ended = time.monotonic() + WINDOW_S


def unexplained(exchanges: list[Exchange], faults: list[Fault]) -> list[str]:
    """Return the requests whose failure is not explained by a fault."""
    found = []
    for each in exchanges:
        if each.status == 200:
            continue
        touched = [fault for fault in faults if each.begun <= fault.ended and each.ended >= fault.begun]
        if each.status == BROKEN:
            explained = any(fault.edge for fault in touched)
        else:
            explained = each.status in {503, 504} and bool(touched)
        if not explained:
            ways = [f"{fault.way} {fault.roles}" for fault in touched]
            found.append(f"{each.kind} had status {each.status} after {each.ended - each.begun:.2f} s near {ways}")
    return found


def run(seconds: float, seed: int, *, rate: float = 80.0) -> Findings:
    """Apply faults for that time, let the daemon recover and stop, and return everything that was found."""
    with live_daemon(config=CONFIG + OFTEN) as daemon:

        def supervisor() -> int | None:
            process = daemon.process
            return process.pid if process is not None and process.poll() is None else None

        traffic = Traffic(daemon, rate=rate, seed=seed, twins=True)
        faults = RandomFaults(daemon, traffic, random.Random(seed))
        began = time.monotonic()
        with one_writer_watched(daemon.database, supervisor) as watch:
            traffic.start()
            try:
                traffic.progress()
                faults.run(seconds)
                traffic.progress()
                lasted = time.monotonic() - began
                traffic.stop()
            finally:
                traffic.stop(settle=False)
        eventually(traffic.deduplicate, within_s=60, what="a last deduplication after the cooldown")
        book = traffic.check()
        code = daemon.stop()
        findings = Findings(
            seed=seed,
            seconds=lasted,
            book=book,
            faults=faults.faults,
            exchanges=traffic.exchanges,
            unexplained=unexplained(traffic.exchanges, faults.faults),
            orphans=faults.orphans,
            two_writers=watch.violations,
            looks=watch.looks,
            broken=daemon.broken_invariants(),
            merged=traffic.merged,
            bugs=[str(line) for line in daemon.faults()],
        )
        if code != 0:
            findings.bugs.append(f"the orderly stop ended with {code}")
        if not watch.seen_writer:
            findings.bugs.append("the watch never saw a writer, so it would not have seen two")
        return findings
