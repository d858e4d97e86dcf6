"""The permissions of routes, and what the declared type of an actor permits.

Source: architecture.txt "Auth Middleware"; docs/compatibility.md "Authentication".
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Permission(StrEnum):
    """The permission that a route requires. Each route declares exactly one (docs/decisions.md 40)."""

    REMEMBER = "remember"
    RECALL = "recall"
    MODIFY = "modify"
    FORGET = "forget"
    RECOVER = "recover"
    DOCUMENTS = "documents"
    CONNECTORS = "connectors"
    DIAGNOSTICS = "diagnostics"
    ANALYTICS = "analytics"
    ADMIN = "admin"


class Role(StrEnum):
    """What the bearer of a token may do."""

    ADMIN = "admin"
    OPERATOR = "operator"
    AGENT = "agent"
    READONLY = "readonly"


PERMISSIONS_OF: Final = {
    Role.ADMIN: frozenset(Permission),
    Role.OPERATOR: frozenset(Permission) - {Permission.ADMIN},
    Role.AGENT: frozenset(
        {
            *(Permission.REMEMBER, Permission.RECALL, Permission.MODIFY),
            *(Permission.FORGET, Permission.RECOVER, Permission.DOCUMENTS),
        }
    ),
    Role.READONLY: frozenset({Permission.RECALL}),
}
API_KEY_PERMISSIONS: Final = frozenset({Permission.RECALL, Permission.REMEMBER, Permission.DOCUMENTS})
"""Of an API key, whose role is that of an agent."""

AUTONOMOUS_ACTOR_TYPES = frozenset({"pipeline", "agent"})
"""Actor types that are not people, by their own declaration. They may not force-delete or purge memories."""

PERSON_ACTOR_TYPE = "operator"
"""The only actor type whose decision counts as a person's review."""
