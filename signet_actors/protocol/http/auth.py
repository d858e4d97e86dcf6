"""Public bodies of authentication. Source: docs/compatibility.md "Authentication"."""

from __future__ import annotations

from typing import Literal

import msgspec


class WhoAmIReply(msgspec.Struct, frozen=True):
    """Who the daemon takes the caller for; in local mode nobody is asked for a token."""

    authenticated: bool
    claims: None
    mode: Literal["local"]
