"""Read a harness's session key: its canonical form, and the agent id that it may name.

Source: architecture.txt "Multi-Agent Support" (OpenClaw session keys); docs/compatibility.md "Actors and agents",
"Hooks and sessions".
"""

from __future__ import annotations

from typing import Final

DEFAULT_AGENT: Final = "default"
"""The agent of a request that names none."""
CHECK_PREFIX: Final = "signet-check-"
"""The beginning of the keys of sessions that ``signet connect --check`` makes; none counts as the last session."""
_SESSION = "session:"
_AGENT = "agent:"


def canonical_session_key(key: str | None) -> str | None:
    """Return the key without the prefix ``session:`` and white space around it; None if nothing is left."""
    return None if key is None else key.strip().removeprefix(_SESSION).strip() or None


def agent_from_session_key(key: str) -> str | None:
    """Return the ``id`` of ``agent:{id}:{rest}``, also after ``session:``; None for any other key."""
    text = key.strip().removeprefix(_SESSION)
    if not text.startswith(_AGENT):
        return None
    agent, colon, _ = text[len(_AGENT) :].partition(":")
    return (agent.strip() or None) if colon else None
