"""Search memories for a request: embed the query, ask a searcher, and what happened at a time.

Source: memory-api.txt "POST /api/memory/recall"; docs/architecture.md "The path of a recall".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from signet_actors.config.schema import Config
from signet_actors.domain.exact_names import exact_names
from signet_actors.domain.extraction.prompts import MAX_RESULT_CHARS
from signet_actors.domain.ranking.stage_settings import Dampening, Traversal
from signet_actors.domain.temporal.in_text import names_time
from signet_actors.domain.temporal.intent import ALL_FACETS, Intent
from signet_actors.domain.temporal.past import asks_for_past
from signet_actors.domain.timestamps import epoch_ms
from signet_actors.gateway.http.route import Call, filters_of
from signet_actors.gateway.query_embedding import is_second, query_vectors
from signet_actors.gateway.session_spans import with_transcripts
from signet_actors.gateway.temporal import query_intent, time_filter
from signet_actors.operations.recall import RecallFields, Stage
from signet_actors.protocol.memories import Filters, Wording
from signet_actors.protocol.searcher import ListTimeline, Recall, Recalled, RecalledRow

ANSWERS: Final = 0.5
"""The relevance from which on a memory answers a question."""
LISTED: Final = 0.25
"""The relevance of what is listed for its time although the question has a topic."""
_HAPPENED: Final = tuple(facet for facet in ALL_FACETS if facet != "valid")
"""What is valid for long did not happen at a time."""
NAMING: Final = 50
"""So many memories are looked at for the time that they name."""
LONG_CHARS: Final = 400
"""Not every word of a longer query has to be answered."""


async def search_memories(
    call: Call[Any],
    query: str,
    fields: RecallFields,
    intent: Intent | None,
    filters: Filters,
    received: tuple[Wording, ...] = (),
    *,
    turns: bool = False,
    enough: int | None = None,
    known: Collection[Wording] = (),
    asked: tuple[str, str] | None = None,
    names: Mapping[str, float] | None = None,
    of_long_text: bool = False,
    is_part: bool | None = None,
    beside: bool = False,
    facts: int = 0,
) -> tuple[Recalled, list[Stage]]:
    """Return the memories that match ``query`` by words and by meaning, and what each stage took.

    ``received``: rows that make room for others. ``turns``: look for turns of sessions, too, unless ``enough`` memories
    answer. The others: as of ``Recall``; None: as the query itself.
    """
    state = call.state
    clock = state.clock
    started = clock.monotonic_ns()
    vector, former = await query_vectors(
        state, query, call.read, filters.projects, trace_id=call.trace_id, left_s=_left_s(call)
    )
    embedded = clock.monotonic_ns()
    second = is_second(state, former.model)
    search_config, pipeline = state.config.search, state.config.memory.pipeline_v2
    found, _ = await state.bus.ask_searcher(
        Recall(
            query=query,
            read=call.read,
            filters=filters,
            limit=fields.limit,
            fusion=search_config.fusion,
            alpha=search_config.alpha,
            min_score=_min_score(state.config, fields),
            min_relevance=_min_relevance(fields),
            explain=fields.explain,
            explain_id=fields.explain_id,
            pool=search_config.pool,
            vector_model=vector.model,
            former_model=former.model,
            prefers_former=second,
            common_words_version=vector.common_words_version,
            hints=True,
            rerank_top=pipeline.reranker.top_n if pipeline.reranker.enabled else 0,
            content_chars=max(
                pipeline.guardrails.recall_truncate_chars,
                MAX_RESULT_CHARS + 1 if pipeline.reranker.use_extraction_model else 0,
            ),
            context=search_config.context,
            priors=search_config.priors,
            episode_order=search_config.episode_order,
            words=vector.words if search_config.token_similarity else (),
            former_words=former.words if search_config.token_similarity and second else (),
            near_ms=None if intent is None or not search_config.date_boost else intent.window,
            within=None if intent is None or intent.mode != "filter" else time_filter(intent),
            received=received,
            turns=turns,
            enough=enough,
            known=tuple(known),
            asked=asked,
            session_key=call.session_key if turns else None,
            names=exact_names(query) if names is None else dict(names),
            of_long_text=of_long_text,
            newest_first=not asks_how_it_was(call, query, fields, intent),
            is_part=len(query) > LONG_CHARS if is_part is None else is_part,
            graph=graph_limits(state.config),
            dampening=dampening(state.config),
            beside=beside,
            facts=facts,
        ),
        trace_id=call.trace_id,
        frames=[frame for frame in (vector.frame, former.frame) if frame is not None],
    )
    answered = clock.monotonic_ns()
    if not call.observes:
        state.checkpoints.named(call.session_key, call.agent_id, [(each.id, each.name) for each in found.entities])
    if not second:  # its model stays, whether or not this searcher has read its vectors in
        seconds = [space for space in found.second_spaces if is_second(state, space[0])]
        state.previous_embedder.observe_stale(
            former.model, (*found.stale_spaces, *seconds), state.embedder, state.config.embedding, state.log
        )
    if found.common_words is not None:
        state.common_words.learn(call.read, filters.projects, found.common_words)
    stages = (
        [Stage(name="query_embedding_wait", duration_ms=milliseconds(embedded - started))] if state.embedder else []
    )
    stages += [Stage(name=timing.name, duration_ms=round(timing.duration_ms, 2)) for timing in found.timings]
    stages.append(Stage(name="searcher_round_trip", duration_ms=milliseconds(answered - embedded)))
    return found, stages


def graph_limits(config: Config) -> Traversal | None:
    """Return how a recall uses the knowledge graph, None if it does not."""
    pipeline = config.memory.pipeline_v2
    walks, boosts = pipeline.traversal, pipeline.graph
    if not boosts.enabled:
        return None
    return Traversal(
        is_primary=walks.enabled and walks.primary,
        max_aspects=walks.max_aspects,
        max_attributes=walks.max_attributes,
        max_neighbours=walks.max_neighbours,
        min_strength=walks.min_strength,
        timeout_ms=walks.timeout_ms,
        boost=boosts.boost_weight,
        boost_timeout_ms=boosts.boost_timeout_ms,
    )


def dampening(config: Config) -> Dampening | None:
    """Return the corrections of scores that are switched on, None without any."""
    stages = config.memory.pipeline_v2.dampening
    found = Dampening(
        gravity=stages.gravity_enabled,
        hub=stages.hub_enabled and config.memory.pipeline_v2.graph.enabled,
        resolution=stages.resolution_enabled,
        hub_percentile=stages.hub_percentile,
        hub_penalty=stages.hub_penalty,
        gravity_penalty=stages.gravity_penalty,
        resolution_boost=stages.resolution_boost,
    )
    return found if found.gravity or found.hub or found.resolution else None


def _left_s(call: Call[Any]) -> float:
    """Return how many seconds the caller still waits, as far as that is known; at least 0."""
    if call.until_ns is None:
        return call.state.config.gateway.request_timeout_ms / 1000
    return max(0.0, (call.until_ns - call.state.clock.monotonic_ns()) / 1e9)


def asks_how_it_was(call: Call[Any], query: str, fields: RecallFields, intent: Intent | None = None) -> bool:
    """Return True if the query asks how something was, in words or by a time that is over."""
    asked = intent or query_intent(call, query, fields)
    return asks_for_past(query) or (asked is not None and asked.window.end_ms <= call.state.clock.wall_ms())


async def timeline(call: Call[Any], fields: RecallFields, intent: Intent) -> tuple[Recalled, list[Stage]]:
    """Return what happened in the window of ``intent``."""
    clock = call.state.clock
    started = clock.monotonic_ns()
    query = ListTimeline(
        window=time_filter(intent),
        read=call.read,
        filters=filters_of(fields, call.former_project),
        words=intent.search_text,
        limit=fields.limit,
        min_score=_min_score(call.state.config, fields),
        min_relevance=_min_relevance(fields),
    )
    found = await with_transcripts(call, await call.ask_searcher(query), intent, query)
    stages = [Stage(name=timing.name, duration_ms=round(timing.duration_ms, 2)) for timing in found.timings]
    return found, [*stages, Stage(name="searcher_round_trip", duration_ms=milliseconds(clock.monotonic_ns() - started))]


async def naming_time(call: Call[Any], fields: RecallFields, intent: Intent, found: Recalled) -> Recalled:
    """Return the memories that name the time of the query in their text; ``found`` if none does."""
    phrase = intent.phrase
    if phrase is None or fields.aggregate:
        return found
    most = msgspec.structs.replace(fields, limit=max(NAMING, fields.limit))
    named, _ = await search_memories(call, phrase.text, most, None, filters_of(fields, call.former_project))
    rows = [row for row in named.rows if names_time(row.content, phrase)][: fields.limit]
    return msgspec.structs.replace(named, rows=rows) if rows else found


async def with_window(call: Call[Any], fields: RecallFields, intent: Intent, found: Recalled) -> Recalled:
    """Return ``found``; with all that happened in the window if nothing of it has to do with the question.

    What answers the question and is of another time stays: after it if the time filters, else before it.
    """
    words, window = intent.topic, intent.window
    answers = [row for row in found.rows if words and _answers(row, words)]
    if any(
        row.time is not None or window.start_ms <= (epoch_ms(row.created_at) or 0) < window.end_ms for row in answers
    ):
        return found
    if words and _min_relevance(fields) > LISTED:
        return found
    everything = intent._replace(mode="timeline", search_text="", facets=_HAPPENED)
    listed, _ = await timeline(call, fields, everything)
    if not listed.rows:
        return found
    shown = {row.id for row in answers}
    happened = [row for row in listed.rows if row.time is None or row.time.subject_id not in shown]
    if words:
        happened = [msgspec.structs.replace(row, relevance=min(row.relevance, LISTED)) for row in happened]
    rows = [*happened, *answers] if intent.mode == "filter" else [*answers, *happened]
    return msgspec.structs.replace(found, rows=rows[: fields.limit])


def _answers(row: RecalledRow, words: Sequence[str]) -> bool:
    """Return whether a memory has to do with the words, whatever the words of the time in the query say."""
    content = row.content.lower()
    return row.relevance >= ANSWERS or any(word in content for word in words)


def _min_score(config: Config, fields: RecallFields) -> float:
    return config.search.min_score if fields.min_score is None else max(0.0, min(1.0, fields.min_score))


def _min_relevance(fields: RecallFields) -> float:
    return max(0.0, min(1.0, fields.min_relevance or 0.0))


def milliseconds(nanoseconds: int) -> float:
    return round(nanoseconds / 1e6, 2)
