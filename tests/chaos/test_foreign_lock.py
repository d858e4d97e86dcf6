"""A lock of another program on the database delays writes and loses none; it causes no restart and no failed start.

Source: docs/reliability.md R5.
"""

from __future__ import annotations

import statistics
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.chaos.crash_points import settle, stop_soundly
from tests.chaos.seeds import FULL
from tests.chaos.traffic import traffic_on
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, foreign_lock, live_daemon
from tests.support.log_tail import LogTail

pytestmark = pytest.mark.system

TWO_SEARCHERS = "searcher:\n  processes: 2\n"
BUSY_S = 2.0
"""The default of writer.busyTimeoutMs."""
LENGTHS_S = (1, 5, 30) if FULL else (1, 5)


@contextmanager
def locked_for(daemon: LiveDaemon, seconds: float) -> Iterator[threading.Event]:
    """Hold a lock as another program for that long; the event is set when it is released."""
    over = threading.Event()
    held = threading.Event()

    def hold() -> None:
        with foreign_lock(daemon.database):
            held.set()
            over.wait(seconds)
        over.set()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert held.wait(30)
        yield over
    finally:
        over.set()
        thread.join(30)


@pytest.mark.parametrize("seconds", LENGTHS_S)
def test_writes_during_a_foreign_lock_are_refused_in_time_and_none_is_lost(seconds: int) -> None:
    with live_daemon(config=TWO_SEARCHERS) as daemon:
        tail = LogTail(daemon.workspace)
        with traffic_on(daemon) as traffic:
            with locked_for(daemon, seconds) as over:
                eventually(over.is_set, within_s=seconds + 30, what="the lock is given back")
            assert settle(daemon, traffic).wrong == []
            assert set(traffic.statuses) <= {200, 503}
            assert {each.status for each in traffic.exchanges if each.kind == "recall"} == {200}
            refused = [each.ended - each.begun for each in traffic.exchanges if each.status == 503]
            if seconds > 2 * BUSY_S:
                assert refused
            # The guarantee is half a second beyond the budget; a loaded machine gets two more seconds, and one that
            # stands still for a moment delays some of the answers.
            assert statistics.median(refused or [0.0]) < BUSY_S + 0.5 + 2.0
        tail.look()
        assert {child.incarnation for child in tail.incarnations.values()} == {1}, "a process was restarted"
        stop_soundly(daemon)


def test_a_start_during_a_foreign_lock_waits_and_reports_why() -> None:
    with live_daemon(config=TWO_SEARCHERS) as daemon:
        daemon.api.remember("Kept through the wait")
        assert daemon.stop() == 0
        tail = LogTail(daemon.workspace)
        tail.forget_incarnations()
        with foreign_lock(daemon.database):
            process = daemon.launch()
            eventually(
                lambda: any(
                    "another program holds a lock" in str(line.get("detail")) for line in tail.events("starting")
                ),
                within_s=60,
                what="the reason",
            )
            assert process.poll() is None
            assert not tail.events("child_up", child="gateway")[1:]
        daemon.wait_ready()
        tail.look()
        assert tail.incarnations["writer"].incarnation == 1
        assert [row["content"] for row in daemon.api.listed()] == ["Kept through the wait"]
        stop_soundly(daemon)
