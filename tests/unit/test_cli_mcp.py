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
from itertools import count
from pathlib import Path
from typing import Any, Final, Self

import pytest
from click.testing import CliRunner
from mcp import Client, StdioServerParameters
from mcp_types import ListRootsResult, Root
from pydantic import FileUrl

from signet_actors.cli.mcp import mcp
from signet_actors.errors import InvalidRequest
from signet_actors.operations.tools import TOOLS
from tests.support.bus_harness import REPOSITORY, eventually
from tests.support.patient_mcp import PATIENT
from tests.support.scripted_daemon import ScriptedDaemon

MEMORY = {"id": "m 1", "content": "tea", "created_at": "2026-11-23T10:00:00.000Z"}
GONE: Final = f"import os, tempfile; here = tempfile.mkdtemp(); os.chdir(here); os.rmdir(here); {PATIENT}"
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
    roots: Any = None,
    begin: list[str] | None = None,
    **environment: str,
) -> None:
    """Let ``use`` talk to ``signet OPTIONS mcp --agent ada --harness codex MORE``, in the directory ``cwd``."""
    command = [*(begin or ["-m", "signet_actors.cli"]), *options, "mcp", "--agent", "ada", "--harness", "codex", *more]
    variables = {**os.environ, "PYTHONPATH": str(REPOSITORY), **environment}
    started = StdioServerParameters(command=sys.executable, args=command, env=variables, cwd=cwd)

    async def run() -> None:
        async with Client(started, mode=mode, list_roots_callback=roots) as client:
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
        ("POST", "/api/memory/recall", {}, {"query": "what to drink", "answering": True, "saveAggregate": False}),
        ("POST", "/api/memory/remember", {}, {**origin, "content": "tea", "tags": ["a", "b"]}),
        ("GET", "/api/memory/m%201", {}, None),
        ("GET", "/api/memories", {"limit": "3", "tags": "a,b"}, None),
        ("PATCH", "/api/memory/m%201", {}, {"reason": "r", "content": "mate"}),
        ("DELETE", "/api/memory/m%201", {}, {"reason": "r"}),
        ("GET", "/api/memory/m%201", {}, None),
        (
            "POST",
            "/api/memory/recall",
            {},
            {"query": "what to drink", "min_relevance": 0.5, "answering": True, "saveAggregate": False},
        ),
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
            "no --project": ["", "shop", ""],
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


