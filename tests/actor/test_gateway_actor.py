"""The gateway process: it says Ready when it serves, beats, drains when told, and says why it cannot start."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from signet_actors.config.schema import Config, SupervisionConfig
from signet_actors.config.workspace import Workspace
from signet_actors.errors import ExitCode
from signet_actors.protocol.control import Heartbeat, Ready, Reload
from signet_actors.runtime.boot import encode_boot
from tests.support.bus_room import BusRoom, bus_room, child_environment, eventually
from tests.support.edge import gateway_config

CONFIG = Config(supervision=SupervisionConfig(heartbeat_ms=50))


@pytest.fixture
def room() -> Iterator[BusRoom]:
    with bus_room(CONFIG) as made:
        Workspace(made.workspace).ensure()
        yield made


class Listener:
    """A listening socket as the supervisor owns it: it outlives the gateways."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]

    def get(self, path: str, headers: dict[str, str] | None = None) -> tuple[int, dict[str, object]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path, headers=headers or {})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.socket.close()


def start(room: BusRoom, listener: Listener, incarnation: int = 1) -> subprocess.Popen[bytes]:
    """A gateway process on the listener's port."""
    descriptor = listener.socket.fileno()
    boot = msgspec.structs.replace(room.boot("gateway", "gateway", incarnation), listen_fds=(descriptor,))
    room.said["gateway"] = []
    with tempfile.TemporaryFile() as stdin:
        stdin.write(encode_boot(boot))
        stdin.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-m", "signet_actors.gateway"],
            stdin=stdin,
            pass_fds=(descriptor,),
            env=child_environment(),
        )
    room.processes["gateway"] = process
    return process


def wait_ready(room: BusRoom) -> None:
    eventually(lambda: room.heard("gateway", Ready), within_s=30, what="gateway ready")


def test_ready_means_that_requests_are_answered(room: BusRoom, listener: Listener) -> None:
    start(room, listener)
    wait_ready(room)
    status, body = listener.get("/health")
    assert (status, body["port"], body["status"]) == (200, listener.port, "unhealthy")
    assert listener.get("/health/ready")[0] == 503
    assert len(Workspace(room.workspace).secret_file.read_bytes()) == 32
    eventually(lambda: room.counters("gateway").get("requests", 0) >= 2)


def test_connections_wait_in_the_backlog_while_the_gateway_restarts(room: BusRoom, listener: Listener) -> None:
    process = start(room, listener)
    wait_ready(room)
    process.kill()
    process.wait(10)
    with socket.create_connection(("127.0.0.1", listener.port), timeout=30) as waiting:
        waiting.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        start(room, listener, incarnation=2)
        assert waiting.recv(15) == b"HTTP/1.1 200 OK"


def test_a_drain_ends_with_exit_code_0(room: BusRoom, listener: Listener) -> None:
    start(room, listener)
    wait_ready(room)
    assert room.drain("gateway") == ExitCode.OK


def test_a_reload_is_followed_without_a_restart(room: BusRoom, listener: Listener) -> None:
    start(room, listener)
    wait_ready(room)
    named = {"Host": "memory.home"}
    assert listener.get("/health/live", named)[0] == 421
    config = gateway_config(allowed_hosts=("memory.home",))
    room.send("gateway", Reload(msgspec.json.encode(config).decode()))
    eventually(lambda: listener.get("/health/live", named)[0] == 200)


def test_it_beats_from_the_loop_that_serves(room: BusRoom, listener: Listener) -> None:
    start(room, listener)
    wait_ready(room)
    room.said["gateway"].clear()
    eventually(lambda: room.heard("gateway", Heartbeat))


def test_a_key_that_others_can_read_is_refused_with_words(room: BusRoom, listener: Listener) -> None:
    secret = Workspace(room.workspace).secret_file
    Path(secret).write_bytes(bytes(32))
    secret.chmod(0o644)
    process = start(room, listener)
    words = eventually(lambda: room.last_words("gateway"), within_s=30)
    assert words.code == ExitCode.CONFIG
    assert str(secret) in words.detail
    assert process.wait(10) == ExitCode.CONFIG
