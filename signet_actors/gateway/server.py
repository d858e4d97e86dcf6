"""The HTTP server: uvicorn inside this process, with every size and every wait bounded before the application runs.

uvicorn's httptools protocol has no cap on headers (1 MB of them is accepted), no deadline for headers or bodies,
and answers parser errors as plain text. The subclass here counts and times what arrives on each connection; the
application behind it sees only requests whose framing is sound and whose declared size is allowed.

Every refusal carries the JSON error body and closes the connection. The close lingers: the write side ends at
once, input is thrown away for a moment, so that the client can read the answer instead of getting a reset.

What is unanswered is bounded too, over all connections: a request beyond the bounds is refused with 503 as soon as its
head has arrived, before its body is read, so that a flood costs neither memory nor the time of the handlers. A short
one keeps its connection then, because a new one would cost more than the answer; an ordinary one is not even parsed.
While a crowd stands its connections are read in turns. Where no place for a connection is free, the one that has been
idle longest makes room; where none is idle, the newcomer may still ask for the health.

Source: reliability.md 3.2 (A12, A18, and the measurements below the table); R13.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import functools
import itertools
import math
import struct
import termios
from collections import Counter
from collections.abc import Callable, Coroutine, Generator, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import httptools
import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from signet_actors.errors import HTTP_STATUS, ErrorCode, SignetError
from signet_actors.gateway.admission import LARGE_BODY_BYTES, Admission, Admitted, Readings, Turns, WireLimits
from signet_actors.gateway.plain_request import MOST_BYTES, is_plain_request
from signet_actors.runtime.sync_points import sync_point

if TYPE_CHECKING:
    import socket

ACCEPTS_PER_TURN = 32
"""Connections accepted in one turn of the loop. libuv accepts one for each descriptor in a turn, and a turn of a loaded
loop takes tens of milliseconds: with a single descriptor, a connection would wait for seconds behind a crowd of others.
"""
EVICTION_LOOKS = 32
"""So many idle connections are looked at for one that makes room; the others have a request that is not read yet."""
MAX_HEADERS = 128
MAX_PIPELINED = 8
LINGER_S = 1.0
BEYOND_MS = 1000
"""So long a connection for which there is no place waits for one, and may ask for the health."""
LINGER_BYTES = 64 * 1024 * 1024
GONE = "signet.gone"
"""Under this key the scope has a function that says whether the client has gone."""
UNTIL_GONE = "signet.until_gone"
"""Under this key the scope has a coroutine function that returns when the client has gone; for whoever has read the
whole body, and one at a time."""
SendWhole: TypeAlias = Callable[[int, Iterable[tuple[bytes, bytes]], bytes], Coroutine[Any, Any, None]]
ANSWER = "signet.answer"
"""Under this key the scope has a coroutine function that sends a whole answer: status, headers, body.

The same as the two ASGI messages, but in one piece: uvicorn writes head and body apart, which costs a second system
call here and wakes the client twice. Header names are lower-case, one of them is content-length, and the values are
the application's own: nothing that a client sent may be in them.
"""

_KEEPS_S = 0.1
"""A refusal gives its connection the time to keep alive anew, but not more often than this."""
_HEALTH = b"GET /health"
_TRACE = b"x-signet-trace-id"


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Why a connection is being closed, as it will be told."""

    status: int
    code: ErrorCode
    detail: str
    retry_after_ms: int | None = None


_BUSY = _Verdict(
    503, ErrorCode.BUSY, "Too many requests are waiting; nothing of this one was applied", retry_after_ms=1000
)

_NO_PLACE = _Verdict(503, ErrorCode.BUSY, "Too many connections", retry_after_ms=1000)


