"""Real daemons for the tests of this directory; a failing test shows their logs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client, LiveDaemon, live_daemon, living

ROOMS = 650
PEOPLE = """
    - {name: lone, read_policy: isolated}
    - {name: wide, read_policy: shared}
    - {name: cleo, read_policy: group, policy_group: research}
    - {name: dan, read_policy: group, policy_group: research}
    - {name: eve, read_policy: group, policy_group: sales}
"""
SHARED = f"agents:\n  roster:{PEOPLE}" + "".join(
    f"    - {{name: room-{number}, read_policy: isolated}}\n" for number in range(ROOMS)
)


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
    with live_daemon(config=SHARED, pipeline=True, patient=True) as daemon:
        eventually(lambda: all(daemon.children().values()), what="those that start when others serve")
        pids = daemon.children()
        yield daemon
        assert daemon.faults() == []
        assert daemon.children() == pids, "a process died under tests that kill nothing"
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


@pytest.fixture(scope="session")
def empty_rooms(daemon: LiveDaemon) -> Callable[[], Client]:
    """Agents that read nothing but their own memories, and have none yet."""
    numbers = iter(range(ROOMS))
    return lambda: daemon.agent(f"room-{next(numbers)}")


@pytest.fixture
def room(empty_rooms: Callable[[], Client]) -> Client:
    """A client with an empty store to itself."""
    return empty_rooms()
