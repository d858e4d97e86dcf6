"""The official client of MCP against a real daemon, over HTTP and over ``signet mcp``, with both kinds of handshake.

Source: docs/compatibility.md "MCP"; docs/guides/mcp.md; docs/decisions.md 35, 40, 61.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ListRootsResult, Root
from pydantic import FileUrl

from tests.support.bus_harness import eventually
from tests.support.live_daemon import MARK, LiveDaemon, live_daemon
from tests.support.patient_mcp import PATIENT

pytestmark = pytest.mark.system

AGENTS = "agents:\n  roster:\n    - {name: ada, read_policy: isolated}\n    - {name: bob, read_policy: isolated}\n"
AT_ONCE = 100
WAIT_S = 60
Connect = Callable[[str], contextlib.AbstractAsyncContextManager[Client]]


@pytest.fixture(scope="module")
def served() -> Iterator[LiveDaemon]:
    """A daemon with the agents ada and bob, who read their own memories alone."""
    with live_daemon(config=AGENTS, patient=True) as daemon:
        yield daemon
        assert daemon.faults() == []


@contextlib.asynccontextmanager
async def over_http(daemon: LiveDaemon, agent: str, mode: Any, **headers: str) -> AsyncIterator[Client]:
    given = {"x-signet-agent-id": agent, **{name.replace("_", "-"): value for name, value in headers.items()}}
    async with httpx2.AsyncClient(headers=given, timeout=WAIT_S) as http:
        transport = streamable_http_client(f"http://127.0.0.1:{daemon.port}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


@contextlib.asynccontextmanager
async def over_stdio(
    daemon: LiveDaemon, agent: str, mode: Any, *, cwd: str | None = None, roots: Any = None
) -> AsyncIterator[Client]:
    command = ["-c", PATIENT, "--workspace", str(daemon.workspace), "mcp", "--agent", agent]
    environment = {name: value for name, value in daemon.environment().items() if name != MARK}  # no process of it
    started = StdioServerParameters(command=sys.executable, args=command, env=environment, cwd=cwd)
    async with Client(started, mode=mode, list_roots_callback=roots) as client:
        yield client


@pytest.fixture(params=["http", "stdio"])
def transport(request: pytest.FixtureRequest) -> Any:
    return over_http if request.param == "http" else over_stdio


@pytest.fixture(params=["auto", "legacy"])
def connect(transport: Any, request: pytest.FixtureRequest, served: LiveDaemon) -> Connect:
    """Connects as an agent: with ``server/discover`` of 2026-07-28, and with ``initialize`` of 2025-11-25."""
    return lambda agent: transport(served, agent, request.param)


def run(use: Awaitable[None]) -> None:
    async def within() -> None:
        await asyncio.wait_for(use, WAIT_S * 2)

    asyncio.run(within())


def text_of(result: Any) -> str:
    (content,) = result.content
    text: str = content.text
    return text


async def replied(client: Client, tool: str, **arguments: Any) -> Any:
    """Return the reply to a call that must succeed, which is both text and structure."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    assert json.loads(text_of(result)) == result.structured_content
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Return the text of a call that must fail."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert text_of(result).startswith(f"{tool} failed: ")
    return text_of(result).removeprefix(f"{tool} failed: ")


def test_the_client_learns_name_instructions_and_tools(connect: Connect) -> None:
    async def use() -> None:
        async with connect("ada") as client:
            assert client.server_info.name == "signet"
            assert "memory_search" in client.instructions
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            verbs = ("search", "store", "get", "list", "modify", "forget", "feedback")
            views = {f"knowledge_{view}" for view in ("entities", "tree", "expand")}
            assert set(tools) == {*(f"memory_{verb}" for verb in verbs), "session_search", "session_bypass", *views}
            assert all(tool.description and tool.input_schema["type"] == "object" for tool in tools.values())

    run(use())


