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
from urllib.parse import unquote

import pytest

from signet_actors.operations.headers import EVENT_STREAM
from signet_actors.operations.registry import OPERATIONS
from signet_actors.operations.request_path import fill_path
from signet_actors.runtime.socket_uids import peer_uid
from tests.support.bus_harness import eventually
from tests.support.harness_home import PROGRAM
from tests.support.live_daemon import Answer, LiveDaemon, live_daemon, signet

pytestmark = pytest.mark.system

NOBODY = 65534
FORGET = "/api/memory/forget"
TOKEN = "x-signet-owner-token"
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

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

ASK_ALL = """
import http.client, json, os, sys
port = int(sys.argv[1])
"".encode("idna")
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for line in sys.stdin:
    method, target, body, headers = json.loads(line)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, target, None if body is None else json.dumps(body), headers)
    response = connection.getresponse()
    print(json.dumps([response.status, response.read().decode("utf-8", "replace")]))
    connection.close()
"""
"""Many requests of another user, a JSON array on each line of standard input; one of status and body for each."""

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
    ("GET", "/api/sessions", None),
    ("GET", "/api/sessions/x", None),
    ("POST", "/api/sessions/x/bypass", {"enabled": True}),
    ("POST", "/api/sessions/x/renew", {}),
]


SECRET = "QUOKKA"
"""In every text of a daemon that only its owner may read, and in no other."""
USERS = f"gateway: {{users: ['{NOBODY}']}}\n"


@pytest.fixture(scope="module")
def own() -> Iterator[LiveDaemon]:
    """A daemon that serves the other user, too."""
    with live_daemon(config=USERS, patient=True) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def strict() -> Iterator[LiveDaemon]:
    with live_daemon(config="gateway: {requireOwner: true}\n", patient=True) as daemon:
        yield daemon


def run(script: str, daemon: LiveDaemon, *arguments: str) -> str:
    command = [sys.executable, "-I", "-c", script, str(daemon.port), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def all_as_nobody(daemon: LiveDaemon, requests: list[tuple[str, str, Any, dict[str, str]]]) -> list[tuple[int, str]]:
    command = [sys.executable, "-I", "-c", ASK_ALL, str(daemon.port)]
    sent = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run(command, input=sent, check=True, capture_output=True, text=True, timeout=300)
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


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


def recalls_as_nobody(daemon: LiveDaemon) -> int:
    """Return the status that the other user gets."""
    return as_nobody(daemon, "POST", "/api/memory/recall", {"query": SECRET}).status


def test_other_users_are_refused_but_for_liveness_and_the_document_unless_the_configuration_names_them() -> None:
    """Source: docs/operations.md "Other users of the machine"; docs/decisions.md 59."""
    with live_daemon() as daemon:
        if not is_root(daemon):
            return
        daemon.api.remember(f"The {SECRET} is fed at noon")
        asked = [(operation, path) for operation in OPERATIONS for path in operation.paths]
        requests: list[tuple[str, str, Any, dict[str, str]]] = []
        for operation, path in asked:
            values = {name: str(value) for name, value in operation.example.items()}
            target = fill_path(path, {"id": "x", "run": "x", "key": "x", **values})
            requests.append((operation.method, target, operation.example if operation.in_body else None, JSON))
        answers = all_as_nobody(daemon, requests)
        for (operation, path), (status, answer) in zip(asked, answers, strict=True):
            assert (status == 403) == (operation.permission is not None), (path, status, answer)
            assert SECRET not in answer
            assert operation.owner_only or status != 403 or "gateway.users" in answer
        assert [memory["content"] for memory in daemon.api.listed()] == [f"The {SECRET} is fed at noon"]
        for users, status in ((f"['{NOBODY}']", 200), ("[]", 403), ("['*']", 200), ("[root]", 403), ("[nobody]", 200)):
            daemon.configure(f"gateway: {{users: {users}}}\n")
            os.kill(daemon.process.pid if daemon.process else 0, 1)
            eventually(lambda expected=status: recalls_as_nobody(daemon) == expected, what=f"{status} with {users}")


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
    assert "planted" not in (own.workspace / "SOUL.md").read_text() if (own.workspace / "SOUL.md").exists() else True
    assert own.api.get("/api/repair/backup").ok()["backups"] == []


def test_requests_of_a_user_that_the_configuration_names_are_answered(own: LiveDaemon) -> None:
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
        signet(strict, *arguments)


def test_a_reload_can_enable_and_disable_the_token(own: LiveDaemon) -> None:
    wish = {"mode": "preview", "tags": "kept"}
    try:
        own.configure(f"gateway: {{requireOwner: true, users: ['{NOBODY}']}}\n")
        os.kill(own.process.pid if own.process else 0, 1)
        eventually(lambda: own.api.post(FORGET, wish).status == 403, what="a refusal without the token")
        token = own.workspace / ".daemon" / "owner-token"
        eventually(
            lambda: token.exists() and own.api.request("POST", FORGET, wish, {TOKEN: token.read_text()}).status == 200,
            what="an answer with the token",
        )
    finally:
        own.configure(USERS)
        os.kill(own.process.pid if own.process else 0, 1)
    eventually(lambda: own.api.post(FORGET, wish).status == 200, what="answers without the token")


PROJECT = "/srv/quiet"
KEYS = ("quokka-one", "agent:alice:quokka-two")
FILES = (
    "AGENTS.md",
    "SOUL.md",
    "IDENTITY.md",
    "USER.md",
    "MEMORY.md",
    "agents/alice/SOUL.md",
    "agents/alice/MEMORY.md",
)
NAMED = ({}, {"x-signet-agent-id": "alice"}, {"x-signet-agent-id": "default"})
START = "/api/hooks/session-start"


@pytest.fixture(scope="module")
def private(own: LiveDaemon) -> Iterator[LiveDaemon]:
    """The daemon with files, prompts, checkpoints and transcripts of two agents, whose sessions go on."""
    for name in FILES:
        path = own.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"- name: {SECRET} of {name}\n")
    for key in KEYS:
        session = {"harness": "h", "sessionKey": key, "project": PROJECT}
        own.api.post(START, session).ok()
        own.api.post("/api/hooks/user-prompt-submit", {**session, "userPrompt": f"rotate the sheet of {SECRET}"}).ok()
        made = own.api.post("/api/checkpoints", {**session, "context": f"{SECRET} merges with Globex"}).ok()
        assert made["stored"]
        kept = own.api.post("/api/hooks/session-checkpoint-extract", {**session, "transcript": f"User: {SECRET} said"})
        assert "skipped" not in kept.ok()
    yield own
    for name in FILES:
        (own.workspace / name).unlink()


