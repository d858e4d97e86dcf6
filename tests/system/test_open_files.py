"""The limit of open files: raised as far as allowed, refused if too low, and never exceeded by connections.

Source: docs/operations.md, "Limits"; docs/reliability.md R13.
"""

from __future__ import annotations

import contextlib
import resource
import socket
import sys

import pytest

from signet_actors.errors import ExitCode
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon

pytestmark = pytest.mark.system


def limited(daemon: LiveDaemon, limits: str) -> None:
    """The daemon will be started by a shell with these limits of open files."""
    daemon.command = ["bash", "-c", f'{limits}; exec "$@"', "bash", sys.executable, "-P", "-m", "supervisor"]


def open_files_limit(pid: int) -> int:
    return resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]


def test_a_daemon_with_a_low_open_file_limit_does_not_start() -> None:
    with live_daemon(started=False) as daemon:
        limited(daemon, "ulimit -n 64")
        code, said = daemon.refused_start()
        assert code == ExitCode.CONFIG
        assert "64 files" in said
        assert "ulimit -n" in said


def test_the_soft_limit_is_raised_for_every_process() -> None:
    with live_daemon(started=False) as daemon:
        limited(daemon, "ulimit -Sn 128 && ulimit -Hn 2000")
        daemon.start()
        assert {open_files_limit(pid) for pid in daemon.processes()} == {2000}
        assert daemon.api.get("/api/status").ok()["gateway"]["connections_most"] == 512


def test_half_open_connections_beyond_the_limit_leave_the_daemon_answering() -> None:
    with live_daemon(started=False) as daemon, contextlib.ExitStack() as crowd:
        limited(daemon, "ulimit -n 300")
        daemon.start()
        most = daemon.api.get("/api/status").ok()["gateway"]["connections_most"]
        assert 16 <= most < 150
        assert any(line["event"] == "connections_bounded" and line["most"] == most for line in daemon.log())
        lives = daemon.children()
        for _ in range(700):
            connection = crowd.enter_context(socket.socket())
            connection.setblocking(False)
            connection.connect_ex(("127.0.0.1", daemon.port))
            with contextlib.suppress(OSError):
                connection.send(b"GET /health HT")
        for _ in range(5):
            assert daemon.api.request("GET", "/health", timeout=10).ok()["status"] == "healthy"
        crowd.close()
        eventually(
            lambda: daemon.api.post("/api/memory/remember", {"content": "room again"}).status == 200,
            within_s=30,
            what="writes again",
        )
        assert daemon.children() == lives
        assert not [line for line in daemon.log() if line["level"] in {"error", "critical"}]
