"""Tell a session that memory does not work, so that it is never silently off. Source: docs/decisions.md 34."""

from __future__ import annotations

from typing import Final

from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.sessions.hook_runner import HookSession, run_hook
from signet_actors.gateway.sessions.notices import notifications_now
from signet_actors.operations.hooks import Notification, Notifications
from signet_actors.operations.notifications import LIST, TELL, NotificationsReply, NotificationsRequest

BUDGET_MS: Final = 700


async def list_notifications(call: Call[NotificationsRequest]) -> HttpResponse:
    """Return all notifications, whatever a session was told."""
    return HttpResponse(_reply(notifications_now(call.state)))


async def tell(call: Call[NotificationsRequest]) -> HttpResponse:
    """Return the notifications that the session was not told yet."""

    async def work(session: HookSession) -> NotificationsReply:
        items = notifications_now(call.state)
        known = None if session.key is None else call.state.sessions.find(session.key)
        if known is not None:
            notified = known.notified
            if not call.observes:
                known.notified = frozenset(item.id for item in items)
            items = [item for item in items if item.id not in notified]
        return _reply(items)

    return await run_hook(call, BUDGET_MS, work, NotificationsReply())


def _reply(items: list[Notification]) -> NotificationsReply:
    text = "\n".join(item.message for item in items)
    return NotificationsReply(inject=text, notifications=Notifications(items, len(items)))


ROUTES: Final[tuple[Route, ...]] = (*serve(LIST, list_notifications), *serve(TELL, tell))
