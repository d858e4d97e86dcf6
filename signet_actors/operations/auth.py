"""The identity of the caller. Source: docs/compatibility.md "Authentication"."""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.config.schema import AuthMode
from signet_actors.domain.tokens import Claims
from signet_actors.operations.operation import BY_ALL, Operation
from signet_actors.operations.request_fields import NoFields


class WhoAmIReply(msgspec.Struct, frozen=True):
    """The caller's identity. ``claims``: of the token that was sent; null without one, and for an API key."""

    authenticated: bool
    claims: Claims | None
    mode: AuthMode


WHO_AM_I: Final[Operation[NoFields, WhoAmIReply]] = Operation(
    name="auth.whoami",
    summary="Identity of the caller",
    tag="auth",
    method="GET",
    paths=("/api/auth/whoami",),
    request=NoFields,
    replies={200: WhoAmIReply},
    permission=None,
    scoped_by=BY_ALL,
)
OPERATIONS: Final = (WHO_AM_I,)
