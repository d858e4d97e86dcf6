"""One HTTP connection: every size and every wait is bounded before the application runs.

uvicorn's httptools protocol has no limit on headers (it accepts 1 MB), no deadline for headers or bodies, and answers
parser errors as plain text. This subclass counts and times what arrives, sheds load, and answers every rejection with
the JSON error body. DESIGN.md describes the limits and the order of the checks.

Source: docs/security.md "HTTP framing", A12, A18; docs/reliability.md R13.
"""

from __future__ import annotations

import asyncio
import fcntl
import functools
import socket
import struct
import termios
from typing import Any, Final, cast

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from signet_actors.gateway.server import asgi_extensions, load_shedding
from signet_actors.gateway.server import framing as wire
from signet_actors.gateway.server.load_shedding import Deadline, ServerContext, Ticket
from signet_actors.runtime.socket_uids import SOCKET_CLOSED, End, netlink_uid, unix_peer_uid
from signet_actors.runtime.sync_points import sync_point

MAX_PIPELINED: Final = 8
LOCAL_END: Final = ("127.0.0.1", 0)
"""Both ends of a connection over the Unix socket: it comes from this machine."""
LINGER_MS: Final = 1000
OVERFLOW_WAIT_MS: Final = 1000
"""A connection beyond the limit waits this long to be served; meanwhile it may send a health probe."""
LINGER_BYTES: Final = 64 * 1024 * 1024
_KEEP_ALIVE_RESET_S: Final = 0.1
"""A rejection without parsing restarts the keep-alive timer at most once in this time."""


