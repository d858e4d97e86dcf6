"""``signet mcp`` with the official client, against a daemon that answers by script.

Source: docs/guides/mcp.md; docs/cli.md "Maintenance".
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from mcp import Client, StdioServerParameters

from signet_actors.cli.mcp import mcp
from signet_actors.errors import InvalidRequest
from signet_actors.operations.tools import TOOLS
from tests.support.bus_harness import REPOSITORY, eventually
from tests.support.scripted_daemon import ScriptedDaemon

MEMORY = {"id": "m 1", "content": "tea", "created_at": "2026-11-23T10:00:00.000Z"}
OPTIONS = {
    "another --project": "/srv/till",
    "no --project": "",
    "this --project": ".",
    "a --project above": "../till",
    "a --project at home": "~/till",
}


def with_client(
    options: list[str],
    use: Callable[[Client], Awaitable[None]],
    *,
    mode: str = "auto",
    more: tuple[str, ...] = (),
    cwd: Path | None = None,
    **environment: str,
) -> None:
    """Let ``use`` talk to ``signet OPTIONS mcp --agent ada --harness codex MORE``, in the directory ``cwd``."""
    command = ["-m", "signet_actors.cli", *options, "mcp", "--agent", "ada", "--harness", "codex", *more]
    variables = {**os.environ, "PYTHONPATH": str(REPOSITORY), **environment}
    started = StdioServerParameters(command=sys.executable, args=command, env=variables, cwd=cwd)

    async def run() -> None:
        async with Client(started, mode=mode) as client:
            await use(client)

    asyncio.run(run())


def test_each_tool_is_a_request_to_the_daemon_by_which_a_model_acts(daemon: ScriptedDaemon) -> None:
    daemon.on("POST", "/api/memory/recall", {"results": [MEMORY], "warnings": ["w"]})
    daemon.on("POST", "/api/memory/remember", {"id": "m1"})
    daemon.on("GET", "/api/memory/m%201", MEMORY)
    daemon.on("GET", "/api/memories", {"memories": []})
    daemon.on("PATCH", "/api/memory/m%201", {"id": "m 1"})
    daemon.on("DELETE", "/api/memory/m%201", {"error": "Version conflict", "code": "conflict"}, status=409)

    async def use(client: Client) -> None:
        found = await client.call_tool("memory_search", {"query": "what to drink", "wrong": 1})
        assert found.structured_content == {"results": [MEMORY], "warnings": ["w", "unknown argument: wrong"]}
        assert json.loads(found.content[0].text) == found.structured_content
        await client.call_tool("memory_store", {"content": "tea", "tags": ["a", "b"]})
        await client.call_tool("memory_get", {"id": "m 1"})
        await client.call_tool("memory_list", {"limit": 3, "tags": ["a", "b"]})
        await client.call_tool("memory_modify", {"id": "m 1", "reason": "r", "content": "mate"})
        refused = await client.call_tool("memory_forget", {"id": "m 1", "reason": "r"})
        assert (refused.is_error, refused.content[0].text) == (True, "memory_forget failed: Version conflict")
        read = await client.read_resource("signet://memory/m%201")
        assert read.contents[0].text == "tea"
        for id_ in ("review-queue", "jobs/1", "../status"):
            refused = await client.call_tool("memory_get", {"id": id_})
            assert refused.content[0].text == (
                f"memory_get failed: id cannot be '{id_}'. "
                "The results of memory_search and memory_list have the ids that exist."
            )
        prompt = await client.get_prompt("recall", {"question": "what to drink"})
        assert prompt.messages[0].content.text.endswith("- tea (2026-11-23, id m 1)")

    with_client(["--url", daemon.url], use)
    asked = [(one.method, one.path, one.query, one.body) for one in daemon.asked]
    origin = {"who": "codex", "project": os.getcwd(), "prefixes": False}
    assert asked == [
        ("POST", "/api/memory/recall", {}, {"query": "what to drink", "answering": True}),
        ("POST", "/api/memory/remember", {}, {**origin, "content": "tea", "tags": ["a", "b"]}),
        ("GET", "/api/memory/m%201", {}, None),
        ("GET", "/api/memories", {"limit": "3", "tags": "a,b"}, None),
        ("PATCH", "/api/memory/m%201", {}, {"reason": "r", "content": "mate"}),
        ("DELETE", "/api/memory/m%201", {}, {"reason": "r"}),
        ("GET", "/api/memory/m%201", {}, None),
        ("POST", "/api/memory/recall", {}, {"query": "what to drink", "min_relevance": 0.5, "answering": True}),
    ]
    for one in daemon.asked:
        headers = [one.headers[f"x-signet-{name}"] for name in ("actor", "actor-type", "agent-id")]
        assert headers == ["codex", "agent", "ada"]
    changes = [one for one in daemon.asked if one.method in {"PATCH", "DELETE"} or one.path.endswith("/remember")]
    assert len({one.headers["idempotency-key"] for one in changes}) == 3


@pytest.mark.parametrize("place", ["project", "a link to it", "home", *OPTIONS])
def test_a_note_belongs_to_the_directory_in_which_the_program_works(
    daemon: ScriptedDaemon, tmp_path: Path, place: str
) -> None:
    daemon.on("POST", "/api/memory/remember", {"id": "m1"})
    shop, link, home = tmp_path / "shop", tmp_path / "link", tmp_path / "home"
    for directory in (shop, home):
        directory.mkdir()
    link.symlink_to(shop)
    more = ("--project", OPTIONS[place]) if place in OPTIONS else ()
    named = {"a link to it": link, "home": home}.get(place, shop)

    async def use(client: Client) -> None:
        for project in ({}, {"project": "shop"}, {"project": ""}):
            await client.call_tool("memory_store", {"content": "tea", **project})

    with_client(["--url", daemon.url], use, more=more, cwd=named, HOME=str(home), PWD=str(named))
    stored = [one.body.get("project") for one in daemon.asked]
    assert (
        stored
        == {
            "project": [str(shop), str(shop), ""],
            "a link to it": [str(link), "shop", ""],
            "home": [None, "shop", ""],
            "another --project": ["/srv/till", "shop", ""],
            "no --project": [None, "shop", ""],
            "this --project": [str(shop), str(shop), ""],
            "a --project above": [str(tmp_path / "till"), "shop", ""],
            "a --project at home": [str(home / "till"), "shop", ""],
        }[place]
    )


def test_a_relative_project_in_a_directory_that_was_removed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    done = CliRunner().invoke(mcp, ["--project", "."], obj=object())
    assert isinstance(done.exception, InvalidRequest)
    assert done.exception.detail == "--project: the current directory cannot be found: No such file or directory"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_without_a_daemon_the_handshake_works_and_a_call_says_what_to_do(tmp_path: Path, mode: str) -> None:
    async def use(client: Client) -> None:
        assert client.server_info.name == "signet"
        assert {tool.name for tool in (await client.list_tools()).tools} == set(TOOLS)
        result = await client.call_tool("memory_search", {"query": "x"})
        assert result.is_error
        said = f"memory_search failed: no daemon runs on {tmp_path}. Start it with `signet start`."
        assert result.content[0].text == said

    (tmp_path / "agent.yaml").write_text("gateway:\n  port: 9\n")  # on the default port a daemon may listen
    with_client(["--workspace", str(tmp_path)], use, mode=mode)
    assert [made.name for made in tmp_path.iterdir()] == ["agent.yaml"]


@pytest.mark.parametrize(("name", "value"), [("SIGNET_NO_HOOKS", "1"), ("SIGNET_BYPASS", "True")])
def test_in_a_session_without_hooks_the_tools_say_that_memory_is_off(
    daemon: ScriptedDaemon, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)

    async def use(client: Client) -> None:
        for tool, arguments in (("memory_search", {"query": "x"}), ("memory_store", {"content": "x"})):
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            assert result.content[0].text.startswith(f"{tool} failed: memory is off in this session")

    with_client(["--url", daemon.url], use)
    assert daemon.asked == []


@pytest.fixture
def server(daemon: ScriptedDaemon) -> Iterator[subprocess.Popen[str]]:
    """``signet mcp``, for single lines."""
    command = [sys.executable, "-m", "signet_actors.cli", "--url", daemon.url, "mcp"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def send(server: subprocess.Popen[str], line: str) -> None:
    assert server.stdin is not None
    server.stdin.write(line + "\n")
    server.stdin.flush()


def answer_to(server: subprocess.Popen[str], line: str) -> Any:
    """Return the next line of the server, which must be the answer to ``line``."""
    send(server, line)
    assert server.stdout is not None
    return json.loads(server.stdout.readline())


def tool_call(number: int, id_: str) -> str:
    params = {"name": "memory_get", "arguments": {"id": id_}}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


@pytest.mark.parametrize("opened", [False, True])
def test_a_line_that_is_no_message_is_answered_with_a_parse_error(
    server: subprocess.Popen[str], *, opened: bool
) -> None:
    """JSON-RPC 2.0: "-32700 Parse error: Invalid JSON was received by the server", with the id null."""
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    if opened:
        assert answer_to(server, ping)["id"] == 1
    for line, text in (
        ("{", "Parse error: Invalid JSON"),
        ("hello", "Parse error: Invalid JSON"),
        ('{"jsonrpc": "2.0"}', "Parse error: Invalid JSON-RPC message"),
        (f"[{ping}]", "Parse error: Invalid JSON-RPC message"),
    ):
        answer = answer_to(server, line)
        assert (answer["id"], answer["error"]) == (None, {"code": -32700, "message": text})
    assert answer_to(server, ping)["id"] == 1


def test_an_interruption_ends_it_while_it_waits_for_a_line(server: subprocess.Popen[str]) -> None:
    answer_to(server, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
    server.send_signal(signal.SIGINT)
    assert server.wait(30) == 130


def test_the_end_of_its_input_ends_it(server: subprocess.Popen[str]) -> None:
    assert server.communicate(timeout=60) == ("", None)
    assert server.returncode == 0


def test_a_cancelled_call_is_not_answered_and_delays_nothing(
    server: subprocess.Popen[str], daemon: ScriptedDaemon
) -> None:
    """MCP, "Cancellation": a receiver should not send a response for the cancelled request."""
    daemon.on("GET", "/api/memory/m1", hang=True)
    daemon.on("GET", "/api/memory/m2", MEMORY)
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    answer_to(server, json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client}))
    send(server, tool_call(1, "m1"))
    eventually(lambda: bool(daemon.asked), within_s=30, what="the request of the first call")
    send(server, json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}))
    assert answer_to(server, tool_call(2, "m2"))["id"] == 2
    assert server.communicate(timeout=20) == ("", None)
    assert server.returncode == 0
