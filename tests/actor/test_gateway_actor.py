"""The gateway process: readiness, heartbeats, drain, and errors at start."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator

import msgspec
import pytest
import structlog

from signet_actors.config.schema import Config, SupervisionConfig
from signet_actors.config.workspace import Workspace
from signet_actors.errors import ExitCode
from signet_actors.gateway import actor as gateway_actor
from signet_actors.gateway.actor import Gateway
from signet_actors.protocol.control import ChildState, Drain, Heartbeat, Ready, Reload
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.processes.child_context import encode_context
from tests.support.bus_client_harness import soon
from tests.support.bus_harness import BusHarness, bus_harness, child_environment, eventually, log_lines
from tests.support.edge import gateway_config
from tests.support.live_daemon import live_daemon

CONFIG = Config(supervision=SupervisionConfig(heartbeat_ms=50))
FEW = "searcher:\n  processes: 1\n"


@pytest.fixture
def room() -> Iterator[BusHarness]:
    with bus_harness(CONFIG) as made:
        Workspace(made.workspace).ensure()
        yield made


class Listener:
    """A listening socket as the supervisor owns it: it outlives the gateways."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]

    def get(self, path: str, headers: dict[str, str] | None = None) -> tuple[int, dict[str, object]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
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


def start(room: BusHarness, listener: Listener, incarnation: int = 1) -> subprocess.Popen[bytes]:
    """A gateway process on the listener's port."""
    descriptor = listener.socket.fileno()
    boot = msgspec.structs.replace(room.boot("gateway", "gateway", incarnation), listen_fds=(descriptor,))
    room.said["gateway"] = []
    with tempfile.TemporaryFile() as stdin:
        stdin.write(encode_context(boot))
        stdin.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-m", "signet_actors.gateway"],
            stdin=stdin,
            pass_fds=(descriptor,),
            env=child_environment(),
        )
    room.processes["gateway"] = process
    return process


def wait_ready(room: BusHarness) -> None:
    eventually(lambda: room.heard("gateway", Ready), within_s=30, what="gateway ready")


def test_a_ready_gateway_answers_requests(room: BusHarness, listener: Listener) -> None:
    start(room, listener)
    wait_ready(room)
    status, body = listener.get("/health")
    assert (status, body["port"], body["status"]) == (200, listener.port, "unhealthy")
    assert listener.get("/health/ready")[0] == 503
    assert len(Workspace(room.workspace).secret_file.read_bytes()) == 32
    eventually(lambda: room.counters("gateway").get("requests", 0) >= 2)


def test_connections_wait_in_the_backlog_while_the_gateway_restarts(room: BusHarness, listener: Listener) -> None:
    process = start(room, listener)
    wait_ready(room)
    process.kill()
    process.wait(60)
    with socket.create_connection(("127.0.0.1", listener.port), timeout=60) as waiting:
        waiting.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        start(room, listener, incarnation=2)
        assert waiting.recv(15) == b"HTTP/1.1 200 OK"


def test_a_drain_ends_with_exit_code_0(room: BusHarness, listener: Listener) -> None:
    start(room, listener)
    wait_ready(room)
    assert room.drain("gateway") == ExitCode.OK


def test_a_drain_is_obeyed_while_the_model_is_still_being_loaded(room: BusHarness, listener: Listener) -> None:
    start(room, listener)
    assert room.drain("gateway") == ExitCode.OK  # it sends a message first, and loads then


def test_a_reload_is_followed_without_a_restart(room: BusHarness, listener: Listener) -> None:
    start(room, listener)
    wait_ready(room)
    named = {"Host": "memory.home"}
    assert listener.get("/health/live", named)[0] == 421
    config = gateway_config(allowed_hosts=("memory.home",))
    room.send("gateway", Reload(msgspec.json.encode(config).decode()))
    eventually(lambda: listener.get("/health/live", named)[0] == 200)


