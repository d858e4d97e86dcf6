"""A daemon that is asked to stop at any stage stops in order and in bounded time.

Source: docs/reliability.md R19 and "Supervision policy".
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from tests.chaos.crash_points import settle, stop_soundly
from tests.chaos.seeds import share
from tests.chaos.traffic import traffic_on
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, foreign_lock, live_daemon
from tests.support.log_tail import LogTail

pytestmark = pytest.mark.system

TWO_SEARCHERS = "searcher:\n  processes: 2\n"
LONGEST_S = 40.0
"""The guarantee is ten seconds; a loaded machine gets several times as much."""

STAGES: dict[str, Callable[[LiveDaemon], bool]] = {
    "the port is bound": lambda daemon: _said(daemon, "listening"),
    "the writer is being started": lambda daemon: _said(daemon, "spawned", child="writer"),
    "the writer is up": lambda daemon: _said(daemon, "child_up", child="writer"),
    "the gateway is being started": lambda daemon: _said(daemon, "spawned", child="gateway"),
}


def _said(daemon: LiveDaemon, event: str, **facts: str) -> bool:
    return any(line["event"] == event and facts.items() <= line.items() for line in daemon.log())


def stopped(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    """Return the exit code after SIGTERM, and how long it took."""
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    code = process.wait(LONGEST_S)
    return code, time.monotonic() - began


def test_a_stop_request_before_the_start_ends_the_program() -> None:
    with live_daemon(started=False) as daemon:
        code, _ = stopped(daemon.launch())
        assert code in {0, -signal.SIGTERM}  # Python itself may not have installed its handlers
        daemon.gone()
        daemon.start()


@pytest.mark.parametrize("stage", share(STAGES, 2))
def test_a_stop_request_during_the_start_is_obeyed_at_once(stage: str) -> None:
    with live_daemon(config=TWO_SEARCHERS, started=False) as daemon:
        process = daemon.launch()
        eventually(lambda: STAGES[stage](daemon), within_s=60, what=stage)
        code, _ = stopped(process)
        assert code == 0, daemon.terminal()
        daemon.gone()
        assert not (daemon.workspace / ".daemon" / "pid").exists()
        daemon.start()
        stop_soundly(daemon)


def test_a_stop_request_after_the_first_log_line_drains_the_daemon() -> None:
    with live_daemon(started=False) as daemon:
        traces = [daemon.workspace / ".daemon" / name for name in ("pid", "address")]
        process = daemon.launch()
        until = time.monotonic() + 60
        while not traces[0].exists():  # without a pause: this moment is tested
            assert time.monotonic() < until, "nothing was begun"
        code, _ = stopped(process)
        assert code == 0, daemon.terminal()
        daemon.gone()
        assert not any(trace.exists() for trace in traces)


def test_a_stop_while_another_program_holds_the_database_loses_nothing() -> None:
    with live_daemon(config=TWO_SEARCHERS) as daemon:
        with traffic_on(daemon) as traffic:
            with foreign_lock(daemon.database):
                since = traffic.statuses[503]
                eventually(lambda: traffic.statuses[503] > since, within_s=60, what="writes refused")
                assert daemon.process is not None
                code, _ = stopped(daemon.process)
                assert code == 0
                daemon.gone()
            traffic.stop(settle=False)
            daemon.start()
            assert traffic.check().wrong == []
        stop_soundly(daemon)


@pytest.mark.parametrize("name", share(["writer", "searcher-1", "gateway"], 1))
def test_a_stop_while_an_actor_hangs_kills_it_and_loses_nothing(name: str) -> None:
    with live_daemon(config=TWO_SEARCHERS) as daemon:
        tail = LogTail(daemon.workspace)
        tail.look()
        with traffic_on(daemon) as traffic:
            os.kill(tail.incarnations[name].pid, signal.SIGSTOP)
            assert daemon.process is not None
            code, _ = stopped(daemon.process)
            assert code == 0
            daemon.gone()
            traffic.stop(settle=False)
            daemon.start()
            assert traffic.check().wrong == []
        stop_soundly(daemon)


def test_an_orderly_stop_under_load_answers_every_request_and_truncates_the_log() -> None:
    with live_daemon(config=TWO_SEARCHERS) as daemon:
        with traffic_on(daemon) as traffic:
            assert daemon.process is not None
            code, _ = stopped(daemon.process)
            assert code == 0
            daemon.gone()
            wal = daemon.database.with_name("memories.db-wal")
            assert not wal.exists() or wal.stat().st_size == 0
            daemon.start()
            assert settle(daemon, traffic).wrong == []
            assert set(traffic.statuses) <= {200, 503, 0}
        stop_soundly(daemon)


def test_a_second_stop_request_kills_the_daemon_and_loses_nothing() -> None:
    with live_daemon(config=f"{TWO_SEARCHERS}supervision:\n  drainMs: 60000\n") as daemon:
        tail = LogTail(daemon.workspace)
        tail.look()
        with traffic_on(daemon) as traffic:
            os.kill(tail.incarnations["writer"].pid, signal.SIGSTOP)  # its request would take all the time
            assert daemon.process is not None
            daemon.process.send_signal(signal.SIGTERM)
            eventually(lambda: tail.events("stopping"), what="stopping")
            code, seconds = stopped(daemon.process)
            assert code == 0
            assert seconds < 30, "the grace was waited for"
            daemon.gone()
            traffic.stop(settle=False)
            daemon.start()
            assert traffic.check().wrong == []
        stop_soundly(daemon)
