"""The daemon's other ways in: a Unix socket for its own user, and TLS for other machines."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import pty
import socket
import ssl
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from signet_actors.client import AsyncClient
from signet_actors.client import Client as PythonClient
from signet_actors.config.daemon_address import recorded_address
from signet_actors.config.load import load_config
from signet_actors.hook import daemon as hook_daemon
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon, run_signet, signet
from tests.support.team import Team

pytestmark = pytest.mark.system

OPS = Path(__file__).parents[2] / "ops"
CERTIFICATE = (
    "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
)


def address(daemon: LiveDaemon) -> dict[str, Any]:
    note: dict[str, Any] = json.loads((daemon.workspace / ".daemon" / "address").read_text())
    return note


class OverUnixSocket(http.client.HTTPConnection):
    """A connection to the socket that the address file names."""

    def __init__(self, daemon: LiveDaemon) -> None:
        super().__init__("localhost", timeout=30)
        self.path = address(daemon)["socket"]

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(self.path)


def ask(connection: http.client.HTTPConnection, target: str, **headers: str) -> tuple[int, Any]:
    """Return status and body; the connection is closed, and opens again with the next request."""
    with contextlib.closing(connection):
        connection.request("GET", target, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def is_served(connect: Callable[[], http.client.HTTPConnection]) -> bool:
    with contextlib.suppress(OSError, ValueError):  # also SSLError, and an address file that is not there yet
        return ask(connect(), "/health/ready")[0] == 200
    return False


def make_certificate(root: Path) -> None:
    command = [*CERTIFICATE.split(), "-keyout", str(root / "key.pem"), "-out", str(root / "cert.pem")]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


@pytest.fixture
def with_tls(tmp_path: Path) -> Iterator[LiveDaemon]:
    make_certificate(tmp_path)
    files = f"tlsCertificate: {tmp_path}/cert.pem, tlsKey: {tmp_path}/key.pem"
    with live_daemon(config=f"auth: {{mode: team}}\ngateway: {{{files}}}\n", started=False) as daemon:
        daemon.launch()
        eventually(lambda: is_served(lambda: OverUnixSocket(daemon)))
        yield daemon


def over_tls(daemon: LiveDaemon, root: Path) -> http.client.HTTPSConnection:
    trusted = ssl.create_default_context(cafile=root / "cert.pem")
    return http.client.HTTPSConnection("127.0.0.1", address(daemon)["port"], context=trusted, timeout=30)


def test_the_unix_socket_serves_its_user_like_the_port() -> None:
    with live_daemon() as daemon:
        connection = OverUnixSocket(daemon)
        memory = daemon.api.remember("Said over the port")
        assert ask(connection, f"/api/memory/{memory['id']}")[1]["content"] == "Said over the port"
        assert ask(connection, "/api/config")[0] == 200
        assert ask(connection, "/api/memories", Host="evil.example")[0] == 421
        assert ask(connection, "/api/memories", Origin="http://evil.example")[0] == 403
        path = Path(connection.path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        daemon.kill("gateway")
        daemon.wait_ready()
        assert ask(OverUnixSocket(daemon), "/health")[0] == 200
    assert not path.exists()


def test_the_port_speaks_tls_and_nothing_else(with_tls: LiveDaemon, tmp_path: Path) -> None:
    owner = {"x_signet_owner_token": (with_tls.workspace / ".daemon" / "owner-token").read_text()}
    connection, port = over_tls(with_tls, tmp_path), address(with_tls)["port"]
    assert ask(connection, "/health")[0] == 200
    assert ask(connection, "/api/memories")[0] == 401
    assert ask(connection, "/api/memories", **owner)[0] == 200
    assert ask(OverUnixSocket(with_tls), "/api/memories", **owner)[0] == 200
    with pytest.raises((http.client.HTTPException, OSError)):
        ask(http.client.HTTPConnection("127.0.0.1", port, timeout=30), "/health")
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(http.client.HTTPSConnection("127.0.0.1", port, timeout=30), "/health")


def known_sockets(daemon: LiveDaemon) -> list[str]:
    """Return the Unix socket that commands use, and that which hooks use; empty for none."""
    places = recorded_address(daemon.workspace), hook_daemon.recorded_address(str(daemon.workspace))
    return [place.socket for place in places if place is not None]


def test_commands_and_hooks_use_the_socket_and_do_without_a_removed_one() -> None:
    with live_daemon() as daemon:
        found = recorded_address(daemon.workspace)
        assert found is not None
        assert (found.secure, found.socket) == (False, address(daemon)["socket"])
        assert hook_daemon.recorded_address(str(daemon.workspace)).socket == found.socket
        signet(daemon, "remember", "Over the socket")
        if os.geteuid() == 0:
            os.chown(found.socket, 65534, 65534)  # as if another user had made it anew in /tmp
            assert known_sockets(daemon) == ["", ""]
        Path(found.socket).unlink()
        assert known_sockets(daemon) == ["", ""]
        assert "Over the socket" in signet(daemon, "recall", "socket")


def test_a_renewed_certificate_is_used_without_a_restart(with_tls: LiveDaemon, tmp_path: Path) -> None:
    assert ask(over_tls(with_tls, tmp_path), "/health")[0] == 200
    (tmp_path / "cert.pem").write_text("half a certificate")  # as it may be while it is being replaced
    make_certificate(tmp_path)
    eventually(lambda: is_served(lambda: over_tls(with_tls, tmp_path)))


def test_a_certificate_that_cannot_be_used_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("no certificate")
    files = f"tlsCertificate: {tmp_path}/cert.pem, tlsKey: {tmp_path}/key.pem"
    with live_daemon(config=f"gateway: {{{files}}}\n", started=False) as daemon:
        code, text = daemon.refused_start()
    assert code == 78
    assert "gateway.tlsCertificate and tlsKey cannot be used" in text


def test_nobody_is_asked_for_the_password_of_an_encrypted_key(tmp_path: Path) -> None:
    make_certificate(tmp_path)
    encrypt = ["openssl", "pkey", "-in", "key.pem", "-out", "other.pem", "-aes256", "-passout", "pass:secret"]
    subprocess.run(encrypt, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    child, terminal = pty.fork()
    if not child:
        program = "import ssl, sys; from signet_actors.gateway.server.uvicorn_server import Tls, load_certificate\n"
        program += "load_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), Tls(*sys.argv[1:]))"
        files = [str(tmp_path / name) for name in ("cert.pem", "other.pem")]
        os.execv(sys.executable, [sys.executable, "-c", program, *files])
    said = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while b"pass phrase" not in said:
            said += os.read(terminal, 4096)
    os.close(terminal)  # ends a program that still asks
    os.waitpid(child, 0)
    assert b"SSLError" in said


def test_the_files_for_compose_fit_together(tmp_path: Path) -> None:
    compose = yaml.safe_load((OPS / "team" / "compose.yaml").read_text())
    text = (OPS / "team" / "agent.yaml").read_text()
    (tmp_path / "agent.yaml").write_text(text)
    config = load_config(tmp_path, {}).config
    addresses = {name: one["networks"]["inside"]["ipv4_address"] for name, one in compose["services"].items()}
    assert config.gateway.trusted_proxies == (addresses["caddy"],)
    assert f"reverse_proxy {addresses['signet']}:{config.gateway.port}" in (OPS / "team" / "Caddyfile").read_text()
    with live_daemon(config=text.replace("172.30.60.2", "127.0.0.1").replace("0.0.0.0", "127.0.0.1")) as daemon:
        team = Team(daemon)
        passed_on = {"Host": "signet.example.com", "X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https"}
        reader = team.bearer("readonly").acting(**{name.replace("-", "_"): text for name, text in passed_on.items()})
        assert reader.get("/api/memories").status == 200
        assert team.nobody.request("GET", "/api/memories", headers=passed_on).status == 401
        assert reader.acting(Host="evil.example").get("/api/memories").status == 421


def test_commands_hooks_and_programs_of_the_own_user_need_no_certificate(with_tls: LiveDaemon) -> None:
    assert signet(with_tls, "start").startswith(
        f"The daemon already runs: https://127.0.0.1:{address(with_tls)['port']} "
    )
    signet(with_tls, "remember", "I prefer tea")
    event = with_tls.root / "event.json"
    event.write_text('{"hook_event_name": "SessionStart"}')
    with event.open() as given:
        hooked = run_signet(with_tls, "hook", "-H", "claude-code", stdin=given)
    assert "I prefer tea" in hooked.stdout
    with PythonClient(workspace=with_tls.workspace) as client:
        assert [found.content for found in client.recall("tea").results] == ["I prefer tea"]
    assert asyncio.run(recalled(with_tls.workspace)) == ["I prefer tea"]


async def recalled(workspace: Path) -> list[str]:
    async with AsyncClient(workspace=workspace) as client:
        return [found.content for found in (await client.recall("tea")).results]