def starts() -> list[dict[str, Any]]:
    """Starts of sessions in every form: fresh, and in the name of a session of the owner."""
    return [
        {"harness": "codex", "project": project, "source": source, "sessionKey": key, "runtimePath": path}
        for project in (PROJECT, f"{PROJECT}/", None)
        for source in ("startup", "resume", "compact", "clear", "")
        for key in (*KEYS, f"session:{KEYS[0]}", "fresh", None)
        for path in ("plugin", None)
    ]


def requests_of_others() -> list[tuple[str, str, Any, dict[str, str]]]:
    """Every operation with its example in the name of each session and agent, and what MCP reads of sessions."""
    wishes: list[tuple[str, str, Any]] = [("POST", START, start) for start in starts()]
    for operation in OPERATIONS:
        for key in ("x", *KEYS):
            values = {"key": key, **{name: str(value) for name, value in operation.example.items()}}
            values |= {"key": key} if "{key}" in operation.paths[0] else {}
            fields = {**operation.example, "sessionKey": key, "project": PROJECT}
            for path in operation.paths:
                target = fill_path(path, {"file": "redoc.js", "id": "x", "run": "x", **values})
                target += "?seconds=0" if EVENT_STREAM in operation.media_types else ""
                wishes.append((operation.method, target, fields if operation.in_body else None))
    for name, arguments in (
        ("memory_search", {"query": f"{SECRET} sheet", "session_key": KEYS[0]}),
        ("session_search", {"query": f"{SECRET} sheet"}),
        ("session_bypass", {"session_key": KEYS[0], "enabled": True}),
    ):
        wishes.append(("POST", "/mcp", rpc("tools/call", {"name": name, "arguments": arguments})))
    wishes += [("POST", "/mcp", rpc("resources/read", {"uri": f"signet://session/{key}"})) for key in KEYS]
    wishes.append(
        ("POST", "/mcp", rpc("prompts/get", {"name": "recall", "arguments": {"question": f"{SECRET} sheet"}}))
    )
    wishes += [("POST", "/api/memory/recall", {"query": f"{SECRET} sheet", "expand": True, "limit": 50})]
    wishes += [("GET", f"/api/memory/search?q={SECRET}%20sheet&expand=true", None)]
    return [(method, target, body, {**JSON, **named}) for method, target, body in wishes for named in NAMED]


def rpc(method: str, params: dict[str, Any]) -> dict[str, Any]:
    meta = {"io.modelcontextprotocol/protocolVersion": "2025-11-25"}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}


