"""The HTTP server: uvicorn inside this process, on listening sockets that the supervisor owns.

``connection.py`` bounds and times what arrives on a connection. All connections share a ``ServerContext``.

Source: docs/security.md "HTTP framing", A12, A18; docs/reliability.md R13.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
from collections.abc import Generator
from typing import Any, cast

import uvicorn

from signet_actors.gateway.server.connection import BoundedHttpProtocol
from signet_actors.gateway.server.load_shedding import ServerContext

ACCEPTS_PER_ITERATION = 32
"""Connections accepted in one iteration of the event loop.

libuv accepts one connection per descriptor and iteration, and an iteration of a loaded loop takes tens of milliseconds.
With a single descriptor, a new connection would wait for seconds when many connect at once.
"""


def server_config(app: Any, server_context: ServerContext, *, backlog: int = 1024) -> uvicorn.Config:
    """Return uvicorn's configuration: ``app`` behind ``BoundedHttpProtocol``, all other services off."""
    return uvicorn.Config(
        app,
        http=cast("Any", functools.partial(BoundedHttpProtocol, server_context)),
        ws="none",
        lifespan="on",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=backlog,
    )


class InProcessServer(uvicorn.Server):
    """A uvicorn server that the gateway actor runs: no signal handlers, no polling loop, stopped by ``stop()``."""

    def __init__(self, app: Any, server_context: ServerContext, *, backlog: int = 1024) -> None:
        super().__init__(server_config(app, server_context, backlog=backlog))
        self.server_context = server_context
        self.accepting = asyncio.Event()
        self._stopped = asyncio.Event()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve requests from each of the listening ``sockets`` until ``stop()``."""
        # The loop accepts one connection per descriptor and iteration; the duplicates share the same queue.
        more = [listener.dup() for listener in sockets or () for _ in range(ACCEPTS_PER_ITERATION - 1)]
        await super().serve([*(sockets or ()), *more])

    def stop(self, grace_ms: int) -> None:
        """Stop accepting connections; give the requests in flight ``grace_ms`` to finish."""
        self.config.timeout_graceful_shutdown = max(1, grace_ms // 1000)
        self.should_exit = True
        self._stopped.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Do nothing: the actor handles signals."""
        yield

    async def main_loop(self) -> None:
        """Wait until ``stop()``. Wakes once a second to update the Date header."""
        self.accepting.set()
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), timeout=1.0)
