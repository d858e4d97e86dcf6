"""Public body of the agent's identity."""

from __future__ import annotations

import msgspec


class IdentityReply(msgspec.Struct, frozen=True):
    """Who the agent of this workspace is; ``name`` is ``Agent`` where no file says one. ``source`` names the files."""

    name: str
    description: str | None
    creature: str | None
    vibe: str | None
    source: list[str]