def test_no_answer_to_another_user_has_words_of_files_prompts_or_sessions_of_the_owner(private: LiveDaemon) -> None:
    if not is_root(private):
        return
    requests = requests_of_others()
    refused = {operation.paths[0] for operation in OPERATIONS if operation.owner_only and "{" not in operation.paths[0]}
    for (method, target, body, named), (status, answer) in zip(requests, all_as_nobody(private, requests), strict=True):
        asked = f"{json.dumps(body)} {unquote(target)}"
        assert status == 403 or target.partition("?")[0] not in refused, target
        assert SECRET not in answer or (SECRET in asked and SECRET not in answer.replace(f"{SECRET} sheet", "")), (
            method,
            target,
            body,
            named,
            answer[:3000],
        )
        assert not any(key in answer for key in KEYS if key not in asked), (
            method,
            target,
            answer,
        )


def test_a_start_of_another_user_says_what_is_left_out_and_the_owner_gets_it(private: LiveDaemon) -> None:
    if not is_root(private):
        return
    body = {"harness": "codex", "project": PROJECT, "sessionKey": "new"}
    answered = as_nobody(private, "POST", START, body).ok()
    assert any("MEMORY.md" in warning and f"uid {NOBODY}" in warning for warning in answered["warnings"])
    own = private.api.post(START, {**body, "agentId": "default"}).ok()
    assert "warnings" not in own
    for said in ("of AGENTS.md", "of MEMORY.md", "of USER.md", "merges with Globex"):
        assert said in own["inject"], said


def test_another_user_neither_claims_nor_ends_nor_switches_off_a_session_of_the_owner(private: LiveDaemon) -> None:
    if not is_root(private):
        return
    private.api.remember("The quay crane is serviced on Fridays")
    session = {"harness": "h", "sessionKey": "held", "project": PROJECT}
    private.api.post(START, {**session, "source": "clear"}).ok()
    for _ in range(2):
        as_nobody(private, "POST", START, {**session, "runtimePath": "plugin", "claimOnly": True})
        as_nobody(private, "POST", START, {**session, "runtimePath": "plugin"})
        as_nobody(private, "POST", "/api/hooks/session-end", {**session, "transcript": "User: hi"}).refused(403)
        as_nobody(private, "POST", "/api/sessions/held/bypass", {"enabled": True}).refused(403)
        as_nobody(private, "POST", "/api/hooks/pre-compaction", {**session, "beginsEpoch": True}).ok()
        asked = {**session, "query": "quay crane serviced", "userPrompt": "when is the quay crane serviced?"}
        as_nobody(private, "POST", "/api/hooks/recall", asked).ok()
        as_nobody(private, "POST", "/api/hooks/user-prompt-submit", asked).ok()
    given = private.api.post("/api/hooks/user-prompt-submit", {**asked, "runtimePath": "legacy"}).ok()
    assert "skipped" not in given
    end = {**session, "runtimePath": "legacy", "transcript": "User: the quay crane\n\nAssistant: on Fridays"}
    assert "skipped" not in private.api.post("/api/hooks/session-end", end).ok()


def test_an_agent_sees_and_switches_off_its_own_sessions_only(private: LiveDaemon) -> None:
    alice, bob = private.agent("alice"), private.agent("bob")
    bob.post(START, {"harness": "h", "sessionKey": "bob-1"}).ok()
    assert [row["key"] for row in bob.get("/api/sessions").ok()["sessions"]] == ["bob-1"]
    for method, end, body in (("GET", "", None), ("POST", "/bypass", {"enabled": True}), ("POST", "/renew", {})):
        for key in KEYS:
            bob.request(method, f"/api/sessions/{key}{end}", body).refused(404)
    called = bob.post(
        "/mcp",
        rpc("tools/call", {"name": "session_bypass", "arguments": {"session_key": KEYS[1], "enabled": True}}),
        Accept="application/json, text/event-stream",
    )
    assert "not found" in called.raw.decode()
    assert {row["key"]: row["bypassed"] for row in private.api.get("/api/sessions").ok()["sessions"]}[KEYS[1]] is False
    assert alice.post(f"/api/sessions/{KEYS[1]}/bypass", {"enabled": True}).ok()["bypassed"]
    assert private.api.post(f"/api/sessions/{KEYS[1]}/bypass", {"enabled": False}).ok()["bypassed"] is False


def test_with_require_owner_a_start_without_the_token_has_nothing_private(strict: LiveDaemon) -> None:
    (strict.workspace / "USER.md").write_text(SECRET)
    body = {"harness": "codex", "project": PROJECT, "sessionKey": "s"}
    assert SECRET not in strict.api.post(START, body).raw.decode()
    token = (strict.workspace / ".daemon" / "owner-token").read_text()
    assert SECRET in strict.api.request("POST", START, body, {TOKEN: token}).ok()["inject"]
    hook = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, "session-start", "-H", "codex"],
        input=json.dumps({"session_id": "t", "cwd": PROJECT}),
        env=strict.environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert SECRET in hook.stdout
