"""List the summaries of ended sessions, and read one with its memories and its transcript.

Source: docs/compatibility.md "Summaries of sessions".
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from signet_actors.domain.extraction.facts import short
from signet_actors.domain.normalization import collapsed
from signet_actors.domain.transcripts.turns import conversation
from signet_actors.errors import NotFound
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.routes.memories import left_out
from signet_actors.operations.session_summaries import (
    EXPAND,
    LIST,
    ExpandSummaryReply,
    ExpandSummaryRequest,
    ListSummariesRequest,
    SummariesReply,
    Summary,
    SummaryNode,
    TranscriptExcerpt,
)
from signet_actors.protocol.session_summaries import ExpandSummary, ListSummaries, StoredSummary
from signet_actors.protocol.transcripts import GetTranscript

EXCERPT_CHARS = 420
CHARS_PER_TOKEN = 4


async def list_summaries(call: Call[ListSummariesRequest]) -> HttpResponse:
    """Return a page of the summaries; those of a higher level do not exist."""
    request = call.request
    if request.depth:
        return HttpResponse(SummariesReply(summaries=[], total=0))
    found = await call.ask_searcher(
        ListSummaries(read=call.read, limit=request.limit, offset=request.offset, project=request.project)
    )
    summaries = [Summary(**_members(summary)) for summary in found.summaries]
    return HttpResponse(SummariesReply(summaries=summaries, total=found.total))


async def expand(call: Call[ExpandSummaryRequest]) -> HttpResponse:
    """Return a summary with the memories made from it, and the beginning of its transcript."""
    request = call.request
    found = await call.ask_searcher(ExpandSummary(request.id, call.read))
    summary = found.summary
    if summary is None:
        raise NotFound("summary node not found")
    transcript: TranscriptExcerpt | UnsetType = UNSET
    if request.include_transcript:
        transcript = await _transcript(call, summary)
    node = SummaryNode(**_members(summary))
    call.warnings += left_out((memory.id, memory.content) for memory in found.linked)
    return HttpResponse(ExpandSummaryReply(node=node, linked_memories=found.linked, transcript=transcript))


async def _transcript(call: Call[ExpandSummaryRequest], summary: StoredSummary) -> TranscriptExcerpt | UnsetType:
    chars = call.request.transcript_char_limit
    query = GetTranscript(summary.session_key, call.read, max_bytes=4 * chars)
    found = await call.ask_searcher(query)
    if found.transcript is None or found.transcript.agent_id != summary.memory.agent_id:
        return UNSET
    text = collapsed(conversation([(turn.role, turn.content, turn.continues) for turn in found.turns])[: 4 * chars])
    cut = len(text) > chars or found.next is not None
    return TranscriptExcerpt(
        session_key=found.transcript.session_key,
        harness=found.transcript.harness,
        project=found.transcript.project,
        updated_at=found.transcript.updated_at,
        excerpt=short(text, EXCERPT_CHARS),
        content=f"{text[: chars - 3].rstrip()}..." if cut else text,
    )


def _members(summary: StoredSummary) -> dict[str, Any]:
    """Return the members of a summary that are not constant."""
    memory = summary.memory
    return {
        "id": memory.id,
        "project": memory.project,
        "content": memory.content,
        "token_count": -(-len(memory.content) // CHARS_PER_TOKEN),
        "earliest_at": summary.earliest_at,
        "latest_at": summary.latest_at,
        "session_key": summary.session_key,
        "harness": summary.harness,
        "agent_id": memory.agent_id,
        "source_ref": summary.session_key,
        "created_at": memory.created_at,
        "note": summary.note,
    }


ROUTES: tuple[Route, ...] = (
    *serve(LIST, list_summaries),
    *serve(EXPAND, expand),
)
