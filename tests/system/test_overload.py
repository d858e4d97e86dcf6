"""Overload of a live daemon: it sheds load at once, loses no acknowledged write, stays small, and recovers.

Times are guards against hanging only; ``python -m bench.overload`` measures them.

Source: docs/reliability.md R13.
"""

from __future__ import annotations

import http.client
import itertools
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bench.daemon import pss_bytes
from tests.support.bus_harness import eventually
from tests.support.live_daemon import Answer, Client, LiveDaemon, live_daemon

pytestmark = pytest.mark.system

GROWTH_BYTES = 64 * 2**20
"""Measured from the state after a first long text, which loads code and fills caches that stay."""
LARGE_CHARS = 900_000
HANGS_S = 20.0
PAUSE_S = 0.05
NOT_APPLIED = {"busy", "unavailable", "not_applied"}
ANSWERS = {200, 503, 504}
"""504 says that the outcome is unknown, which on a starved machine is the truth."""


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    """One daemon for all overload tests; none may kill a process, cause an internal error, or damage the database."""
    with live_daemon(config="searcher:\n  processes: 1\n") as daemon:
        pids = daemon.children()
        yield daemon
        assert daemon.faults() == []
        assert daemon.children() == pids, "a process died under load"
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


class Burst:
    """Clients that send without pause and write down every answer; ``kept`` are the ids that were answered."""

    def __init__(self, daemon: LiveDaemon, clients: int, target: str, bodies: Callable[[], dict[str, Any]]) -> None:
        self._daemon = daemon
        self._target = target
        self._bodies = bodies
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self.statuses: Counter[int] = Counter()
        self.kept: set[str] = set()
        self.problems: list[str] = []
        self.health: Counter[int] = Counter()
        self.pss: list[int] = []
        self._pids = list(daemon.children().values())  # read before the overload, in which these requests would be shed
        threads = [threading.Thread(target=self._send) for _ in range(clients)]
        self._threads = [*threads, threading.Thread(target=self._ask_health), threading.Thread(target=self._weigh)]

    @contextmanager
    def sending(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._ending.set()
            for thread in self._threads:
                thread.join(3 * HANGS_S)
                assert not thread.is_alive(), "a client hangs"

    def until(self, status: int, count: int) -> None:
        """So many answers of this status have come."""
        eventually(lambda: self.statuses[status] >= count, within_s=60, what=f"{count} answers {status}")

    def check(self) -> None:
        """Every answer was one that may be given, the health among them, and nothing that was kept is lost."""
        assert self.problems == []
        assert set(self.health) == {200}
        stored = {row[0] for row in self._daemon.read("SELECT id FROM memories WHERE is_deleted = 0")}
        assert self.kept - stored == set()

    def _send(self) -> None:
        while not self._ending.is_set():
            try:
                answer = self._daemon.api.request("POST", self._target, self._bodies(), timeout=HANGS_S)
            except (BrokenPipeError, ConnectionResetError):
                continue  # refused before the body was sent, and the refusal was overtaken by the reset
            except (OSError, http.client.HTTPException) as error:
                self._problem(repr(error))
                return
            self._note(answer)

    def _note(self, answer: Answer) -> None:
        with self._lock:
            self.statuses[answer.status] += 1
            if answer.status not in ANSWERS:
                self.problems.append(f"{answer.status}: {answer.raw[:200]!r}")
            if answer.status == 200 and self._target.endswith("remember"):
                body = answer.json
                self.kept.update(body["ids"] if body.get("chunked") else [body["id"]])
        if answer.status == 503:
            if answer.json["code"] not in NOT_APPLIED or int(answer.headers["retry-after"]) < 1:
                self._problem(f"{answer.headers} {answer.raw[:200]!r}")
            self._ending.wait(PAUSE_S)  # the load generator leaves the CPU to the daemon

    def _ask_health(self) -> None:
        while not self._ending.is_set():
            try:
                status = self._daemon.api.request("GET", "/health", timeout=HANGS_S).status
            except (OSError, http.client.HTTPException) as error:
                self._problem(f"health: {error!r}")
                return
            self.health[status] += 1
            self._ending.wait(0.02)

    def _weigh(self) -> None:
        while not self._ending.wait(0.2):
            self.pss.append(sum(map(pss_bytes, self._pids)))

    def _problem(self, text: str) -> None:
        with self._lock:
            self.problems.append(text)


serials = itertools.count()


def short_memory() -> dict[str, Any]:
    return {"content": f"Burst memory {next(serials)} says that the harbour closes at dusk."}


TEXT = " ".join(f"Burst @ line {line} tells of the harbour and its tide." for line in range(20_000))


def long_text(chars: int) -> str:
    return TEXT[:chars].replace("@", str(next(serials)))[:chars]


def assert_normal(api: Client) -> None:
    """A short memory is kept and found, and so is a long one, at the first attempt."""
    kept = api.remember(f"Afterwards {next(serials)} the lighthouse keeper is called Ondine.")
    assert kept["id"] in api.recalled("lighthouse keeper Ondine")
    assert api.remember(long_text(20_000))["chunk_count"] > 10


def settled(daemon: LiveDaemon) -> None:
    eventually(daemon.is_ready, within_s=HANGS_S, what="healthy again")


def test_a_burst_of_the_longest_bodies_is_rejected_and_stored_memories_are_kept(daemon: LiveDaemon) -> None:
    assert_normal(daemon.api)
    daemon.api.remember(long_text(LARGE_CHARS))
    settled(daemon)
    before = sum(map(pss_bytes, daemon.children().values()))
    burst = Burst(daemon, 6, "/api/memory/remember", lambda: {"content": long_text(LARGE_CHARS)})
    with burst.sending():
        burst.until(200, 3)
        burst.until(503, 5)
    burst.check()
    assert max(burst.pss) - before <= GROWTH_BYTES
    settled(daemon)
    assert_normal(daemon.api)


def test_bodies_beyond_the_limit_are_refused_whatever_else_is_served(daemon: LiveDaemon) -> None:
    too_long = b'{"content": "' + b"x" * 4_200_000 + b'"}'
    for _ in range(3):
        try:
            answer = daemon.api.request("POST", "/api/memory/remember", too_long)
        except (BrokenPipeError, ConnectionResetError):
            continue
        answer.refused(413, code="payload_too_large")
    daemon.api.post("/api/memory/remember", {"content": "x" * 1_100_000}).refused(413, code="payload_too_large")
    assert_normal(daemon.api)


@pytest.mark.parametrize("target", ["/api/memory/remember", "/api/memory/recall"])
def test_a_burst_of_short_requests_is_answered_or_rejected(daemon: LiveDaemon, target: str) -> None:
    bodies = short_memory if target.endswith("remember") else lambda: {"query": "harbour at dusk"}
    burst = Burst(daemon, 96, target, bodies)
    with burst.sending():
        burst.until(200, 100)
    burst.check()
    settled(daemon)
    assert_normal(daemon.api)


def test_a_thousand_idle_connections_do_not_block_other_clients(daemon: LiveDaemon) -> None:
    before = sum(map(pss_bytes, daemon.children().values()))
    silent = [socket.create_connection(("127.0.0.1", daemon.port), timeout=HANGS_S) for _ in range(1000)]
    try:
        for _ in range(20):
            assert daemon.api.request("GET", "/health").status == 200
            assert daemon.api.remember(**short_memory())["id"]
        assert sum(map(pss_bytes, daemon.children().values())) - before <= GROWTH_BYTES
    finally:
        for connection in silent:
            connection.close()
    assert_normal(daemon.api)
