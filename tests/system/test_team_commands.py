"""A daemon that needs tokens, and its clients: commands, hooks, the Python client, MCP; with and without a login.

Source: docs/guides/team.md; docs/cli.md "A team"; docs/compatibility.md "Authentication".
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import signet_actors.client as python_client
from signet_actors.hook.drain import drain_for_daemon
from tests.support.bus_harness import REPOSITORY, eventually
from tests.support.live_daemon import LiveDaemon, run_signet, signet
from tests.support.team import Team, team_daemon

pytestmark = pytest.mark.system

START = {"hook_event_name": "SessionStart", "session_id": "s1", "cwd": "/shop", "source": "startup"}
END = {"hook_event_name": "SessionEnd", "session_id": "s1", "cwd": "/shop", "reason": "exit"}
OF_THE_OWNER = (
    *("status", "doctor", "list", "recall tea", "search tea", "sessions", "providers", "pipeline", "pipeline runs"),
    *("review list", "synthesis status", "retention sweep", "backup", "export -", "call auth.whoami", "token list"),
    *("config check", "logs -n 1", "start", "remember Sugar"),
)


class OtherMachine:
    """A user without the workspace of the daemon, which only its URL names."""

    def __init__(self, daemon: LiveDaemon, home: Path) -> None:
        home.mkdir(exist_ok=True)
        self.url = f"http://127.0.0.1:{daemon.port}"
        self.environ = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(REPOSITORY),
            "SIGNET_DAEMON_URL": self.url,
        }
        self.spool = home / ".agents" / "memory" / "spool"

    def run(self, *arguments: str, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "signet_actors.cli", *arguments],
            input=stdin,
            env={**self.environ, **more},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def answer_of_tools(self, *messages: dict[str, Any]) -> str:
        """Return what the program of the memory tools answers to the last message, which has the id 2."""
        command = [sys.executable, "-m", "signet_actors.cli", "mcp", "--agent", "ada"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(command, env=self.environ, cwd="/", text=True, **pipes) as program:  # type: ignore[call-overload]
            for message in messages:
                program.stdin.write(json.dumps(message) + "\n")
            program.stdin.flush()
            answer = next(line for line in program.stdout if json.loads(line).get("id") == 2)
            program.stdin.close()
            assert program.wait(60) == 0
        return str(answer)

    def hook(self, event: dict[str, str], **more: str) -> subprocess.CompletedProcess[str]:
        return self.run("hook", "-H", "claude-code", stdin=json.dumps(event), **more)

    def log_in(self, token: str) -> None:
        done = self.run("login", "--token-stdin", stdin=token)
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def team() -> Iterator[Team]:
    with team_daemon() as found:
        found.owner.remember("I prefer tea")
        yield found


@pytest.mark.parametrize("command", OF_THE_OWNER)
def test_a_command_of_the_user_that_runs_the_daemon_needs_no_token(team: Team, command: str) -> None:
    done = run_signet(team.daemon, *command.split())
    assert done.returncode == 0, (done.stdout, done.stderr)


def test_status_and_start_name_the_mode(team: Team) -> None:
    assert "access: auth.mode is team: " in signet(team.daemon, "status")
    assert "auth.mode is team: " in run_signet(team.daemon, "start").stderr


def test_the_python_client_of_the_owner_needs_no_token(team: Team) -> None:
    with python_client.Client(workspace=team.daemon.workspace, agent="py") as client:
        client.remember("Coffee is in the hall")
        assert client.recall("coffee").results[0].content == "Coffee is in the hall"


def hook_of_owner(daemon: LiveDaemon, event: dict[str, str], **more: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "signet_actors.cli", "hook", "-H", "claude-code"],
        input=json.dumps(event),
        env=daemon.environment(**more),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout


def test_hooks_of_the_owner_need_no_token_and_what_they_kept_is_sent(team: Team) -> None:
    transcript = team.daemon.workspace / "t.jsonl"
    said = [
        {"type": role, "message": {"role": role, "content": f"{role} says {number}"}}
        for number in range(4)
        for role in ("user", "assistant")
    ]
    transcript.write_text("".join(json.dumps(line) + "\n" for line in said))
    shown = json.loads(hook_of_owner(team.daemon, {**START, "session_id": "o"}))
    assert "I prefer tea" in shown["hookSpecificOutput"]["additionalContext"]
    end = {**END, "session_id": "o", "transcript_path": str(transcript)}
    assert hook_of_owner(team.daemon, end, SIGNET_TOKEN="an.old-one") == ""
    spool = team.daemon.workspace / "memory" / "spool"
    assert len(list(spool.glob("*.json"))) == 1, "the token of the environment was refused"
    hook_of_owner(team.daemon, {**START, "session_id": "p"})
    eventually(lambda: not list(spool.glob("*.json")), what="the kept report is sent")
    assert "o" in str(team.owner.get("/api/sessions/o/transcript").ok())


def test_a_report_that_a_token_may_not_make_is_not_made_by_the_daemon_for_it(team: Team) -> None:
    said = [{"type": "user", "message": {"role": "user", "content": "A secret plan"}}]
    said += [{"type": "assistant", "message": {"role": "assistant", "content": "Understood"}}]
    transcript = team.daemon.workspace / "r.jsonl"
    transcript.write_text("".join(json.dumps(line) + "\n" for line in said))
    end = {**END, "session_id": "r", "transcript_path": str(transcript)}
    url = f"http://localhost:{team.daemon.port}"
    hook_of_owner(team.daemon, end, SIGNET_DAEMON_URL=url, SIGNET_TOKEN=team.issue("readonly")["token"])
    (waiting,) = (team.daemon.workspace / "memory" / "spool").glob("*.json")
    drain_for_daemon(str(team.daemon.workspace), {})
    team.owner.get("/api/sessions/r/transcript").refused(404)
    (waiting,) = (team.daemon.workspace / "memory" / "spool").glob("*.json")  # renamed: it was tried
    waiting.rename(waiting.with_name("0-1.json"))
    drain_for_daemon(str(team.daemon.workspace), {"SIGNET_TOKEN": team.issue("agent")["token"]})
    assert "A secret plan" in str(team.owner.get("/api/sessions/r/transcript").ok())


def test_the_hooks_of_a_token_that_may_only_recall_store_nothing_of_its_prompts() -> None:
    often = "memory: {pipelineV2: {enabled: false, continuity: {promptInterval: 1}}}\n"
    with team_daemon(more=often) as team:
        memory = team.owner.remember("The staging database listens on port 5433")["id"]
        for session, role in (("r", "readonly"), ("a", "agent")):
            prompt = {"harness": "claude-code", "sessionKey": session}
            client = team.bearer(role)
            answer = client.post("/api/hooks/user-prompt-submit", {**prompt, "userMessage": "Where is staging?"}).ok()
            assert memory[:18] in answer["inject"]
            rated = {**prompt, "userMessage": "Thanks, and now?", "memory_feedback": {memory: 1}}
            warned = "warnings" in client.post("/api/hooks/user-prompt-submit", rated).ok()
            assert warned == (role == "readonly")

        def stored(session: str) -> int:
            return int(team.owner.get(f"/api/checkpoints/{session}").ok()["count"])

        def feedback(session: str) -> list[object]:
            rows = team.owner.get(f"/api/sessions/{session}/memories").ok()["memories"]
            return [row["feedback"] for row in rows]

        eventually(lambda: stored("a") and feedback("a") == [1.0], what="the prompts of the agent are stored")
        assert stored("r") == 0
        team.owner.get("/api/sessions/r/memories").refused(404)


def test_a_login_on_another_machine_serves_commands_hooks_and_programs(team: Team, tmp_path: Path) -> None:
    there = OtherMachine(team.daemon, tmp_path / "ada")
    refused = there.run("list")
    assert (refused.returncode, "`signet login`" in refused.stderr) == (1, True), refused.stderr
    shown = json.loads(there.hook(START).stdout)
    assert "`signet login`" in shown["systemMessage"]
    assert shown["hookSpecificOutput"]["additionalContext"] == "", "nothing for the model"
    issued = team.issue("agent", "Ada", agent="ada")
    there.log_in(issued["token"])
    assert there.run("remember", "Ada likes tea").returncode == 0
    assert "Ada likes tea" in there.run("recall", "what does Ada like").stdout
    assert "Ada likes tea" in there.hook(START).stdout
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "memory_search", "arguments": {}}}
    call["params"]["arguments"] = {"query": "Ada likes"}  # type: ignore[index]
    hello: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
    hello["params"] = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert "Ada likes tea" in there.answer_of_tools(hello, ready, call)
    program = "from signet_actors.client import Client\nprint(Client().recall('Ada likes').results[0].content)"
    done = subprocess.run(
        [sys.executable, "-c", program], env=there.environ, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "Ada likes tea\n"
    assert "accepts the stored token" in there.run("doctor").stdout
    assert signet(team.daemon, "token", "revoke", issued["id"][:8]) == f"Revoked {issued['id']}.\n"
    assert "token revoked" in there.run("list").stderr
    assert f"{there.url} does not accept the stored token" in there.run("doctor").stdout
    assert there.run("logout").returncode == 0


def test_a_connected_program_has_no_token_in_its_settings_and_works_by_the_login(team: Team, tmp_path: Path) -> None:
    there = OtherMachine(team.daemon, tmp_path / "connected")
    (tmp_path / "connected" / ".claude").mkdir()
    token = team.issue("agent")["token"]
    done = there.run("connect", "claude-code", "--yes", SIGNET_TOKEN=token)
    assert done.returncode == 0, done.stderr
    written = [path for path in (tmp_path / "connected").rglob("*") if path.is_file()]
    assert written
    assert not [path for path in written if token.encode() in path.read_bytes()]
    refused = there.run("connect", "claude-code", "--check")
    assert (refused.returncode, "Run `signet login`." in refused.stdout) == (3, True), refused.stdout
    there.log_in(token)
    works = there.run("connect", "claude-code", "--check")
    assert "a memory that was stored just now comes back" in works.stdout
    assert "memory_search finds the same memory" in works.stdout


def test_a_readonly_token_reads_and_is_told_which_role_is_needed(team: Team, tmp_path: Path) -> None:
    there = OtherMachine(team.daemon, tmp_path / "reader")
    token = signet(team.daemon, "token", "create", "--role", "readonly", "--ttl", "12h").strip()
    there.log_in(token)
    for allowed in (("list",), ("recall", "tea"), ("search", "tea")):
        done = there.run(*allowed)
        assert done.returncode == 0, done.stderr
    for refused, role in ((("remember", "x"), "agent, operator or admin"), (("token", "list"), "admin")):
        done = there.run(*refused)
        assert (done.returncode, f"with the role {role}" in done.stderr) == (1, True), done.stderr
    end = there.hook(END)
    assert (end.returncode, end.stdout, end.stderr) == (0, "", "")


def test_a_wrong_token_of_the_environment_wins_and_is_refused(team: Team, tmp_path: Path) -> None:
    there = OtherMachine(team.daemon, tmp_path / "wrong")
    there.log_in(team.issue("agent")["token"])
    done = there.run("list", SIGNET_TOKEN="no.token")
    assert (done.returncode, "or correct SIGNET_TOKEN" in done.stderr) == (1, True), done.stderr


def test_a_replaced_token_and_a_key_serve_in_the_place_of_a_token(team: Team, tmp_path: Path) -> None:
    there = OtherMachine(team.daemon, tmp_path / "keys")
    issued = team.issue("agent")
    replaced = signet(team.daemon, "token", "rotate", issued["id"][:8]).strip()
    key = signet(team.daemon, "token", "key", "nightly import", "--connector", "openclaw").strip()
    for token, code in ((issued["token"], 1), (replaced, 0), (key, 0)):
        assert there.run("login", "--token-stdin", stdin=token).returncode == code
        if code == 0:
            assert there.run("remember", "An import ran").returncode == 0
    (row,) = [line for line in signet(team.daemon, "token", "list").splitlines() if "nightly import" in line]
    signet(team.daemon, "token", "revoke", row.split("\t")[0])
    assert there.run("list").returncode == 1


def test_clients_of_the_owner_go_on_when_the_mode_changes() -> None:
    with team_daemon("local") as team:
        daemon = team.daemon
        team.nobody.remember("I prefer tea")
        refused = run_signet(daemon, "token", "create", "--role", "agent")
        assert (refused.returncode, "`signet config set auth.mode team`" in refused.stderr) == (1, True)
        with python_client.Client(workspace=daemon.workspace) as client:
            assert client.recall("tea").results
            signet(daemon, "config", "set", "auth.mode", "team")
            eventually(lambda: team.nobody.get("/api/memories").status == 401, what="tokens are needed")
            assert client.recall("tea").results
            assert "prefer tea" in signet(daemon, "list")
            assert "prefer tea" in hook_of_owner(daemon, START)
            assert json.loads(signet(daemon, "--json", "doctor"))["ok"] is True
            signet(daemon, "config", "set", "auth.mode", "local")
            eventually(lambda: team.nobody.get("/api/memories").status == 200, what="no token is needed")
            assert client.recall("tea").results
            assert "prefer tea" in signet(daemon, "list")