def test_a_model_reads_what_is_known_about_a_name(connect: Connect, served: LiveDaemon) -> None:
    said = {"content": "opens at noon", "claimKey": "opening"}
    rule = {"content": "is never left open", "kind": "constraint"}
    structured = {
        "entities": [
            {"source": "Harbour gate", "relationship": "part_of", "target": "Harbour", "sourceType": "system"}
        ],
        "aspects": [{"entity": "Harbour gate", "aspect": "hours", "attributes": [said, rule]}],
    }
    served.agent("ada").remember("About the harbour gate", structured=structured)

    async def use() -> None:
        async with connect("ada") as client:
            (found,) = (await replied(client, "knowledge_entities", q="gate", type="system"))["items"]
            assert (found["entity"]["name"], found["attributeCount"]) == ("Harbour gate", 1)
            tree = await replied(client, "knowledge_tree", entity="harbour gate")
            assert tree["items"][0]["aspect"]["name"] == "hours"
            known = await replied(client, "knowledge_expand", entity_name="harbour gate", aspect_filter="hours")
            assert [each["content"] for each in known["constraints"]] == ["is never left open"]
            assert [each["content"] for each in known["aspects"][0]["attributes"]] == ["opens at noon"]
            assert known["dependencies"] == [{"target": "Harbour", "type": "part_of", "direction": "outgoing"}]
            assert known["memories"][0]["content"] == "About the harbour gate"
            assert "Entity not found" in await refused(client, "knowledge_expand", entity_name="crane")
        async with connect("bob") as client:
            assert (await replied(client, "knowledge_entities")).get("items", []) == []
            await refused(client, "knowledge_tree", entity="harbour gate")

    run(use())


def test_every_tool_does_what_it_says(connect: Connect) -> None:
    async def use() -> None:
        async with connect("ada") as client:
            word = f"zebra{time.monotonic_ns()}"
            stored = await replied(client, "memory_store", content=f"The {word} crosses at noon", tags=["a", "b"])
            again = await replied(client, "memory_store", content=f"The {word} crosses at noon")
            assert (again["id"], again["deduped"]) == (stored["id"], True)
            question = {"query": f"when does the {word} cross?", "limit": 3, "session_key": word}
            found = await replied(client, "memory_search", **question)
            assert found["results"][0]["id"] == stored["id"]
            rated = await replied(client, "memory_feedback", session_key=word, ratings={stored["id"][:18]: 1})
            assert (rated["accepted"], rated["rejected"]) == (1, 0)
            got = await replied(client, "memory_get", id=stored["id"])
            assert (got["content"], got["tags"]) == (f"The {word} crosses at noon", "a,b")
            assert (await replied(client, "memory_get", id=stored["id"][:18]))["id"] == stored["id"]
            listed = await replied(client, "memory_list", limit=1)
            assert [memory["id"] for memory in listed["memories"]] == [stored["id"]]
            changed = await replied(
                client, "memory_modify", id=stored["id"][:18], reason="it moved", content=f"The {word} crosses at one"
            )
            assert changed["status"] == "updated"
            contents = (await client.read_resource(f"signet://memory/{stored['id']}")).contents
            assert [one.text for one in contents] == [f"The {word} crosses at one"]
            prompt = await client.get_prompt("recall", {"question": f"when does the {word} cross?"})
            assert f"The {word} crosses at one" in prompt.messages[0].content.text
            assert (await replied(client, "memory_forget", id=stored["id"][:18], reason="done"))["status"] == "deleted"
            assert "memory_search and memory_list" in await refused(client, "memory_get", id=stored["id"])

    run(use())


