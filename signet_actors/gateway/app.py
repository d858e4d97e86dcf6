"""The application: guard, limits, trace id and errors around a Litestar router made from the route table.

A request passes, in this order: the guard (before anything else is looked at), the checks of target and encoding,
routing, the kill switch, the body (whole, bounded), and the handler under its deadline, unless its client has gone
meanwhile. Whatever happens, exactly one JSON answer leaves, with a trace id.

Source: house.md section 2; wire.md 1.0; decisions.md 25, 30, 40; reliability.md 3.2 A10, A12.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import parse_qsl, unquote_to_bytes

import structlog
from litestar import Litestar, Request, Response
from litestar.exceptions import HTTPException, MethodNotAllowedException
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse
from litestar.types import ControllerRouterHandler, HTTPScope, Message, Receive, Scope, Send

from signet_actors.errors import ErrorCode, InvalidRequest, NotFound, OutcomeUnknown, SignetError, Unavailable
from signet_actors.gateway.answers import Answer, answer_from_error, answer_from_reply, internal_problem, problem
from signet_actors.gateway.guard import Headers, has_body, judge
from signet_actors.gateway.route import Call, Route
from signet_actors.gateway.server import GONE, LARGE_BODY_BYTES
from signet_actors.gateway.state import GatewayState
from signet_actors.runtime.clock import new_id
from signet_actors.runtime.sync_points import sync_point

TRACE = "signet.trace_id"
ROUTE = "signet.route"
MAX_TARGET_BYTES = 8192
MAX_QUERY_FIELDS = 64
GUARD_LOG_INTERVAL_NS = 1_000_000_000
ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
)
"""Sent with every answer. There is no Access-Control header among them, and there never is one elsewhere."""


class Edge:
    """The ASGI application that the server calls; ``answer`` is what the router calls back for a matched route."""

    def __init__(self, state: GatewayState, routes: Sequence[Route]) -> None:
        self.state = state
        self.routes = routes
        self._router = _router(self, routes)
        self._guard_logged_ns = 0
        self._guard_unlogged = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if cast("str", scope["type"]) == "http":
            await self._exchange(cast("HTTPScope", scope), receive, send)
        else:
            await self._router(scope, receive, send)  # the lifespan

    async def _exchange(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        """Exactly one answer has been sent, and one line logged."""
        state = self.state
        trace_id = new_id(state.clock, state.rng)
        structlog.contextvars.bind_contextvars(trace=trace_id)
        started_ns = state.clock.monotonic_ns()
        status = 0
        state.counters.requests += 1
        state.counters.in_flight += 1

        async def send_labelled(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                sync_point("gateway.before_response")
                status = message["status"]
                headers = [*message["headers"], *ALWAYS, (b"x-signet-trace-id", trace_id.encode())]
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"no-store"))
                message["headers"] = headers
            else:
                sync_point("gateway.mid_response")
            await send(message)

        routed = cast("HTTPScope", {**scope, TRACE: trace_id, ROUTE: None})
        if scope["method"] == "HEAD":
            routed["method"] = cast("Any", "GET")  # the server sends the headers of the GET and drops the body
        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                await _write(refusal, send_labelled)
            else:
                await self._router(routed, receive, send_labelled)
        except asyncio.CancelledError:
            # The drain's grace is over; the task is the server's own and ends here.
            if status == 0:
                await _write(_cut_off(cast("dict[str, Any]", routed)[ROUTE]), send_labelled)
        except Exception:  # the last line: the server would answer with plain text
            state.log.exception("request_failed", trace=trace_id)
            if status == 0:
                await _write(internal_problem(trace_id), send_labelled)
        finally:
            state.counters.in_flight -= 1
            route = cast("dict[str, Any]", routed)[ROUTE]
            self._record(scope["method"], route, status, state.clock.monotonic_ns() - started_ns, trace_id)

    def _refusal(self, scope: HTTPScope) -> Answer | None:
        """Why the request is not even routed, or None."""
        headers = cast("Headers", scope["headers"])
        client = scope["client"]
        verdict = judge(self.state.guard, scope["method"], headers, client[0] if client else None)
        if verdict is not None:
            self.state.counters.guarded += 1
            self._log_guard(scope["method"], verdict.detail)
            return problem(verdict.status, verdict.code, verdict.detail)
        if len(scope["raw_path"]) + len(scope["query_string"]) > MAX_TARGET_BYTES:
            return problem(400, ErrorCode.INVALID_REQUEST, f"The URL must be at most {MAX_TARGET_BYTES} bytes")
        if not _is_clean_path(scope["raw_path"]):
            return problem(400, ErrorCode.INVALID_REQUEST, "The path is not valid")
        for name, value in headers:
            if name == b"content-encoding" and value.strip().lower() not in {b"", b"identity"}:
                return problem(415, ErrorCode.UNSUPPORTED_MEDIA_TYPE, "Compressed request bodies are not accepted")
        return None

    async def answer(self, route: Route, scope: HTTPScope, receive: Receive) -> Answer:
        """The answer of ``route``; never raises but for cancellation."""
        extra = cast("dict[str, Any]", scope)
        extra[ROUTE] = route
        trace_id: str = extra[TRACE]
        try:
            return await self._ask_handler(route, scope, receive, trace_id)
        except SignetError as error:
            if error.code is ErrorCode.INTERNAL:
                self.state.log.exception("request_failed", route=route.path, trace=trace_id)
                return internal_problem(trace_id)
            return answer_from_error(error)
        except Exception:  # a fault of ours is logged whole and answered without its text
            self.state.log.exception("request_failed", route=route.path, trace=trace_id)
            return internal_problem(trace_id)

    async def _ask_handler(self, route: Route, scope: HTTPScope, receive: Receive, trace_id: str) -> Answer:
        state = self.state
        if route.mutates and state.config.memory.pipeline_v2.mutations_frozen:
            raise SignetError("Mutations are frozen (kill switch active)", code=ErrorCode.MUTATIONS_FROZEN)
        headers = cast("Headers", scope["headers"])
        raw = await _read_body(receive, state.config.gateway.max_body_bytes) if has_body(headers) else b""
        gone = cast("dict[str, Any]", scope).get(GONE)
        if gone is not None:
            if len(raw) > LARGE_BODY_BYTES:
                for _ in range(2):  # the loop reads the end of the stream, then says so
                    await asyncio.sleep(0)
            if gone():
                raise InvalidRequest("The client went away")
        call = Call(
            state=state,
            route=route,
            path=cast("Mapping[str, str]", scope["path_params"]),
            query=_query(scope["query_string"]),
            headers=_decoded(headers),
            raw=raw,
            trace_id=trace_id,
        )
        sync_point("gateway.validated")
        limit_ms = state.config.gateway.request_timeout_ms
        try:
            async with asyncio.timeout(limit_ms / 1000) as window:
                reply = await route.handler(call)
        except TimeoutError:
            if not window.expired():
                raise
            if route.has_effect:
                raise OutcomeUnknown from None
            raise Unavailable(f"No answer within {limit_ms} ms", retry_after_ms=1000) from None
        return answer_from_reply(reply)

    def _record(self, method: str, route: Route | None, status: int, took_ns: int, trace_id: str) -> None:
        """One line a request: template instead of path, and never a query or a body."""
        counters = self.state.counters
        if status >= 500:
            counters.server_errors += 1
        elif status >= 400:
            counters.client_errors += 1
        log = self.state.log.warning if status >= 500 else self.state.log.debug
        log(
            "request",
            method=method,
            route=route.path if route else None,
            status=status,
            ms=round(took_ns / 1e6, 2),
            trace=trace_id,
        )

    def _log_guard(self, method: str, reason: str) -> None:
        """Refusals of the guard are told, at most one line a second, with the number of those not told."""
        now = self.state.clock.monotonic_ns()
        if now - self._guard_logged_ns < GUARD_LOG_INTERVAL_NS:
            self._guard_unlogged += 1
            return
        self.state.log.warning("request_guarded", method=method, reason=reason, not_logged=self._guard_unlogged)
        self._guard_logged_ns, self._guard_unlogged = now, 0


def _cut_off(route: Route | None) -> Answer:
    """The answer to a request that was still being served when the daemon had to stop."""
    if route is not None and route.has_effect:
        return answer_from_error(OutcomeUnknown())
    return answer_from_error(Unavailable("The daemon is shutting down"))


def litestar_path(path: str) -> str:
    """The route's path as Litestar spells it: ``{id}`` becomes ``{id:str}``."""
    return path.replace("}", ":str}")


