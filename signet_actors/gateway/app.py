"""The ASGI application: guard, limits, trace id and error handling around the route table.

A request passes the guard, the checks of target and encoding, routing, the owner check, the kill switch, the body, and
the handler with its deadline. It gets exactly one response, with a trace id; errors are JSON. A request that a handler
makes for its caller (MCP) begins with the owner check.

Source: docs/architecture.md "The path of a remember"; docs/decisions.md 25, 30, 40; docs/security.md A10, A12.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from starlette.routing import Router
from starlette.types import Receive, Scope, Send

from signet_actors import errors
from signet_actors.features.audit.api import CHANGE, DENIED, EXPORT, UNKNOWN
from signet_actors.gateway.auth import request_guard
from signet_actors.gateway.auth.identity import LOCAL, Identity, WrongToken
from signet_actors.gateway.auth.ownership import require_owner, require_user
from signet_actors.gateway.http import request_parts, responses
from signet_actors.gateway.http.after_response import AfterResponse, mark_unsent
from signet_actors.gateway.http.event_streams import EventStream
from signet_actors.gateway.http.request_texts import MAX_PRINCIPAL_CHARS
from signet_actors.gateway.http.route import Call, InnerRequest, Route
from signet_actors.gateway.http.route_table import RouteTable
from signet_actors.gateway.server import asgi_extensions
from signet_actors.gateway.server.load_shedding import LARGE_BODY_BYTES
from signet_actors.gateway.state import GatewayState
from signet_actors.operations.headers import EVENT_STREAM, TRACE_HEADER
from signet_actors.operations.operation import Effect, Operation
from signet_actors.operations.page import INDEX
from signet_actors.operations.request_reader import query_warnings
from signet_actors.runtime.clock import new_id
from signet_actors.runtime.logging.throttle import LogThrottle
from signet_actors.runtime.messaging.requests import Dispatch, current_dispatch, track_dispatch
from signet_actors.runtime.sync_points import sync_point

MAX_TARGET_BYTES = 8192
OUTER_RESERVE_MS: Final = 30_000
"""What a request that performs others has beside their time: to import its SDK on a busy machine, and to answer."""
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
)
"""Sent with every response. No response has an Access-Control header."""

INDEX_PATH: Final = INDEX.paths[0].encode()
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
_NO_STORE = (b"cache-control", b"no-store")
_TRACE = TRACE_HEADER.encode()


class RequestContext:
    """What the application knows about a request besides its scope.

    ``path``: the route template, None before routing. ``status``: 0 until the response is written. ``code``: the error
    code of the response. ``answered_ns``: when a stream began. ``warnings``: the parts of the request that had no
    effect. ``after_response``: what the handler wants to do then. ``peer``: both ends of its connection, its headers,
    and the uid of its other end, once the system was asked: by these its user is known.
    """

    def __init__(self, trace_id: str, scope: Scope, send: Send) -> None:
        """Take the server's extension keys out of ``scope``.

        They refer to objects that hold the scope. Such a reference cycle would stay until the garbage collector runs.
        """
        self.trace_id = trace_id
        self.is_disconnected: Callable[[], bool] | None = scope.pop(asgi_extensions.IS_DISCONNECTED, None)
        self.wait_disconnected: Callable[[], Coroutine[Any, Any, None]] | None = scope.pop(
            asgi_extensions.WAIT_DISCONNECTED, None
        )
        self.overloaded: bool = scope.pop(asgi_extensions.OVERLOADED, False)
        self.become_write: Callable[[], bool] = scope.pop(asgi_extensions.BECOME_WRITE, lambda: True)
        self._release_ticket: Callable[[], None] = scope.pop(asgi_extensions.RELEASE_TICKET, lambda: None)
        self.peer = (
            scope.get("client"),
            scope.get("server"),
            scope.get("headers", ()),
            scope.pop(asgi_extensions.KNOWN_PEER, []),
        )
        self._send = send
        self._send_response: asgi_extensions.SendResponse | None = scope.pop(asgi_extensions.SEND_RESPONSE, None)
        self.path: str | None = None
        self.route: Route | None = None
        self.dispatch: Dispatch | None = None
        self.status = 0
        self.answered_ns: int | None = None
        self.code: errors.ErrorCode | None = None
        self.identity: Identity | None = None
        self.observes = False
        self.warnings: list[str] = []
        self.after_response: list[AfterResponse] = []

    @classmethod
    def within(cls, outer: RequestContext, route: Route) -> RequestContext:
        """Return the context of a request that the handler of ``outer`` makes. It is not written."""
        context = cls(outer.trace_id, {}, outer._send)
        context.path, context.route = route.path, route
        context.wait_disconnected, context.peer = outer.wait_disconnected, outer.peer
        context.identity = outer.identity
        return context

    async def write(self, answer: responses.EncodedResponse) -> None:
        """Send the response, in one write if our own server runs the application and it is no stream."""
        sync_point("gateway.before_response")
        headers = [
            *responses.described(answer),
            *SECURITY_HEADERS,
            (_TRACE, self.trace_id.encode()),
        ]
        if answer.headers:
            headers += [(name.encode(), value.encode()) for name, value in answer.headers.items()]
        if "cache-control" not in answer.headers:
            headers.append(_NO_STORE)
        self.status, self.code = answer.status, answer.code
        if answer.events is not None:
            await self._write_stream(answer.status, headers, answer.events)
            return
        if self._send_response is not None:
            await self._send_response(answer.status, headers, answer.body)
            sync_point("gateway.mid_response")  # the kernel has the response, nothing is recorded yet
            return
        await self._send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": answer.body, "more_body": False})

    async def _write_stream(self, status: int, headers: list[tuple[bytes, bytes]], events: EventStream) -> None:
        """Send a stream until it ends or the client has disconnected. It takes no place among the requests."""
        self._release_ticket()
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

        async def send(piece: bytes) -> None:
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})

        await events.write(send, None if self.wait_disconnected is None else self.wait_disconnected())
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


class Application:
    """The ASGI application that the server calls."""

    def __init__(self, state: GatewayState, routes: Sequence[Route]) -> None:
        self.state = state
        self.routes = routes
        self._table = RouteTable(routes)
        self._first_routes = {route.operation: route for route in reversed(routes)}
        self._guard_warnings = LogThrottle(state.log, state.clock)
        self._response_cache = responses.ResponseCache()

    def has_effect(self, method: bytes, path: bytes) -> bool:
        """Return True if the method at the raw path can change something; unknown ones cannot."""
        unescaped = unquote_to_bytes(path) if b"%" in path else path
        found = self._table.find(unescaped.decode("utf-8", "replace"), path)
        return found is not None and method.decode("latin-1") in found[0].writes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._handle(scope, receive, send)
        else:
            await Router()(scope, receive, send)  # the lifespan protocol: nothing to do

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send exactly one response, and count the request."""
        state = self.state
        counters = state.counters
        trace_id = new_id(state.clock, state.rng)
        started_ns = state.clock.monotonic_ns()
        context = RequestContext(trace_id, scope, send)
        counters.requests += 1
        counters.in_flight += 1
        try:
            answer = self._check(scope)
            if answer is None:
                answer = await self._respond(scope, receive, context)
            if answer.events is not None:
                context.answered_ns = state.clock.monotonic_ns()
                counters.in_flight -= 1
                if scope["method"] == "HEAD":
                    answer.events.seconds = 0
            await context.write(answer)
        except asyncio.CancelledError:
            # The drain's grace is over. The task belongs to the server and ends here.
            if context.status == 0:
                await context.write(_shutdown_response(context))
        except Exception:  # noqa: BLE001 - else the server would answer with plain text
            if context.status == 0:
                await context.write(responses.internal_problem(trace_id))
            self._log_failure(context)
        finally:
            counters.in_flight -= context.answered_ns is None
            context.observes &= context.status < 500 and context.status != 401  # a wrong token always counts
            counters.requests -= context.observes
            self._finish(context)
            with contextlib.suppress(Exception):  # metrics and logs must not fail the request
                self._record(scope["method"], context, (context.answered_ns or state.clock.monotonic_ns()) - started_ns)

    def _check(self, scope: Scope) -> responses.EncodedResponse | None:
        """Return the response to a request that must not be routed, or None."""
        headers: request_guard.Headers = scope["headers"]
        client = scope["client"]
        peer = client[0] if client else None
        rejection = request_guard.check_request(
            self.state.guard, scope["method"], headers, peer, opens_shell=scope["raw_path"] == INDEX_PATH
        )
        if rejection is not None:
            self.state.counters.guarded += 1
            self._log_guard(scope["method"], rejection.detail)
            if rejection.status == errors.HTTP_STATUS[errors.ErrorCode.FORBIDDEN]:
                self._audit_denied(headers, None, reason=rejection.detail)
            return responses.problem(rejection.status, rejection.code, rejection.detail)
        if len(scope["raw_path"]) + len(scope["query_string"]) > MAX_TARGET_BYTES:
            return responses.problem(
                400, errors.ErrorCode.INVALID_REQUEST, f"The URL must be at most {MAX_TARGET_BYTES} bytes"
            )
        if not request_parts.is_clean_path(scope["raw_path"]):
            return responses.problem(400, errors.ErrorCode.INVALID_REQUEST, "The path is not valid")
        for name, value in headers:
            if name == b"content-encoding" and value.strip().lower() not in {b"", b"identity"}:
                return responses.problem(
                    415, errors.ErrorCode.UNSUPPORTED_MEDIA_TYPE, "Compressed request bodies are not accepted"
                )
        return None

    async def _respond(self, scope: Scope, receive: Receive, context: RequestContext) -> responses.EncodedResponse:
        """Return the response to a request that passed the checks. Raises nothing but CancelledError."""
        found = self._table.find(scope["path"], scope["raw_path"])
        if found is None:
            return responses.error_response(errors.NotFound("Not found"))
        endpoint, path = found
        context.path = endpoint.path
        route = context.route = endpoint.route(scope["method"])
        if route is None:
            allow = {"allow": endpoint.allow}
            return responses.problem(405, errors.ErrorCode.METHOD_NOT_ALLOWED, "Method not allowed", headers=allow)
        return await self._without_errors(context, self._call_handler(route, path, scope, receive, context))

    async def _without_errors(
        self, context: RequestContext, answer: Coroutine[Any, Any, responses.EncodedResponse]
    ) -> responses.EncodedResponse:
        """Return the response, or the one to the error that was raised."""
        try:
            return await answer
        except errors.SignetError as error:
            if error.code is errors.ErrorCode.INTERNAL:
                self._log_failure(context)
                return responses.internal_problem(context.trace_id)
            return responses.with_warnings(responses.error_response(error), context.warnings)
        except Exception as error:  # noqa: BLE001 - log the exception, and answer without its text
            if isinstance(error, OSError) and error.errno in _NO_SPACE:
                with contextlib.suppress(Exception):
                    self.state.log.warning("disk_full", route=context.path, trace=context.trace_id)
                return responses.error_response(errors.StorageFull())
            self._log_failure(context)
            return responses.internal_problem(context.trace_id)

    async def _call_handler(
        self, route: Route, path: Mapping[str, str], scope: Scope, receive: Receive, context: RequestContext
    ) -> responses.EncodedResponse:
        """Read the request, run its handler, and return the encoded response."""
        state = self.state
        headers: request_guard.Headers = scope["headers"]
        operation = route.operation
        # The requests of its tools decide for themselves whether they change anything.
        context.observes = (operation.performs or not operation.has_effect) and request_parts.is_observed(headers)
        await self._check_operation(operation, context)
        if EVENT_STREAM in operation.media_types and scope["http_version"] == "1.0":
            # It has no length, and 1.0 knows no chunks.
            raise errors.InvalidRequest("A stream of events needs HTTP/1.1")
        raw = (
            await request_parts.read_body(receive, state.config.gateway.max_body_bytes)
            if request_guard.has_body(headers)
            else b""
        )
        is_disconnected = context.is_disconnected
        if is_disconnected is not None:
            if len(raw) > LARGE_BODY_BYTES:
                for _ in range(2):  # one iteration reads the end of the stream, one reports it
                    await asyncio.sleep(0)
            if is_disconnected():
                raise errors.InvalidRequest("The client closed the connection")
        warnings = context.warnings
        query = request_parts.read_query(scope["query_string"], warnings)
        if query and operation.permission is not None:
            warnings += query_warnings(operation, query)
        call = Call[Any](
            state,
            route,
            path=path,
            query=query,
            headers=request_parts.decoded_headers(headers),
            raw=raw,
            trace_id=context.trace_id,
            began_ns=state.clock.monotonic_ns(),
            wait_disconnected=context.wait_disconnected,
            warnings=warnings,
            perform=partial(self._perform, context),
            after_response=context.after_response,
            require_owner=partial(require_owner, state, *context.peer),
            identity=context.identity or LOCAL,
            observes=context.observes,
        )
        sync_point("gateway.validated")
        if context.overloaded:
            cached = self._response_cache.get(route.path, state.clock.monotonic_ns())
            if cached is not None:
                return cached
        context.dispatch = track_dispatch()
        limit_ms = state.config.gateway.request_timeout_ms
        answer = await self._run(call, context.dispatch, limit_ms + OUTER_RESERVE_MS * route.operation.performs)
        context.observes = call.observes  # also of a dry run
        if context.overloaded and not warnings:
            self._response_cache.store(route.path, answer, state.clock.monotonic_ns())
        return answer

    async def _check_operation(self, operation: Operation[Any], context: RequestContext) -> None:
        """Raise a SignetError if the client that made the request ``context`` is not served the operation now."""
        if not operation.public:
            try:
                identity = context.identity = context.identity or await self._identify(context)
                identity.check(operation)
                if identity.role is None and operation.permission is not None:
                    await (require_owner if operation.owner_only else require_user)(self.state, *context.peer)
            except errors.SignetError as error:
                self._log_guard(operation.method, error.detail)
                if errors.HTTP_STATUS[error.code] in {401, 403}:
                    _, _, headers, known = context.peer
                    detail = {
                        "operation": operation.name,
                        "trace": context.trace_id,
                        "uid": known[0] if known else None,
                    }
                    self._audit_denied(headers, context.identity, **detail)
                raise
            self.state.take_rate(identity, operation.rate)
        if operation.effect is Effect.MEMORIES and self.state.config.memory.pipeline_v2.mutations_frozen:
            raise errors.MutationsFrozen

    async def _identify(self, context: RequestContext) -> Identity:
        """Return who makes the request. Raises SignetError."""
        client, _, headers, _ = context.peer
        on_loopback = (
            client is not None and request_guard.is_loopback(client[0]) and not request_guard.is_from_proxy(headers)
        )
        is_local = on_loopback and not self.state.guard.proxies
        try:
            return await self.state.authenticator.identify(
                self.state.config.auth.mode,
                headers,
                owner_token=self.state.owner_token,
                is_local=is_local,
                on_loopback=on_loopback,
            )
        except WrongToken:
            self.state.count_wrong_token(
                request_guard.client_address(self.state.guard, client[0] if client else None, headers)
            )
            raise

    async def _run(self, call: Call[Any], dispatch: Dispatch, limit_ms: int) -> responses.EncodedResponse:
        """Return the encoded response of the handler, which has ``limit_ms``. Record an audited request."""
        if not call.route.operation.audited:
            return await self._answer(call, dispatch, limit_ms)
        try:
            answer = await self._answer(call, dispatch, limit_ms)
        except BaseException as error:
            code = error.code if isinstance(error, errors.SignetError) else errors.ErrorCode.INTERNAL
            await self._audit(call, errors.HTTP_STATUS[code], waits=False)
            raise
        await self._audit(call, answer.status, waits=call.route.operation.has_effect)
        return answer

    async def _audit(self, call: Call[Any], status: int, *, waits: bool) -> None:
        """Record the request. With ``waits`` its row is on disk then, if the writer can. Raises nothing."""
        audit, operation, name, actor_type = self.state.audit, call.route.operation, UNKNOWN, None
        if call.audit_detail is None:
            return
        try:
            with contextlib.suppress(errors.SignetError):  # its names are not valid
                name, actor_type = call.principal.changed_by, call.principal.actor_type
            event = audit.event(
                CHANGE if operation.has_effect else EXPORT,
                self.state.redactor.clean(name)[0],
                "done" if status < 400 else "refused" if status < 500 else "failed",
                operation=operation.name,
                actorType=actor_type,
                token=call.identity.id or None,
                status=status,
                trace=call.trace_id,
                **call.audit_detail,
            )
            await audit.record(event) if waits else audit.add(event)
        except Exception:
            with contextlib.suppress(Exception):
                self.state.log.exception("request_not_recorded", trace=call.trace_id)

    async def _answer(self, call: Call[Any], dispatch: Dispatch, limit_ms: int) -> responses.EncodedResponse:
        try:
            async with asyncio.timeout(limit_ms / 1000) as window:
                reply = await call.route.handler(call)
        except TimeoutError:
            if not window.expired():
                raise
            if call.route.operation.has_effect and dispatch.sent:
                raise errors.OutcomeUnknown from None
            raise errors.Unavailable(f"No answer within {limit_ms} ms", retry_after_ms=1000) from None
        return responses.encode_response(reply, call.warnings)

    async def _perform(self, outer: RequestContext, request: InnerRequest) -> tuple[int, bytes]:
        """Serve ``request`` within the request ``outer``, and return status and body. It is counted and logged too.

        Its deadline is earlier than that of ``outer``, whose handler can then still answer.
        """
        state, operation = self.state, request.operation
        started_ns = state.clock.monotonic_ns()
        route = self._first_routes[operation]
        context = RequestContext.within(outer, route)
        context.observes = outer.observes and not operation.has_effect
        dispatch = current_dispatch() or track_dispatch()

        async def answer() -> responses.EncodedResponse:
            await self._check_operation(operation, outer)
            if operation.has_effect and not outer.become_write():
                raise errors.Busy
            context.warnings += query_warnings(operation, request.query)
            call = Call[Any](
                state,
                route,
                path=request.path,
                query=request.query,
                headers=request.headers,
                raw=request.body,
                trace_id=context.trace_id,
                began_ns=state.clock.monotonic_ns(),
                wait_disconnected=context.wait_disconnected,
                warnings=context.warnings,
                after_response=context.after_response,
                require_owner=partial(require_owner, state, *outer.peer),
                identity=context.identity or LOCAL,
                observes=context.observes,
            )
            return await self._run(call, dispatch, state.config.gateway.request_timeout_ms)

        try:
            encoded = await self._without_errors(context, answer())
            context.status, context.code = encoded.status, encoded.code
        finally:
            if not 0 < context.status < 400:  # 0: the task is cancelled
                mark_unsent(context.after_response)
            outer.after_response += context.after_response
        with contextlib.suppress(Exception):  # metrics and logs must not fail the request
            self._record(operation.method, context, state.clock.monotonic_ns() - started_ns)
        return encoded.status, encoded.body

    def _finish(self, context: RequestContext) -> None:
        """Do what the handler wants to do after its response. The loop has run nothing else since that was written."""
        is_disconnected = context.is_disconnected
        is_sent = 0 < context.status < 400 and not (is_disconnected is not None and is_disconnected())
        for action in context.after_response:
            try:
                action(is_sent)
            except Exception:  # noqa: BLE001 - the others are done all the same
                self._log_failure(context)

    def _log_failure(self, context: RequestContext) -> None:
        """Log the exception that is being handled. A failure of the log is ignored."""
        with contextlib.suppress(Exception):
            route = context.route.path if context.route is not None else None
            self.state.log.exception("request_failed", route=route, trace=context.trace_id)

    def _record(self, method: str, context: RequestContext, took_ns: int) -> None:
        """Count the request unless a person only looks; log it if it failed: by route, never path, query or body."""
        status = context.status
        if context.observes and status < 500:
            return
        counters = self.state.counters
        self.state.request_metrics.observe(context.path, method, status, took_ns, context.code)
        actor = (context.identity and context.identity.name) or request_parts.header(context.peer[2], b"x-signet-actor")
        self.state.usage.observe(context.route.operation if context.route else None, actor, status, took_ns)
        if status >= 500:
            counters.server_errors += 1
        elif status >= 400:
            counters.client_errors += 1
        if status < 500 and not self.state.logs_every_request:
            return
        log = self.state.log.warning if status >= 500 else self.state.log.debug
        took_ms = round(took_ns / 1e6, 2)
        log("request", method=method, route=context.path, status=status, ms=took_ms, trace=context.trace_id)

    def _audit_denied(self, headers: Iterable[tuple[bytes, bytes]], identity: Identity | None, **detail: Any) -> None:
        """Record a denied request of the bearer of a token, or of whom it claims to be of. A failure is ignored."""
        with contextlib.suppress(Exception):
            name, token = (identity.name, identity.id) if identity is not None else ("", "")
            if not name:
                claimed = next((value for key, value in headers if key == b"x-signet-actor"), b"")
                name = claimed[:MAX_PRINCIPAL_CHARS].decode("utf-8", "replace")
            line = self.state.redactor.clean("".join(filter(str.isprintable, name)).strip())[0]
            audit = self.state.audit
            audit.add(audit.event(DENIED, line or UNKNOWN, "refused", token=token or None, **detail))

    def _log_guard(self, method: str, reason: str) -> None:
        """Log a rejection by the guard, at most once a second, with the number of suppressed lines."""
        with contextlib.suppress(Exception):
            self._guard_warnings.warning("request_guarded", method=method, reason=reason)


def _shutdown_response(context: RequestContext) -> responses.EncodedResponse:
    """Return the response to a request that was still in progress when the drain's grace ended."""
    route, dispatch = context.route, context.dispatch
    if route is not None and route.operation.has_effect and dispatch is not None and dispatch.sent:
        return responses.error_response(errors.OutcomeUnknown())
    return responses.error_response(errors.Unavailable("The daemon is shutting down"))