def _refusal(verdict: _Verdict, trace_id: str) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Body and headers that tell of ``verdict``."""
    body = msgspec.json.encode({"error": verdict.detail, "code": verdict.code})
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (_TRACE, trace_id.encode()),
    ]
    if verdict.retry_after_ms is not None:
        headers.append((b"retry-after", str(math.ceil(verdict.retry_after_ms / 1000)).encode()))
    return body, headers


def _lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join(name + b": " + value + b"\r\n" for name, value in headers)


class ServerSettings(uvicorn.Config):
    """uvicorn's configuration with our limits beside it; ``limits`` may be replaced while serving (a reload)."""

    def __init__(self, app: Any, limits: WireLimits, new_trace_id: Callable[[], str], *, backlog: int = 1024) -> None:
        super().__init__(
            app,
            http=BoundedHttpProtocol,
            ws="none",
            lifespan="on",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=backlog,
        )
        self.limits = limits
        self.new_trace_id = new_trace_id
        self.refused = 0
        self.connections_refused = 0
        self.refusals: Counter[ErrorCode] = Counter()
        self.admission = Admission()
        self.turns = Turns()
        self.readings = Readings()
        self._busy_for: list[tuple[bytes, bytes]] | None = None
        self._busy_answer = (b"", b"")

    def busy_answer(self, default_headers: list[tuple[bytes, bytes]]) -> bytes:
        """The answer to a request for which there is no room, on a connection that stays. All but the trace id is
        written once for each ``default_headers``, which the server replaces with the time."""
        if default_headers is not self._busy_for:
            body, headers = _refusal(_BUSY, "")
            headers.remove((_TRACE, b""))
            before = STATUS_LINE[_BUSY.status] + _lines([*default_headers, *headers]) + _TRACE + b": "
            self._busy_for, self._busy_answer = default_headers, (before, b"\r\n\r\n" + body)
        before, after = self._busy_answer
        return before + self.new_trace_id().encode() + after


async def _until_gone(cycle: RequestResponseCycle) -> None:
    """The client has gone, or its answer is written. The body has been read: the cycle has one event for everything."""
    while not cycle.disconnected and not cycle.response_complete:
        cycle.message_event.clear()
        await cycle.message_event.wait()


def _is_ours(error: httptools.HttpParserError) -> bool:
    """Whether a callback of ours failed, and not the request."""
    return isinstance(error, httptools.HttpParserCallbackError) and not isinstance(
        error.__context__, (httptools.HttpParserError, SignetError)
    )