def _router(edge: Edge, routes: Sequence[Route]) -> Litestar:
    allowed: dict[str, list[str]] = {}
    for route in routes:
        allowed.setdefault(route.path, []).append(route.method)
    # OPTIONS first: Litestar adds its own to every path that has none yet.
    handlers: list[ControllerRouterHandler] = [_options_handler(path, methods) for path, methods in allowed.items()]
    handlers += [_handler(edge, route) for route in routes]
    return Litestar(
        route_handlers=handlers,
        exception_handlers={Exception: lambda request, error: _routing_failure(edge, request, error)},
        openapi_config=None,
        logging_config=None,
        debug=False,
    )


def _handler(edge: Edge, route: Route) -> HTTPRouteHandler:
    """The route as a Litestar handler. Litestar routes and responds; what is between belongs to ``Edge.answer``."""

    async def handle(request: Request[Any, Any, Any]) -> ASGIResponse:
        return _response(await edge.answer(route, request.scope, request.receive))

    return HTTPRouteHandler(
        litestar_path(route.path),
        http_method=[cast("Any", route.method)],
        name=f"{route.method} {route.path}",
        opt={"route": route},
        status_code=200,  # only a default that suits every method; each answer has its own
        include_in_schema=False,
    )(handle)


def _options_handler(path: str, methods: Sequence[str]) -> HTTPRouteHandler:
    """A preflight is refused like any other unknown method, instead of Litestar's own 204."""
    allow = _allow(methods)

    async def handle() -> ASGIResponse:
        return _response(_method_not_allowed(allow))

    return HTTPRouteHandler(litestar_path(path), http_method=[cast("Any", "OPTIONS")], include_in_schema=False)(handle)


