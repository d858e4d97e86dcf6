"""Another program listens on the daemon's port and answers like a daemon: the command line sends it no data.

Source: docs/cli.md "Global options" and "Exit codes".
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.live_daemon import LiveDaemon, live_daemon, run_signet

pytestmark = pytest.mark.system

NOBODY = 65534
SECRET = "the vault code is 4711"

FALSE_DAEMON = """
import http.server, json, os, sys
port, workspace, uid = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
"".encode("idna")  # loads what a name needs, which the other user may not be able to read
if uid != os.geteuid():
    os.setgroups([]); os.setgid(uid); os.setuid(uid)
ANSWER = {"agentsDir": workspace, "status": "healthy", "id": "x", "type": "fact", "embedded": True, "deduped": False}
class Handler(http.server.BaseHTTPRequestHandler):
    def reply(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        print(json.dumps([self.command, self.path, body.decode()]), flush=True)
        text = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    do_GET = do_POST = reply
    def log_message(self, *arguments): pass
server = http.server.HTTPServer(("127.0.0.1", port), Handler)
print(json.dumps(server.server_port), flush=True)
server.serve_forever()
"""
"""Prints its port, then each request, a line each."""


class FalseDaemon:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        self.port = int(process.stdout.readline())

    def requests(self) -> list[list[str]]:
        """Yield the list of requests that it receives; it is stopped afterwards."""
        self.process.kill()
        return [json.loads(line) for line in self.process.communicate()[0].splitlines()]


@contextmanager
def false_daemon(daemon: LiveDaemon, *, port: int = 0, uid: int | None = None) -> Iterator[FalseDaemon]:
    given = [str(port), str(daemon.workspace), str(os.geteuid() if uid is None else uid)]
    command = [sys.executable, "-I", "-c", FALSE_DAEMON, *given]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield FalseDaemon(process)
        finally:
            process.kill()


def remember(daemon: LiveDaemon, port: int) -> subprocess.CompletedProcess[str]:
    return run_signet(daemon, "remember", SECRET, environ={"SIGNET_PORT": str(port)})


def test_without_a_daemon_no_data_is_sent_to_a_program_on_its_port() -> None:
    with live_daemon(started=False) as daemon, false_daemon(daemon) as false:
        told = remember(daemon, false.port)
        assert (told.returncode, told.stdout) == (3, "")
        assert "no daemon runs" in told.stderr
        assert SECRET not in str(false.requests())


def test_after_a_kill_no_data_is_sent_to_a_program_that_took_the_port() -> None:
    with live_daemon() as daemon:
        daemon.kill_supervisor()
        daemon.gone()
        assert (daemon.workspace / ".daemon" / "address").exists()
        with false_daemon(daemon, port=daemon.port) as false:
            told = remember(daemon, daemon.port)
            assert (told.returncode, told.stdout) == (3, "")
            assert SECRET not in str(false.requests())


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's program can be started by root only")
def test_during_a_start_no_data_is_sent_to_another_user_s_program_on_the_port() -> None:
    with live_daemon() as daemon:
        assert daemon.stop() == 0
        with (daemon.workspace / ".daemon" / "lock").open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with false_daemon(daemon, uid=NOBODY) as false:
                told = remember(daemon, false.port)
                assert (told.returncode, told.stdout) == (3, "")
                assert SECRET not in str(false.requests())


def test_a_running_daemon_whose_address_file_was_removed_is_found_by_its_configured_port() -> None:
    with live_daemon() as daemon:
        (daemon.workspace / ".daemon" / "address").unlink()
        told = remember(daemon, daemon.port)
        assert told.returncode == 0, told.stderr
        assert [row["content"] for row in daemon.api.listed()] == [SECRET]