class BoundedHttpProtocol(HttpToolsProtocol):
    """One connection. At any moment exactly one deadline runs: head, body, keep-alive or linger."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config=config, server_state=server_state, app_state=app_state, _loop=_loop)
        assert isinstance(config, ServerSettings)
        self.settings = config
        self.limits = config.limits
        self.timeout_keep_alive = config.limits.keep_alive_ms / 1000  # type: ignore[assignment]
        self._deadline: asyncio.TimerHandle | None = None
        self._write_deadline: asyncio.TimerHandle | None = None
        self._verdict: _Verdict | None = None
        self._closing = False
        self._discarded = 0
        self._in_head = True
        self._head_begun = False
        self._head_fed = 0  # bytes fed while a head is unfinished: bounds a header that never ends
        self._head_bytes = 0  # bytes of the finished lines of this head: the exact figure
        self._body_bytes = 0
        self._reading: RequestResponseCycle | None = None  # whose body is arriving
        self._serving: RequestResponseCycle | None = None  # whose handler runs
        self._counted = False  # among the admitted connections
        self._arriving: Admitted | None = None  # the part of the request whose body is arriving
        self._grows = False  # whether it is counted as it arrives: it is large, or its size was not declared
        self._waiting: dict[RequestResponseCycle, Admitted] = {}  # the parts of pipelined requests
        self._held: Admitted | None = None  # the part of the request whose handler runs
        self._unwanted: set[RequestResponseCycle] = set()  # pipelined requests that are not admitted
        self._admitted = True  # the request whose body is arriving, or arrived last
        self._turned_away: RequestResponseCycle | None = None  # what is not admitted, while its body is read past
        self._kept_since = 0.0  # when the connection was last given the whole time to keep alive, by a refusal
        self._unread: bytes | None = None  # what has arrived and waits for its turn in a crowd

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._has_place():
            self._rest()
            self._arm(self.limits.header_ms, self._head_late)
        else:
            self._go_beyond()
            self._arm(min(self.limits.header_ms, BEYOND_MS), self._no_place)
        sync_point("gateway.accepted")

    def _has_place(self) -> bool:
        """Whether the connection is, or now could become, one of those that are served."""
        admission = self.settings.admission
        if not self._counted and (admission.connections < self.limits.connections or self._another_makes_room()):
            admission.beyond.pop(self, None)
            admission.connections += 1
            self._counted = True
        return self._counted

    def _go_beyond(self) -> None:
        """The connection is open beside those that are served, of which there are as many at most; the oldest go, so
        that a newcomer can always ask for the health."""
        beyond = self.settings.admission.beyond
        beyond[self] = None
        if len(beyond) > self.limits.connections:
            oldest = next(iter(beyond))
            del beyond[oldest]
            if not oldest._closing:
                self.settings.refused += 1
                self.settings.connections_refused += 1
                oldest._closing = True
            oldest.transport.abort()

    def _no_place(self) -> None:
        """The connection has a place after all, or is refused."""
        self._deadline = None
        if self._has_place():
            self._rest()
            self._arm(self.limits.header_ms, self._head_late)
            return
        self.settings.connections_refused += 1
        self._refuse(_NO_PLACE)

    def _another_makes_room(self) -> bool:
        """The connection that has been idle longest is closed; False when none is idle.

        One whose next request has arrived, and only this loop has not read it yet, is not idle.
        """
        for longest in itertools.islice(self.settings.admission.idle, EVICTION_LOOKS):
            if longest._has_unread():
                continue
            longest._closing = True
            longest._disarm()
            longest._unset_keepalive_if_required()
            longest._discount()
            self.settings.admission.beyond.pop(self, None)  # else the oldest there, who must go now, may be this one
            longest._go_beyond()
            longest._close_within(LINGER_S)
            return True
        return False

    def _has_unread(self) -> bool:
        """Whether the kernel holds bytes from this client."""
        waiting = fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.FIONREAD, b"\0\0\0\0")
        return bool(struct.unpack("i", waiting)[0])

    def _close_within(self, seconds: float) -> None:
        """The connection closes once everything is sent, and at the latest after ``seconds``, read or unread."""
        self._disarm()
        self.transport.close()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def timeout_keep_alive_handler(self) -> None:
        """Nothing has come for long enough; what a client that reads nothing has not been sent must not hold it."""
        if not self.transport.is_closing() and self._unread is None:
            self._close_within(LINGER_S)

    def _rest(self) -> None:
        """The connection is among the idle ones if it is idle."""
        silent = self._in_head and not self._head_begun and (self.cycle is None or self.cycle.response_complete)
        if silent and self._counted and not self._closing:
            self.settings.admission.idle[self] = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._unread = None
        self._disarm()
        self._discount()
        self.settings.admission.beyond.pop(self, None)
        self._unset_keepalive_if_required()
        if self._write_deadline is not None:
            self._write_deadline.cancel()
        if self._serving is not None and not self._serving.response_complete:
            self._serving.disconnected = True
            self._serving.message_event.set()
        self._drop_pipeline()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """A drain begins: what has arrived is answered."""
        self.read_now()
        super().shutdown()

    def data_received(self, data: bytes) -> None:
        if self._closing:
            self._discarded += len(data)
            if self._discarded > LINGER_BYTES:
                self.transport.abort()
            return
        self.settings.admission.idle.pop(self, None)
        if self._unread is not None:
            self.read_now()
            if self._closing or self.transport.is_closing():
                return
        elif self._waits_for_its_turn(data):
            self._unread = data
            self.settings.readings.wait(self, self.loop)
            return
        self._receive(data)

    def _waits_for_its_turn(self, data: bytes) -> bool:
        """Whether a crowd stands, and this is the begin of a request like any of it, short and not for the health."""
        settings = self.settings
        return (
            self._counted
            and len(data) <= MOST_BYTES
            and self._is_between_requests()
            and not data.startswith(_HEALTH)
            and (bool(settings.readings.waiting) or settings.admission.is_full(self.limits))
        )

    def _is_between_requests(self) -> bool:
        """Everything that arrived was a request, and is answered."""
        return (
            self._in_head
            and not self._head_begun
            and not self._head_fed
            and not self.pipeline
            and (self.cycle is None or self.cycle.response_complete)
            and not self.transport.is_closing()
        )

    def read_now(self) -> None:
        """What arrived, and waited for its turn, has been read, or refused where all that matters is where it ends."""
        data, self._unread = self._unread, None
        if data is None or self._closing or self.transport.is_closing():
            return
        settings = self.settings
        if not settings.admission.is_full(self.limits) or not is_plain_request(data):
            self._receive(data)
            return
        if self._leaves_refusals_unread():
            return
        settings.admission.shed += 1
        settings.refused += 1
        settings.refusals[ErrorCode.BUSY] += 1
        self.transport.write(settings.busy_answer(self.server_state.default_headers))
        self._disarm()
        now = self.loop.time()
        if self.timeout_keep_alive_task is None or now > self._kept_since + _KEEPS_S:
            self._unset_keepalive_if_required()
            self._kept_since = now
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
        self._rest()

    def _leaves_refusals_unread(self) -> bool:
        """Whether the client does not read what it is told; then it is told no more, and its connection is gone."""
        if self.flow.write_paused:
            self.transport.abort()
        return self.flow.write_paused

    def _receive(self, data: bytes) -> None:
        """The parser has seen ``data``, or the connection is closing."""
        self._unset_keepalive_if_required()
        step = self.limits.header_bytes
        for start in range(0, len(data), step):
            self._feed(data[start : start + step])
            if self._closing:
                return
        self._watch()

    def _feed(self, piece: bytes) -> None:
        """The parser has seen ``piece``, or the connection is closing."""
        head = self._in_head
        if head:
            self._head_fed += len(piece)
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            # There is nothing to upgrade to: the request is answered as it stands, what follows is not HTTP.
            self._closing = True
            if self._serving is not None:
                self._serving.keep_alive = False
        except httptools.HttpParserError as error:
            if self._verdict is None and _is_ours(error):
                self.logger.exception("A parser callback failed", exc_info=error.__context__)
                self._verdict = _Verdict(500, ErrorCode.INTERNAL, "Internal error before the request was read")
            self._refuse(self._verdict or _Verdict(400, ErrorCode.INVALID_REQUEST, "The request is not valid HTTP/1.1"))
        else:
            if head and self._in_head and self._head_fed > self.limits.header_bytes:
                self._refuse(self._headers_too_large())

    def _watch(self) -> None:
        """Some deadline runs, whatever state the last bytes left the connection in."""
        if not self._in_head or self._deadline is not None:
            return
        self._rest()  # where the answer went out before its request had wholly arrived
        if self._head_begun or self._head_fed or self.cycle is None:
            self._arm(self.limits.header_ms, self._head_late)
        elif self.cycle.response_complete and self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    # Parser callbacks: an exception here stops the parser, and `_feed` refuses with the verdict.

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_begun = True
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if len(self.headers) > MAX_HEADERS:
            self._stop(self._headers_too_large())
        self._count_head(len(name) + len(value) + 4)

    def on_headers_complete(self) -> None:
        self._disarm()
        self._in_head = False
        self._head_begun = False
        self._check_head()
        sync_point("gateway.header_read")
        self._admitted = self._admit()
        self._body_bytes = 0
        try:
            super().on_headers_complete()
        except BaseException:
            if self._arriving is not None:
                self._arriving.release()  # the target is none: no handler will begin
            raise
        self._reading = self.cycle
        if not self._has_place():
            self.cycle.keep_alive = False
        if not self._admitted and self.cycle is not self._serving:
            self._unwanted.add(self.cycle)
        if self._arriving is not None and self.cycle is not self._serving:
            self._waiting[self.cycle] = self._arriving
        self._arm(self.limits.body_ms, self._body_late)

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > self.limits.body_bytes:
            self._stop(self._body_too_large())
        if (
            self._grows
            and self._arriving is not None
            and self._arriving.counted
            and not self._arriving.grow(len(body), self.limits)
        ):
            self.settings.admission.shed += 1
            self._stop(_BUSY)
        super().on_body(body)
        sync_point("gateway.body_half")

    def on_message_complete(self) -> None:
        if self._arriving is not None and self._arriving.counted and not self._arriving.arrived(self.limits):
            self.settings.admission.shed += 1
            self._stop(_BUSY)
        self._disarm()
        self._in_head = True
        self._head_fed = 0
        self._reading = None
        super().on_message_complete()
        if self._turned_away is self.cycle:
            self._turn_away(self.cycle)

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self.limits.header_bytes:
            self._stop(self._headers_too_large())

    def _check_head(self) -> None:
        """The framing is sound and the declared size is allowed; checked before a byte of the body is kept."""
        if self.parser.get_http_version() not in {"1.0", "1.1"}:
            self._stop(_Verdict(400, ErrorCode.INVALID_REQUEST, "Only HTTP/1.0 and HTTP/1.1 are served"))
        if not self.url.startswith(b"/"):
            self._stop(_Verdict(400, ErrorCode.INVALID_REQUEST, "The request target must be a path"))
        if len(self.pipeline) >= MAX_PIPELINED:
            self._stop(_Verdict(503, ErrorCode.BUSY, "Too many pipelined requests", retry_after_ms=1000))
        lengths = [value for name, value in self.headers if name == b"content-length"]
        encodings = [value.strip().lower() for name, value in self.headers if name == b"transfer-encoding"]
        if encodings and (lengths or encodings != [b"chunked"]):
            self._stop(_Verdict(400, ErrorCode.INVALID_REQUEST, "Ambiguous request framing"))
        if len(lengths) > 1 or (lengths and not lengths[0].isdigit()):
            self._stop(_Verdict(400, ErrorCode.INVALID_REQUEST, "Invalid Content-Length"))
        if lengths and int(lengths[0]) > self.limits.body_bytes:
            self._stop(self._body_too_large())
        for name, value in self.headers:
            if name == b"expect" and value.strip().lower() != b"100-continue":
                self._stop(_Verdict(417, ErrorCode.INVALID_REQUEST, "Unknown expectation"))

    def _admit(self) -> bool:
        """The request is counted among the unanswered ones, or must be turned away. A question for the health, without
        a body, always is admitted: who asks under a flood must hear that the daemon lives."""
        declared = next((int(value) for name, value in self.headers if name == b"content-length"), 0)
        self._grows = any(name == b"transfer-encoding" for name, _ in self.headers)
        self._arriving = None
        path = self.url.partition(b"?")[0]
        if (path == b"/health" or path.startswith(b"/health/")) and not declared and not self._grows:
            return True
        if not self._has_place():
            self.settings.connections_refused += 1
            self._stop(_NO_PLACE)
        self._grows = self._grows or declared > LARGE_BODY_BYTES
        self._arriving = self.settings.admission.admit(declared, self.limits)
        if self._arriving is None and self._grows:
            self._stop(_BUSY)
        return self._arriving is not None

    def _turn_away(self, cycle: RequestResponseCycle) -> None:
        """The request, which is not admitted and was short enough to be read past, is refused without a task of its
        own: under a flood there are thousands of them a second."""
        self._turned_away = None
        if cycle.disconnected or cycle.response_complete or self._leaves_refusals_unread():
            return
        self.settings.refused += 1
        self.settings.refusals[ErrorCode.BUSY] += 1
        body, headers = _refusal(_BUSY, self.settings.new_trace_id())
        self._write(cycle, 503, headers, body)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """The handler runs; what its request holds is held until it is answered or has ended, whether or not the client
        has gone."""
        self._serving = cycle
        if cycle in self._unwanted or (cycle is self.cycle and not self._admitted):
            self._unwanted.discard(cycle)
            self._turned_away = cycle
            if not cycle.more_body or cycle.waiting_for_100_continue:
                self._turn_away(cycle)
            return
        admitted = self._waiting.pop(cycle, None) or (self._arriving if cycle is self.cycle else None)
        scope = cast("dict[str, Any]", cycle.scope)
        scope[GONE] = lambda: cycle.disconnected
        scope[UNTIL_GONE] = functools.partial(_until_gone, cycle)
        scope[ANSWER] = functools.partial(self._answer, cycle)
        task = self.loop.create_task(self._run(cycle, app) if admitted is not None else cycle.run_asgi(app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)
        self._held = admitted
        if admitted is not None:
            task.add_done_callback(lambda _: admitted.release())

    async def _run(self, cycle: RequestResponseCycle, app: Any) -> None:
        await self.settings.turns.next(self.loop)
        await cycle.run_asgi(app)

    async def _answer(
        self, cycle: RequestResponseCycle, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes
    ) -> None:
        """The answer is written, unless its client has gone, and the cycle is complete. See ``ANSWER``."""
        if cycle.flow.write_paused and not cycle.disconnected:
            await cycle.flow.drain()
        if not cycle.disconnected:
            self._write(cycle, status, headers, body)

    def _write(
        self, cycle: RequestResponseCycle, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes
    ) -> None:
        parts = [STATUS_LINE[status]]
        for name, value in (*cycle.default_headers, *headers):
            parts += (name, b": ", value, b"\r\n")
        parts.append(b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n")
        if cycle.scope["method"] != "HEAD":
            parts.append(body)
        cycle.response_started = cycle.response_complete = True
        if self._held is not None and cycle is self._serving:
            # Before the client can read the answer: its next request must not find the place of this one taken.
            self._held.release()
        cycle.waiting_for_100_continue = False
        self.transport.write(b"".join(parts))
        cycle.message_event.set()
        if not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            # Closed behind this answer, which the client may never read; pause_writing knows only of large rests.
            self._arm(self.limits.write_ms, self.transport.abort)
        self._rest()

    def _drop_pipeline(self) -> None:
        """Requests that no handler has begun are forgotten."""
        self.pipeline.clear()
        self._unwanted.clear()
        for admitted in self._waiting.values():
            admitted.release()
        self._waiting.clear()

    def _discount(self) -> None:
        """The connection is no longer among the admitted ones."""
        if self._counted:
            self._counted = False
            self.settings.admission.connections -= 1
            self.settings.admission.idle.pop(self, None)

    # Slow readers

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._write_deadline is None:
            self._write_deadline = self.loop.call_later(self.limits.write_ms / 1000, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_deadline is not None:
            self._write_deadline.cancel()
            self._write_deadline = None

    # Deadlines

    def _arm(self, after_ms: int, then: Callable[[], None]) -> None:
        self._disarm()
        self._deadline = self.loop.call_later(after_ms / 1000, then)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _head_late(self) -> None:
        self._deadline = None
        if self._unread is not None:
            return  # it has come, and waits for its turn
        if self._head_begun or self._head_fed:
            self._refuse(_Verdict(408, ErrorCode.REQUEST_TIMEOUT, "The request headers took too long to arrive"))
        elif not self.transport.is_closing():
            self.transport.close()

    def _body_late(self) -> None:
        self._deadline = None
        self._refuse(_Verdict(408, ErrorCode.REQUEST_TIMEOUT, "The request body took too long to arrive"))

    # Refusing

    def _headers_too_large(self) -> _Verdict:
        return _Verdict(
            431,
            ErrorCode.PAYLOAD_TOO_LARGE,
            f"Request line and headers must be at most {self.limits.header_bytes} bytes and {MAX_HEADERS} headers",
        )

    def _body_too_large(self) -> _Verdict:
        return _Verdict(
            HTTP_STATUS[ErrorCode.PAYLOAD_TOO_LARGE],
            ErrorCode.PAYLOAD_TOO_LARGE,
            f"The request body must be at most {self.limits.body_bytes} bytes",
        )

    def _stop(self, verdict: _Verdict) -> None:
        """The parser stops here; ``_feed`` sends the verdict."""
        self._verdict = verdict
        raise SignetError(verdict.detail, code=verdict.code)

    def _refuse(self, verdict: _Verdict) -> None:
        """Nothing more is read from this connection; the client is told why, unless an answer is under way."""
        if self._closing or self.transport.is_closing():
            return
        self._closing = True
        self._disarm()
        self._unset_keepalive_if_required()
        self.settings.refused += 1
        self.settings.refusals[verdict.code] += 1
        self._drop_pipeline()
        serving, reading = self._serving, self._reading
        if serving is not None and not serving.response_complete:
            if serving is not reading or serving.response_started:
                serving.keep_alive = False  # its answer goes out whole, then the connection closes
                return
            serving.disconnected = True  # its handler waits for a body that will not come
            serving.message_event.set()
        elif reading is not None and reading.response_complete:
            self._linger()  # answered before its body arrived; there is nothing to add
            return
        self._write_verdict(verdict)
        self._linger()

    def _write_verdict(self, verdict: _Verdict) -> None:
        body, headers = _refusal(verdict, self.settings.new_trace_id())
        lines = _lines([*self.server_state.default_headers, *headers, (b"connection", b"close")])
        if self.parser.get_method() == b"HEAD":
            body = b""  # whoever asked for a head reads nothing behind it
        self.transport.write(STATUS_LINE[verdict.status] + lines + b"\r\n" + body)

    def _linger(self) -> None:
        """Our side of the connection is ended; the other side has a moment to read and close."""
        self._discount()
        self._go_beyond()
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._deadline = self.loop.call_later(LINGER_S, self.transport.abort)


class InProcessServer(uvicorn.Server):
    """uvicorn run by the gateway actor: no signal handlers, no polling loop, stopped by ``stop()``."""

    def __init__(self, config: ServerSettings) -> None:
        super().__init__(config)
        self.settings = config
        self.accepting = asyncio.Event()
        self._stopped = asyncio.Event()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Requests are served from each of the listening ``sockets`` until ``stop()``."""
        # The loop gives each descriptor one connection per turn, and these are more descriptors of the same queue.
        more = [listener.dup() for listener in sockets or () for _ in range(ACCEPTS_PER_TURN - 1)]
        await super().serve([*(sockets or ()), *more])

    def stop(self, grace_ms: int) -> None:
        """No new connection is accepted; requests in flight have ``grace_ms`` to finish."""
        self.settings.timeout_graceful_shutdown = max(1, grace_ms // 1000)
        self.should_exit = True
        self._stopped.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals belong to the actor."""
        yield

    async def main_loop(self) -> None:
        """Requests are served until ``stop()``. Wakes once a second, for the Date header."""
        self.accepting.set()
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), timeout=1.0)
