"""Every documented way to start the daemon behaves the same: an internal error is answered at once and logged.

Source: docs/operations.md, exit codes and "What an HTTP answer promises".
"""

from __future__ import annotations

import configparser
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.bus_harness import REPOSITORY, eventually
from tests.support.live_daemon import live_daemon

pytestmark = pytest.mark.system

SIGNET = (sys.executable, "-P", "-m", "signet_actors")
"""The command of this interpreter, whatever is installed in it."""
OPS = Path(__file__).resolve().parents[2] / "ops"


def unit_command(name: str) -> list[str]:
    """The program of a systemd unit, run by this interpreter."""
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.read(OPS / "systemd" / name)
    _, *arguments = unit["Service"]["ExecStart"].split()
    return [*SIGNET, *arguments]


def container_command() -> list[str]:
    last = (OPS / "container" / "Containerfile").read_text(encoding="utf-8").splitlines()[-1]
    _, *arguments = json.loads(last.removeprefix("CMD "))
    return [*SIGNET, *arguments]


WAYS = {
    "signet up": [sys.executable, "-P", "-m", "signet_actors.cli", "up"],
    "supervisor with console": [sys.executable, "-P", "-m", "signet_actors.supervisor", "--console"],
    "signet start": [sys.executable, "-P", "-m", "signet_actors.supervisor"],
    "user unit": unit_command("signet.service"),
    "system unit": unit_command("signet-system.service"),
    "container": container_command(),
}


WITHOUT_SAFE_PATH = {
    "signet up, by module": [sys.executable, "-m", "signet_actors.cli", "up"],
    "signet up, by the package": [sys.executable, "-m", "signet_actors", "up"],
    "supervisor, by module": [sys.executable, "-m", "supervisor"],
}


ERROR = "gateway.reply_received=raise:EIO@1"
TRAPS = ("json", "asyncio", "click", "msgspec", "zmq", "apsw", "yaml", "uvicorn")


@pytest.mark.parametrize("way", [*WAYS, *WITHOUT_SAFE_PATH])
def test_a_daemon_answers_and_logs_an_internal_error_and_imports_nothing_of_the_directory_it_is_started_in(
    way: str,
) -> None:
    # An empty entry and a dot are the current directory.
    environ = {"PYTHONPATH": f":.:{REPOSITORY}", "SIGNET_SYNC_POINTS": ERROR}
    with live_daemon(started=False, environ=environ) as daemon:
        for name in TRAPS:
            (daemon.root / f"{name}.py").write_text(f"raise SystemExit('imported {name} of the working directory')")
        daemon.command = {**WAYS, **WITHOUT_SAFE_PATH}[way]
        daemon.start()
        answer = daemon.api.request("POST", "/api/memory/remember", {"content": "a note"}, timeout=10)
        body = answer.refused(500, code="internal")
        trace = answer.headers["x-signet-trace-id"]
        assert trace in body["error"]
        (failure,) = [line for line in daemon.log() if line["event"] == "request_failed"]
        assert failure["trace"] == trace
        assert failure["stack"]
        assert daemon.api.remember("another note")["id"]
        assert daemon.api.get("/health").ok()["status"] == "healthy"
        daemon.kill("writer")
        eventually(lambda: daemon.every_process()["writer"]["incarnation"] == 2, what="another writer")
        daemon.wait_ready()
        assert daemon.api.remember("a note of the next writer")["id"]
        assert daemon.stop() == 0
        assert "working directory" not in daemon.terminal()
        assert ("request_failed" in daemon.terminal()) == (daemon.command[-1] in {"--console", "up"})


def test_concurrent_start_commands_all_succeed_with_one_daemon() -> None:
    with live_daemon(started=False) as daemon:
        command = [sys.executable, "-P", "-m", "signet_actors.cli"]
        starts = [
            subprocess.Popen(
                [*command, "start", *more],
                env=daemon.environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for more in ([], [], [], ["--json"])
        ]
        try:
            ended = [(start.communicate(timeout=120), start.returncode) for start in starts]
            assert [code for _, code in ended] == [0] * 4, ended
            assert [said for (_, said), _ in ended] == [""] * 4
            pid = json.loads(ended[-1][0][0])["pid"]
            assert all(f"pid {pid}" in told for (told, _), _ in ended[:-1])
            assert sum("is ready in" in told for (told, _), _ in ended[:-1]) <= 1
            assert sum("already runs" in told for (told, _), _ in ended[:-1]) >= 2
        finally:
            subprocess.run([*command, "stop"], env=daemon.environment(), check=True, timeout=60, capture_output=True)
            daemon.gone()


def test_a_daemon_without_its_terminal_serves_and_stops_normally() -> None:
    with live_daemon(started=False, environ={"SIGNET_SYNC_POINTS": ERROR}) as daemon:
        # A reader that ends after the first line, as `signet up | head -1` does.
        daemon.command = [
            "bash",
            "-c",
            'exec "$@" > >(head -1) 2>&1',
            "bash",
            *WAYS["signet up"],
        ]
        daemon.start()
        for expected in (500, 200):
            assert daemon.api.request("POST", "/api/memory/remember", {"content": "x y"}, timeout=10).status == expected
        daemon.kill("writer")
        daemon.wait_ready()
        assert daemon.stop() == 0
