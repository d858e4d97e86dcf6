"""Binds handlers to operations: reads and redacts a request before its handler runs.

A handler is a coroutine from ``Call`` to ``HttpResponse``. It sees no field that was not checked, and no secret in a
field that is stored; principal, agent, scope and idempotency key come from the call.

Source: docs/architecture.md "How to add"; docs/decisions.md 3, 26, 40.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

import msgspec

from signet_actors.errors import InvalidRequest
from signet_actors.gateway.http.route import HttpRequest, HttpResponse, Route
from signet_actors.gateway.ingest import FieldRedactor
from signet_actors.gateway.redaction import Kinds
from signet_actors.gateway.state import GatewayState
from signet_actors.operations.field_types import MAX_NAME_CHARS, SecretRule
from signet_actors.operations.operation import Operation
from signet_actors.operations.request_fields import FilterFields
from signet_actors.operations.request_reader import read_request, request_fields
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.message import Idempotency, Principal, Request

RequestT = TypeVar("RequestT", bound=msgspec.Struct)
R = TypeVar("R")


class Call(Generic[RequestT]):
    """One request of an operation. ``redactions`` are the kinds of the secrets that were cut out of ``request``."""

    def __init__(self, http: HttpRequest, body: Mapping[str, Any] | None, request: RequestT, redactions: Kinds) -> None:
        self.http = http
        self.request = request
        self.redactions = redactions
        self._body = body

    @property
    def state(self) -> GatewayState:
        """The state that all handlers share."""
        return self.http.state

    @property
    def path(self) -> Mapping[str, str]:
        """The parameters of the path."""
        return self.http.path

    @cached_property
    def principal(self) -> Principal:
        """The author of a change, as history records it, without secrets. Raises InvalidRequest."""
        return FieldRedactor(self.state).principal(self.http.principal(self._body))

    @cached_property
    def idempotency(self) -> Idempotency | None:
        """The client's idempotency key, if it sent one. Raises InvalidRequest."""
        return self.http.idempotency(self._body)

    @cached_property
    def agent_id(self) -> str:
        """The agent on whose behalf the caller acts. Raises InvalidRequest, also for a name that holds a secret."""
        return FieldRedactor(self.state).identifier(self.http.agent_id(self._body), "agentId")

    @cached_property
    def read(self) -> ReadScope:
        """What the caller may read. Raises InvalidRequest."""
        scope = (self._body or {}).get("scope", self.http.query.get("scope"))
        if scope is not None and not isinstance(scope, str):
            raise InvalidRequest("scope must be a string", field="scope")
        if scope and (len(scope) > MAX_NAME_CHARS or "\0" in scope):
            raise InvalidRequest(f"scope must be at most {MAX_NAME_CHARS} characters without NUL", field="scope")
        return ReadScope(agent_id=self.agent_id, scope=scope or None)

    async def ask_searcher(self, query: Request[R], *, frames: Sequence[bytes] = ()) -> R:
        """Return a searcher's reply. Raises SignetError."""
        reply, _ = await self.state.bus.ask_searcher(query, trace_id=self.http.trace_id, frames=frames)
        return reply

    async def ask_writer(self, command: Request[R], *, frames: Sequence[bytes] = ()) -> R:
        """Return the writer's reply; what it reports is on disk. Raises SignetError."""
        return await self.state.bus.ask_writer(command, trace_id=self.http.trace_id, frames=frames)


Handler = Callable[[Call[RequestT]], Awaitable[HttpResponse]]


def serve(operation: Operation[RequestT], handler: Handler[RequestT]) -> tuple[Route, ...]:
    """Return the routes of ``operation``, one for each path. ``handler`` answers all of them."""
    request_fields(operation.lines or operation.request)  # raises at import if a field has no reader
    in_json = operation.in_body and operation.lines is None
    in_query, has_effect = operation.in_query, operation.has_effect

    async def endpoint(http: HttpRequest) -> HttpResponse:
        body = http.json_object(required=operation.body_required) if in_json else None
        query = http.query if in_query else None
        request = read_request(
            operation.request, body=body, query=query, now_ms=http.state.clock.wall_ms(), warnings=http.warnings
        )
        redactor = FieldRedactor(http.state)
        if has_effect:
            request = redacted(redactor, request)
        return await handler(Call(http, body, request, redactor.redactions))

    return tuple(Route(operation, path, endpoint) for path in operation.paths)


def filters_of(request: FilterFields) -> Filters:
    """Return the conditions of ``request``. ``pinned`` false is no condition."""
    return Filters(
        type=request.type,
        tags=request.tags,
        who=request.who,
        pinned=True if request.pinned else None,
        importance_min=request.importance_min,
        since=request.since,
        until=request.until,
        project=request.project,
        source_type=request.source_type,
    )


def redacted(redactor: FieldRedactor, request: RequestT) -> RequestT:
    """Return ``request`` without the secrets in its fields. Raises InvalidRequest.

    Handlers call it only for what they read themselves: the items of a batch, the lines of an import.
    """
    changed: dict[str, Any] = {}
    for field in request_fields(type(request)):
        value = getattr(request, field.name)
        if isinstance(value, msgspec.Struct):
            clean: Any = redacted(redactor, value)
        elif field.type.secret is SecretRule.KEEP or not value:
            continue
        elif field.type.secret is SecretRule.REFUSE:
            clean = redactor.identifier(value, field.spellings[0])
        elif field.type.secret is SecretRule.DIGEST:
            clean = redactor.digest(value)
        else:
            clean = redactor.clean(value) if isinstance(value, str) else redactor.tags(value)
        if clean != value:
            changed[field.name] = clean
    return msgspec.structs.replace(request, **changed) if changed else request
