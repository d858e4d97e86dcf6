"""What a prompt is given: the memories that answer it, and that its session has not received.

Source: docs/guides/hooks.md "Each prompt"; docs/decisions.md 49.
"""

from __future__ import annotations

import asyncio
from itertools import zip_longest
from typing import Final

import msgspec

from signet_actors.domain.prompt_terms import PromptTerms
from signet_actors.domain.ranking.relevance import OF_NAMED
from signet_actors.domain.session_inject import Line, memory_lines, prompt_memories, session_line
from signet_actors.domain.versions import newest_versions
from signet_actors.gateway.http.route import Call
from signet_actors.gateway.routes.recall import (
    WORD_MATCHES,
    asks_how_it_was,
    offer_found,
    search_memories,
)
from signet_actors.gateway.sessions.hook_runner import HookSession
from signet_actors.operations.hooks import UserPromptReply, UserPromptRequest
from signet_actors.operations.recall import RecallFields
from signet_actors.protocol.memories import Filters, Wording
from signet_actors.protocol.searcher import Recalled, RecalledRow

MIN_IMPORTANCE: Final = 0.3
"""Memories of less importance are not offered to a prompt."""
VERSIONS: Final = 3
MAX_FOUND: Final = 200
"""So many times the memories that are offered are looked at, and the received ones, because versions take one place."""


async def offered_memories(
    call: Call[UserPromptRequest], terms: PromptTerms, session: HookSession, given: tuple[Wording, ...]
) -> UserPromptReply:
    """Return the reply with the memories that fit, which the session has received when it is sent.

    ``given``: rows that stand before them in the same reply.
    """
    state, project, context = call.state, call.request.project, session.context
    settings = state.config.hooks.user_prompt_submit
    received = frozenset(given + (() if context is None else context.left_out(call.request_key)))
    filters = Filters(
        project=project,
        former_project=call.former_project,
        or_no_project=project is not None,
        no_project=project is None,
        importance_min=MIN_IMPORTANCE,
    )
    most = min(VERSIONS * settings.recall_limit + len(received), MAX_FOUND)
    fields = RecallFields(limit=most, min_relevance=settings.min_score)
    found = await _searched(call, terms, fields, filters)
    # An older version of a memory is left out also where the session has received the newest one.
    rows_found = found.rows
    if not any(asks_how_it_was(call, search.text, fields) for search in terms.searches):
        rows_found = [rows_found[at] for at in newest_versions([(row.content, row.own_ms) for row in rows_found])]
    again = tuple(row.seq for row in rows_found if row.wording in received and row.source in WORD_MATCHES)
    fresh = [row for row in rows_found if row.wording not in received][: settings.recall_limit]
    found = msgspec.structs.replace(found, rows=fresh, received_hits=again)
    limit = min(settings.max_inject_chars, call.request.max_inject_chars or settings.max_inject_chars)
    shown = memory_lines(map(_line, found.rows), limit, most=limit, cut=True)
    rows = [(row.id, row.wording) for row in found.rows if row.id in shown.whole]
    if context is not None:
        offer_found(call, context, "prompt", found, found.rows, injected=shown.whole)
        call.when_sent(lambda: state.ledger.record(context, rows, call.request_key))
    if shown.ids and not state.config.memory.pipeline_v2.mutations_frozen:
        state.access_counts.add(shown.ids, "injected", trace_id=call.trace_id)
    tools = ""
    if shown.items and context is not None and not context.told_tools:
        tools = session_line(session.key, limit) if call.request.harness in state.harnesses_with_tools else ""
        context.told_tools = bool(tools)
    inject = prompt_memories(shown.items, tools) if shown.items else ""
    return UserPromptReply(
        inject=inject,
        dynamic_context=inject,
        memory_count=len(shown.ids),
        query_terms=list(terms.terms),
        engine=found.method,
    )


async def _searched(
    call: Call[UserPromptRequest],
    terms: PromptTerms,
    fields: RecallFields,
    filters: Filters,
) -> Recalled:
    """Return what the searches of a prompt find: of several, the best of each in turn."""
    replies = [
        search_memories(
            call,
            search.text,
            msgspec.structs.replace(fields, min_relevance=OF_NAMED) if search.is_names else fields,
            None,
            filters,
            names={} if at else terms.names,
            of_long_text=search.is_of_long,
            is_part=search.is_part,
        )
        for at, search in enumerate(terms.searches)
    ]
    first, *others = [found for found, _ in await asyncio.gather(*replies)]
    ranks = zip_longest(first.rows, *(found.rows for found in others))
    rows = {row.id: row for rank in ranks for row in rank if row is not None}
    return msgspec.structs.replace(first, rows=list(rows.values()))


def _line(row: RecalledRow) -> Line:
    return Line(row.id, row.content, row.tags, row.created_at)
