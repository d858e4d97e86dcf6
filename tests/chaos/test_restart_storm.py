"""A child that keeps crashing causes no restart storm with the default limits.

Source: docs/reliability.md R9 and "Supervision policy".
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signet_actors.runtime.messaging.sockets import socket_directory
from tests.chaos.seeds import FULL, share
from tests.chaos.storms import storm_problems
from tests.support.bus_harness import eventually
from tests.support.echo_daemon import alive, daemon
from tests.support.live_daemon import live_daemon
from tests.support.log_tail import LogTail
from tests.support.open_files import cpu_seconds

pytestmark = pytest.mark.system

AS_SHIPPED: dict[str, Any] = {"searcher": {"processes": 2}}
FEWER: dict[str, Any] = {
    **AS_SHIPPED,
    "supervision": {"budgets": {"gateway": {"restarts": 4, "windowMs": 60000}}},
}
"""Ten restarts of a gateway take a minute and a half of waiting; four show the same."""


@pytest.fixture
def workspace() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sgt-", dir="/tmp") as directory:
        yield Path(directory) / "w"


@pytest.mark.parametrize("way", share(["boot_exit:1", "after:100:1"], 1))
def test_early_crashes_of_a_core_child_delay_its_restart_more_and_more_until_the_daemon_exits(
    workspace: Path, way: str
) -> None:
    with daemon(workspace, AS_SHIPPED, orders=f"writer={way}", serving=False) as running:
        assert running.exit_code(60) == 75
        assert len(running.events("spawned", child="writer")) == 6
        waits = [line["delay_ms"] for line in running.events("child_restart_scheduled", child="writer")]
        assert waits == sorted(waits)
        assert waits[-1] >= 8 * waits[0] * 0.75
        assert storm_problems(running, "writer") == []


@pytest.mark.skipif(not FULL, reason="waits long; `make chaos` runs it")
def test_early_crashes_of_the_gateway_end_the_daemon_after_its_budget(workspace: Path) -> None:
    with daemon(workspace, FEWER, orders="gateway=after:100:1", serving=False) as running:
        assert running.exit_code(60) == 75
        assert len(running.events("spawned", child="gateway")) == 5
        assert storm_problems(running, "gateway") == []


def test_a_child_that_serves_for_a_while_before_each_crash_is_always_restarted(workspace: Path) -> None:
    with daemon(workspace, AS_SHIPPED, orders="searcher-1=after:5000:1") as running:
        running.wait_for("child_up", child="searcher-1", child_incarnation=3, within_s=60)
        assert storm_problems(running, "searcher-1") == []
        assert running.process.poll() is None


@pytest.mark.parametrize("way", share(["boot_exit:1", "after:100:1"], 1))
def test_an_optional_child_over_its_budget_is_failed_while_the_core_serves(workspace: Path, way: str) -> None:
    with daemon(workspace, AS_SHIPPED, orders=f"retention={way}") as running:
        running.wait_for("child_restart_postponed", child="retention", within_s=60)
        assert storm_problems(running, "retention") == []
        assert len(running.events("spawned", child="retention")) == 4
        for name in ("writer", "searcher-1", "searcher-2", "gateway"):
            assert alive(running.pid_of(name))
        before = cpu_seconds(running.process.pid)
        beats = len(running.lines())
        os.kill(running.pid_of("searcher-2"), signal.SIGKILL)  # something to wait for, and proof that it still works
        running.wait_for("child_up", child="searcher-2", child_incarnation=2)
        assert len(running.lines()) > beats
        assert cpu_seconds(running.process.pid) - before < 1.0
        assert len(running.events("spawned", child="retention")) == 4


def test_a_writer_that_cannot_bind_its_socket_ends_the_daemon_without_a_restart_storm() -> None:
    config = "supervision:\n  budgets:\n    writer: {restarts: 3, windowMs: 60000}\n"
    with live_daemon(config=config) as live:
        tail = LogTail(live.workspace)
        tail.look()
        path = socket_directory(Path(os.path.realpath(live.workspace))) / "writer.sock"
        assert path.is_socket()
        os.kill(
            tail.incarnations["writer"].pid, signal.SIGSTOP
        )  # it must not unbind the socket that is about to be taken
        path.unlink()
        path.mkdir()
        os.kill(tail.incarnations["writer"].pid, signal.SIGKILL)
        assert live.process is not None
        process = live.process
        eventually(lambda: process.poll() is not None, within_s=60, what="given up")
        assert process.returncode == 75
        assert "writer keeps failing" in live.terminal()
        live.gone()
        path.rmdir()
        born = [line for line in live.log() if line["event"] == "spawned" and line["child"] == "writer"]
        assert len(born) in {4, 5}  # the killed incarnation and the budget
        live.start()
