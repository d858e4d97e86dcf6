"""The processes of one child: standby, takeover and replacement."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from signet_actors.runtime.supervision.child_process import ChildProcess
from signet_actors.runtime.supervision.process_activity import read_activity
from tests.support.bus_harness import REPOSITORY, eventually

ROLE = '''
"""Writes down what it is given, a line at a time, and what its environment has."""
import os, sys
with open({path!r}, "a", buffering=1) as told:
    told.write(os.environ.get("PLANTED", "") + "\\n")
    for line in sys.stdin:
        told.write(line)
'''


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "told"
    (tmp_path / "scripted_role.py").write_text(ROLE.format(path=str(path)), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(REPOSITORY)]))
    return path


@pytest.fixture
def child(told: Path) -> Iterator[ChildProcess]:
    made = ChildProcess("child", "scripted_role", (), structlog.get_logger(), {"PLANTED": "beside ours"})
    yield made
    made.terminate()
    made.reap()


def lines(told: Path) -> list[str]:
    return told.read_text(encoding="utf-8").splitlines() if told.exists() else []


def ended(child: ChildProcess) -> bool:
    return child.reap() is not None


def test_a_standby_process_reads_its_warm_up_context_before_its_own(child: ChildProcess, told: Path) -> None:
    child.spawn_standby(b"rehearsal\n")
    eventually(lambda: lines(told) == ["beside ours", "rehearsal"], within_s=60)
    assert not child.exists
    child.launch(b"life\n")
    eventually(lambda: ended(child), within_s=60, what="the role has read everything")
    assert lines(told) == ["beside ours", "rehearsal", "life"]


def test_a_standby_process_may_be_started_before_it_has_read_the_warm_up_context(
    child: ChildProcess, told: Path
) -> None:
    rehearsal, life = b"r" * 20_000 + b"\n", b"l" * 20_000 + b"\n"
    child.spawn_standby(rehearsal)
    child.launch(life)
    eventually(lambda: ended(child), within_s=60, what="the role has read everything")
    assert [line[:1] for line in lines(told)] == ["b", "r", "l"]


def test_a_context_too_large_for_the_pipe_starts_a_fresh_interpreter(child: ChildProcess, told: Path) -> None:
    child.spawn_standby(b"r" * 20_000 + b"\n")
    child.launch(b"l" * 40_000 + b"\n")
    eventually(lambda: ended(child), within_s=60, what="the role has read everything")
    assert lines(told)[-1] == "l" * 40_000
    assert not any(line.startswith("r") for line in lines(told)[-2:])


@pytest.mark.skipif(sys.platform != "linux", reason="only /proc tells that a process is stopped")
def test_a_standby_process_that_is_stopped_is_replaced_by_a_fresh_interpreter(
    child: ChildProcess, told: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []
    start = ChildProcess.start_interpreter

    def noted(self: ChildProcess, stdin: int) -> subprocess.Popen[bytes]:
        process = start(self, stdin)
        started.append(process.pid)
        return process

    monkeypatch.setattr(ChildProcess, "start_interpreter", noted)
    child.spawn_standby(b"rehearsal\n")
    eventually(lambda: lines(told) == ["beside ours", "rehearsal"], within_s=60)
    os.kill(started[0], signal.SIGSTOP)
    eventually(lambda: (activity := read_activity(started[0])) is not None and activity.is_stopped)
    child.launch(b"life\n")
    eventually(lambda: ended(child), within_s=60, what="the role has read everything")
    assert lines(told)[-1] == "life"
    assert len(started) == 2


def test_a_warm_up_context_for_an_exited_standby_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    def dead(_: ChildProcess, stdin: int) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(1)"], stdin=stdin)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        return process

    monkeypatch.setattr(ChildProcess, "start_interpreter", dead)
    child = ChildProcess("child", "scripted_role", (), structlog.get_logger())
    child.spawn_standby(b"rehearsal\n")
    assert child.reap() is None
    assert not child.exists
    child.terminate()
