"""The memories that a session was offered, and the feedback of its agent about them.

Source: docs/compatibility.md "Feedback"; docs/guides/hooks.md "Sessions".
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from signet_actors.errors import NotFound, SignetError
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.routes.transcripts import named_session
from signet_actors.operations.session_memories import (
    FEEDBACK,
    SESSION_MEMORIES,
    FeedbackReply,
    FeedbackRequest,
    ListSessionMemoriesRequest,
    SessionMemoriesReply,
)
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.session_memories import ListSessionMemories, Rating, RecordFeedback


async def feedback(call: Call[FeedbackRequest]) -> HttpResponse:
    """Store the ratings of the memories that the session was offered."""
    request = call.request
    accepted = await record_ratings(call, request.session_key, request.ratings)
    return HttpResponse(FeedbackReply(recorded=accepted, accepted=accepted, rejected=len(request.ratings) - accepted))


async def record_ratings(call: Call[Any], session_key: str, ratings: Mapping[str, float]) -> int:
    """Store the ratings by full ids, and return how many the session was offered. Raises SignetError."""
    await _store_offers(call)
    done = await call.ask_writer(
        RecordFeedback(
            session_key=session_key,
            agent_id=call.agent_id,
            ratings=tuple(Rating(memory_id, score) for memory_id, score in ratings.items()),
            principal=call.principal,
        )
    )
    return len(done.accepted)


async def list_memories(call: Call[ListSessionMemoriesRequest]) -> HttpResponse:
    """Return a page of the memories that the session was offered."""
    key, agent_id = named_session(call)
    await _store_offers(call)
    found = await call.ask_searcher(
        ListSessionMemories(key, ReadScope(agent_id), call.request.limit, call.request.offset)
    )
    if not found.known:
        raise NotFound("Session not found")
    return HttpResponse(
        SessionMemoriesReply(
            session_key=key,
            agent_id=agent_id,
            memories=found.memories,
            count=len(found.memories),
            metrics=found.metrics,
        )
    )


async def _store_offers(call: Call[Any]) -> None:
    """Store what sessions were offered until now, if the writer takes it; else it is stored later."""
    with contextlib.suppress(SignetError):
        await call.state.ledger.flush()


ROUTES: tuple[Route, ...] = (
    *serve(FEEDBACK, feedback),
    *serve(SESSION_MEMORIES, list_memories),
)
