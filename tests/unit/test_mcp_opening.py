"""How a client gets to know the MCP server: at once, and with the values that the official SDK answers.

Source: docs/compatibility.md "MCP"; Model Context Protocol, 2026-07-28 and 2025-11-25.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any, Final

import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from signet_actors.mcp.declared import HANDSHAKE_VERSIONS, LATEST, declared_reply
from signet_actors.mcp.http import serve_with
from signet_actors.operations.mcp import without_lone_surrogates
from signet_actors.operations.tools import TOOLS

META: Final = "io.modelcontextprotocol/"
CLIENT: Final = {"name": "test", "version": "1"}
LISTS: Final = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
OPENING: Final = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}


def handshake(version: str | None, method: str, **params: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a request and its headers, as clients of the handshake versions send it."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method}
    if params:
        message["params"] = params
    return message, {} if version is None else {"mcp-protocol-version": version}


def latest(method: str, **more: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a request of the latest version and its headers."""
    meta = {f"{META}protocolVersion": LATEST, f"{META}clientCapabilities": {}, f"{META}clientInfo": CLIENT}
    message = {"jsonrpc": "2.0", "id": "a", "method": method, "params": {"_meta": {**meta, **more}}}
    return message, {"mcp-protocol-version": LATEST, "mcp-method": method}


def answer_of_the_sdk(message: dict[str, Any], headers: dict[str, str]) -> Any:
    """Return what the SDK's server answers to the message over HTTP."""

    async def unused(*_: Any) -> tuple[int, bytes]:
        raise AssertionError("nothing is performed")

    async def ask() -> bytes:
        unread, body = [json.dumps(message).encode()], []
        both = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        named = [(name.encode(), value.encode()) for name, value in (both | headers).items()]

        async def receive() -> Any:
            if not unread:
                await asyncio.Event().wait()
            return {"type": "http.request", "body": unread.pop(), "more_body": False}

        async def send(part: Any) -> None:
            body.append(part.get("body", b""))

        scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": named}
        await serve_with(unused)(scope, receive, send)
        return b"".join(body)

    return json.loads(asyncio.run(ask()))


DECLARED: Final = [
    *(handshake(version, method) for version in (None, *HANDSHAKE_VERSIONS) for method in (*LISTS, "ping")),
    *(handshake(None, "initialize", **{**OPENING, "protocolVersion": version}) for version in HANDSHAKE_VERSIONS),
    handshake(None, "initialize", **{**OPENING, "protocolVersion": "2020-01-01"}),
    handshake(None, "initialize", **{**OPENING, "protocolVersion": LATEST}),
    handshake("2025-11-25", "initialize", **{**OPENING, "capabilities": {"roots": {"listChanged": True}}}),
    handshake(None, "initialize", **{**OPENING, "clientInfo": {**CLIENT, "title": "A client"}}),
    handshake("2025-06-18", "tools/list", _meta={"progressToken": 7}),
    *(latest(method) for method in (*LISTS, "server/discover")),
    latest("tools/list", progressToken="p"),
]


def test_a_client_gets_the_answers_of_the_sdk() -> None:
    assert HANDSHAKE_VERSIONS == HANDSHAKE_PROTOCOL_VERSIONS
    assert (LATEST,) == MODERN_PROTOCOL_VERSIONS
    for message, headers in DECLARED:
        reply = declared_reply(message, headers)
        assert reply == answer_of_the_sdk(message, headers), (message, headers)
        assert json.dumps(reply) == json.dumps(declared_reply(message)), "over stdio the same"
    (tools,) = (declared_reply(message) for message, headers in DECLARED[:1])
    assert tools is not None
    assert [tool["name"] for tool in tools["result"]["tools"]] == list(TOOLS)


