"""A real daemon under attack, whose state is checked after every test of this directory.

``SIGNET_HOSTILE=long`` runs the long variant, ``SIGNET_HOSTILE_SEED`` another seed; a failure prints the command that
repeats it.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.system.conftest import pytest_runtest_makereport  # noqa: F401 - the hook that shows a daemon's log

LONG = os.environ.get("SIGNET_HOSTILE") == "long"
SEED = os.environ.get("SIGNET_HOSTILE_SEED", "1")

KEEPER = "keeper"
CANARY = "zinnwaldite"
"""A word that is in no attack and must not be in any response to one."""
ROSTER = f"agents:\n  roster:\n    - {{name: {KEEPER}, read_policy: isolated}}\n"
SHORT_TIMEOUTS = "gateway:\n  headerTimeoutMs: 400\n  bodyTimeoutMs: 400\n  keepAliveMs: 200\n"
"""Limits on slow clients and idle connections under which every connection ends soon."""
GROWTH_BYTES = 192 << 20
"""The sum over all processes: caches fill and the store grows under tens of thousands of requests; a leak would exceed
this limit.
"""


def scale(short: int, long: int) -> int:
    """Return ``short`` in CI, ``long`` in the long variant."""
    return long if LONG else short


def held_bytes(daemon: LiveDaemon) -> int:
    """Return the memory that only this daemon's processes use; one that ends meanwhile uses none."""
    total = 0
    for pid in daemon.processes():
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue
        for line in lines:
            if line.startswith(("Private_Clean:", "Private_Dirty:")):
                total += int(line.split()[1]) << 10
    return total


def median_ms(daemon: LiveDaemon, method: str, target: str, body: Any = None) -> float:
    """Return the median of 60 exchanges, each on its own connection."""
    took = []
    for number in range(60):
        begun = time.perf_counter()
        daemon.api.request(method, target, {**body, "content": f"probe {number}"} if body else None)
        took.append(1000 * (time.perf_counter() - begun))
    return round(statistics.median(took), 2)


def pace(daemon: LiveDaemon) -> dict[str, float]:
    """Measure the response times; they are printed and not checked."""
    return {
        "health": median_ms(daemon, "GET", "/health"),
        "remember": median_ms(daemon, "POST", "/api/memory/remember", {"agentId": "pace"}),
    }


def canaries(daemon: LiveDaemon) -> list[Any]:
    """Return the canary agent's memories and their histories."""
    keeper = daemon.agent(KEEPER)
    rows = sorted(keeper.listed(), key=lambda row: str(row["id"]))
    return [(keeper.memory(row["id"]), keeper.get(f"/api/memory/{row['id']}/history").ok()) for row in rows]


@contextmanager
def attacked_daemon(name: str, config: str = "") -> Iterator[LiveDaemon]:
    """Run a daemon with canaries; after the block it must be undamaged and the canaries unchanged."""
    with live_daemon(config=ROSTER + config) as daemon:
        keeper = daemon.agent(KEEPER)
        for number in range(20):
            keeper.remember(f"The canary {CANARY} number {number}", visibility="private", pinned=number % 2 == 0)
        before, children, memory, speed = canaries(daemon), daemon.children(), held_bytes(daemon), pace(daemon)
        yield daemon
        assert canaries(daemon) == before
        assert daemon.children() == children, "a process died of an attack"
        assert {actor["incarnation"] for actor in daemon.actors().values()} == {1}
        grown = held_bytes(daemon) - memory
        print(f"{name}: memory grew by {grown >> 20} MiB; median ms before {speed}, after {pace(daemon)}")
        assert grown < GROWTH_BYTES
        assert daemon.faults() == []
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


@pytest.fixture
def default_daemon(request: pytest.FixtureRequest) -> Iterator[LiveDaemon]:
    """A daemon with the default configuration."""
    with attacked_daemon(request.node.name) as daemon:
        yield daemon


@pytest.fixture
def short_timeouts_daemon(request: pytest.FixtureRequest) -> Iterator[LiveDaemon]:
    """A daemon that waits for a client for some tenths of a second at most."""
    with attacked_daemon(request.node.name, SHORT_TIMEOUTS) as daemon:
        yield daemon
