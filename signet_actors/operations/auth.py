"""The identity of the caller. Source: docs/compatibility.md "Authentication"."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from signet_actors.operations.operation import Operation
from signet_actors.operations.request_fields import NoFields


class WhoAmIReply(msgspec.Struct, frozen=True):
    """The caller's identity; in local mode no token is required."""

    authenticated: bool
    claims: None
    mode: Literal["local"]


WHO_AM_I: Final[Operation[NoFields, WhoAmIReply]] = Operation(
    name="auth.whoami",
    summary="Identity of the caller",
    tag="auth",
    method="GET",
    paths=("/api/auth/whoami",),
    request=NoFields,
    replies={200: WhoAmIReply},
    permission=None,
)
OPERATIONS: Final = (WHO_AM_I,)
