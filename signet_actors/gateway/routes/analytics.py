"""How well memory served sessions, over time.

Source: docs/compatibility.md "Continuity scoring".
"""

from __future__ import annotations

from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.operations.analytics import (
    CONTINUITY,
    LATEST,
    MAX_LISTED,
    ContinuityReply,
    ContinuityRequest,
    ContinuitySummary,
    LatestContinuityReply,
    LatestContinuityRequest,
)
from signet_actors.protocol.session_scores import ListScores


async def continuity(call: Call[ContinuityRequest]) -> HttpResponse:
    """Return scores with their mean and trend."""
    request = call.request
    found = await call.ask_searcher(ListScores(call.agent_id, request.limit, project=request.project))
    scores = [score.score for score in found.scores]
    summary = ContinuitySummary(
        count=len(scores),
        average=round(sum(scores) / len(scores), 4) if scores else None,
        trend=round(scores[0] - scores[-1], 4) if scores else None,
        latest=scores[0] if scores else None,
    )
    return HttpResponse(ContinuityReply(scores=found.scores, summary=summary))


async def latest(call: Call[LatestContinuityRequest]) -> HttpResponse:
    """Return the newest score of each project."""
    found = await call.ask_searcher(ListScores(call.agent_id, MAX_LISTED, latest=True))
    return HttpResponse(LatestContinuityReply(scores=found.scores))


ROUTES: tuple[Route, ...] = (
    *serve(CONTINUITY, continuity),
    *serve(LATEST, latest),
)
