"""Other users of the same machine, who can connect to the daemon but are not its owner.

Source: docs/operations.md "Other users of the machine".
"""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from signet_actors.runtime.socket_uids import peer_uid
from tests.support.bus_harness import eventually
from tests.support.live_daemon import Answer, LiveDaemon, live_daemon

pytestmark = pytest.mark.system

NOBODY = 65534
FORGET = "/api/memory/forget"
TOKEN = "x-signet-owner-token"

ASK = """
import http.client, json, os, sys
port, method, target, body = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
"".encode("idna")  # loads what a name needs, which the other user may not be able to read
os.setgroups([]); os.setgid(65534); os.setuid(65534)
connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
connection.request(method, target, body or None, {"Content-Type": "application/json"} if body else {})
response = connection.getresponse()
print(json.dumps([response.status, response.read().decode()]))
"""
"""What a program of another user does."""

SEND = """
import os, socket, struct, sys
port, how, request = int(sys.argv[1]), sys.argv[2], sys.argv[3].encode()
"".encode("idna")  # loads what a name needs, which the other user may not be able to read
os.setgroups([]); os.setgid(65534); os.setuid(65534)
client = socket.create_connection(("127.0.0.1", port))
if how == "reset":
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
client.sendall(request)
client.close()
"""
"""The same without waiting for an answer."""

OWNERS = [
    ("POST", FORGET, {"mode": "execute", "reason": "r", "tags": "kept"}),
    ("POST", FORGET, {"mode": "preview", "tags": "kept"}),
    ("POST", "/api/config", {"file": "SOUL.md", "content": "planted"}),
    ("GET", "/api/config", None),
    ("POST", "/api/repair/backup", {}),
    ("GET", "/api/repair/backup", None),
    ("POST", "/api/repair/retention-sweep", {}),
    ("POST", "/api/repair/requeue-dead", {}),
    ("POST", "/api/pipeline/requeue", {}),
    ("POST", "/api/pipeline/runs/x/undo", {}),
    ("POST", "/api/memory/review-queue/x/approve", {}),
    ("POST", "/api/memory/review-queue/x/reject", {}),
    ("POST", "/api/memory/modify", {"reason": "r", "patches": [{"id": "x", "importance": 0.1}]}),
    ("POST", "/api/memory/import", {"content": "planted"}),
    ("GET", "/api/memory/export", None),
    ("POST", "/api/memory/codex-native-note", {"content": "planted"}),
]


@pytest.fixture(scope="module")
def own() -> Iterator[LiveDaemon]:
    with live_daemon() as daemon:
        yield daemon


@pytest.fixture(scope="module")
def strict() -> Iterator[LiveDaemon]:
    with live_daemon(config="gateway: {requireOwner: true}\n") as daemon:
        yield daemon


def run(script: str, daemon: LiveDaemon, *arguments: str) -> str:
    command = [sys.executable, "-I", "-c", script, str(daemon.port), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def as_nobody(daemon: LiveDaemon, method: str, target: str, body: Any = None) -> Answer:
    text = "" if body is None else json.dumps(body)
    status, answered = json.loads(run(ASK, daemon, method, target, text))
    return Answer(status, {"content-type": "application/json"}, answered.encode())


def is_root(daemon: LiveDaemon) -> bool:
    """Return whether these tests can act as another user; if not, only whether the owner could be distinguished."""
    if os.geteuid() == 0:
        return True
    with socket.create_connection(("127.0.0.1", daemon.port)) as connection:
        assert peer_uid(connection.getsockname(), connection.getpeername()) == os.geteuid()
    return False


@pytest.mark.parametrize(("method", "target", "body"), OWNERS)
def test_another_user_may_not_change_the_configuration_back_up_or_forget_in_bulk(
    own: LiveDaemon, method: str, target: str, body: Any
) -> None:
    if not is_root(own):
        return
    kept = own.api.remember("Kept from other users", tags=["kept"])["id"]
    refused = as_nobody(own, method, target, body).refused(403, code="forbidden")
    assert f"(uid {NOBODY})" in refused["error"]
    assert own.api.memory(kept)["version"] == 1
    assert not (own.workspace / "SOUL.md").exists()
    assert own.api.get("/api/repair/backup").ok()["backups"] == []


def test_another_user_s_other_requests_are_answered_as_before(own: LiveDaemon) -> None:
    if not is_root(own):
        return
    stored = as_nobody(own, "POST", "/api/memory/remember", {"content": "By another user"}).ok()
    assert as_nobody(own, "DELETE", f"/api/memory/{stored['id']}?reason=r").ok()["status"] == "deleted"
    assert as_nobody(own, "GET", "/health").status == 200


@pytest.mark.parametrize("how", ["close", "reset"])
def test_another_user_that_disconnects_early_forgets_nothing(own: LiveDaemon, how: str) -> None:
    if not is_root(own):
        return
    kept = own.api.remember("Kept from those who close at once", tags=["hasty"])["id"]
    body = json.dumps({"mode": "execute", "reason": "r", "tags": "hasty"})
    head = f"POST {FORGET} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
    for _ in range(20):
        run(SEND, own, how, head + body)
    assert own.api.memory(kept)["version"] == 1


@pytest.mark.parametrize(("method", "target", "body"), OWNERS)
def test_with_require_owner_these_requests_need_the_token_of_the_workspace(
    strict: LiveDaemon, method: str, target: str, body: Any
) -> None:
    path = strict.workspace / ".daemon" / "owner-token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    token = path.read_text()
    assert len(token) == 64
    refused = strict.api.request(method, target, body).refused(403, code="forbidden")
    assert TOKEN in refused["error"]
    for wrong in ("", "0" * 64, token[:-1], token + "0", token.upper()):
        assert strict.api.request(method, target, body, {TOKEN: wrong}).status == 403, wrong
    assert strict.api.request(method, target, body, {TOKEN: token}).status != 403


def test_with_require_owner_everything_else_needs_no_token(strict: LiveDaemon) -> None:
    stored = strict.api.remember("Needs no token")
    assert strict.api.recalled("token") == [stored["id"]]
    assert strict.api.request("DELETE", f"/api/memory/{stored['id']}?reason=r").ok()["status"] == "deleted"


def test_the_command_line_sends_the_token(strict: LiveDaemon) -> None:
    strict.api.remember("Forgotten on the command line", tags=["cli"])
    for arguments in (("backup",), ("forget", "--tags", "cli", "--yes")):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "signet_actors.cli", *arguments],
            env=strict.environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_a_reload_can_enable_and_disable_the_token(own: LiveDaemon) -> None:
    wish = {"mode": "preview", "tags": "kept"}
    try:
        own.configure("gateway: {requireOwner: true}\n")
        os.kill(own.process.pid if own.process else 0, 1)
        eventually(lambda: own.api.post(FORGET, wish).status == 403, what="a refusal without the token")
        token = (own.workspace / ".daemon" / "owner-token").read_text()
        assert own.api.request("POST", FORGET, wish, {TOKEN: token}).status == 200
    finally:
        own.configure("gateway: {requireOwner: false}\n")
        os.kill(own.process.pid if own.process else 0, 1)
    eventually(lambda: own.api.post(FORGET, wish).status == 200, what="answers without the token")
