"""Read the agent id from a harness's session key.

Source: architecture.txt "Multi-Agent Support" (OpenClaw session keys); docs/compatibility.md "Actors and agents".
"""

from __future__ import annotations

_SESSION = "session:"
_AGENT = "agent:"


def agent_from_session_key(key: str) -> str | None:
    """Return the ``id`` of ``agent:{id}:{rest}``, also after ``session:``; None for any other key."""
    text = key.strip().removeprefix(_SESSION)
    if not text.startswith(_AGENT):
        return None
    agent, colon, _ = text[len(_AGENT) :].partition(":")
    return (agent.strip() or None) if colon else None
