"""Who the caller is taken for. Source: docs/compatibility.md "Authentication"; docs/decisions.md 44."""

from __future__ import annotations

from signet_actors.gateway.route import Call, Reply, Route
from signet_actors.protocol.http.auth import WhoAmIReply


async def who_am_i(call: Call) -> Reply:  # noqa: ARG001 - in local mode every caller is the same
    """Local mode, without claims."""
    return Reply(WhoAmIReply(authenticated=False, claims=None, mode="local"))


ROUTES: tuple[Route, ...] = (
    Route("GET", "/api/auth/whoami", who_am_i, None, "Who the caller is", "auth", replies={200: WhoAmIReply}),
)