@pytest.mark.parametrize(
    ("message", "headers"),
    [
        handshake(None, "tools/call", name="memory_get", arguments={"id": "a"}),
        handshake(None, "server/discover"),
        handshake(None, "tools/lists"),
        handshake("2031-01-01", "tools/list"),
        handshake(LATEST, "tools/list"),
        handshake(None, "tools/list", cursor="c"),
        handshake(None, "tools/list", _meta=[]),
        handshake(None, "initialize"),
        handshake(None, "initialize", **{**OPENING, "protocolVersion": 1}),
        handshake(None, "initialize", **{**OPENING, "capabilities": None}),
        handshake(None, "initialize", **{**OPENING, "capabilities": {"roots": 1}}),
        handshake(None, "initialize", **{**OPENING, "clientInfo": {"name": "test"}}),
        handshake(None, "initialize", **{**OPENING, "clientInfo": "test"}),
        latest("ping"),
        latest("initialize"),
        latest("tools/call"),
        latest("tools/list", **{f"{META}protocolVersion": "2031-01-01"}),
        latest("tools/list", **{f"{META}protocolVersion": None}),
        latest("tools/list", **{f"{META}clientCapabilities": None}),
        latest("tools/list", **{f"{META}clientInfo": {"name": 1}}),
        (latest("tools/list")[0], {"mcp-protocol-version": "2025-11-25", "mcp-method": "tools/list"}),
        (latest("tools/list")[0], {"mcp-protocol-version": LATEST, "mcp-method": "tools/call"}),
        (latest("tools/list")[0], {"mcp-protocol-version": LATEST}),
        (latest("tools/list")[0], {}),
        ({"jsonrpc": "2.0", "method": "tools/list"}, {}),
    ],
)
def test_what_is_unusual_is_left_to_the_sdk(message: dict[str, Any], headers: dict[str, str]) -> None:
    assert declared_reply(message, headers) is None


WITHOUT_SDK = "import sys; sys.modules['mcp_types'] = None; from signet_actors.cli.entry import main; main()"


def stdio_without_sdk(lines: list[Any]) -> list[Any]:
    """Return what `signet mcp` answers where the SDK cannot be imported."""
    command = [sys.executable, "-c", WITHOUT_SDK, "mcp"]
    sent = "".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)
    done = subprocess.run(command, input=sent, capture_output=True, text=True, timeout=120, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_opening_of_a_handshake_needs_no_sdk() -> None:
    opening = [handshake(None, "initialize", **OPENING)[0], {"jsonrpc": "2.0", "method": "notifications/initialized"}]
    asked = [handshake(None, method)[0] for method in (*LISTS, "ping")]
    answered = stdio_without_sdk([*opening, *asked])
    assert answered == [declared_reply(message) for message in (opening[0], *asked)]


def test_the_opening_of_the_latest_version_needs_no_sdk() -> None:
    asked = [latest(method)[0] for method in ("server/discover", *LISTS)]
    assert stdio_without_sdk(asked) == [declared_reply(message) for message in asked]


@pytest.mark.parametrize(
    "line",
    [
        handshake(None, "tools/list")[0],
        handshake(None, "ping")[0],
        {**handshake(None, "initialize", **OPENING)[0], "id": True},
        {**handshake(None, "initialize", **OPENING)[0], "jsonrpc": "1.0"},
        "[" * 100_000 + "\n",
        "7\n",
        "\n",
    ],
    ids=lambda line: json.dumps(line)[:50],
)
def test_what_is_out_of_turn_or_no_request_is_left_to_the_sdk(line: Any) -> None:
    assert stdio_without_sdk([line]) == []


def test_halves_of_surrogate_pairs_become_the_replacement_character() -> None:
    for written, read in {
        r"\ud83d": "�",
        r"\uD83D": "�",
        r"\udE00": "�",
        r"fire \ud83d": "fire �",
        r"\ud83d!": "�!",
        r"\ud83d\ud83d": "��",
        r"\ude00\ud83d": "��",
        r"\ud83d\ud83d\ude00": "�😀",
        r"\ud83d\ude00\ude00": "😀�",
        r"\ud83d\n": "�\n",
        r"\ud83d\\": "�\\",
        r"\ud83d\u0041": "�A",
        r"\\\ud83d": "\\�",
        r"\"\ud83d\"": '"�"',
        r"\udbff": "�",
        r"\udc00": "�",
        r"\udfff": "�",
        r"\ud800x\udc00": "�x�",
        r"日本\ud83d": "日本�",
        r"\u65e5\ud83d\u672c": "日�本",
        # what is whole stays as it is
        r"\ud83d\ude00": "😀",
        r"\uD83D\uDE00": "😀",
        "😀": "😀",
        r"\\ud83d": r"\ud83d",
        r"\\\\ud83d": r"\\ud83d",
        r"\ud7ff": "\ud7ff",
        r"\ue000": "\ue000",
        r"C:\\users\\dan": r"C:\users\dan",
        r"\u00fd": "ý",
    }.items():
        for text in (f'{{"a":"{written}"}}', f'{{"{written}":["{written}"]}}'):
            assert json.loads(without_lone_surrogates(text.encode())) == json.loads(
                text.replace(written, json.dumps(read)[1:-1])
            )
