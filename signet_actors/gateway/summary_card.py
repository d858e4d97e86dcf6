"""The optional card before the results of a recall: a summary of them by the extraction model.

Only a recall that wants the card waits for it, for a bounded time. If anything fails, the recall is answered without
one. The model sees only the results of this recall, so the card cannot contain what the caller may not read. It is not
stored and marks no memory as accessed.

Source: memory-api.txt "POST /api/memory/recall" (``useExtractionModel``, recallLlm);
docs/compatibility.md "Authentication"; docs/reliability.md R11.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from signet_actors.domain.extraction.summary_card import MIN_LIMIT, SUMMARY_SOURCE, summary_id
from signet_actors.domain.timestamps import iso
from signet_actors.errors import SignetError
from signet_actors.gateway.http.route import Call
from signet_actors.operations.recall import RecallResult
from signet_actors.protocol.extractor import Summarize
from signet_actors.protocol.searcher import RecalledRow

MAX_CONCURRENT: Final = 8
"""Recalls that may wait for a card; more are answered without one. This leaves room in the extractor's mailbox."""
MAX_RESULTS: Final = 20
RESERVE_MS: Final = 500
"""The part of the request's time limit that is reserved for the response."""
_OPERATION: Final = "recallLlm"


async def summary_card(
    call: Call[Any], query: str, limit: int, rows: Sequence[RecalledRow], *, spent_ms: int
) -> RecallResult | None:
    """Return a card on the ``rows``; None if it is off, unwanted, or too late after ``spent_ms`` of the request."""
    state = call.state
    reranker = state.config.memory.pipeline_v2.reranker
    timeout_ms = min(reranker.timeout_ms, state.config.gateway.request_timeout_ms - spent_ms - RESERVE_MS)
    if not reranker.use_extraction_model or limit < MIN_LIMIT or not rows or timeout_ms <= 0:
        return None
    if not state.is_up("extractor") or state.summaries_waiting >= MAX_CONCURRENT or not _allowed(call):
        return None
    shown = rows_beside_card(rows, limit)[:MAX_RESULTS]
    state.summaries_waiting += 1
    try:
        # The bus has its own timeout; this one also covers the wait before the request is sent.
        async with asyncio.timeout(timeout_ms / 1000):
            reply = await state.bus.ask_extractor(
                Summarize(query, tuple(row.content for row in shown)), trace_id=call.trace_id, timeout_ms=timeout_ms
            )
    except (SignetError, TimeoutError) as error:
        state.log.info("summary_not_made", reason=error.__class__.__name__, trace=call.trace_id)
        return None
    finally:
        state.summaries_waiting -= 1
    if reply.summary is None:
        return None
    return RecallResult(
        id=summary_id(query, [row.id for row in shown]),
        content=reply.summary,
        content_length=len(reply.summary),
        truncated=False,
        score=round(rows[0].score, 4),
        relevance=rows[0].relevance,
        source=SUMMARY_SOURCE,
        type="summary",
        tags=None,
        pinned=False,
        importance=0.0,
        who=reply.model,
        project=None,
        scope=None,
        visibility="private",
        created_at=iso(state.clock.wall_ms()),
        supplementary=True,
    )


def rows_beside_card(rows: Sequence[RecalledRow], limit: int) -> Sequence[RecalledRow]:
    """Return the rows that are returned with a card, which takes one of the ``limit`` results."""
    return rows[: limit - 1]


def _allowed(call: Call[Any]) -> bool:
    """Return True if the caller's rate limit allows a card. There is no limit in local mode.

    Departs: when the bucket ``recallLlm`` is empty, the recall is answered without a card instead of being rejected: an
    agent needs its memories more than their summary.
    """
    try:
        call.state.take_rate(call.identity, _OPERATION)
    except SignetError:
        return False
    return True
