"""What a session is told although it asked for nothing: that memory does not work now, and which peers it has.

Source: docs/guides/hooks.md "Notifications", "The start of a session".
"""

from __future__ import annotations

import hashlib
from typing import Final

from signet_actors.domain.normalization import collapsed
from signet_actors.domain.session_inject import Peer
from signet_actors.gateway.state import GatewayState
from signet_actors.operations.hooks import Notification

MAX_REASON_CHARS: Final = 900
_NO_BRACKETS: Final = str.maketrans("[]", "()")
"""The extraction of facts recognises the line by its length and its brackets."""
PEER_MS: Final = 10 * 60_000
"""A session whose last hook is older is not shown as going on; few that ended without a word are as young."""


def notifications_now(state: GatewayState) -> list[Notification]:
    """Return what is to be told now: that memories cannot be stored or read."""
    found = state.readiness()
    if found.ready:
        return []
    reason = collapsed(found.detail).translate(_NO_BRACKETS)[:MAX_REASON_CHARS]
    message = f"[signet: memory does not work now, because {reason}]"
    return [Notification(hashlib.sha256(message.encode()).hexdigest()[:16], message)]


def peers_of(state: GatewayState, key: str | None, agent_id: str, project: str | None) -> list[Peer]:
    """Return the other sessions of the agent in the project that had a hook lately, the last one first."""
    if project is None:
        return []
    now_ms = state.clock.wall_ms()
    peers = []
    for session in state.sessions.active():
        idle_ms = now_ms - session.active_ms
        if idle_ms > PEER_MS or session.key == key or session.bypassed or session.followed_ms == session.active_ms:
            continue
        context = state.ledger.loaded(session.key, agent_id)
        if context is not None and context.project == project and not state.ledger.is_bypassed(session.key):
            peers.append(Peer(session.key, context.harness, idle_ms))
    return peers
