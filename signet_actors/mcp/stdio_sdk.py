"""The part of the protocol on standard input and output that the SDK serves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import anyio
import mcp_types as types
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from anyio.to_thread import run_sync
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from signet_actors.mcp.server import Performed, make_server
from signet_actors.operations.mcp import INVALID_JSON, INVALID_MESSAGE
from signet_actors.operations.tools import ToolRequest


def serve(lines: Iterator[bytes], send: Callable[[ToolRequest], Performed], at_once: int, *, answered: bool) -> None:
    """Serve until ``lines`` end. ``answered``: the first is a request that has its answer already."""
    anyio.run(_serve, lines, send, at_once, answered)


async def _serve(
    lines: Iterator[bytes], send: Callable[[ToolRequest], Performed], at_once: int, answered: bool
) -> None:
    limiter = anyio.CapacityLimiter(at_once)

    async def perform(request: ToolRequest, _client: Any) -> Performed:
        # A cancelled call is not waited for: its request may still take effect, as after any lost connection.
        return await run_sync(send, request, limiter=limiter, abandon_on_cancel=True)

    server = make_server(perform)
    sending, messages = anyio.create_memory_object_stream[SessionMessage | Exception]()
    answering, answers = anyio.create_memory_object_stream[SessionMessage]()
    text: Any = _texts(lines)
    async with stdio_server(stdin=text) as (incoming, outgoing), anyio.create_task_group() as tasks:
        tasks.start_soon(_pass_messages, incoming, sending, outgoing)
        tasks.start_soon(_pass_answers, answers, outgoing, answered)
        await server.run(messages, answering, server.create_initialization_options())


async def _texts(lines: Iterator[bytes]) -> AsyncIterator[str]:
    while line := await run_sync(next, lines, b""):
        yield line.decode(errors="replace")


async def _pass_messages(incoming: Any, messages: ObjectSendStream[SessionMessage | Exception], outgoing: Any) -> None:
    """Pass on what was read, and answer each line that is no message, which the SDK would drop."""
    async with messages:
        async for item in incoming:
            if isinstance(item, Exception):
                await outgoing.send(SessionMessage(_parse_error(item)))
            else:
                await messages.send(item)


async def _pass_answers(answers: ObjectReceiveStream[SessionMessage], outgoing: Any, answered: bool) -> None:
    """Pass on what is to be written, but for the answer to a request that has been answered."""
    async with answers, outgoing:
        async for answer in answers:
            if not answered:
                await outgoing.send(answer)
            answered = False


def _parse_error(error: Exception) -> types.JSONRPCError:
    """Return the answer to a line that the SDK could not read."""
    faults = error.errors() if isinstance(error, ValidationError) else []
    text = INVALID_JSON if any(fault["type"] == "json_invalid" for fault in faults) else INVALID_MESSAGE
    return types.JSONRPCError(jsonrpc="2.0", id=None, error=types.ErrorData(code=types.PARSE_ERROR, message=text))
