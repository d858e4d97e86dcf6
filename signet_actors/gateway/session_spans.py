"""Sessions in a timeline of which a transcript is stored, beside those that memories name.

Source: memory-api.txt "POST /api/memory/recall" (temporal recall); docs/compatibility.md "Temporal requests".
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from signet_actors.domain.session_inject import TURN_CHARS
from signet_actors.domain.session_keys import canonical_session_key
from signet_actors.domain.temporal.intent import Intent
from signet_actors.domain.text_cut import beginning_of
from signet_actors.domain.timestamps import iso
from signet_actors.errors import SignetError
from signet_actors.gateway.http.route import Call
from signet_actors.protocol.searcher import ListTimeline, Recalled, RecalledRow, RowTime
from signet_actors.protocol.transcripts import ListSpans, SessionSpan

_FACET: Final = "session"
_SCORE: Final = 0.6
"""That of a captured artifact. The order does not follow it: what was done is told by the sessions first."""
_IMPORTANCE: Final = 0.5
_BEGIN_CHARS: Final = TURN_CHARS // 3


async def with_transcripts(call: Call[Any], found: Recalled, intent: Intent, timeline: ListTimeline) -> Recalled:
    """Return what was ``found`` for the timeline with the sessions whose transcripts lie in its window.

    Without these if a filter asks for what only memories have; without any session for another user of the machine.
    """
    filters, limit = timeline.filters, timeline.limit
    of_memories = filters != filters.projects or call.read.scope is not None
    if _FACET not in intent.facets:
        return found
    if not await call.is_owner():
        return msgspec.structs.replace(found, rows=[row for row in found.rows if not _is_session(row)])
    if of_memories or timeline.min_score > _SCORE:
        return found
    window = intent.window
    start, end = iso(window.start_ms), iso(window.end_ms)
    query = ListSpans(start, end, call.read, limit, intent.search_text, filters.project, with_ends=True)
    try:
        listed = await call.ask_searcher(query)
    except SignetError as error:
        call.state.log.info("spans_not_listed", error=error.detail, trace=call.trace_id)
        return found
    if not listed.spans:
        return found
    known = {(row.agent_id, canonical_session_key(row.session_id)) for row in found.rows if _is_session(row)}
    rows = [_row(span) for span in listed.spans if (span.agent_id, span.session_key) not in known]
    sessions = [row for row in found.rows if _is_session(row)] + rows
    others = [row for row in found.rows if row not in sessions]
    most = max(limit - len(others), (limit + 1) // 2)  # those of a busy day leave half of the places to memories
    sessions = sorted(sessions, key=lambda row: row.time.end or row.time.start or "" if row.time else "", reverse=True)
    return msgspec.structs.replace(found, rows=[*sessions[:most], *others][:limit])


def _is_session(row: RecalledRow) -> bool:
    return row.time is not None and row.time.subject_type == "session"


def told_of(span: SessionSpan) -> str:
    """Return the beginning of what was said in a session, and its last prompt with the answer."""
    begin = beginning_of(span.text, _BEGIN_CHARS)
    return span.ending if span.ending.startswith(begin.rstrip("…")) else f"{begin.rstrip(' …')} … {span.ending}"


def _row(span: SessionSpan) -> RecalledRow:
    return RecalledRow(
        id=f"temporal:session:{span.session_key}:session",
        content=told_of(span),
        score=_SCORE,
        source="temporal_session",
        type="session",
        tags=["temporal", "session"],
        pinned=False,
        importance=_IMPORTANCE,
        who=None,
        project=span.project,
        scope=None,
        visibility="private",
        agent_id=span.agent_id,
        created_at=span.start,
        session_id=span.session_key,
        relevance=1.0,
        time=RowTime(_FACET, span.start, span.end, "session", span.session_key),
    )
