"""The HTTP server: uvicorn inside this process, on listening sockets that the supervisor owns.

``connection.py`` bounds and times what arrives on a connection. All connections share a ``ServerContext``.

Source: docs/security.md "HTTP framing", A12, A18; docs/reliability.md R13.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
import ssl
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple, cast

import uvicorn

from signet_actors.gateway.server.connection import BoundedHttpProtocol
from signet_actors.gateway.server.load_shedding import ServerContext

ACCEPTS_PER_ITERATION = 32
"""Connections accepted in one iteration of the event loop.

libuv accepts one connection per descriptor and iteration, and an iteration of a loaded loop takes tens of milliseconds.
With a single descriptor, a new connection would wait for seconds when many connect at once.
"""


class Tls(NamedTuple):
    """The files of the certificate chain and of its private key."""

    certificate: str
    key: str


def load_certificate(context: ssl.SSLContext, tls: Tls) -> None:
    """Have the context use the files. Raises OSError, also for an encrypted key: nobody is asked for its password."""
    context.load_cert_chain(*tls, password="")


def server_config(
    app: Any, server_context: ServerContext, *, backlog: int = 1024, tls: Tls | None = None
) -> uvicorn.Config:
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
        ssl_certfile=None if tls is None else tls.certificate,
        ssl_keyfile=None if tls is None else tls.key,
    )


class InProcessServer(uvicorn.Server):
    """A uvicorn server that the gateway actor runs: no signal handlers, no polling loop, stopped by ``stop()``."""

    def __init__(
        self,
        app: Any,
        server_context: ServerContext,
        *,
        backlog: int = 1024,
        tls: Tls | None = None,
        local: socket.socket | None = None,
    ) -> None:
        super().__init__(server_config(app, server_context, backlog=backlog, tls=tls))
        self._tls = tls
        self._local = local
        self._certificate = _modified(tls)
        self.server_context = server_context
        self.accepting = asyncio.Event()
        self._stopped = asyncio.Event()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve requests from each of the listening ``sockets`` until ``stop()``."""
        # The loop accepts one connection per descriptor and iteration; the duplicates share the same queue.
        more = [listener.dup() for listener in sockets or () for _ in range(ACCEPTS_PER_ITERATION - 1)]
        await super().serve([*(sockets or ()), *more])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve the Unix socket, too: without TLS, because it is reached from this machine only.

        A TLS handshake has the time of a request's head; uvicorn gives it a minute, in which it holds a descriptor.
        """
        tls = self.config.ssl

        def protocol() -> asyncio.Protocol:
            made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state
            )
            return made

        loop, backlog = asyncio.get_running_loop(), self.config.backlog
        await super().startup([] if tls is not None else sockets)
        if tls is not None:
            wait_s = self.server_context.limits.header_ms / 1000
            for listener in sockets or ():
                self.servers.append(
                    await loop.create_server(
                        protocol, sock=listener, ssl=tls, ssl_handshake_timeout=wait_s, backlog=backlog
                    )
                )
        if self._local is not None:
            self.servers.append(await loop.create_unix_server(protocol, sock=self._local, backlog=backlog))

    def take_new_certificate(self) -> None:
        """Use the certificate for new connections if its file has changed. Raises OSError."""
        modified = _modified(self._tls)
        if self._tls is not None and self.config.ssl is not None and modified != self._certificate:
            load_certificate(self.config.ssl, self._tls)
            self._certificate = modified

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
        """Wait until ``stop()``. Wakes once a second to update the Date header, and for a new certificate."""
        self.accepting.set()
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), timeout=1.0)
            with contextlib.suppress(OSError):  # while it is being replaced, the former one is used
                self.take_new_certificate()


def _modified(tls: Tls | None) -> tuple[int, ...]:
    return () if tls is None else tuple(Path(file).stat().st_mtime_ns for file in tls)