class BoundedHttpProtocol(HttpToolsProtocol):
    """A connection with limits. At any moment exactly one deadline is armed: head, body, keep-alive or linger."""

    def __init__(
        self,
        server_context: ServerContext,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config=config, server_state=server_state, app_state=app_state, _loop=_loop)
        self.server_context = server_context
        self.limits = server_context.limits
        self.timeout_keep_alive = self.limits.keep_alive_ms / 1000  # type: ignore[assignment]
        self._deadline = Deadline(self.loop)
        self._write_deadline = Deadline(self.loop)
        self._closing = False
        self._known_peer: list[int | None] = []
        self._discarded = 0
        self._head = wire.HeadTracker()
        self._body_bytes = 0
        self._reading: RequestResponseCycle | None = None  # the request whose body is arriving
        self._serving: RequestResponseCycle | None = None  # the request whose handler runs
        self._reading_ticket: Ticket | None = None  # of the latest head; None: not admitted
        self._counts_received = False  # the body counts by the bytes received
        self._pipelined_tickets: dict[RequestResponseCycle, Ticket | None] = {}  # of pipelined requests
        self._serving_ticket: Ticket | None = None  # of ``_serving``
        self._rejected: RequestResponseCycle | None = None  # not admitted; its body is being discarded
        self._keep_alive_since = 0.0  # last restart by a rejection
        self._deferred: bytes | None = None  # data that waits for the read scheduler

    # Connection and slot

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        connection = transport.get_extra_info("socket")
        if connection.family == socket.AF_UNIX:
            self.client = self.server = LOCAL_END
            self._known_peer.append(unix_peer_uid(connection))
        elif self.client is not None and self.server is not None:
            # Asked now, because a client may send its request, close the connection, and still mean it.
            uid = netlink_uid(self.client, cast("End", self.server))
            self._known_peer += [] if uid in {None, SOCKET_CLOSED} else [uid]
        if self._acquire_slot():
            self._mark_idle()
            self._deadline.arm(self.limits.header_ms, self._on_headers_timeout)
        else:
            self.server_context.connections.add_overflow(self, self.limits.connections)
            self._deadline.arm(min(self.limits.header_ms, OVERFLOW_WAIT_MS), self._on_overflow_timeout)
        sync_point("gateway.accepted")

    def _acquire_slot(self) -> bool:
        """Return True if the connection is served, or can be served now."""
        connections = self.server_context.connections
        return self in connections.served or connections.acquire(self, self.limits.connections)

    def _on_overflow_timeout(self) -> None:
        """Serve the connection if there is a free slot now, else reject it."""
        if self._acquire_slot():
            self._mark_idle()
            self._deadline.arm(self.limits.header_ms, self._on_headers_timeout)
        else:
            self.server_context.rejections.connections += 1
            self._reject(wire.TOO_MANY_CONNECTIONS)

    def has_unread_data(self) -> bool:
        """See ``load_shedding.Connection``."""
        waiting = fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.FIONREAD, b"\0\0\0\0")
        return bool(struct.unpack("i", waiting)[0])

    def evict(self) -> None:
        """See ``load_shedding.Connection``. A request that has not arrived whole is answered with 503."""
        if self._reading is not None or self._head.started:
            self.server_context.rejections.connections += 1
            self._reject(wire.TOO_MANY_CONNECTIONS)
            return
        self._closing = True
        self._unset_keepalive_if_required()
        self._close_soon()

    def abort(self) -> None:
        """See ``load_shedding.Connection``."""
        if not self._closing:
            self.server_context.rejections.total += 1
            self.server_context.rejections.connections += 1
            self._closing = True
        self.transport.abort()

    def _close_soon(self) -> None:
        """Close the connection when everything is sent, and after ``LINGER_MS`` at the latest."""
        self.transport.close()
        self._deadline.arm(LINGER_MS, self.transport.abort)

    def timeout_keep_alive_handler(self) -> None:
        """Close the idle connection. A client that does not read its last response cannot keep it open."""
        if not self.transport.is_closing() and self._deferred is None:
            self._close_soon()

    def _start_keep_alive(self) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def _mark_idle(self) -> None:
        """Tell the limiter if the connection is idle, or its only request has not arrived whole."""
        serving, reading = self._serving, self._reading
        if self._closing:
            return
        if self._head.expected and not self._head.started:
            if self.cycle is None or self.cycle.response_complete:
                self.server_context.connections.mark_idle(self)
        elif serving is None or serving.response_complete or (serving is reading and not serving.response_started):
            self.server_context.connections.mark_incomplete(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._deferred = None
        self._deadline.disarm()
        self._write_deadline.disarm()
        self.server_context.connections.release(self)
        self._unset_keepalive_if_required()
        if self._serving is not None and not self._serving.response_complete:
            self._serving.disconnected = True
            self._serving.message_event.set()
        self._drop_pipeline()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Process deferred data, then drain: what has arrived is answered."""
        self.read_now()
        super().shutdown()

    # Receiving

    def data_received(self, data: bytes) -> None:
        if self._closing:
            self._discarded += len(data)
            if self._discarded > LINGER_BYTES:
                self.transport.abort()
            return
        self.server_context.connections.mark_busy(self)
        if self._deferred is not None:
            self.read_now()
            if self._closing or self.transport.is_closing():
                return
        elif (
            self._is_between_requests()
            and self in self.server_context.connections.served
            and load_shedding.should_defer(self.server_context, self.limits, data)
        ):
            self._deferred = data
            self.server_context.read_scheduler.enqueue(self, self.loop)
            return
        self._receive(data)

    def _is_between_requests(self) -> bool:
        """Return True if everything that arrived was a complete request and is answered."""
        return (
            self._head.is_empty
            and not self.pipeline
            and (self.cycle is None or self.cycle.response_complete)
            and not self.transport.is_closing()
        )

    def read_now(self) -> None:
        """Process deferred data; if there is still no capacity, answer a plain request with 503 without parsing it."""
        data, self._deferred = self._deferred, None
        if data is None or self._closing or self.transport.is_closing():
            return
        server_context = self.server_context
        if not load_shedding.should_shed(server_context, self.limits, data):
            self._receive(data)
            return
        if self._abort_if_not_reading():
            return
        server_context.admission.shed += 1
        server_context.rejections.count(wire.BUSY.code)
        self.transport.write(
            server_context.busy_response.render(self.server_state.default_headers, server_context.new_trace_id())
        )
        self._deadline.disarm()
        now = self.loop.time()
        if self.timeout_keep_alive_task is None or now > self._keep_alive_since + _KEEP_ALIVE_RESET_S:
            self._unset_keepalive_if_required()
            self._keep_alive_since = now
            self._start_keep_alive()
        self._mark_idle()

    def _abort_if_not_reading(self) -> bool:
        """Abort the connection and return True if the client does not read what was sent."""
        if self.flow.write_paused:
            self.transport.abort()
        return self.flow.write_paused

    def _receive(self, data: bytes) -> None:
        """Feed ``data`` to the parser in pieces, until the connection is closing."""
        self._unset_keepalive_if_required()
        step = self.limits.header_bytes
        for start in range(0, len(data), step):
            self._feed(data[start : start + step])
            if self._closing:
                return
        self._mark_idle()
        self._arm_deadline()

    def _feed(self, piece: bytes) -> None:
        """Feed one piece to the parser; reject the request if that fails."""
        head = self._head
        of_head = head.expected
        if of_head:
            head.fed += len(piece)
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            # Upgrades are not supported: answer the request as it is; what follows is not HTTP.
            self._closing = True
            if self._serving is not None:
                self._serving.keep_alive = False
        except httptools.HttpParserError as error:
            rejection = wire.parser_rejection(error)
            if rejection is wire.SERVER_FAULT:
                self.logger.exception("parser_callback_failed", exc_info=error.__context__)
            self._reject(rejection)
        else:
            if of_head and head.is_too_large(self.limits):
                self._reject(wire.headers_too_large(self.limits))

    def _arm_deadline(self) -> None:
        """Arm the deadline that the state of the connection needs, if none is armed."""
        if not self._head.expected or self._deadline.is_armed:
            return
        self._mark_idle()  # if the response was written before the whole request had arrived
        if not self._head.is_empty or self.cycle is None:
            self._deadline.arm(self.limits.header_ms, self._on_headers_timeout)
        elif self.cycle.response_complete and self.timeout_keep_alive_task is None:
            self._start_keep_alive()

    # Parser callbacks: an exception stops the parser, and `_feed` sends its rejection.

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head.begin()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._head.count(len(url), self.limits)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head.expected:
            super().on_header(name, value)
        # Otherwise a trailer field: it is counted and discarded, because the request was judged by its head.
        self._head.count_header(name, value, self.limits)

    def on_headers_complete(self) -> None:
        self._deadline.disarm()
        self._head.finish()
        framing = wire.check_head(self.parser.get_http_version(), self.url, self.headers, self.limits)
        if len(self.pipeline) >= MAX_PIPELINED:
            raise wire.RequestRejected(wire.TOO_MANY_PIPELINED)
        sync_point("gateway.header_read")
        self._body_bytes = 0
        self._counts_received = load_shedding.counts_received_bytes(framing)
        is_served = self._acquire_slot()
        self._reading_ticket = load_shedding.admit(
            self.server_context, self.limits, self.parser.get_method(), self.url, framing, is_served=is_served
        )
        try:
            super().on_headers_complete()
        except BaseException:
            if self._reading_ticket is not None:
                self._reading_ticket.release()  # uvicorn rejected the target: no handler will start
            raise
        self._reading = self.cycle
        if not is_served:
            self.cycle.keep_alive = False
        if self.cycle is not self._serving:
            self._pipelined_tickets[self.cycle] = self._reading_ticket
        self._deadline.arm(self.limits.body_ms, self._on_body_timeout)

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > self.limits.body_bytes:
            raise wire.RequestRejected(wire.body_too_large(self.limits))
        ticket = self._reading_ticket
        if (
            self._counts_received
            and ticket is not None
            and ticket.is_limited
            and not ticket.add_bytes(len(body), self.limits)
        ):
            self.server_context.admission.shed += 1
            raise wire.RequestRejected(wire.BUSY)
        super().on_body(body)
        sync_point("gateway.body_half")

    def on_message_complete(self) -> None:
        ticket = self._reading_ticket
        if ticket is not None and not ticket.complete_body(self.limits):
            self.server_context.admission.shed += 1
            raise wire.RequestRejected(wire.BUSY)
        self._deadline.disarm()
        self._head.await_next()
        self._reading = None
        super().on_message_complete()
        if self._rejected is self.cycle:
            self._send_busy(self.cycle)

    # Handlers and responses

    def _send_busy(self, cycle: RequestResponseCycle) -> None:
        """Answer a request that was not admitted, after its short body was discarded.

        No task is created: under overload there are thousands of these a second.
        """
        self._rejected = None
        if cycle.disconnected or cycle.response_complete or self._abort_if_not_reading():
            return
        self.server_context.rejections.count(wire.BUSY.code)
        self._write(cycle, wire.BUSY.status, *wire.rejection_response(wire.BUSY, self.server_context.new_trace_id()))

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Start the handler of an admitted request.

        Its ticket is released when the response is written or the handler has ended, even if the client has
        disconnected.
        """
        self._serving = cycle
        ticket = self._pipelined_tickets.pop(cycle, self._reading_ticket)
        if ticket is None:
            self._rejected = cycle
            if not cycle.more_body or cycle.waiting_for_100_continue:
                self._send_busy(cycle)
            return
        scope = cast("dict[str, Any]", cycle.scope)
        scope[asgi_extensions.IS_DISCONNECTED] = lambda: cycle.disconnected
        scope[asgi_extensions.WAIT_DISCONNECTED] = functools.partial(asgi_extensions.wait_disconnected, cycle)
        scope[asgi_extensions.SEND_RESPONSE] = functools.partial(self._send_response, cycle)
        scope[asgi_extensions.KNOWN_PEER] = self._known_peer
        scope[asgi_extensions.BECOME_WRITE] = functools.partial(ticket.become_write, self.limits)
        scope[asgi_extensions.RELEASE_TICKET] = ticket.release
        if ticket.probe_path:
            scope[asgi_extensions.OVERLOADED] = True
        task = self.loop.create_task(self._run(cycle, app) if ticket.is_limited else cycle.run_asgi(app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)
        self._serving_ticket = ticket
        task.add_done_callback(lambda _: ticket.release())

    async def _run(self, cycle: RequestResponseCycle, app: Any) -> None:
        await self.server_context.handler_scheduler.wait_to_start(self.loop)
        await cycle.run_asgi(app)

    async def _send_response(
        self, cycle: RequestResponseCycle, status: int, headers: wire.HeaderLines, body: bytes
    ) -> None:
        """Write the response, unless the client has disconnected, and complete the cycle. See ``SEND_RESPONSE``."""
        if cycle.flow.write_paused and not cycle.disconnected:
            await cycle.flow.drain()
        if not cycle.disconnected:
            self._write(cycle, status, headers, body)

    def _write(self, cycle: RequestResponseCycle, status: int, headers: wire.HeaderLines, body: bytes) -> None:
        head_only = cycle.scope["method"] == "HEAD"
        encoded = wire.response_bytes(
            status, cycle.default_headers, headers, body, keep_alive=cycle.keep_alive, head_only=head_only
        )
        cycle.response_started = cycle.response_complete = True
        if self._serving_ticket is not None and cycle is self._serving:
            # Before the client can read the response: its next request must find this slot free.
            self._serving_ticket.release()
        cycle.waiting_for_100_continue = False
        self.transport.write(encoded)
        cycle.message_event.set()
        if not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            # The client may never read this last response; pause_writing notices only large buffers.
            self._deadline.arm(self.limits.write_ms, self.transport.abort)
        self._mark_idle()

    def _drop_pipeline(self) -> None:
        """Drop pipelined requests whose handler has not started."""
        self.pipeline.clear()
        for ticket in self._pipelined_tickets.values():
            if ticket is not None:
                ticket.release()
        self._pipelined_tickets.clear()

    # Slow clients

    def pause_writing(self) -> None:
        super().pause_writing()
        if not self._write_deadline.is_armed:
            self._write_deadline.arm(self.limits.write_ms, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._write_deadline.disarm()

    def _on_headers_timeout(self) -> None:
        if self._deferred is not None:
            return  # the data has arrived and is deferred
        if not self._head.is_empty:
            self._reject(wire.HEADERS_TIMEOUT)
        elif not self.transport.is_closing():
            self.transport.close()

    def _on_body_timeout(self) -> None:
        self._reject(wire.BODY_TIMEOUT)

    # Rejecting

    def _reject(self, rejection: wire.HttpRejection) -> None:
        """Stop reading from this connection, and send the rejection unless a response is in progress."""
        if self._closing or self.transport.is_closing():
            return
        self._closing = True
        self._deadline.disarm()
        self._unset_keepalive_if_required()
        self.server_context.rejections.count(rejection.code)
        self._drop_pipeline()
        serving, reading = self._serving, self._reading
        if serving is not None and not serving.response_complete:
            if serving is not reading or serving.response_started:
                serving.keep_alive = False  # finish the response in progress, then close
                return
            serving.disconnected = True  # the handler must not wait for the rest of the body
            serving.message_event.set()
        elif reading is not None and reading.response_complete:
            self._linger()  # answered before its body arrived: nothing more to send
            return
        headers, body = wire.rejection_response(rejection, self.server_context.new_trace_id())
        default, head_only = self.server_state.default_headers, self.parser.get_method() == b"HEAD"
        self.transport.write(
            wire.response_bytes(rejection.status, default, headers, body, keep_alive=False, head_only=head_only)
        )
        self._linger()

    def _linger(self) -> None:
        """End our side of the connection; give the client a moment to read the response and close."""
        self.server_context.connections.add_overflow(self, self.limits.connections)
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._deadline.arm(LINGER_MS, self.transport.abort)
