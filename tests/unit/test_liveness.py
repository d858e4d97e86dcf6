"""Which silent children are killed: a stopped, sleeping or looping one soon, one that works slowly later.

Source: docs/messaging.md 10; docs/reliability.md R21.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
import structlog

from signet_actors.config.schema import SupervisionConfig
from signet_actors.runtime.supervision import liveness
from signet_actors.runtime.supervision.liveness import Activity, kill_silent, read_activity
from tests.support.bus_harness import eventually

S: Final = 1_000_000_000
LIMITS: Final = SupervisionConfig(heartbeat_ms=500, liveness=4)


class SilentChild:
    """A child that sent its last heartbeat at 0, when it had used one second of processor time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.activity: Activity | None = Activity("R", 1.0)
        self.process = SimpleNamespace(exists=True, pid=1, kill=lambda: None)
        self.name, self.kill_reason, self.state, self.detail = "searcher-1", "", "up", ""
        self.exit_notice, self.ready_ms, self.last_seen_ns = None, 1, 0
        self.counters, self.progress = {"cpu_seconds": 1.0}, None
        monkeypatch.setattr(liveness, "read_activity", lambda _pid: self.activity)

    def kill(self, why: str) -> None:
        self.kill_reason = why

    def killed_after(
        self, until_s: float, uses: float, state: str = "R", *, waits: float = 0.0, step_ms: int = 250
    ) -> float | None:
        """Return after how many seconds of silence it is killed.

        ``uses`` is its share of a processor, ``waits`` the part of the time in which it waits for one. The supervisor
        looks at it every ``step_ms``.
        """
        children: Any = [self]
        for now_ms in range(0, int(1000 * until_s) + 1, step_ms):
            self.activity = Activity(state, 1.0 + uses * now_ms / 1000, 7.0 + waits * now_ms / 1000)
            now = now_ms * 1_000_000
            if kill_silent(children, now, LIMITS, structlog.get_logger(), {"hb_missed": 0}, loop_was_delayed=False):
                return now_ms / 1000
        return None


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> SilentChild:
    return SilentChild(monkeypatch)


@pytest.mark.parametrize(("uses", "state"), [(0.0, "S"), (1.0, "R"), (0.0, "T"), (1.0, "T"), (0.0, "R")])
def test_a_child_that_sleeps_loops_or_is_stopped_is_killed_within_three_seconds(
    child: SilentChild, uses: float, state: str
) -> None:
    after = child.killed_after(3.0, uses, state)
    assert after is not None
    assert after > 2.0


@pytest.mark.parametrize("step_ms", [100, 500, 1000])
def test_a_child_that_sleeps_is_killed_within_three_seconds_also_by_a_slow_supervisor(
    child: SilentChild, step_ms: int
) -> None:
    after = child.killed_after(3.0, 0.0, "S", step_ms=step_ms)
    assert after is not None
    assert 2.0 < after <= 2.0 + step_ms / 1000


def test_a_child_that_was_busy_and_then_sleeps_is_killed_within_three_seconds(child: SilentChild) -> None:
    child.counters = {"cpu_seconds": 0.6}
    after = child.killed_after(3.0, 0.0, "S")
    assert after is not None
    assert after > 2.0


@pytest.mark.parametrize(("uses", "state"), [(0.15, "R"), (0.0, "D"), (0.1, "S")])
def test_a_child_that_works_slowly_gets_five_times_as_long(child: SilentChild, uses: float, state: str) -> None:
    after = child.killed_after(11.0, uses, state)
    assert after is not None
    assert 10.0 < after <= 10.5


def test_a_child_that_waits_for_a_processor_gets_five_times_as_long(child: SilentChild) -> None:
    after = child.killed_after(11.0, 0.01, "S", waits=0.9)
    assert after is not None
    assert 10.0 < after <= 10.5


def test_a_slow_child_that_has_used_its_time_is_killed(child: SilentChild) -> None:
    after = child.killed_after(11.0, 0.5)
    assert after is not None
    assert 4.0 <= after <= 4.5


def test_where_the_kernel_tells_nothing_silence_is_enough(child: SilentChild, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "read_activity", lambda _pid: None)
    assert child.killed_after(3.0, 0.2) == 2.25


@contextmanager
def program(text: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", text])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells what a process does")
def test_the_kernel_tells_what_a_process_does() -> None:
    with program("while True: pass") as looping, program("import time; time.sleep(600)") as sleeping:

        def state(process: subprocess.Popen[bytes]) -> Activity:
            found = read_activity(process.pid)
            assert found is not None
            return found

        eventually(lambda: state(looping).cpu_s > 0.2, within_s=60, what="processor time")
        if Path("/proc/self/schedstat").exists():
            eventually(lambda: state(looping).waited_s > 0, within_s=60, what="a wait for a processor")
        assert state(looping).state == "R"
        eventually(lambda: state(sleeping).state == "S", within_s=60, what="sleep")
        used = state(sleeping).cpu_s
        os.kill(sleeping.pid, signal.SIGSTOP)
        eventually(lambda: state(sleeping).is_stopped, within_s=60, what="stopped")
        time.sleep(0.1)
        assert state(sleeping).cpu_s == pytest.approx(used, abs=0.1)


def test_a_process_that_does_not_exist_has_no_activity() -> None:
    with program("") as process:
        process.wait(30)
    assert read_activity(process.pid) is None