def _routing_failure(edge: Edge, request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """What the router could not route, as the one error body."""
    answer = _routing_answer(edge, request, error)
    return Response(
        content=answer.body,
        status_code=answer.status,
        headers=dict(answer.headers),
        media_type=answer.media_type,
    )


def _routing_answer(edge: Edge, request: Request[Any, Any, Any], error: Exception) -> Answer:
    if isinstance(error, MethodNotAllowedException):
        return _method_not_allowed(_allow((error.headers or {}).get("allow", "").split(", ")))
    if isinstance(error, HTTPException) and error.status_code == 404:
        return answer_from_error(NotFound("Not found"))
    if isinstance(error, HTTPException) and error.status_code < 500:
        return answer_from_error(InvalidRequest("The request is not valid"))
    trace_id: str = cast("dict[str, Any]", request.scope)[TRACE]
    edge.state.log.error("request_failed", exc_info=error, trace=trace_id)
    return internal_problem(trace_id)


def _allow(methods: Sequence[str]) -> str:
    known = {method for method in methods if method and method != "OPTIONS"}
    return ", ".join(sorted(known | ({"HEAD"} if "GET" in known else set())))


def _method_not_allowed(allow: str) -> Answer:
    return problem(405, ErrorCode.METHOD_NOT_ALLOWED, "Method not allowed", headers={"allow": allow})


def _response(answer: Answer) -> ASGIResponse:
    return ASGIResponse(
        body=answer.body,
        status_code=answer.status,
        headers=answer.headers.items(),
        media_type=answer.media_type,
    )


async def _write(answer: Answer, send: Send) -> None:
    """The answer without the router."""
    headers = [
        (b"content-type", answer.media_type.encode()),
        (b"content-length", str(len(answer.body)).encode()),
        *((name.encode(), value.encode()) for name, value in answer.headers.items()),
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body, "more_body": False})


async def _read_body(receive: Receive, limit: int) -> bytes:
    """The whole body. The server counts too; this holds when another server is in front."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise InvalidRequest("The client went away before the body had arrived")
        size += len(message["body"])
        if size > limit:
            raise SignetError(f"The request body must be at most {limit} bytes", code=ErrorCode.PAYLOAD_TOO_LARGE)
        parts.append(message["body"])
        if not message["more_body"]:
            return b"".join(parts)


def _is_clean_path(raw: bytes) -> bool:
    """UTF-8 once unescaped, without control characters (NUL, CR and LF among them)."""
    if b"%" not in raw:
        return True
    try:
        text = unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        return False
    return all(char >= " " and not "\x7f" <= char <= "\x9f" for char in text)


def _query(raw: bytes) -> Mapping[str, str]:
    """Query parameters by name, the first of a repeated one, as the reference daemon reads them."""
    if not raw:
        return {}
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_QUERY_FIELDS)
    except ValueError as error:  # also UnicodeDecodeError
        raise InvalidRequest("The query string is not valid") from error
    query: dict[str, str] = {}
    for name, value in pairs:
        if "\0" in name or "\0" in value:
            raise InvalidRequest("The query string is not valid")
        query.setdefault(name, value)
    return query


def _decoded(headers: Headers) -> Mapping[str, str]:
    """Header values as text: UTF-8 where they are, else Latin-1; repeated ones joined by a comma."""
    decoded: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name = raw_name.decode("latin-1")
        try:
            value = raw_value.decode()
        except UnicodeDecodeError:
            value = raw_value.decode("latin-1")
        decoded[name] = f"{decoded[name]}, {value}" if name in decoded else value
    return decoded
