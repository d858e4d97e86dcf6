"""The agent that a harness wrote into its session key.

Source: architecture.txt "Multi-Agent Support" (OpenClaw session keys); docs/compatibility.md "Actors and agents".
"""

from __future__ import annotations

_SESSION = "session:"
_AGENT = "agent:"


def agent_from_session_key(key: str) -> str | None:
    """The ``id`` of ``agent:{id}:{rest}``, also behind ``session:``; None for every other key."""
    text = key.strip().removeprefix(_SESSION)
    if not text.startswith(_AGENT):
        return None
    agent, colon, _ = text[len(_AGENT) :].partition(":")
    return (agent.strip() or None) if colon else None
