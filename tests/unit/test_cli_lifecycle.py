"""Start and stop: the real commands with a substitute supervisor that uses the real files and lock."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from click.testing import CliRunner, Result

from signet_actors.cli import daemon_process, lifecycle
from signet_actors.cli.daemon_process import is_in_container, is_supervisor, supervisor_pid
from signet_actors.cli.main import cli
from signet_actors.config.workspace import Workspace
from signet_actors.config.workspace_holder import lock_held
from signet_actors.hook.spool import Spool
from signet_actors.runtime.supervision import workspace_lock
from tests.support.held_workspace import held_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STAND_IN = """
import fcntl, json, os, signal, sys, threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

home = Path(os.environ["SIGNET_WORKSPACE"]) / ".daemon"
if (home / "refuse").exists():
    print("memories.db was not made by this program", file=sys.stderr)
    sys.exit(78)
lock = os.open(home / "lock", os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
os.write(lock, f"{os.getpid()}\\n".encode())
(home / "pid").write_text(f"{os.getpid()}\\n")

class Handler(BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Handler.asked += 1
        ready = Handler.asked > 2
        body = json.dumps({"ready": True} if ready else {"error": "Not ready", "code": "unavailable"}).encode()
        self.send_response(200 if ready else 503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *arguments):
        pass

server = HTTPServer(("127.0.0.1", 0), Handler)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
note = {"host": "127.0.0.1", "port": server.server_address[1], "pid": os.getpid()}
(home / "address.new").write_text(json.dumps(note))
(home / "address.new").rename(home / "address")
server.serve_forever(0.01)
"""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    script = tmp_path / "stand_in_supervisor.py"
    script.write_text(STAND_IN)
    monkeypatch.setattr(lifecycle, "SUPERVISOR", (sys.executable, str(script)))
    home = tmp_path / "workspace"
    yield home
    run_signet(home, "stop", "--now")


def run_signet(workspace: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["--workspace", str(workspace), *arguments], prog_name="signet")


@pytest.fixture
def signet(workspace: Path) -> Callable[..., Result]:
    return lambda *arguments: run_signet(workspace, *arguments)


def reap(pid: int) -> None:
    """The stand-in is a child of the test, so its corpse is the test's to take away."""
    os.waitpid(pid, 0)


def test_start_waits_until_ready_and_stop_until_exited(workspace: Path, signet: Callable[..., Result]) -> None:
    started = signet("start", "--json")
    assert started.exit_code == 0, started.output
    said = json.loads(started.stdout)
    assert said["pid"] == supervisor_pid(workspace)
    assert is_supervisor(said["pid"])

    again = signet("start")
    assert again.exit_code == 0
    assert f"already runs: {said['url']}" in again.stdout
    assert "has changed" not in again.output

    os.utime(Workspace(workspace).pid_file, (0, 0))  # as if the modules were installed after the start
    assert "changed since the daemon started: `signet restart` loads the present one" in signet("start").output

    refused = signet("up")
    assert refused.exit_code == 73
    assert f"pid {said['pid']}" in refused.stderr

    stopped = signet("stop")
    assert (stopped.exit_code, stopped.stdout) == (0, f"Stopped (pid {said['pid']}).\n")
    assert not lock_held(workspace)
    reap(said["pid"])
    assert not is_supervisor(said["pid"])


def test_restart_replaces_the_process(workspace: Path, signet: Callable[..., Result]) -> None:
    first = json.loads(signet("start", "--json").stdout)["pid"]
    second = json.loads(signet("restart", "--json").stdout)["pid"]
    assert first != second == supervisor_pid(workspace)
    reap(first)


def test_restart_keeps_the_daemon_if_the_configuration_is_invalid(
    workspace: Path, signet: Callable[..., Result]
) -> None:
    pid = json.loads(signet("start", "--json").stdout)["pid"]
    (workspace / "agent.yaml").write_text("redaction:\n  memories: 7\n")
    result = signet("restart")
    assert result.exit_code == 78
    assert "redaction.memories" in result.stderr
    assert supervisor_pid(workspace) == pid


def test_restart_by_another_user_does_not_stop_the_daemon(
    workspace: Path, signet: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = json.loads(signet("start", "--json").stdout)["pid"]
    with monkeypatch.context() as other:
        other.setattr("os.geteuid", lambda: workspace.stat().st_uid + 1)
        result = signet("restart")
    assert (result.exit_code, "belongs to another user" in result.stderr) == (78, True)
    assert supervisor_pid(workspace) == pid


def test_a_start_that_fails_prints_the_reason_and_ends_with_the_daemon_s_exit_code(
    workspace: Path, signet: Callable[..., Result]
) -> None:
    (workspace / ".daemon").mkdir(parents=True)
    (workspace / ".daemon" / "refuse").touch()
    result = signet("start")
    assert result.exit_code == 78
    assert "memories.db was not made by this program" in result.stderr
    assert result.stdout == ""


def test_an_invalid_configuration_starts_nothing(workspace: Path, signet: Callable[..., Result]) -> None:
    workspace.mkdir()
    (workspace / "agent.yaml").write_text("gateway:\n  port: x\nredaction:\n  memories: 7\n")
    for command in ("start", "up"):
        result = signet(command)
        assert result.exit_code == 78
        assert "gateway.port" in result.stderr
        assert "redaction.memories" in result.stderr
        assert f"Correct it with `signet --workspace {workspace} config edit`." in " ".join(result.stderr.split())
    assert not (workspace / ".daemon").exists()


def test_start_and_restart_say_what_the_configuration_ignores(workspace: Path, signet: Callable[..., Result]) -> None:
    workspace.mkdir()
    (workspace / "agent.yaml").write_text("gateway.port: 4000\n")
    for command in ("start", "restart"):
        ran = signet(command)
        assert ran.exit_code == 0
        assert 'warning: agent.yaml: gateway.port: unknown key, ignored; write "port:" indented below' in ran.stderr
    assert signet("stop", "--now").exit_code == 0


def test_without_a_daemon_a_broken_configuration_is_to_be_corrected_first(
    workspace: Path, signet: Callable[..., Result]
) -> None:
    workspace.mkdir()
    (workspace / "agent.yaml").write_text("gateway:\n  port: x\n")
    said = signet("status").stderr
    assert "gateway.port" in said
    where = f"--workspace {workspace} "
    assert f"Correct it with `signet {where}config edit`, then start it with `signet {where}start`." in said


def test_a_workspace_that_is_missing_although_a_program_is_connected_may_have_been_moved(
    workspace: Path, signet: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SIGNET_WORKSPACE", raising=False)
    assert f"{workspace} does not exist yet; the first start creates it" in signet("doctor").stdout
    (tmp_path / ".cursor").mkdir()
    assert signet("connect", "cursor", "--yes").exit_code == 0
    workspace.rename(tmp_path / "elsewhere")
    told = " ".join(signet("doctor").stdout.split())
    assert f"{workspace} does not exist yet, although Cursor is connected: was it moved?" in told
    assert "SIGNET_WORKSPACE=DIRECTORY signet start" in told
    new = "although Cursor is connected: a new, empty workspace is made"
    started = signet("start")
    assert (started.exit_code, new in " ".join(started.stderr.split())) == (0, False), "the workspace was named"
    started = CliRunner().invoke(cli, ["start"], prog_name="signet")
    assert started.exit_code == 0
    assert f"{tmp_path}/.agents does not exist, {new}" in " ".join(started.stderr.split())
    assert CliRunner().invoke(cli, ["stop", "--now"]).exit_code == 0
    assert CliRunner().invoke(cli, ["start"], prog_name="signet").stderr == "", "it is in use"
    assert CliRunner().invoke(cli, ["stop", "--now"]).exit_code == 0
    (tmp_path / ".agents").rename(tmp_path / "moved")
    Spool(str(tmp_path / ".agents")).put("/api/hooks/session-end", {"idempotencyKey": "1"})
    told = " ".join(CliRunner().invoke(cli, ["doctor"], prog_name="signet").stdout.split())
    assert f"{tmp_path}/.agents has only reports of hooks, although Cursor is connected: was it moved?" in told
    started = CliRunner().invoke(cli, ["start"], prog_name="signet")
    assert f"{tmp_path}/.agents has only reports of hooks, {new}" in " ".join(started.stderr.split())
    assert CliRunner().invoke(cli, ["stop", "--now"]).exit_code == 0


def test_stop_without_a_daemon_is_done_at_once(signet: Callable[..., Result]) -> None:
    result = signet("stop")
    assert result.exit_code == 0
    assert result.stdout.startswith("No daemon runs on ")


def test_a_pid_of_another_program_is_never_signalled(workspace: Path, signet: Callable[..., Result]) -> None:
    home = workspace / ".daemon"
    home.mkdir(parents=True)
    (home / "pid").write_text(f"{os.getppid()}\n")
    descriptor = os.open(home / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        assert supervisor_pid(workspace) is None
        result = signet("stop", "--timeout", "1")
    finally:
        os.close(descriptor)
    assert result.exit_code == 4
    assert "the supervisor was not found" in result.stderr


def test_the_address_file_of_an_exited_daemon_is_not_trusted(workspace: Path, signet: Callable[..., Result]) -> None:
    home = workspace / ".daemon"
    home.mkdir(parents=True)
    (home / "address").write_text('{"host": "127.0.0.1", "port": 1, "pid": 1}')
    result = signet("status")
    assert result.exit_code == 3
    assert f"no daemon runs on {workspace}" in result.stderr


class TestContainer:
    """The daemon is process 1 of a container, which shares the workspace with what is outside."""

    @pytest.fixture
    def held(self, tmp_path: Path) -> Iterator[Path]:
        with held_workspace(tmp_path, 9):
            (tmp_path / ".daemon" / "pid").write_text("1\n")
            yield tmp_path

    def inside(self, monkeypatch: pytest.MonkeyPatch, workspace: Path, command: str) -> None:
        """Have the kernel say that process 1, with this command line, holds the lock."""
        inode = (workspace / ".daemon" / "lock").stat().st_ino
        locks = workspace / "locks"
        locks.write_text(f"1: FLOCK  ADVISORY  WRITE 1 fd:00:{inode} 0 EOF\n")
        monkeypatch.setattr(workspace_lock, "_KERNEL_LOCKS", locks)
        monkeypatch.setattr(daemon_process, "command_line", {1: command}.__getitem__)

    def test_stop_outside_says_how_to_stop_the_container(self, held: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "kill", mock.Mock())
        result = run_signet(held, "stop")
        assert result.exit_code == 4
        assert f"the daemon on {held} runs in a container; stop that: `podman stop NAME`" in result.stderr
        assert os.kill.mock_calls == []  # type: ignore[attr-defined]

    @pytest.mark.parametrize("command", ["/usr/bin/python3 /usr/bin/supervisord -n", "/sbin/init"])
    def test_another_process_1_gets_no_signal(self, held: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
        self.inside(monkeypatch, held, command)
        assert (supervisor_pid(held), is_in_container(held)) == (None, True)

    def test_stop_inside_signals_process_1(self, held: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.inside(monkeypatch, held, "/opt/bin/python -P -m signet_actors.supervisor --console")
        assert (supervisor_pid(held), is_in_container(held)) == (1, False)
        restarted = run_signet(held, "restart")
        assert (restarted.exit_code, "restart the container" in restarted.stderr) == (4, True)
        monkeypatch.setattr(os, "kill", lambda pid, number: (held / ".daemon" / "killed").write_text(f"{pid} {number}"))
        monkeypatch.setattr(lifecycle, "lock_held", lambda home: not (home / ".daemon" / "killed").exists())
        stopped = run_signet(held, "stop")
        assert (stopped.exit_code, stopped.stdout) == (0, "Stopped (pid 1).\n")
        assert stopped.stderr == "The daemon is process 1 of this container, which ends with it.\n"
        assert (held / ".daemon" / "killed").read_text() == f"1 {signal.SIGTERM}"
