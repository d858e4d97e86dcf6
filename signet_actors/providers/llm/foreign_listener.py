"""Recognise a local server that another user of the machine runs, before any text is sent to it.

A provider that nobody named must not receive memories only because it listens at Ollama's port. Its sockets must belong
to this user, to root, or to a system account, such as that of Ollama's service. Systems other than Linux do not report
uids; any local server is then accepted.

Source: docs/security.md "Where the specification is unsafe"; login.defs(5), SYS_UID_MAX.
"""

from __future__ import annotations

import asyncio
import os
from typing import Final
from urllib.parse import urlsplit

from signet_actors.config.checks import is_loopback
from signet_actors.runtime.socket_uids import listener_uids

SYSTEM_UIDS: Final = 1000
"""Uids below this belong to root and to system accounts."""
DYNAMIC_UIDS: Final = range(61_184, 65_520)
"""Uids of systemd's services with ``DynamicUser=``."""


async def foreign_listener(address: str) -> str | None:
    """Return why the server at ``address`` must not be used unnamed; None if it may be."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port or {"https": 443}.get(parts.scheme, 80)
    except ValueError:
        return None
    if not is_loopback(host):
        return None
    uids = await asyncio.to_thread(listener_uids, port)
    own = os.geteuid()
    foreign = sorted(uid for uid in uids if uid >= SYSTEM_UIDS and uid not in DYNAMIC_UIDS and uid != own)
    if not foreign:
        return None
    return (
        f"the program that listens at {address} belongs to another user (uid {foreign[0]}); to use it anyway,"
        " set memory.pipelineV2.extraction.provider to ollama"
    )
