"""The protocol on standard input and output, by the SDK."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
from anyio.to_thread import run_sync
from mcp.server.stdio import stdio_server

from signet_actors.mcp.server import Performed, make_server
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
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
