"""Why a prompt is given a memory or not, and what it would have been given earlier in its session.

Source: docs/guides/hooks.md "Why, and why not".
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET

from signet_actors.domain.ranking.explanation import ExplainedId
from signet_actors.domain.text_cut import beginning_of, ends_of
from signet_actors.errors import InvalidRequest, NotFound
from signet_actors.features.conversation.api import FindFate, FindPrompt, FoundFate, FoundPrompt
from signet_actors.features.searches.api import (
    DescribedMemories,
    DescribeMemories,
    FindReceived,
    ReceivedBefore,
)
from signet_actors.features.searches.rules import FATES, GIVEN
from signet_actors.gateway.http.route import Call
from signet_actors.gateway.sessions.hook_runner import HookSession
from signet_actors.gateway.sessions.ledger import Context
from signet_actors.gateway.sessions.prompt_memories import Offered
from signet_actors.operations.field_types import MAX_QUERY_CHARS
from signet_actors.operations.hooks import (
    MAX_PROMPT_CHARS,
    MemoryFate,
    SearchMemory,
    UserPromptReply,
    UserPromptRequest,
)
from signet_actors.protocol.searcher import GetMemory

_BEST_FIRST: Final = ("returned", "already_recalled", "beyond_limit", "below_min_relevance", "below_min_score")
"""Of what several searches say of a memory, the first of these counts."""


async def recorded(call: Call[UserPromptRequest], search_id: str) -> tuple[UserPromptRequest, bool]:
    """Return the request with the words of a prompt that was kept, and whether they are whole.

    Raises NotFound if it was not kept or its words were erased, and Forbidden for a caller who is not the owner.
    """
    request = call.request
    if call.session_key is None:
        raise InvalidRequest("asOf without a prompt needs the sessionKey", field="sessionKey")
    await call.check_owner()
    query = FindPrompt(session_key=call.session_key, agent_id=call.agent_id, id=search_id)
    kept = (await call.ask_searcher(query)).read(FoundPrompt)
    if not kept.found:
        raise NotFound("asOf names no prompt of this session")
    if kept.text is None:
        raise NotFound("The words of this prompt were erased, or not kept")
    request = msgspec.structs.replace(
        request,
        harness=request.harness or kept.harness or "",
        project=request.project or kept.project,
        prompt=ends_of(kept.text, MAX_PROMPT_CHARS),
        last_assistant_message=request.last_assistant_message or beginning_of(kept.before, MAX_QUERY_CHARS),
    )
    return request, kept.whole


async def as_of(call: Call[UserPromptRequest], context: Context, search_id: str) -> None:
    """Let ``context``, a copy, have what its session had received before this search. Raises NotFound."""
    query = FindReceived(session_key=context.key, agent_id=context.agent_id, id=search_id)
    before = (await call.ask_searcher(query)).read(ReceivedBefore)
    if not before.found:
        raise NotFound("asOf names no search of this session")
    context.epoch, context.started = before.epoch, before.has_started
    context.received, context.requests = dict(before.received), {}
    context.told_turns = dict(before.facts)
    context.told_tools = bool(before.received)


async def explained(
    call: Call[UserPromptRequest], session: HookSession, found: Offered, *, is_whole: bool
) -> UserPromptReply:
    """Return the reply, with what its request wants explained. ``is_whole``: the prompt is exactly that of ``asOf``."""
    request, reply = call.request, found.reply
    if request.dry_run:
        reply = msgspec.structs.replace(reply, dry_run=True)
    if not request.explain and request.explain_id is None:
        return reply
    query = DescribeMemories(read=call.read, memories=tuple(found.considered()))
    memories = (await call.ask_searcher(query)).read(DescribedMemories).memories
    if request.explain:
        reply = msgspec.structs.replace(reply, considered=memories)
    if request.explain_id is None:
        return reply
    fate = await _fate(call, request.explain_id, found, memories)
    if request.as_of is not None and session.key is not None:
        asked = FindFate(session_key=session.key, read=call.read, id=request.as_of, memory_id=request.explain_id)
        fate = _compared(fate, (await call.ask_searcher(asked)).read(FoundFate), is_whole=is_whole)
    return msgspec.structs.replace(reply, explained=fate)


async def _fate(
    call: Call[UserPromptRequest], memory_id: str, found: Offered, memories: list[SearchMemory]
) -> MemoryFate:
    """Return what becomes of the memory, by the last stage that it has reached."""
    said = min(found.fates, key=_rank, default=None)
    explanation = None if said is None else said.explanation
    row = next((each for each in memories if each.id == memory_id), None)
    if row is not None:
        return MemoryFate(
            id=memory_id,
            given=row.given,
            outcome=row.outcome,
            why=row.why,
            relevance=row.relevance,
            explanation=explanation,
        )
    outcome: str = "not_searched" if said is None else said.outcome
    if outcome in {"not_found", "not_searched"}:
        stored = (await call.ask_searcher(GetMemory(memory_id, call.read, include_deleted=True))).memory
        if stored is None:
            outcome = "not_found"
        elif stored.is_deleted:
            outcome = "forgotten"
    filters = [] if said is None else said.filters
    why = FATES.get(outcome, outcome)
    if outcome == "filtered":
        why = "; ".join(FATES.get(f"filtered:{name}", f"left out by the filter {name}") for name in filters)
    return MemoryFate(
        id=memory_id,
        given=outcome in GIVEN,
        outcome=outcome,
        why=why,
        relevance=None if explanation is None else explanation.relevance,
        filters=filters,
        value=None if said is None else said.value,
        threshold=None if said is None else said.threshold,
        explanation=explanation,
    )


def _compared(fate: MemoryFate, was: FoundFate, *, is_whole: bool) -> MemoryFate:
    """Return the fate with what became of the memory then."""
    if was.then is None:
        return fate
    as_then = (
        is_whole and was.memory is not None and not was.memory.changed and _measured(was.memory) == _measured(fate)
    )
    earlier = UNSET if was.earlier is None else was.earlier
    return msgspec.structs.replace(fate, then=was.then, earlier=earlier, as_then=as_then)


def _measured(memory: SearchMemory | MemoryFate) -> tuple[str, float | None]:
    """Return the outcome, and the relevance as it is shown."""
    return memory.outcome, None if memory.relevance is None else round(memory.relevance, 2)


def _rank(fate: ExplainedId) -> int:
    return _BEST_FIRST.index(fate.outcome) if fate.outcome in _BEST_FIRST else len(_BEST_FIRST)
