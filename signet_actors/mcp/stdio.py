"""The protocol on standard input and output, by the SDK."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import mcp_types as types
from anyio.abc import ObjectSendStream
from anyio.to_thread import run_sync
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from signet_actors.mcp.server import Performed, make_server
from signet_actors.operations.mcp import INVALID_JSON, INVALID_MESSAGE
from signet_actors.operations.tools import ToolRequest


def serve(send: Callable[[ToolRequest], Performed], *, at_once: int) -> None:
    """Serve until standard input ends. ``send`` is called in threads, at most ``at_once``; it may raise SignetError."""
    anyio.run(_serve, send, at_once)


async def _serve(send: Callable[[ToolRequest], Performed], at_once: int) -> None:
    limiter = anyio.CapacityLimiter(at_once)

    async def perform(request: ToolRequest, _client: Any) -> Performed:
        # A cancelled call is not waited for: its request may still take effect, as after any lost connection.
        return await run_sync(send, request, limiter=limiter, abandon_on_cancel=True)

    server = make_server(perform)
    sending, messages = anyio.create_memory_object_stream[SessionMessage | Exception]()
    async with stdio_server() as (incoming, outgoing), anyio.create_task_group() as tasks:
        tasks.start_soon(_pass_messages, incoming, sending, outgoing)
        await server.run(messages, outgoing, server.create_initialization_options())


async def _pass_messages(incoming: Any, messages: ObjectSendStream[SessionMessage | Exception], outgoing: Any) -> None:
    """Pass on what was read, and answer each line that is no message, which the SDK would drop."""
    async with messages:
        async for item in incoming:
            if isinstance(item, Exception):
                await outgoing.send(SessionMessage(_parse_error(item)))
            else:
                await messages.send(item)


def _parse_error(error: Exception) -> types.JSONRPCError:
    """Return the answer to a line that the SDK could not read."""
    faults = error.errors() if isinstance(error, ValidationError) else []
    text = INVALID_JSON if any(fault["type"] == "json_invalid" for fault in faults) else INVALID_MESSAGE
    return types.JSONRPCError(jsonrpc="2.0", id=None, error=types.ErrorData(code=types.PARSE_ERROR, message=text))
