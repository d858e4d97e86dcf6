"""What a session should be told although it asked for nothing: that memory does not work, and why.

Source: docs/compatibility.md "Hooks and sessions"; docs/guides/hooks.md "Notifications".
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from signet_actors.domain.permissions import Permission
from signet_actors.operations.hooks import HookFields, HookOutcome, Notifications
from signet_actors.operations.operation import BY_AGENT, OWNERS_SESSION, Operation
from signet_actors.operations.problem import PROBLEMS
from signet_actors.operations.request_fields import SelectionText


class NotificationsRequest(HookFields, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Who asks."""

    harness: Annotated[SelectionText, Meta(description="The program that runs the agent")] | None = None
    hook: Annotated[SelectionText, Meta(description="The hook of the harness in which it asks")] | None = None


class NotificationsReply(HookOutcome, frozen=True, kw_only=True, rename="camel"):
    """``inject`` is the text for the agent's context, empty if there is nothing that the session was not told."""

    inject: str = ""
    notifications: Notifications = Notifications()


LIST: Final[Operation[NotificationsRequest, NotificationsReply]] = Operation(
    name="hooks.list_notifications",
    summary="List notifications",
    tag="Hooks",
    paths=("/api/hooks/notifications",),
    request=NotificationsRequest,
    replies={200: NotificationsReply, **PROBLEMS},
    permission=Permission.RECALL,
    scoped_by=BY_AGENT,
    lenient=True,
)
TELL: Final[Operation[NotificationsRequest, NotificationsReply]] = Operation(
    name="hooks.notifications",
    summary="Notifications that a session was not told yet",
    tag="Hooks",
    method="POST",
    paths=("/api/hooks/notifications",),
    request=NotificationsRequest,
    example={"harness": "opencode", "hook": "chat.message", "sessionKey": "s-1"},
    replies={200: NotificationsReply, **PROBLEMS},
    owner_parts=OWNERS_SESSION,
    permission=Permission.RECALL,
    scoped_by=BY_AGENT,
    lenient=True,
    description="The text of a notification comes once in a session, and again after it has changed.",
)
OPERATIONS: Final = (LIST, TELL)
