"""Public body of the agent's identity."""

from __future__ import annotations

import msgspec


class IdentityReply(msgspec.Struct, frozen=True):
    """The identity of this workspace's agent; ``name`` is ``Agent`` if no file sets one. ``source`` names the files."""

    name: str
    description: str | None
    creature: str | None
    vibe: str | None
    source: list[str]