def test_earlier_sessions_are_searched_and_memory_is_switched_off_for_one(connect: Connect, served: LiveDaemon) -> None:
    async def use() -> None:
        async with connect("ada") as client, connect("bob") as other:
            word = f"otter{time.monotonic_ns()}"
            session = {"harness": "generic", "sessionKey": f"s-{word}"}
            talk = (("user", f"Where does the {word} sleep?"), ("assistant", "Under the jetty."))
            before = "2026-11-20T09:00:00.000Z"  # the session was off
            transcript = [{"role": role, "content": text, "timestamp": before} for role, text in talk]
            served.agent("ada").post("/api/hooks/session-start", session).ok()
            checkpoint = {**session, "context": f"The {word} was counted."}
            assert served.agent("ada").post("/api/checkpoints", checkpoint).ok()["stored"]
            (digest,) = (await client.read_resource(f"signet://session/s-{word}")).contents
            assert f"The {word} was counted." in digest.text
            for reader, key in ((client, "s-unknown"), (other, f"s-{word}"), (client, "a%2Fb")):
                with pytest.raises(MCPError):
                    await reader.read_resource(f"signet://session/{key}")
            for enabled in (True, False):
                reply = await replied(client, "session_bypass", session_key=f"s-{word}", enabled=enabled)
                assert reply["bypassed"] is enabled
            served.agent("ada").post("/api/hooks/session-end", {**session, "transcript": transcript}).ok()
            found = await replied(client, "session_search", query=word)
            assert [hit["sessionKey"] for hit in found["hits"]] == [f"s-{word}"]
            assert (await replied(client, "session_search", query=word, current_session_key=f"s-{word}"))["hits"] == []
            assert (await replied(other, "session_search", query=word))["hits"] == []
            served.agent("ada").remember(f"The {word} is shy", sourceId=f"s-{word}")
            expanded = await replied(client, "memory_search", query=f"is the {word} shy?", expand=True)
            assert "Under the jetty." in expanded["sources"][f"s-{word}"]
            assert await refused(client, "session_bypass", session_key="s-unknown", enabled=True) == "Session not found"

    run(use())


def test_errors_say_what_is_wrong(connect: Connect) -> None:
    async def use() -> None:
        async with connect("ada") as client:
            assert await refused(client, "memory_store", content="  ") == "content is required"
            assert await refused(client, "memory_search") == "query is required"
            assert await refused(client, "memory_modify", id="x") == "reason is required"
            assert "importance" in await refused(client, "memory_store", content="x", importance="much")
            assert (await refused(client, "memory_forget", id="nothing", reason="r")).startswith("Not found")
            for id_ in ("review-queue", "jobs/1", ".."):
                assert (await refused(client, "memory_get", id=id_)).startswith(f"id cannot be '{id_}'. The results of")
            pinned = await replied(client, "memory_store", content="always wash your hands", pinned=True)
            assert "--force" in await refused(client, "memory_forget", id=pinned["id"], reason="r")
            assert "--unpin" in await refused(client, "memory_modify", id=pinned["id"], pinned=False, reason="r")
            for call in (client.call_tool("memory_burn", {}), client.read_resource("signet://memory/nothing")):
                with pytest.raises(MCPError):
                    await call

    run(use())


def test_another_agents_memories_are_not_readable(connect: Connect, served: LiveDaemon) -> None:
    async def use() -> None:
        async with connect("ada") as ada, connect("bob") as bob:
            text = f"Ada keeps the key of the heron house {time.monotonic_ns()}"
            secret = (await replied(ada, "memory_store", content=text))["id"]
            for tool in ("memory_search", "memory_list"):
                reply = await replied(bob, tool, **({"query": text} if tool == "memory_search" else {}), agent_id="ada")
                assert "heron house" not in json.dumps({**reply, "query": ""})
                assert reply["warnings"] == ["unknown argument: agent_id"]
            for tool in ("memory_get", "memory_modify", "memory_forget"):
                more = {} if tool == "memory_get" else {"reason": "r"}
                more |= {"content": "gone"} if tool == "memory_modify" else {}
                assert (await refused(bob, tool, id=secret, **more)).lower().startswith("not found")
            with pytest.raises(MCPError):
                await bob.read_resource(f"signet://memory/{secret}")
            assert (await replied(ada, "memory_get", id=secret))["content"] == text

    run(use())


def test_a_hundred_calls_at_once_are_all_answered(connect: Connect) -> None:
    async def use() -> None:
        async with connect("ada") as client:
            mark = time.monotonic_ns()
            texts = [f"Parcel {number} of shelf {mark}" for number in range(AT_ONCE)]
            stored = await asyncio.gather(*(replied(client, "memory_store", content=text) for text in texts))
            read = await asyncio.gather(*(replied(client, "memory_get", id=one["id"]) for one in stored))
            assert [one["content"] for one in read] == texts

    run(use())


def test_a_cancelled_call_leaves_the_connection_usable(connect: Connect, served: LiveDaemon) -> None:
    async def use() -> None:
        async with connect("ada") as client:
            calls = [asyncio.create_task(client.call_tool("memory_search", {"query": "x"})) for _ in range(20)]
            await asyncio.sleep(0)
            for call in calls[::2]:
                call.cancel()
            ended = await asyncio.gather(*calls, return_exceptions=True)
            assert all(isinstance(one, asyncio.CancelledError) for one in ended[::2])
            assert not any(one.is_error for one in ended[1::2])
            await replied(client, "memory_list", limit=1)

    run(use())


