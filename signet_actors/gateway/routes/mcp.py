"""The Model Context Protocol over HTTP. Our server and guard are in front, the official SDK reads the messages.

A tool becomes a request within this one (``Call.perform``), so routing, redaction, principal, agent and idempotency are
those of the operation, with the headers of this request. The SDK is imported by the first message, in a thread.

Source: docs/compatibility.md "MCP"; docs/decisions.md 35, 40, 61; docs/security.md A1-A3.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import msgspec

from signet_actors.errors import SignetError
from signet_actors.gateway.http.request_texts import decode_json
from signet_actors.gateway.http.responses import encode_json
from signet_actors.gateway.http.route import Call, HttpResponse, InnerRequest, Route
from signet_actors.mcp.declared import declared_reply
from signet_actors.operations import mcp as api
from signet_actors.operations.tools import ToolRequest, with_origin, with_times
from signet_actors.runtime.local_zone import LOCAL_ZONE

if TYPE_CHECKING:
    from starlette.types import Message

Serve = Callable[[Any, Any, Any], Awaitable[None]]

NOT_ACCEPTABLE: Final = "Not Acceptable: Client must accept both application/json and text/event-stream"
PARSE_ERROR: Final = -32700
SERVER_ERROR: Final = -32000
DEFAULT_ACTOR: Final = "mcp"

_JSON: Final = frozenset({"application/json", "application/*", "*/*"})
_EVENTS: Final = frozenset({"text/event-stream", "text/*", "*/*"})
_CALL: Final = "signet.call"
_IMPORTER: Final = ThreadPoolExecutor(1)
"""Imports the SDK, in one thread however many wait for it."""
_SESSION_FIELDS: Final = ("session_key", "sessionKey")
_SESSION_HEADER: Final = "x-signet-session-key"


async def message(call: Call[api.McpRequest]) -> HttpResponse:
    """Answer one JSON-RPC message."""
    call.warnings.clear()  # about the query, which names the client; the reply has no place for warnings
    accepted = {part.partition(";")[0].strip().lower() for part in call.headers.get("accept", "").split(",")}
    if not accepted & _JSON or not accepted & _EVENTS:
        return _error(406, SERVER_ERROR, NOT_ACCEPTABLE)
    raw = api.without_lone_surrogates(call.raw)
    try:
        value = decode_json(raw)
    except SignetError:
        return _error(400, PARSE_ERROR, api.INVALID_JSON)
    if not _is_message(value):
        return _error(400, PARSE_ERROR, api.INVALID_MESSAGE)
    reply = declared_reply(value, call.headers)
    sdk = asyncio.get_running_loop().run_in_executor(_IMPORTER, _sdk)  # also if this message has its reply already
    if reply is not None:
        return HttpResponse(msgspec.json.encode(reply))
    return await _served(await sdk, call, raw)


def _is_message(value: Any) -> bool:
    """Return True for a request or a notification of JSON-RPC."""
    return (
        isinstance(value, dict)
        and value.get("jsonrpc") == "2.0"
        and isinstance(value.get("method"), str)
        and isinstance(value.get("id", 0), str | int)
        and not isinstance(value.get("id", 0), bool)
        and isinstance(value.get("params", {}), dict)
    )


@cache
def _sdk() -> Serve:
    """Import the SDK, and return the function that serves a request by it."""
    serve: Serve = import_module("signet_actors.mcp.http").serve_with(_perform)
    gc.freeze()  # the collector need not scan what was imported, which takes 60 ms each time; it is no garbage
    return serve


async def _served(serve: Serve, call: Call[api.McpRequest], raw: bytes) -> HttpResponse:
    """Return what the SDK answers to the message, the JSON text ``raw``."""
    routing = [(name, value) for name, value in call.headers.items() if name.startswith("mcp-")]
    headers = [*routing, ("accept", "application/json, text/event-stream"), ("content-type", "application/json")]
    scope = {
        "type": "http",
        "method": "POST",
        "path": call.route.path,
        "query_string": b"",
        "headers": [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers],
        _CALL: call,
    }
    unread = [raw]
    started: dict[str, Any] = {}
    body: list[bytes] = []

    async def receive() -> Message:
        if unread:
            return {"type": "http.request", "body": unread.pop(), "more_body": False}
        if call.wait_disconnected is not None:
            await call.wait_disconnected()
        return {"type": "http.disconnect"}

    async def send(part: Message) -> None:
        if part["type"] == "http.response.start":
            started.update(part)
        else:
            body.append(part.get("body", b""))

    await serve(scope, receive, send)
    return HttpResponse(b"".join(body), status=started["status"])


async def _perform(request: ToolRequest, client: Any) -> tuple[int, bytes]:
    """Perform the request of a tool for the client of this HTTP request."""
    call: Call[api.McpRequest] = client.scope[_CALL]
    assert call.perform is not None
    now = datetime.fromtimestamp(call.state.clock.wall_ms() / 1000, LOCAL_ZONE)
    limits = call.identity.scope  # what a token is limited to wins over what the client says of itself
    harness = None if limits.user is not None else _origin(call, "harness")
    project = None if limits.project is not None else _origin(call, "workspace")
    named = with_origin(with_times(request, now), harness=harness, project=project)
    return await call.perform(
        InnerRequest(
            operation=named.operation,
            path=named.path,
            query=named.query,
            headers=_headers(call, named),
            body=b"" if named.body is None else encode_json(named.body),
        )
    )


def _headers(call: Call[api.McpRequest], request: ToolRequest) -> Mapping[str, str]:
    """Return the headers of a tool's request: those of this one, by which a model acts, unless they say otherwise.

    A session that an argument names wins over that of a header, which a harness sets for all its sessions.
    """
    headers = {
        "x-signet-actor": _origin(call, "harness") or DEFAULT_ACTOR,
        "x-signet-actor-type": "agent",
        **call.headers,
        "x-signet-agent-id": call.agent_id,  # a session key in an argument names no other one
    }
    arguments = request.body or request.query
    if any(arguments.get(name) for name in _SESSION_FIELDS):
        headers.pop(_SESSION_HEADER, None)
    return headers


def _origin(call: Call[api.McpRequest], name: str) -> str | None:
    """Return the harness or the workspace of the client, from the query or a header."""
    return call.query.get(name) or call.headers.get(f"x-signet-{name}") or None


def _error(status: int, code: int, text: str) -> HttpResponse:
    reply = api.McpReply(id=None, error=api.McpError(code=code, message=text))
    return HttpResponse(msgspec.json.encode(reply), status=status)


ROUTES: tuple[Route, ...] = tuple(Route(api.MCP, path, message) for path in api.MCP.paths)
