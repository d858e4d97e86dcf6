"""Recall and the other searches. One function serves both forms of recall (docs/decisions.md 35).

Source: memory-api.txt "POST /api/memory/recall" to "GET /memory/similar"; docs/compatibility.md "Recall";
docs/architecture.md "The path of a recall".
Departs: scores have four decimals, so that similar rows can be told apart; an aggregate recall ends with
``router_unavailable`` (``no_evidence`` without hits), because this release has no inference router; a ``time``
object filters on the captured facet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET

from signet_actors.domain.date_phrases import date_phrase
from signet_actors.domain.extraction.prompts import MAX_RESULT_CHARS
from signet_actors.domain.permissions import Permission
from signet_actors.errors import HTTP_STATUS, ErrorCode, InvalidRequest
from signet_actors.gateway.http.request_reader import RequestReader, joined_tags, just_before, read_scope_of
from signet_actors.gateway.http.route import HttpRequest, HttpResponse, Parameter, Route
from signet_actors.gateway.query_embedding import query_vectors
from signet_actors.gateway.routes.memories import AGENT_PARAMETERS, FILTER_PARAMETERS, PROBLEMS
from signet_actors.gateway.summary_card import rows_beside_card, summary_card
from signet_actors.operations.field_types import MAX_QUERY_CHARS
from signet_actors.operations.problem import Problem
from signet_actors.operations.recall import (
    Aggregate,
    AuthorsReply,
    Dedupe,
    LegacyResult,
    LegacySearchReply,
    RecallMeta,
    RecallReply,
    RecallRequest,
    RecallResult,
    SearchProblem,
    SimilarReply,
    SimilarResult,
    Stage,
    Temporal,
    Timings,
)
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.searcher import (
    FindSimilar,
    LegacySearch,
    ListAuthors,
    Recall,
    Recalled,
    RecalledRow,
)
from signet_actors.protocol.writer import TouchMemories

TRUNCATED: Final = " [truncated]"
BUDGETS: Final = ("small", "medium", "large")
MAX_ROWS: Final = 1000


class _RecallParams(msgspec.Struct, frozen=True):
    """The parameters of a recall. ``window`` is the start and the (exclusive) end of a ``time`` object."""

    query: str
    limit: int
    min_score: float
    filters: Filters
    read: ReadScope
    window: tuple[str, str] | None
    aggregate: bool
    budget: str


async def recall(request: HttpRequest) -> HttpResponse:
    """Recall from a JSON body."""
    body = request.json_object()
    return await _recall(request, _read(request, RequestReader(body), body))


async def search(request: HttpRequest) -> HttpResponse:
    """Recall from query parameters, with ``q`` for ``query``."""
    return await _recall(request, _read(request, RequestReader(request.query, warnings=request.warnings), None))


def _read(request: HttpRequest, fields: RequestReader, body: Mapping[str, Any] | None) -> _RecallParams:
    """Read the parameters; raise InvalidRequest.

    With ``body`` None the fields are query parameters, which are read more leniently.
    """
    in_query = body is None
    names = ("query",) if body is not None else ("q", "query")
    query = fields.text(*names, max_chars=MAX_QUERY_CHARS)
    if query is None:
        raise InvalidRequest("query is required", field=names[0])
    score_names = ("min_score", "minScore")
    min_score = fields.query_number(*score_names) if in_query else fields.number(*score_names)
    budget = fields.text("aggregateBudget", "aggregate_budget") or "small"
    if budget not in BUDGETS:
        raise InvalidRequest(f"aggregateBudget must be one of: {', '.join(BUDGETS)}", field="aggregateBudget")
    flag = fields.query_flag if in_query else fields.flag
    for unused in (("includeRecalled", "include_recalled"), ("saveAggregate", "save_aggregate"), ("expand",)):
        flag(*unused)
    fields.text("sessionKey", "session_key")
    window = None if in_query else fields.time_window()
    if window is None:
        phrase = date_phrase(query)
        if phrase is not None:
            request.warnings.append(
                f'the date "{phrase}" in the query is not used as a time filter yet; its words are searched for'
            )
    return _RecallParams(
        query=query,
        limit=fields.query_integer("limit", 10, 1, 100) if in_query else fields.limit(10, 1, 100),
        min_score=request.state.config.search.min_score if min_score is None else max(0.0, min(1.0, min_score)),
        filters=fields.filters(query=in_query),
        read=read_scope_of(request, body),
        window=window,
        aggregate=flag("aggregate") is True,
        budget=budget,
    )


async def _recall(request: HttpRequest, params: _RecallParams) -> HttpResponse:
    """Answer a recall and record the access asynchronously, so that the caller does not wait for a write."""
    state = request.state
    clock = state.clock
    started = clock.monotonic_ns()
    vector, former = await query_vectors(
        state, params.query, params.read, params.filters.project, trace_id=request.trace_id
    )
    embedded = clock.monotonic_ns()
    search_config, pipeline = state.config.search, state.config.memory.pipeline_v2
    found, _ = await state.bus.ask_searcher(
        Recall(
            query=params.query,
            read=params.read,
            filters=_restrict_to_window(params.filters, params.window),
            limit=params.limit,
            fusion=search_config.fusion,
            alpha=search_config.alpha,
            min_score=params.min_score,
            pool=search_config.pool,
            vector_model=vector.model,
            former_model=former.model,
            common_words_version=vector.common_words_version,
            hints=pipeline.hints.enabled,
            rerank_top=pipeline.reranker.top_n if pipeline.reranker.enabled else 0,
            content_chars=max(
                pipeline.guardrails.recall_truncate_chars,
                MAX_RESULT_CHARS + 1 if pipeline.reranker.use_extraction_model else 0,
            ),
        ),
        trace_id=request.trace_id,
        frames=[frame for frame in (vector.frame, former.frame) if frame is not None],
    )
    answered = clock.monotonic_ns()
    state.previous_embedder.observe_stale(
        former.model, found.stale_spaces, state.embedder, state.config.embedding, state.log
    )
    if found.common_words is not None:
        state.common_words.learn(params.read, params.filters.project, found.common_words)
    rows: Sequence[RecalledRow] = [] if params.aggregate else found.rows
    card = await summary_card(request, params.query, params.limit, rows, spent_ms=(answered - started) // 1_000_000)
    if card is not None:
        rows = rows_beside_card(rows, params.limit)
    _touch(request, rows)
    results = [] if card is None else [card]
    results += [_result(row, pipeline.guardrails.recall_truncate_chars) for row in rows]
    stages = [Stage(name="query_embedding_wait", duration_ms=_ms(embedded - started))] if state.embedder else []
    stages += [Stage(name=timing.name, duration_ms=round(timing.duration_ms, 2)) for timing in found.timings]
    stages.append(Stage(name="searcher_round_trip", duration_ms=_ms(answered - embedded)))
    if pipeline.reranker.use_extraction_model:
        stages.append(Stage(name="llm_summary", duration_ms=_ms(clock.monotonic_ns() - answered)))
    return HttpResponse(
        RecallReply(
            results=results,
            query=params.query,
            method=found.method,
            meta=RecallMeta(
                total_returned=len(results),
                has_supplementary=card is not None,
                no_hits=not results,
                timings=Timings(total_ms=_ms(clock.monotonic_ns() - started), stages=stages),
                dedupe=Dedupe(),
                temporal=_temporal(params),
            ),
            aggregate=_aggregate(params, found) if params.aggregate else UNSET,
        )
    )


def _touch(request: HttpRequest, rows: Sequence[RecalledRow]) -> None:
    config = request.state.config
    ids = tuple(row.id for row in rows[: config.gateway.touch_limit])
    if ids and not config.memory.pipeline_v2.mutations_frozen:
        request.state.bus.tell_writer(TouchMemories(ids=ids), trace_id=request.trace_id)


def _restrict_to_window(filters: Filters, window: tuple[str, str] | None) -> Filters:
    """Return ``filters`` restricted to ``window``. Stored times can be compared as text."""
    if window is None:
        return filters
    start, last = window[0], just_before(window[1])
    return msgspec.structs.replace(
        filters,
        since=max(start, filters.since or start),
        until=min(last, filters.until or last),
    )


def _temporal(params: _RecallParams) -> Temporal | msgspec.UnsetType:
    if params.window is None:
        return UNSET
    start, end = params.window
    return Temporal(
        mode="filter",
        source="request",
        original_query=params.query,
        content_query=params.query,
        start=start,
        end=end,
        facets=["captured"],
    )


def _aggregate(params: _RecallParams, found: Recalled) -> Aggregate:
    return Aggregate(
        saved_memory_id=None,
        saved=False,
        deduped=False,
        budget=params.budget,
        queries=[params.query],
        source_memory_ids=[row.id for row in found.rows],
        stopped_reason="router_unavailable" if found.rows else "no_evidence",
    )


def _result(row: RecalledRow, cut: int) -> RecallResult:
    length = len(row.content) if row.content_length is None else row.content_length
    truncated = length > cut
    return RecallResult(
        id=row.id,
        content=row.content[:cut] + TRUNCATED if truncated else row.content,
        content_length=length,
        truncated=truncated,
        score=round(row.score, 4),
        source=row.source,
        type=row.type,
        tags=joined_tags(row.tags),
        pinned=row.pinned,
        importance=row.importance,
        who=row.who,
        project=row.project,
        scope=row.scope,
        visibility=row.visibility,
        created_at=row.created_at,
    )


def _ms(nanoseconds: int) -> float:
    return round(nanoseconds / 1e6, 2)


async def legacy_search(request: HttpRequest) -> HttpResponse:
    """Search with an FTS5 expression as given (a syntax error is a 400), by filters alone, or list distinct authors."""
    fields = RequestReader(request.query, warnings=request.warnings)
    read = read_scope_of(request)
    distinct = fields.text("distinct")
    if distinct not in {None, "who"}:
        raise InvalidRequest("distinct must be who", field="distinct")
    if distinct is not None:
        authors, _ = await request.state.bus.ask_searcher(ListAuthors(read=read), trace_id=request.trace_id)
        return HttpResponse(AuthorsReply(values=authors.values))
    query = fields.text("q", max_chars=MAX_QUERY_CHARS)
    found, _ = await request.state.bus.ask_searcher(
        LegacySearch(
            query=query,
            read=read,
            filters=fields.filters(query=True),
            limit=fields.query_integer("limit", 50 if query is None else 20, 1, MAX_ROWS),
        ),
        trace_id=request.trace_id,
    )
    return HttpResponse(
        LegacySearchReply(
            results=[
                LegacyResult(
                    id=memory.id,
                    content=memory.content,
                    created_at=memory.created_at,
                    who=memory.who,
                    importance=memory.importance,
                    tags=joined_tags(memory.tags),
                    type=memory.type,
                    pinned=memory.pinned,
                    score=UNSET if score is None else round(score, 4),
                )
                for memory, score in found.rows
            ]
        )
    )


async def similar(request: HttpRequest) -> HttpResponse:
    """Return the memories most similar to a stored one, by the cosine of their vectors."""
    fields = RequestReader(request.query, warnings=request.warnings)
    anchor = fields.text("id")
    if anchor is None:
        return _search_problem(ErrorCode.INVALID_REQUEST, "id is required")
    found, _ = await request.state.bus.ask_searcher(
        FindSimilar(
            id=anchor,
            read=read_scope_of(request),
            filters=Filters(type=fields.memory_type()),
            k=fields.query_integer("k", 10, 1, 100),
        ),
        trace_id=request.trace_id,
    )
    if found.rows is None:
        return _search_problem(ErrorCode.NOT_FOUND, "No embedding found for this memory")
    return HttpResponse(
        SimilarReply(
            results=[
                SimilarResult(
                    id=memory.id,
                    content=memory.content,
                    type=memory.type,
                    tags=memory.tags,
                    score=round(score, 2),
                    confidence=memory.confidence,
                    created_at=memory.created_at,
                )
                for memory, score in found.rows
            ]
        )
    )


def _search_problem(code: ErrorCode, text: str) -> HttpResponse:
    return HttpResponse(SearchProblem(error=text, code=code.value), status=HTTP_STATUS[code])


ROUTES: tuple[Route, ...] = (
    Route(
        method="POST",
        path="/api/memory/recall",
        handler=recall,
        permission=Permission.RECALL,
        summary="Recall",
        tag="Recall",
        body=RecallRequest,
        replies={200: RecallReply, **PROBLEMS},
        description="Keyword and vector search, merged into one ranking of the memories that the caller may read.",
    ),
    Route(
        method="GET",
        path="/api/memory/search",
        handler=search,
        permission=Permission.RECALL,
        summary="Recall (query parameters)",
        tag="Recall",
        query=(
            Parameter("q", description="What to recall", required=True),
            Parameter("limit", "integer", "Results, 1 to 100; default 10"),
            Parameter("min_score", "number", "Drop results below this score"),
            Parameter("sessionKey", description="Session of the caller (no effect yet); also session_key"),
            Parameter(
                "includeRecalled",
                "boolean",
                "Include memories that the session recalled before (no effect yet); also include_recalled",
            ),
            *FILTER_PARAMETERS,
            *AGENT_PARAMETERS,
        ),
        replies={200: RecallReply, **PROBLEMS},
        query_struct=RecallRequest,
    ),
    Route(
        method="GET",
        path="/memory/search",
        handler=legacy_search,
        permission=Permission.RECALL,
        summary="Keyword search (legacy)",
        tag="Recall",
        query=(
            Parameter("q", description="FTS5 expression; without it, filters only"),
            Parameter("distinct", description="`who`: list distinct authors instead of memories"),
            Parameter("limit", "integer", "Results; default 20 with q, 50 without"),
            *FILTER_PARAMETERS,
            *AGENT_PARAMETERS,
        ),
        replies={200: LegacySearchReply | AuthorsReply, **PROBLEMS},
    ),
    Route(
        method="GET",
        path="/memory/similar",
        handler=similar,
        permission=Permission.RECALL,
        summary="Memories similar to a stored one",
        tag="Recall",
        query=(
            Parameter("id", description="The memory to compare with", required=True),
            Parameter("k", "integer", "Results, 1 to 100; default 10"),
            Parameter("type", description="Memory type"),
            *AGENT_PARAMETERS,
        ),
        replies={200: SimilarReply, 404: SearchProblem, **PROBLEMS, 400: SearchProblem | Problem},
    ),
)
