"""The identity of the caller. Source: docs/compatibility.md "Authentication"; docs/decisions.md 44."""

from __future__ import annotations

from signet_actors.gateway.http.route import HttpRequest, HttpResponse, Route
from signet_actors.operations.auth import WhoAmIReply


async def who_am_i(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 - all callers get the same reply
    """Report local mode, in which callers are not authenticated and have no claims."""
    return HttpResponse(WhoAmIReply(authenticated=False, claims=None, mode="local"))


ROUTES: tuple[Route, ...] = (
    Route("GET", "/api/auth/whoami", who_am_i, None, "Identity of the caller", "auth", replies={200: WhoAmIReply}),
)
