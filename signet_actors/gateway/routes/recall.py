"""Recall and the other searches. One function serves both forms of recall (docs/decisions.md 35).

Source: memory-api.txt "POST /api/memory/recall" to "GET /memory/similar"; docs/compatibility.md "Recall";
docs/architecture.md "The path of a recall".
Departs: scores have four decimals, so that similar rows can be told apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from signet_actors.domain.session_keys import canonical_session_key
from signet_actors.domain.temporal.intent import Intent
from signet_actors.errors import HTTP_STATUS, ErrorCode, InvalidRequest, SignetError
from signet_actors.features.searches.api import ConsideredMemory
from signet_actors.gateway.aggregate import AggregateRecall, Outcome, check_caller
from signet_actors.gateway.http.responses import fill, joined_tags
from signet_actors.gateway.http.route import Call, HttpResponse, Route, filters_of, serve
from signet_actors.gateway.memory_search import (
    ANSWERS,
    milliseconds,
    naming_time,
    search_memories,
    timeline,
    with_window,
)
from signet_actors.gateway.sessions.hook_runner import HookSession, session_context
from signet_actors.gateway.sessions.ledger import Context
from signet_actors.gateway.sessions.searches import note_search
from signet_actors.gateway.summary_card import rows_beside_card, summary_card
from signet_actors.gateway.temporal import query_intent, requested_intent, temporal_meta
from signet_actors.operations import recall as api
from signet_actors.operations.temporal import RecallTime
from signet_actors.protocol.memories import Filters, Wording
from signet_actors.protocol.searcher import FindSimilar, LegacySearch, ListAuthors, Recalled, RecalledRow
from signet_actors.protocol.sessions import OfferedBy
from signet_actors.protocol.transcripts import ExpandSessions

TRUNCATED: Final = " [truncated]"
WORD_MATCHES: Final = ("hybrid", "keyword")
"""Sources of rows that match words of the query."""
FACTS: Final = 5
"""Of each entity that the query of a search by GET names."""
TIMELINE_SOURCE: Final = "temporal_"
NEAREST: Final = 3
"""So many results are returned if none answers and only those that answer are asked for."""
TIMELINE_CHARS: Final = 900
"""Characters of a content in a timeline, with the mark that it is cut."""


async def recall(call: Call[api.RecallRequest]) -> HttpResponse:
    """Recall from a JSON body."""
    return HttpResponse(await recall_memories(call, call.request.query, call.request, call.request.time))


async def search(call: Call[api.SearchRequest]) -> HttpResponse:
    """Recall from query parameters."""
    return HttpResponse(await recall_memories(call, call.request.query, call.request, None, facts=FACTS))


async def recall_memories(
    call: Call[Any], query: str, fields: api.RecallFields, time: RecallTime | None, *, facts: int = 0
) -> api.RecallReply:
    """Answer a recall. Those of one session run one after the other, so that it receives no row twice.

    An aggregate gives the session no rows, and others do not wait for its model. ``facts``: so many of each entity that
    the query names.
    """
    if not call.observes:
        call.state.note_tool(call.headers)
    elif fields.aggregate:
        fields = msgspec.structs.replace(fields, save_aggregate=False)
    if fields.aggregate:
        check_caller(call, fields)
    context = await _context(call)
    if context is not None and not call.observes:
        call.state.checkpoints.searched(context.key, context.agent_id, query)
    if context is not None and not fields.aggregate:
        await call.hold(context.lock)
    return await _recall(call, query, fields, time, context, facts)


async def _context(call: Call[Any]) -> Context | None:
    """Return what the caller's session has received; None without a session, or if it cannot be read now."""
    key = call.session_key
    if key is None or not await call.is_owner():
        return None
    try:
        return await session_context(call, key)
    except SignetError as error:
        call.state.log.info("session_not_read", error=error.detail, trace=call.trace_id)
        return None