def test_a_model_is_recorded_as_an_agent_and_its_harness_as_author(served: LiveDaemon) -> None:
    async def use() -> None:
        headers = {"x_signet_harness": "codex", "x_signet_workspace": "/home/ada/boat"}
        async with over_http(served, "ada", "auto", **headers) as client:
            stored = await replied(client, "memory_store", content="the boat is moored at pier four")
            everywhere = await replied(client, "memory_store", content="tides are told in meters", project="")
        assert served.agent("ada").memory(everywhere["id"])["project"] is None
        memory = served.agent("ada").memory(stored["id"])
        assert (memory["project"], memory["who"]) == ("/home/ada/boat", "codex")
        (event,) = served.agent("ada").get(f"/api/memory/{stored['id']}/history").ok()["history"]
        assert (event["changedBy"], event["actorType"]) == ("codex", "agent")

    run(use())


def test_a_memory_belongs_to_the_folder_of_the_client_or_to_the_project_of_its_session(served: LiveDaemon) -> None:
    ada = served.agent("ada")
    for key, cwd in (("s-in-the-dock", "/srv/dock"), ("s-nowhere", "/")):
        ada.post("/api/hooks/session-start", {"harness": "cursor", "sessionKey": key, "project": cwd}).ok()

    async def shows_yard(_: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl("file:///srv/yard")), Root(uri=FileUrl("file:///srv/b"))])

    clients = {
        "over HTTP": lambda: over_http(served, "ada", "auto"),
        "over HTTP by a header": lambda: over_http(served, "ada", "auto", x_signet_session_key="s-in-the-dock"),
        "from the root": lambda: over_stdio(served, "ada", "auto", cwd="/"),
        "from the root with folders": lambda: over_stdio(served, "ada", "legacy", cwd="/", roots=shows_yard),
        "from a project": lambda: over_stdio(served, "ada", "legacy", cwd=str(served.workspace), roots=shows_yard),
    }
    sessions = (("s-in-the-dock", None), ("s-nowhere", None), (None, None), ("s-in-the-dock", ""))
    expected = {
        "over HTTP": ["/srv/dock", None, None, None],
        "over HTTP by a header": ["/srv/dock", None, "/srv/dock", None],
        "from the root": ["/srv/dock", None, None, None],
        "from the root with folders": ["/srv/yard", "/srv/yard", "/srv/yard", None],
        "from a project": [*[os.path.realpath(served.workspace)] * 3, None],
    }

    async def use() -> None:
        found = {}
        for name, connected in clients.items():
            async with connected() as client:
                projects = []
                for number, (session, project) in enumerate(sessions):
                    said = {"session_key": session, "project": project}
                    text = f"Crane {number} is greased on Mondays, they said {name}"
                    stored = await replied(client, "memory_store", content=text, **said)
                    projects.append(ada.memory(stored["id"])["project"])
                found[name] = projects
        assert found == expected

    run(use())


def test_the_session_of_a_search_is_its_argument_whatever_a_header_says(served: LiveDaemon) -> None:
    """A harness configures its headers once, and an agent has many sessions."""

    async def use() -> None:
        async with over_http(served, "ada", "auto", x_signet_session_key="of-the-harness") as client:
            word = f"heron{time.monotonic_ns()}"
            await replied(client, "memory_store", content=f"The {word} nests in the reeds")
            found = []
            for session in ("first", "first", "second"):
                reply = await replied(
                    client, "memory_search", query=f"where does the {word} nest?", session_key=session
                )
                found.append(any(word in row["content"] for row in reply["results"]))
            assert found == [True, False, True]

    run(use())


NEAR = tuple(
    f"The {what} of the harbour office is {colour}"
    for what, colour in zip(
        ("door", "roof", "stairs", "gate", "fence", "lamp", "flag", "desk", "clock", "carpet", "kettle", "sink"),
        ("red", "blue", "oak", "rusty", "white", "broken", "torn", "new", "slow", "grey", "loud", "cold"),
        strict=True,
    )
)


