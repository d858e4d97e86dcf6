"""Exchanges about the memories that a session was offered."""

from __future__ import annotations

from collections.abc import Mapping

from signet_actors.client.exchange import Caller, Exchange
from signet_actors.operations.session_memories import (
    FEEDBACK,
    SESSION_MEMORIES,
    FeedbackReply,
    FeedbackRequest,
    ListSessionMemoriesRequest,
    SessionMemoriesReply,
)


def rate(caller: Caller, session_key: str, ratings: Mapping[str, float]) -> Exchange[FeedbackReply]:
    """Say how useful memories were to a session: 1 helped, -1 misled, by id."""
    return (yield from caller.call(FEEDBACK, FeedbackRequest(session_key=session_key, ratings=dict(ratings))))


def session_memories(
    caller: Caller, session_key: str, *, limit: int = 100, offset: int = 0
) -> Exchange[SessionMemoriesReply]:
    """Return the memories that a session was offered, with counts over all of them. Raises DoesNotExist."""
    page = ListSessionMemoriesRequest(limit=limit, offset=offset)
    return (yield from caller.call(SESSION_MEMORIES, page, key=session_key))
