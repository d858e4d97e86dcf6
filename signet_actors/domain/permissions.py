"""The permissions of routes, and what the declared type of an actor permits.

Source: architecture.txt "Auth Middleware"; docs/compatibility.md "Authentication".
"""

from __future__ import annotations

from enum import StrEnum


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


AUTONOMOUS_ACTOR_TYPES = frozenset({"pipeline", "agent"})
"""Actor types that are not people, by their own declaration. They may not force-delete or purge memories."""

PERSON_ACTOR_TYPE = "operator"
"""The only actor type whose decision counts as a person's review."""