def test_a_search_returns_what_answers_alone_and_says_what_the_session_has_already(served: LiveDaemon) -> None:
    question = "when does the harbour office close on Sundays?"

    async def use() -> None:
        async with over_http(served, "bob", "auto") as client:
            for text in NEAR:
                await replied(client, "memory_store", content=text)
            nearest = await replied(client, "memory_search", query="who is the dentist of the llamas in the harbour?")
            assert 1 <= len(nearest["results"]) <= 3
            assert all(row["relevance"] < 0.5 for row in nearest["results"])
            assert "nothing has a relevance of 0.5" in nearest["warnings"][0]
            talk = f"User: {question}\nAssistant: At noon, as ever."
            session = {"harness": "x", "sessionKey": "tides", "transcript": talk, "cwd": "/home/bob/tug"}
            served.agent("bob").post("/api/hooks/session-end", session).ok()
            (turn,) = (await replied(client, "memory_search", query=question))["results"]
            assert (turn["type"], turn["session_key"], turn["project"]) == ("session_turn", "tides", "/home/bob/tug")
            assert "session_search" in await refused(client, "memory_get", id=turn["id"])
            below = await replied(client, "memory_search", query=question, min_relevance=0)
            assert len(below["results"]) == 10
            assert below["results"][0] == turn
            stored = await replied(client, "memory_store", content="On Sundays the harbour office closes at noon")
            found = await replied(client, "memory_search", query=question, session_key="s-of-bob")
            given = [row["id"] for row in found["results"]]
            assert (given[0], given[-1]) == (stored["id"], turn["id"])
            assert all(row["relevance"] >= 0.5 for row in found["results"])
            assert "warnings" not in found
            again = await replied(client, "memory_search", query=question, session_key="s-of-bob")
            assert [row["id"] for row in again["results"]] == [turn["id"]]
            count = len(given) - 1
            assert again["warnings"] == [f"{count} left out, this session has {'it' if count == 1 else 'them'}"]

    run(use())


def test_a_page_of_another_site_reaches_no_tool(served: LiveDaemon) -> None:
    call = {"name": "memory_store", "arguments": {"content": "planted by a web page"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    accept = {"Accept": "application/json, text/event-stream"}
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example"}):
        answer = served.api.request("POST", "/mcp", message, {**accept, **headers})
        assert answer.status in {403, 421}, headers
    assert "planted" not in str(served.api.listed())


def test_a_secret_that_a_model_stores_is_redacted(served: LiveDaemon) -> None:
    token = "gh" + "p_" + "aB3dE5fG7h" * 3 + "J9kL2m"

    async def use() -> None:
        async with over_http(served, "ada", "auto") as client:
            stored = await replied(client, "memory_store", content=f"the deploy token is {token}")
            assert stored["redacted"] is True
            assert token not in json.dumps(stored)
            assert "[REDACTED:" in (await replied(client, "memory_get", id=stored["id"]))["content"]

    run(use())


def test_over_stdio_a_daemon_that_stops_and_starts_again_is_found_again() -> None:
    async def use(daemon: LiveDaemon) -> None:
        async with over_stdio(daemon, "default", "auto") as client:
            stored = await replied(client, "memory_store", content="the lighthouse is white")
            assert daemon.stop() == 0
            said = await refused(client, "memory_get", id=stored["id"])
            assert said == f"no daemon runs on {daemon.workspace}. Start it with `signet start`."
            daemon.start()
            assert (await replied(client, "memory_get", id=stored["id"]))["content"] == "the lighthouse is white"

    with live_daemon() as daemon:
        run(use(daemon))


def test_the_gateway_loads_the_sdk_with_the_first_message_only() -> None:
    def loaded(daemon: LiveDaemon) -> bool:
        pid = daemon.children()["gateway"]
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            return "pydantic_core" in maps.read()

    async def use(daemon: LiveDaemon) -> None:
        async with over_http(daemon, "default", "auto") as client:
            await client.list_tools()

    with live_daemon() as daemon:
        daemon.api.recall("anything")
        assert not loaded(daemon)
        run(use(daemon))
        eventually(lambda: loaded(daemon), what="the import of the SDK")
