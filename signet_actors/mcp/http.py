"""One HTTP request with a message of the protocol, by the SDK: no sessions, and replies in plain JSON."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from signet_actors.mcp.server import Performed, make_server
from signet_actors.operations.tools import ToolRequest

MAX_BODY_BYTES = 1 << 40
"""The gateway has limited the body already."""


def serve_with(
    perform: Callable[[ToolRequest, Any], Awaitable[tuple[int, bytes]]],
) -> Callable[[Any, Any, Any], Awaitable[None]]:
    """Return an ASGI application for single requests, which lets ``perform`` do the work."""

    async def performed(request: ToolRequest, context: Any) -> Performed:
        return Performed(*await perform(request, context.request))

    # What the SDK logs may contain what a client sent, which no log of the daemon does.
    logger = logging.getLogger("mcp")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    server = make_server(performed)

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        # The SDK serves a manager once. One for each request needs no task that outlives it.
        manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=MAX_BODY_BYTES
        )
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    return serve
