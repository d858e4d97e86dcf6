"""Routes of tests: a handler that gets the HTTP request as it is, without fields."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from signet_actors.domain.permissions import Permission
from signet_actors.gateway.http.route import Call, HttpResponse, Route
from signet_actors.operations.operation import Effect, Operation
from signet_actors.operations.request_fields import NoFields


def plain_route(
    method: str,
    path: str,
    handler: Callable[[Call[Any]], Awaitable[HttpResponse]],
    permission: Permission | None = None,
    *,
    mutates: bool = False,
    replies: Mapping[int, Any] | None = None,
) -> Route:
    """Return a route to ``handler``. With ``mutates``, its operation changes memories."""
    operation = Operation(
        name=f"test.{method.lower()}_{path}",
        summary=path,
        tag="test",
        method=method,
        paths=(path,),
        request=NoFields,
        replies=replies or {},
        permission=permission,
        effect=Effect.MEMORIES if mutates else Effect.NONE,
    )
    return Route(operation, path, handler)
