"""The identity of the caller. Source: docs/compatibility.md "Authentication"; docs/decisions.md 44."""

from __future__ import annotations

from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.operations.auth import WHO_AM_I, WhoAmIReply
from signet_actors.operations.request_fields import NoFields


async def who_am_i(call: Call[NoFields]) -> HttpResponse:  # noqa: ARG001 - all callers get the same reply
    """Report local mode, in which callers are not authenticated and have no claims."""
    return HttpResponse(WhoAmIReply(authenticated=False, claims=None, mode="local"))


ROUTES: tuple[Route, ...] = serve(WHO_AM_I, who_am_i)