class Editor:
    """A client that starts ``signet mcp`` in the home directory, as editors do, and has roots.

    ``answers``: what it answers to ``roots/list``, by the number of the question; the last answer repeats. None: no
    answer. ``asked``: the ids of these questions.
    """

    def __init__(
        self,
        daemon: ScriptedDaemon,
        home: Path,
        *answers: Any,
        program: tuple[str, ...] = ("-c", PATIENT),
        more: tuple[str, ...] = (),
        **capabilities: Any,
    ) -> None:
        daemon.on("POST", "/api/memory/remember", {"id": "m1"})
        self.daemon, self.answers, self.asked, self.numbers = daemon, answers, list[Any](), count(1)
        command = [sys.executable, *program, "--url", daemon.url, "mcp", *more]
        variables = {**os.environ, "PYTHONPATH": str(REPOSITORY), "HOME": str(home), "PWD": str(home)}
        self.server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=home, env=variables
        )
        client = {"clientInfo": {"name": "editor", "version": "1"}, "protocolVersion": "2025-06-18"}
        self.request("initialize", {**client, "capabilities": capabilities or {"roots": {"listChanged": True}}})
        self.notify("notifications/initialized")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self.server:
            self.server.kill()

    def notify(self, method: str) -> None:
        send(self.server, json.dumps({"jsonrpc": "2.0", "method": method}))

    def answer(self, id_: Any, answer: Any) -> None:
        send(self.server, json.dumps({"jsonrpc": "2.0", "id": id_, **answer}))

    def begin(self, method: str, params: Any) -> int:
        number = next(self.numbers)
        send(self.server, json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
        return number

    def wait(self, *numbers: int) -> list[Any]:
        """Return the results of these requests, answering what the server asks meanwhile."""
        results: dict[int, Any] = {}
        assert self.server.stdout is not None
        while set(numbers) - set(results):
            message = json.loads(self.server.stdout.readline())
            if "method" not in message:
                results[message["id"]] = message["result"]
                continue
            assert message["method"] == "roots/list"
            answer = self.answers[min(len(self.asked), len(self.answers) - 1)]
            self.asked.append(message["id"])
            if answer is not None:
                self.answer(message["id"], answer)
        return [results[number] for number in numbers]

    def request(self, method: str, params: Any) -> Any:
        return self.wait(self.begin(method, params))[0]

    def store(self, **fields: Any) -> Any:
        """Return the project with which the memory tool stores a memory."""
        before = len(self.daemon.asked)
        result = self.request("tools/call", {"name": "memory_store", "arguments": {"content": "tea", **fields}})
        assert not result.get("isError"), result
        (one,) = self.daemon.asked[before:]
        return one.body.get("project")


def showing(*uris: Any) -> Any:
    return {"result": {"roots": [{"uri": uri} for uri in uris]}}


ROOTS: Final = (
    (showing("file:///srv/shop"), "/srv/shop"),
    (showing("file:///srv/shop", "file:///srv/till"), "/srv/shop"),
    (showing("file:///srv/till", "file:///srv/shop"), "/srv/till"),
    ({"result": {"roots": [{"uri": "file:///srv/shop", "name": "The shop"}], "_meta": {}}}, "/srv/shop"),
    (showing("file://localhost/srv/shop"), "/srv/shop"),
    (showing("FILE:///srv/shop"), "/srv/shop"),
    (showing("file:/srv/shop"), "/srv/shop"),
    (showing("file:///srv/my%20shop"), "/srv/my shop"),
    (showing("file:///srv/my shop"), "/srv/my shop"),
    (showing("file:///srv/l%C3%A4den"), "/srv/läden"),
    (showing("file:///srv/läden"), "/srv/läden"),
    (showing("file:///srv/c%23"), "/srv/c#"),
    (showing("file:///srv/c#"), "/srv/c#"),
    (showing("file:///srv/100%25"), "/srv/100%"),
    (showing("file:///srv/what%3F"), "/srv/what?"),
    (showing("vscode-vfs://github/you/shop", "file:///srv/shop"), "/srv/shop"),
    (showing("https://example.com/shop", "untitled:one", "file:///srv/shop"), "/srv/shop"),
    ({"result": {"roots": [7, None, {}, {"uri": 7}, {"uri": "file:///srv/shop"}]}}, "/srv/shop"),
    (showing("file://{home}/shop"), "{home}/shop"),
    # none of a project
    (showing("file://{home}"), None),
    (showing("file://{home}/"), None),
    (showing("file://{home}/."), None),
    (showing("file:///"), None),
    (showing("file://{home}", "file:///srv/shop"), None),
    (showing("vscode-remote://ssh-remote%2Bhost/srv/shop"), None),
    (showing("file://server/srv/shop"), None),
    (showing("file:////server/srv/shop"), None),
    (showing("/srv/shop"), None),
    (showing("srv/shop"), None),
    (showing("file:"), None),
    (showing(""), None),
    (showing("http://[/srv/shop"), None),
    (showing("file:///srv/shop%0Aforget%20all"), None),
    (showing("file:///srv/shop%00"), None),
    (showing("file:///srv/%FF"), None),
    (showing("file:///srv/" + "x" * 500), None),
    (showing(), None),
    ({"result": {}}, None),
    ({"result": {"roots": None}}, None),
    ({"result": {"roots": {"uri": "file:///srv/shop"}}}, None),
    ({"error": {"code": -32601, "message": "Method not found"}}, None),
)


def test_started_in_the_home_directory_it_takes_the_first_root_of_its_client(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    answers = [json.loads(json.dumps(answer).replace("{home}", str(tmp_path))) for answer, _ in ROOTS]
    wrong = []
    with Editor(daemon, tmp_path, *answers) as editor:
        assert {tool["name"] for tool in editor.request("tools/list", {})["tools"]} == set(TOOLS)
        assert editor.asked == []
        for number, (answer, expected) in enumerate(ROOTS, 1):
            project = editor.store()
            assert editor.store() == project
            assert len(editor.asked) == number, "asked once until they change"
            if project != (expected and expected.replace("{home}", str(tmp_path))):
                wrong.append((answer, project))
            editor.notify("notifications/roots/list_changed")
    assert wrong == []
    assert len(set(editor.asked)) == len(ROOTS)


def test_a_root_is_the_project_that_the_client_works_in_in_every_respect(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    with Editor(daemon, tmp_path, showing("file:///srv/shop")) as editor:
        assert editor.store(project="") == ""
        assert editor.store(project="till") == "till"
        assert editor.store(project="/srv/till") == "/srv/till"
        assert editor.store(project="shop") == "/srv/shop"
        assert editor.store(session_key="s-1") == "/srv/shop"
        both = [editor.begin("tools/call", {"name": "memory_store", "arguments": {"content": "a"}}) for _ in range(2)]
        editor.wait(*both)
        assert [one.body["project"] for one in daemon.asked[-2:]] == ["/srv/shop"] * 2


def test_calls_at_once_wait_for_the_same_answer(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    with Editor(daemon, tmp_path, showing("file:///srv/shop")) as editor:
        call = {"name": "memory_store", "arguments": {"content": "tea"}}
        editor.wait(*[editor.begin("tools/call", call) for _ in range(12)])
        assert [one.body.get("project") for one in daemon.asked] == ["/srv/shop"] * 12
        assert len(editor.asked) == 1


def test_a_client_that_does_not_say_its_roots_within_a_second_has_none_until_it_does(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    with Editor(daemon, tmp_path, None, program=("-m", "signet_actors.cli")) as editor:
        assert [editor.store(), editor.store()] == [None, None]
        editor.answer("another", showing("file:///srv/wrong"))
        assert editor.store() is None
        editor.answer(editor.asked[0], showing("file:///srv/shop"))
        assert editor.store() == "/srv/shop"
        editor.notify("notifications/roots/list_changed")
        assert editor.store() is None
        editor.answer(editor.asked[0], showing("file:///srv/shop"))
        assert editor.store() is None
        editor.answer(editor.asked[1], showing("file:///srv/till"))
        assert editor.store() == "/srv/till"
        assert len(editor.asked) == 2


@pytest.mark.parametrize(
    ("more", "capabilities", "project"),
    [
        ((), {"sampling": {}}, None),
        (("--project", "/srv/till"), {"roots": {}}, "/srv/till"),
        (("--project", ""), {"roots": {}}, ""),
    ],
)
def test_a_client_without_roots_and_one_that_names_the_project_are_not_asked(
    daemon: ScriptedDaemon, tmp_path: Path, more: tuple[str, ...], capabilities: Any, project: str | None
) -> None:
    with Editor(daemon, tmp_path, showing("file:///srv/shop"), more=more, **capabilities) as editor:
        assert editor.store() == project
        assert editor.asked == []


def test_started_in_a_project_it_asks_for_no_roots(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    daemon.on("POST", "/api/memory/remember", {"id": "m1"})

    async def no_roots(*_: Any) -> Any:
        raise AssertionError("it is not asked")

    async def use(client: Client) -> None:
        await client.call_tool("memory_store", {"content": "tea"})

    with_client(["--url", daemon.url], use, mode="legacy", cwd=tmp_path, roots=no_roots)
    assert [one.body["project"] for one in daemon.asked] == [str(tmp_path)]


@pytest.mark.parametrize("started_in", ["home", "/", "a directory that is gone"])
def test_the_official_client_says_its_roots(daemon: ScriptedDaemon, tmp_path: Path, started_in: str) -> None:
    daemon.on("POST", "/api/memory/remember", {"id": "m1"})
    cwd = Path("/") if started_in == "/" else tmp_path

    async def roots(_: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl("file:///srv/my%20shop"))])

    async def use(client: Client) -> None:
        await client.call_tool("memory_store", {"content": "tea"})

    program = ["-c", GONE if "gone" in started_in else PATIENT]
    with_client(
        ["--url", daemon.url], use, mode="legacy", cwd=cwd, roots=roots, begin=program, HOME=str(tmp_path), PWD=str(cwd)
    )
    assert [one.body.get("project") for one in daemon.asked] == ["/srv/my shop"]
