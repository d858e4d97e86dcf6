"""A real gateway application on a loopback socket, in a thread of the test process, with a scripted bus."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import random
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import msgspec
import structlog
import uvloop

from signet_actors.config.schema import Config, GatewayConfig
from signet_actors.domain.redaction.scan import Redactor
from signet_actors.errors import Unavailable
from signet_actors.gateway.app import Application
from signet_actors.gateway.http.route import Call, HttpResponse, Route
from signet_actors.gateway.server.connection_limits import ConnectionLimits
from signet_actors.gateway.server.load_shedding import ServerContext
from signet_actors.gateway.server.uvicorn_server import InProcessServer
from signet_actors.gateway.state import GatewayState
from signet_actors.protocol.control import UP, ChildState, TreeChanged
from signet_actors.runtime.clock import SystemClock, new_id
from signet_actors.runtime.histogram import Histogram
from signet_actors.runtime.messaging.bus_client import BusHealth
from signet_actors.runtime.processes.child_context import ChildContext

CLIENT_WAIT_S = 60.0

EVERYBODY_UP = (
    ChildState("writer", "writer", UP, 1, 0, 11),
    ChildState("searcher-1", "searcher", UP, 1, 0, 12),
    ChildState("retention", "retention", UP, 1, 0, 13),
    ChildState("gateway", "gateway", UP, 1, 0, 14),
)


class ScriptedBus:
    """Answers each kind of request with the scripted reply. A kind without one is unavailable."""

    def __init__(self, children: Sequence[ChildState] = EVERYBODY_UP) -> None:
        self.tree = TreeChanged(list(children))
        self.retention_timeout_ms: int | None = None
        self.counters: dict[str, int] = {"sent": 0}
        self.answers: dict[type, Any] = {}
        self.asked: list[Any] = []
        self.latency = {peer: Histogram() for peer in ("writer", "searcher", "retention")}
        self.writer_backlog = 0
        self.search_backlog = 0
        self.unanswered_searches = 0
        self.searchers_known = 1

    async def _answer(self, request: Any) -> Any:
        self.asked.append(request)
        answer = self.answers.get(type(request), Unavailable("away"))
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ask_writer(self, request: Any, **_: Any) -> Any:
        return await self._answer(request)

    async def ask_retention(self, request: Any, *, timeout_ms: int | None = None, **_: Any) -> Any:
        self.retention_timeout_ms = timeout_ms
        return await self._answer(request)

    async def ask_extractor(self, request: Any, **_: Any) -> Any:
        return await self._answer(request)

    async def ask_decider(self, request: Any, **_: Any) -> Any:
        return await self._answer(request)

    async def ask_searcher(self, request: Any, **_: Any) -> tuple[Any, list[bytes]]:
        return await self._answer(request), []

    def tell_writer(self, _message: Any, **_: Any) -> bool:
        return True

    def health(self) -> BusHealth:
        return BusHealth()

    async def ask_tree(self) -> TreeChanged:
        return self.tree


class Answered:
    """An HTTP response as the client received it."""

    def __init__(self, status: int, headers: Mapping[str, str], raw: bytes) -> None:
        self.status = status
        self.headers = {name.lower(): value for name, value in headers.items()}
        self.raw = raw

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


class RunningEdge:
    """The application, serving inside ``with``. ``limits`` and ``gateway`` override the defaults of the test."""

    def __init__(
        self,
        routes: Sequence[Route],
        workspace: Path,
        *,
        limits: ConnectionLimits | None = None,
        config: Config | None = None,
        bus: ScriptedBus | None = None,
        new_loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop,
    ) -> None:
        self.bus = bus or ScriptedBus()
        self.log_lines: list[Mapping[str, Any]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        config = config or Config()
        boot = ChildContext(
            name="gateway",
            role="gateway",
            incarnation=1,
            boot_id="b",
            supervisor_pid=4242,
            workspace=str(workspace),
            socket_dir=str(workspace),
            config=config,
        )
        clock, rng = SystemClock(), random.Random(7)
        self.state = GatewayState(
            boot=boot,
            config=config,
            bus=cast("Any", self.bus),
            clock=clock,
            rng=rng,
            log=self._new_log(),
            embedder=None,
            redactor=Redactor(),
            signing_key=bytes(32),
            common_words=cast("Any", None),
            port=self.port,
            started_at_ms=clock.wall_ms(),
        )
        self.state.logs_every_request = True
        self._app = Application(self.state, routes)
        self._server_context = self.state.server_context = ServerContext(
            limits or ConnectionLimits(), lambda: new_id(clock, rng), self._app.has_effect
        )
        self._new_loop = new_loop
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.failure: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(CLIENT_WAIT_S), "the server did not start"
        assert self.failure is None, self.failure
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop(grace_ms=1000)

    def stop(self, grace_ms: int) -> None:
        """Drain the server and join its thread."""
        with contextlib.suppress(RuntimeError):  # the loop may have just ended on its own
            self._loop.call_soon_threadsafe(self._drain, grace_ms)
        self._thread.join(CLIENT_WAIT_S)
        assert not self._thread.is_alive(), "the server did not stop"

    def begin_drain(self, grace_ms: int) -> None:
        """Ask the server to stop."""
        self._loop.call_soon_threadsafe(self._drain, grace_ms)

    def call_soon(self, action: Callable[[], Any]) -> None:
        """Run ``action`` on the server's loop."""
        self._loop.call_soon_threadsafe(action)

    @property
    def server(self) -> InProcessServer:
        return self._server

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        """Send one request on its own connection; a mapping is sent as JSON, bytes unchanged."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CLIENT_WAIT_S)
        sent = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, body=body, headers=sent)
            response = connection.getresponse()
            return Answered(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def connect(self) -> socket.socket:
        """Open a raw connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=CLIENT_WAIT_S)

    def raw(self, data: bytes) -> bytes:
        """Send ``data`` and return everything that the server sends until it closes the connection."""
        with self.connect() as connection:
            connection.sendall(data)
            return read_to_end(connection)

    def _new_log(self) -> Any:
        def keep(_: Any, level: str, event: Any) -> Any:
            self.log_lines.append({**event, "level": level})
            raise structlog.DropEvent

        return structlog.wrap_logger(None, processors=[keep], wrapper_class=structlog.make_filtering_bound_logger(0))

    def _drain(self, grace_ms: int) -> None:
        self.state.draining = True
        self._server.stop(grace_ms)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=self._new_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self.failure = error
            self._started.set()
            raise

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = InProcessServer(self._app, self._server_context)
        serving = asyncio.create_task(self._server.serve(sockets=[self._listener]))
        accepting = asyncio.create_task(self._server.accepting.wait())
        await asyncio.wait((serving, accepting), return_when=asyncio.FIRST_COMPLETED)
        self._started.set()
        await serving


def read_to_end(connection: socket.socket) -> bytes:
    """Read until the peer closes, or resets the connection after its last byte."""
    parts: list[bytes] = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def parse_answer(raw: bytes) -> Answered:
    """Return the first HTTP response in ``raw``."""
    head, _, rest = raw.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:])
    length = int({name.lower(): value for name, value in headers.items()}.get("content-length", len(rest)))
    return Answered(int(lines[0].split()[1]), headers, rest[:length])


def gateway_config(**changes: Any) -> Config:
    """Return the default configuration with other values under ``gateway``."""
    return Config(gateway=msgspec.structs.replace(GatewayConfig(), **changes))


async def echo(call: Call[Any]) -> HttpResponse:
    """Return what the handler received."""
    return HttpResponse(
        {
            "path": dict(call.path),
            "query": dict(call.query),
            "headers": dict(call.headers),
            "body": call.raw.decode("latin-1"),
            "trace": call.trace_id,
        }
    )
