"""Public bodies of authentication. Source: docs/compatibility.md "Authentication"."""

from __future__ import annotations

from typing import Literal

import msgspec


class WhoAmIReply(msgspec.Struct, frozen=True):
    """The caller's identity; in local mode no token is required."""

    authenticated: bool
    claims: None
    mode: Literal["local"]
