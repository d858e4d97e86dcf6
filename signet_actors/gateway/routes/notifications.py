"""Tell a session that memory does not work, so that it is never silently off.

Source: docs/guides/hooks.md "Notifications"; docs/decisions.md 34.
"""

from __future__ import annotations

import hashlib
from typing import Final

from signet_actors.domain.normalization import collapsed
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.sessions.hook_runner import HookSession, run_hook
from signet_actors.operations.notifications import (
    LIST,
    TELL,
    Notification,
    Notifications,
    NotificationsReply,
    NotificationsRequest,
)

BUDGET_MS: Final = 700
MAX_REASON_CHARS: Final = 900
"""The extraction of facts recognises the line by its end."""


async def list_notifications(call: Call[NotificationsRequest]) -> HttpResponse:
    """Return all notifications, whatever a session was told."""
    items = _items(call)
    text = "\n".join(item.message for item in items)
    return HttpResponse(NotificationsReply(inject=text, notifications=Notifications(items, len(items))))


async def tell(call: Call[NotificationsRequest]) -> HttpResponse:
    """Return the notifications that the session was not told yet."""

    async def work(session: HookSession) -> NotificationsReply:
        items = _items(call)
        known = None if session.key is None else call.state.sessions.find(session.key)
        if known is not None:
            told, known.told = known.told, frozenset(item.id for item in items)
            items = [item for item in items if item.id not in told]
        text = "\n".join(item.message for item in items)
        return NotificationsReply(inject=text, notifications=Notifications(items, len(items)))

    return await run_hook(call, BUDGET_MS, work, NotificationsReply())


def _items(call: Call[NotificationsRequest]) -> list[Notification]:
    """Return what is to be told now: that memories cannot be stored or read."""
    found = call.state.readiness()
    if found.ready:
        return []
    reason = collapsed(found.detail).replace("]", ")")[:MAX_REASON_CHARS]
    message = f"[signet: memory does not work now, because {reason}]"
    return [Notification(hashlib.sha256(message.encode()).hexdigest()[:16], message)]


ROUTES: Final[tuple[Route, ...]] = (*serve(LIST, list_notifications), *serve(TELL, tell))
