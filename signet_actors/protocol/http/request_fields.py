"""Fields common to all request bodies, and the mark of documented fields that have no effect yet."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Meta

NOT_YET: Final = "notYet"
ONLY_FOR: Final = "onlyFor"


class CallerFields(msgspec.Struct, frozen=True, omit_defaults=True):
    """Fields that any body may contain; the agent, session and scope may be in the query instead."""

    agent_id: str | None = msgspec.field(default=None, name="agentId")
    session_key: str | None = msgspec.field(default=None, name="sessionKey")
    scope: str | None = None
    changed_by: str | None = None


def not_yet(what: str, *only_for: str) -> Meta:
    """Mark a documented field that is accepted and has no effect in this release.

    A request that uses it gets the warning ``<field> <what>``. With ``only_for``, only these values (or a list with one
    of them) have no effect.
    """
    return Meta(description=f"This field {what}.", extra={NOT_YET: what, ONLY_FOR: only_for})
