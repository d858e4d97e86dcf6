"""Who may do what: ten permissions, four roles, one matrix.

Source: architecture.txt "Auth Middleware"; docs/compatibility.md "Authentication".
"""

from __future__ import annotations

from enum import StrEnum


class Permission(StrEnum):
    """What a route asks of its caller; each route declares exactly one (docs/decisions.md 40)."""

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
    """What a token is minted for."""

    ADMIN = "admin"
    OPERATOR = "operator"
    AGENT = "agent"
    READONLY = "readonly"


ROLE_PERMISSIONS: dict[Role, frozenset[Permission]] = {
    Role.ADMIN: frozenset(Permission),
    Role.OPERATOR: frozenset(Permission) - {Permission.ADMIN},
    Role.AGENT: frozenset(
        {
            Permission.REMEMBER,
            Permission.RECALL,
            Permission.MODIFY,
            Permission.FORGET,
            Permission.RECOVER,
            Permission.DOCUMENTS,
        }
    ),
    Role.READONLY: frozenset({Permission.RECALL}),
}


AUTONOMOUS_ACTOR_TYPES = frozenset({"pipeline", "agent"})
"""Actors that are no persons, as they say themselves: what waits for a person, or destroys for good, is not theirs."""

PERSON_ACTOR_TYPE = "operator"
"""The one kind of actor whose word stands for a person's judgement."""


def has_permission(role: Role, permission: Permission) -> bool:
    """Whether ``role`` holds ``permission``."""
    return permission in ROLE_PERMISSIONS[role]