async def _recall(
    call: Call[Any],
    query: str,
    fields: api.RecallFields,
    time: RecallTime | None,
    context: Context | None,
    facts: int,
) -> api.RecallReply:
    """Answer a recall and record the access asynchronously, so that the caller does not wait for a write."""
    state = call.state
    clock, config = state.clock, state.config
    started = clock.monotonic_ns()
    session = HookSession(None if context is None else context.key, context=context)
    intent = _intent(call, query, fields, time)
    with_turns = config.search.transcripts and not fields.aggregate and await _may_read_turns(call)
    found, stages = await _found(call, query, fields, intent, context, turns=with_turns, facts=facts)
    if intent is not None and intent.mode == "timeline":
        if fields.explain or fields.explain_id is not None:
            call.warnings.append("a timeline is in order of its facets and times; explain has no effect")
        context = None  # its entries are times, not memories
    outcome = await _answered(call, query, fields, time, context, found) if fields.aggregate else None
    answered = clock.monotonic_ns()
    pipeline = config.memory.pipeline_v2
    rows: Sequence[RecalledRow] = [] if outcome is not None else found.rows
    card = await summary_card(call, query, fields.limit, rows, spent_ms=(answered - started) // 1_000_000)
    if card is not None:
        rows = rows_beside_card(rows, fields.limit)
    touch_memories(call, rows if outcome is None else outcome.cited)
    shown = {row.id for row in rows}
    beside = [row for row in found.beside if row.id not in shown] if outcome is None else []
    memories = [row for row in (*rows, *beside) if not row.source.startswith(TIMELINE_SOURCE)]
    dedupe, repeated = _record(call, context, found, memories)
    sources, session_keys = await session_excerpts(call, query, rows) if fields.expand else (UNSET, {})
    results = [] if card is None else [card]
    if outcome is not None:
        results += [] if outcome.result is None else [outcome.result]
        stages += outcome.stages

    def result(row: RecalledRow) -> api.RecallResult:
        cut, key = pipeline.guardrails.recall_truncate_chars, session_keys.get(row.id, UNSET)
        return _result(row, cut, already_recalled=row.id in repeated, session_key=key)

    results += map(result, rows)
    turns = [row for row in found.turns if with_turns and (sources is UNSET or row.session_id not in sources)]
    results += [  # each is an excerpt around what was found
        _result(row, len(row.content), already_recalled=False, session_key=row.session_id or UNSET)
        for row in turns[: max(0, fields.limit - len(results))]
    ]
    if fields.answering and not any(row.time for row in rows):
        results.sort(key=lambda result: result.relevance < ANSWERS)
    results += map(result, beside)
    await note_search(
        call,
        "tool" if call.headers.get("x-signet-actor-type", "").strip().lower() == "agent" else "recall",
        session,
        lambda: _considered(memories if outcome is None else outcome.cited, found),
        text=query,
        known=None if session.key is None else state.session_secrets.of(session.key),
        characters=sum(len(result.content) for result in results),
    )
    if pipeline.reranker.use_extraction_model and outcome is None:
        stages.append(api.Stage(name="llm_summary", duration_ms=milliseconds(clock.monotonic_ns() - answered)))
    return api.RecallReply(
        results=results,
        query=query,
        method=found.method,
        meta=api.RecallMeta(
            total_returned=len(results),
            has_supplementary=card is not None or bool(beside),
            no_hits=not results,
            timings=api.Timings(total_ms=milliseconds(clock.monotonic_ns() - started), stages=stages),
            dedupe=dedupe,
            temporal=temporal_meta(intent, query),
            indexing=api.Indexing(found.pending) if found.pending else UNSET,
        ),
        aggregate=UNSET if outcome is None else outcome.aggregate,
        explained=UNSET if found.explained is None else found.explained,
        sources=sources,
        entity_context=msgspec.convert(found.entities, list[api.EntityContext], from_attributes=True)
        if facts and found.entities
        else UNSET,
    )


def _considered(memories: Sequence[RecalledRow], found: Recalled) -> list[ConsideredMemory]:
    """Return what became of each memory that a recall has found."""
    told = [ConsideredMemory(*row.wording, row.relevance, "given") for row in memories if row.seq]
    shown = {each.seq for each in told}
    return told + [
        ConsideredMemory(
            *(each.seq, each.version, each.relevance),
            "received" if each.relevance is None else "below_relevance",
        )
        for each in found.missed
        if each.seq not in shown
    ]


def _intent(call: Call[Any], query: str, fields: api.RecallFields, time: RecallTime | None) -> Intent | None:
    search = call.state.config.search
    boosts = search.date_boost and search.fusion == "convex"
    intent = query_intent(call, query, fields) if time is None else requested_intent(query, time)
    return None if intent is not None and intent.mode == "auto" and not boosts else intent


async def _found(
    call: Call[Any],
    query: str,
    fields: api.RecallFields,
    intent: Intent | None,
    context: Context | None,
    *,
    turns: bool,
    facts: int = 0,
) -> tuple[Recalled, list[api.Stage]]:
    """Return what a recall finds: memories that match, or what happened at the time of ``intent``."""
    if intent is not None and intent.mode == "timeline":
        found, stages = await timeline(call, fields, intent)
        return found if found.rows else await naming_time(call, fields, intent, found), stages
    received = () if context is None or fields.include_recalled else context.left_out(call.request_key)
    return await _search(call, query, fields, intent, received, turns=turns, facts=facts)


async def _answered(
    call: Call[Any],
    query: str,
    fields: api.RecallFields,
    time: RecallTime | None,
    context: Context | None,
    found: Recalled,
) -> Outcome:
    """Return the answer of an aggregate recall whose query has found ``found``."""

    async def again(further: str) -> Recalled:
        told = len(call.warnings)
        intent = _intent(call, further, fields, time)
        rows, _ = await _found(call, further, fields, intent, context, turns=False)
        del call.warnings[told:]
        return rows

    return await AggregateRecall(call, query, fields, again).answer(found)


EXCERPT_CHARS: Final = 2000
"""Of each session. A recall has 100 results at most, so all excerpts together stay small."""


async def session_excerpts(
    call: Call[Any], query: str, rows: Sequence[RecalledRow]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return excerpts of transcripts by session key, and the session key of each row that has one by the row's id.

    A memory belongs to the session in which it was stored (``session_id``) or that it names as its source
    (``source_id``). Its transcript is searched under the memory's own agent.

    Source: memory-pipeline.txt "Lossless Session Transcripts"; docs/guides/transcripts.md "With a recall".
    """
    wanted = dict.fromkeys(session for row in rows for session in _sessions(row))
    if not wanted:
        return {}, {}
    try:
        await call.check_owner()
        found = await call.ask_searcher(ExpandSessions(tuple(wanted), call.read, query, EXCERPT_CHARS))
    except SignetError as error:
        call.warnings.append(f"expand: no transcript is added ({error.detail})")
        return {}, {}
    excerpts = {(each.agent_id, each.session_key): each.text for each in found.excerpts}
    keys = {row.id: session[1] for row in rows for session in _sessions(row) if session in excerpts}
    return {key: excerpts[agent_id, key] for agent_id, key in excerpts}, keys


def _sessions(row: RecalledRow) -> Iterator[tuple[str, str]]:
    """Yield the sessions to which the row may belong: agent and key, the more likely one last."""
    for key in (row.source_id, row.session_id):
        canonical = canonical_session_key(key)
        if canonical:
            yield row.agent_id, canonical


async def _search(
    call: Call[Any],
    query: str,
    fields: api.RecallFields,
    intent: Intent | None,
    received: tuple[Wording, ...],
    *,
    turns: bool,
    facts: int,
) -> tuple[Recalled, list[api.Stage]]:
    """Return what was found; with ``answering`` and no threshold what answers, or the nearest if nothing does."""
    text = query if intent is None else intent.search_text
    filters = filters_of(fields, call.former_project)
    beside: dict[str, Any] = {"beside": True, "facts": facts}
    chosen = fields.answering and fields.min_relevance is None
    if not chosen or (intent is not None and intent.may_list):
        found, stages = await search_memories(call, text, fields, intent, filters, received, turns=turns, **beside)
    else:
        least = msgspec.structs.replace(fields, min_relevance=ANSWERS)
        found, stages = await search_memories(call, text, least, intent, filters, received, turns=turns, **beside)
        if not (found.rows or found.turns or found.suppressed):
            nearest = msgspec.structs.replace(fields, limit=min(fields.limit, NEAREST))
            found, stages = await search_memories(call, text, nearest, intent, filters, received, **beside)
            if found.rows:
                call.warnings.append(f"nothing has a relevance of {ANSWERS} or more: most likely none of these answers")
    if intent is not None and intent.may_list and not fields.aggregate:
        found = await with_window(call, fields, intent, found)
    if chosen and any(row.relevance >= ANSWERS for row in (*found.rows, *found.turns)):
        rows = [row for row in found.rows if row.relevance >= ANSWERS or row.time is not None]
        found = msgspec.structs.replace(found, rows=rows)
    if fields.answering and found.suppressed:
        call.warnings.append(
            f"{found.suppressed} left out, this session has {'it' if found.suppressed == 1 else 'them'}"
        )
    return found, stages


async def _may_read_turns(call: Call[Any]) -> bool:
    try:
        await call.check_owner()
    except SignetError:
        return False
    return True


def _record(
    call: Call[Any], context: Context | None, found: Recalled, rows: Sequence[RecalledRow]
) -> tuple[api.Dedupe, frozenset[str]]:
    """Record ``rows`` when they are sent; return ``meta.dedupe``, and the ids that the session had received before."""
    if context is None:
        return api.Dedupe(), frozenset()
    repeated = frozenset(row.id for row in rows if context.has_received(row.id, row.wording, call.request_key))
    offer_found(call, context, "recall", found, rows)
    received = [(row.id, row.wording) for row in rows]
    call.when_sent(lambda: call.state.ledger.record(context, received, call.request_key))
    dedupe = api.Dedupe(
        enabled=True,
        context_epoch=context.epoch,
        suppressed=found.suppressed,
        repeated_returned=len(repeated),
    )
    return dedupe, repeated


def offer_found(
    call: Call[Any],
    context: Context,
    source: OfferedBy,
    found: Recalled,
    rows: Sequence[RecalledRow],
    *,
    injected: Collection[str] = (),
) -> None:
    """Note that the session is offered ``rows``, and which memories its search matched by words."""
    matched = frozenset(found.received_hits)
    again = [memory_id for memory_id, (seq, _) in context.received.items() if seq in matched] if matched else []
    hits = {row.id for row in rows if row.source in WORD_MATCHES}.union(again)
    ids = dict.fromkeys((*(row.id for row in rows), *again))
    ledger = call.state.ledger
    call.when_sent(lambda: ledger.offer(context, source, ids, call.request_key, injected=injected, hits=hits))


def touch_memories(call: Call[Any], rows: Sequence[RecalledRow]) -> None:
    """Report to the writer the use of the rows that answer; what a person looks at is not used."""
    config = call.state.config
    ids = tuple(islice(_memory_ids(row for row in rows if row.relevance >= ANSWERS), config.gateway.touch_limit))
    is_person = call.headers.get("x-signet-actor-type", "").strip().lower() == "operator"  # the command line says so
    if ids and not is_person and not call.observes and not config.memory.pipeline_v2.mutations_frozen:
        call.state.access_counts.add(ids, trace_id=call.trace_id)


def _memory_ids(rows: Iterable[RecalledRow]) -> Iterable[str]:
    """Return the id of each memory in ``rows`` once. A timeline's entries have ids of their own; a session is none."""
    times = ((row.id, row.time) for row in rows)
    return dict.fromkeys(
        id_ if time is None else time.subject_id for id_, time in times if time is None or time.subject_type == "memory"
    )


def _result(row: RecalledRow, cut: int, *, already_recalled: bool, session_key: str | UnsetType) -> api.RecallResult:
    length = len(row.content) if row.content_length is None else row.content_length
    truncated, content, time = length > cut, row.content, row.time
    if time is not None and row.source.startswith(TIMELINE_SOURCE):
        cut, truncated = TIMELINE_CHARS - len(TRUNCATED), length > TIMELINE_CHARS
    when: dict[str, str | None] = {}
    if time is not None:
        when = {"temporal_facet": time.facet, "temporal_start_at": time.start, "temporal_end_at": time.end}
        when |= {"subject_type": time.subject_type, "subject_id": time.subject_id}
    return fill(
        api.RecallResult,
        row,
        content=content[:cut] + TRUNCATED if truncated else content,
        content_length=length,
        truncated=truncated,
        score=round(row.score, 4),
        tags=joined_tags(row.tags),
        already_recalled=already_recalled,
        session_key=session_key,
        source_type=_origin(row.source_type),
        source_path=row.source_path or UNSET,
        supplementary=row.supplementary is not None,
        supplementary_reason=row.supplementary or UNSET,
        **when,
    )


def _origin(source_type: str | None) -> str | UnsetType:
    return UNSET if source_type in {None, "manual"} else source_type


async def legacy_search(call: Call[api.LegacySearchRequest]) -> HttpResponse:
    """Search with an FTS5 expression as given (a syntax error is a 400), by filters alone, or list distinct authors."""
    request = call.request
    if request.distinct not in {None, "who"}:
        raise InvalidRequest("distinct must be who", field="distinct")
    if request.distinct is not None:
        authors = await call.ask_searcher(ListAuthors(read=call.read))
        return HttpResponse(api.AuthorsReply(values=authors.values))
    limit = request.limit if request.limit is not None else 50 if request.query is None else 20
    found = await call.ask_searcher(
        LegacySearch(query=request.query, read=call.read, filters=filters_of(request, call.former_project), limit=limit)
    )
    return HttpResponse(
        api.LegacySearchReply(
            results=[
                fill(
                    api.LegacyResult,
                    memory,
                    tags=joined_tags(memory.tags),
                    score=UNSET if score is None else round(score, 4),
                    source_type=_origin(memory.source_type),
                    source_path=memory.source_path or UNSET,
                    project=memory.project or UNSET,
                )
                for memory, score in found.rows
            ]
        )
    )


async def similar(call: Call[api.SimilarRequest]) -> HttpResponse:
    """Return the memories most similar to a stored one, by the cosine of their vectors."""
    request = call.request
    if request.id is None:
        return _search_problem(ErrorCode.INVALID_REQUEST, "id is required")
    found = await call.ask_searcher(
        FindSimilar(id=request.id, read=call.read, filters=Filters(type=request.type), k=request.k)
    )
    if found.rows is None:
        return _search_problem(ErrorCode.NOT_FOUND, "No embedding found for this memory")
    return HttpResponse(
        api.SimilarReply(
            results=[fill(api.SimilarResult, memory, score=round(score, 2)) for memory, score in found.rows]
        )
    )


def _search_problem(code: ErrorCode, text: str) -> HttpResponse:
    return HttpResponse(api.SearchProblem(error=text, code=code.value), status=HTTP_STATUS[code])


ROUTES: tuple[Route, ...] = (
    *serve(api.RECALL, recall),
    *serve(api.SEARCH, search),
    *serve(api.LEGACY_SEARCH, legacy_search),
    *serve(api.SIMILAR, similar),
)