def test_a_reload_while_the_model_loads_takes_effect_before_the_first_request(
    room: BusHarness, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = threading.Event()
    monkeypatch.setattr(gateway_actor, "make_embedder", lambda _: told.wait(60) and None)
    boot = msgspec.structs.replace(room.gateway_boot(), listen_fds=(os.dup(listener.socket.fileno()),))
    config = gateway_config(allowed_hosts=("memory.home",))

    async def test() -> None:
        gateway = Gateway(boot, SystemClock(), structlog.get_logger(), random.Random(1))
        running = asyncio.create_task(gateway.run())
        await soon(lambda: room.has_spoken("gateway"))
        room.send("gateway", Reload(msgspec.json.encode(config).decode()))
        await soon(lambda: gateway.bus.config == config)
        told.set()
        await soon(lambda: room.heard("gateway", Ready))
        assert gateway.state is not None
        assert gateway.state.config == config
        room.send("gateway", Drain(1000))
        assert await running == ExitCode.OK

    asyncio.run(test())


def test_a_reload_keeps_the_old_provider_if_the_new_one_cannot_be_loaded_and_applies_the_rest(
    room: BusHarness, listener: Listener
) -> None:
    start(room, listener)
    wait_ready(room)
    embedding = msgspec.structs.replace(CONFIG.embedding, model="nonsense")
    config = msgspec.structs.replace(gateway_config(allowed_hosts=("memory.home",)), embedding=embedding)
    room.send("gateway", Reload(msgspec.json.encode(config).decode()))
    eventually(lambda: listener.get("/health/live", {"Host": "memory.home"})[0] == 200)
    eventually(lambda: any(line["event"] == "embedding_not_changed" for line in log_lines(room.workspace)))
    assert listener.get("/health/live")[0] == 200


def test_the_gateway_notices_a_silent_supervisor_and_its_return(room: BusHarness, listener: Listener) -> None:
    start(room, listener)
    wait_ready(room)
    room.states = {
        name: ChildState(name, role, "up", 1, 0, 1)
        for name, role in (("writer", "writer"), ("searcher-1", "searcher"), ("gateway", "gateway"))
    }

    def told(status: int) -> bool:
        room.announce_tree()
        return listener.get("/health/ready")[0] == status

    eventually(lambda: told(200), what="ready while the supervisor speaks")
    eventually(lambda: listener.get("/health/ready")[0] == 503, what="not ready while it is silent")
    health = listener.get("/health")[1]
    assert health["status"] == "degraded"
    assert "supervisor" in str(health["detail"])
    assert listener.get("/health/ready")[1]["notUp"] == ["supervisor"]
    eventually(lambda: told(200), what="ready again")


@pytest.mark.system
def test_the_daemon_survives_a_gateway_crash_during_a_reload_and_a_hung_supervisor() -> None:
    with live_daemon(config=FEW) as daemon:
        before = daemon.api.get("/api/status").ok()
        daemon.kill("gateway")
        eventually(
            lambda: any(
                line["event"] == "spawned" and line.get("child") == "gateway" and line["child_incarnation"] == 2
                for line in daemon.log()
            ),
            what="spawned again",
        )
        daemon.configure(FEW + "memory:\n  pipelineV2:\n    mutationsFrozen: true\n")
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGHUP)
        eventually(lambda: any(line["event"] == "configuration_reloaded" for line in daemon.log()), what="reloaded")
        daemon.wait_ready()
        eventually(lambda: daemon.api.get("/api/status").ok()["mutationsFrozen"], what="frozen")
        after = daemon.api.get("/api/status").ok()
        assert after["startedAt"] == before["startedAt"]
        assert after["uptime"] >= before["uptime"]
        daemon.process.send_signal(signal.SIGSTOP)
        eventually(lambda: daemon.api.get("/health/ready").status == 503, what="the hung supervisor noticed")
        assert "supervisor" in daemon.api.get("/health").ok()["detail"]
        daemon.process.send_signal(signal.SIGCONT)
        eventually(lambda: daemon.api.get("/health/ready").status == 200, what="and its return")


def test_an_uncaught_exception_is_logged_by_type_without_content() -> None:
    with bus_harness(CONFIG) as room, structlog.testing.capture_logs() as logged:

        async def test() -> None:
            gateway = Gateway(room.gateway_boot(), SystemClock(), structlog.get_logger(), random.Random(1))
            await asyncio.gather(gateway.run(), return_exceptions=True)  # ends at once: it has no listening socket
            context = {
                "message": "Task exception was never retrieved\nfuture: <what somebody stored>",
                "exception": KeyError("what somebody stored"),
            }
            asyncio.get_running_loop().call_exception_handler(context)

        asyncio.run(test())
    (line,) = [line for line in logged if line["event"] == "unhandled_error"]
    assert line["problem"] == "Task exception was never retrieved"
    assert isinstance(line["exc_info"], KeyError), "which the log describes by type and place alone"


def test_the_gateway_sends_heartbeats_from_its_event_loop(room: BusHarness, listener: Listener) -> None:
    start(room, listener)
    wait_ready(room)
    room.said["gateway"].clear()
    eventually(lambda: room.heard("gateway", Heartbeat))


def test_a_signing_key_readable_by_others_is_replaced(room: BusHarness, listener: Listener) -> None:
    secret = Workspace(room.workspace).secret_file
    secret.write_bytes(bytes(32))
    secret.chmod(0o644)
    start(room, listener)
    wait_ready(room)
    assert secret.read_bytes() != bytes(32)
    assert secret.stat().st_mode & 0o777 == 0o600
