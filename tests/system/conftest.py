"""Real daemons for the tests of this directory; a failing test shows their logs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import count

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client, LiveDaemon, live_daemon, living

ROOMS = 400
"""Added to the roster at once. Those before them stay in it, as a test may use some of both."""
PEOPLE = """
    - {name: lone, read_policy: isolated}
    - {name: wide, read_policy: shared}
    - {name: cleo, read_policy: group, policy_group: research}
    - {name: dan, read_policy: group, policy_group: research}
    - {name: eve, read_policy: group, policy_group: sales}
"""


def roster_of_rooms(first: int) -> str:
    numbers = range(first, first + ROOMS)
    return "".join(f"    - {{name: room-{number}, read_policy: isolated}}\n" for number in numbers)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        report.sections += [(f"daemon on {daemon.workspace}", daemon.report()) for daemon in living]
    return report


@pytest.fixture(scope="session")
def daemon() -> Iterator[LiveDaemon]:
    """One daemon for all tests that kill nothing and are not about limits of time; none may make it log a fault."""
    roster = f"agents:\n  roster:{PEOPLE}{roster_of_rooms(0)}"
    with live_daemon(config=roster, pipeline=True, patient=True) as daemon:
        eventually(lambda: all(daemon.children().values()), what="those that start when others serve")
        pids = daemon.children()
        yield daemon
        assert daemon.faults() == []
        assert daemon.children() == pids, "a process died under tests that kill nothing"
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


@pytest.fixture(scope="session")
def empty_rooms(daemon: LiveDaemon) -> Callable[[], Client]:
    """Agents that read nothing but their own memories, and have none yet.

    The roster is renewed when its rooms are given out: one worker may run most of the tests that ask for one.
    """
    config = daemon.workspace / "agent.yaml"

    def rooms() -> Iterator[Client]:
        for first in count(0, ROOMS):
            if first:
                text = config.read_text(encoding="utf-8").replace(roster_of_rooms(first - 2 * ROOMS), "")
                daemon.configure(text.replace(last := roster_of_rooms(first - ROOMS), last + roster_of_rooms(first)))
                known = f"SELECT 1 FROM agents WHERE id = 'room-{first}' AND read_policy = 'isolated'"
                eventually(lambda known=known: daemon.read(known), what="the next rooms")
            yield from (daemon.agent(f"room-{number}") for number in range(first, first + ROOMS))

    every = rooms()
    return lambda: next(every)


@pytest.fixture
def room(empty_rooms: Callable[[], Client]) -> Client:
    """A client with an empty store to itself."""
    return empty_rooms()
