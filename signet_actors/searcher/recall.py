"""Recall: search memories by keywords and by vectors, fuse the scores, and return the best rows.

``recall`` is the whole recipe; read it from top to bottom. Each search method is a leg in ``legs/``. Arrays hold one
entry per candidate and are parallel: ``seqs`` (``memories.seq``), ``bm25``, ``cosine``, ``base`` and ``scores``.

Source: memory-api.txt "recall"; docs/quality.md rules 1-4 and 7; docs/decisions.md 6-9, 35.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from time import perf_counter

import msgspec
import numpy as np
import numpy.typing as npt

from signet_actors.config.schema import MINILM_MODEL, MULTILINGUAL_MODEL
from signet_actors.domain.query_words import search_words, words_of
from signet_actors.domain.ranking import context, episode_order, fusion, rerank
from signet_actors.domain.ranking.text_flags import wanted_flags
from signet_actors.domain.stop_words import STOP_WORDS, stop_words_of
from signet_actors.errors import InvalidRequest
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.searcher import CommonWords, GetCommonWords, MissedRow, Recall, Recalled, StageTiming
from signet_actors.runtime.sync_points import sync_point
from signet_actors.searcher import token_similarity
from signet_actors.searcher.columns import DAY_MS, Mask
from signet_actors.searcher.dampening import dampened
from signet_actors.searcher.episodes import NONE, positions
from signet_actors.searcher.exact_matches import lift_exact_matches, rows_with_names
from signet_actors.searcher.explain import Candidates, Explained, Moves, Ranking, Stages, explain
from signet_actors.searcher.graph.beside import beside_rows, named_entities
from signet_actors.searcher.graph.stage import GraphFound, search_graph, with_structure
from signet_actors.searcher.legs.keyword import KeywordHits
from signet_actors.searcher.legs.vector import VectorHits, VectorLeg
from signet_actors.searcher.own_times import newest_first, own_times
from signet_actors.searcher.reader import Reader
from signet_actors.searcher.recalled_rows import fetch_rows
from signet_actors.searcher.relevance import Measure, spelled_otherwise
from signet_actors.store.engine import Snapshot

DATE_CANDIDATES = 200
"""At most this many rows are candidates because of their date alone."""
MOST_NEAR_MS = 8 * DAY_MS
"""Longer times than this add no candidates of their own."""
MOST_MISSED = 10
"""Rows that are less relevant than the request wants, and received ones, that are told of."""
_LEAST_FULL = 1e-9

Seqs = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]


class _Stopwatch:
    """Measure named stages; each starts where the previous one ended."""

    def __init__(self) -> None:
        self.stages: list[StageTiming] = []
        self._last = perf_counter()

    def lap(self, name: str) -> None:
        now = perf_counter()
        self.stages.append(StageTiming(name, round((now - self._last) * 1000, 3)))
        self._last = now


def recall(
    reader: Reader, snapshot: Snapshot, command: Recall, frames: list[bytes], *, among: Mask | None = None
) -> Recalled:
    """Return the best memories that the caller may read, best first; only rows of ``among``, if it is given.

    ``frames`` holds the query's vector in ``command.vector_model`` and, where memories have vectors of another model, a
    second one in ``command.former_model``. Without a vector, recall searches by keywords alone.
    """
    watch, moves = _Stopwatch(), Moves(wanted=command.explain or command.explain_id is not None)

    # 1. Bring the in-memory caches up to date, then mark the rows that the caller may read and that pass the filters.
    reader.sync(snapshot)
    allowed = reader.allowed_rows(snapshot, command.read, command.filters)
    if among is not None:
        allowed = allowed & among
    changed_words = _changed_common_words(reader, snapshot, command)
    pool = max(command.pool, command.limit + len(command.received))
    watch.lap("admit")
    snapshot.check_preempted()

    # 2. Keyword leg: BM25 over the content. If enabled, also over the questions that a memory may answer (hints).
    keyword_hits = reader.keyword.search(snapshot, command.query, allowed, pool=max(pool, 1))
    watch.lap("memory_fts")
    sync_point("searcher.fts_done")
    if command.hints and reader.hints.sync(snapshot):
        keyword_hits = reader.hints.merge_into(snapshot, command.query, allowed, keyword_hits, pool=max(pool, 1))
        watch.lap("hint_fts")
    snapshot.check_preempted()

    # 3. Vector leg, in each model of which there are vectors. A row is found by the first one that has it.
    vector_queries = _vector_queries(reader, snapshot, command, frames)
    vector_hits, left = [], allowed
    for at, (leg, query) in enumerate(vector_queries):
        vector_hits.append(leg.search(snapshot, reader.columns, query, left, pool=max(pool, 1)))
        left = left & ~leg.with_vector(left) if at + 1 < len(vector_queries) else left
        watch.lap("vector_knn" if leg.matrix.model == command.vector_model else "second_vector_knn")
    if vector_queries:
        snapshot.check_preempted()
        sync_point("searcher.vec_done")

    graph = search_graph(reader, snapshot, command, allowed)
    if command.graph is not None:
        watch.lap("traversal")

    # 4. The candidates: what the legs found, rows of the day that the query names, and in conversations the rows beside
    #    these. Every candidate gets its true strength in each leg, so that fusion compares like with like.
    reader.sync_context(snapshot)
    named = rows_with_names(reader, snapshot, command, allowed)
    seqs, in_conversation = _candidates(reader, command, allowed, [keyword_hits, *vector_hits], named)
    seqs, in_conversation, is_flat = _with_graph(seqs, in_conversation, graph)
    bm25 = _strengths(reader, keyword_hits, seqs)
    is_english = stop_words_of(words_of(command.query)) == STOP_WORDS
    # The better model is one of English: to it, two texts in another language are near because of that.
    measured = vector_queries if is_english or not command.prefers_former else vector_queries[::-1]
    cosine, likely = _cosines(reader, snapshot, vector_queries, measured, seqs)
    if not vector_queries:
        method, base = "keyword", fusion.scaled(bm25)
    elif command.fusion == "rrf":
        method, base = "hybrid", fusion.rrf(bm25, likely)
    else:
        # With models of English, what a query in another language means is less sure than its words.
        is_known = is_english or measured[0][0].matrix.model == MULTILINGUAL_MODEL
        full = fusion.OF_FULL * keyword_hits.full if is_known else 0.0
        method, base = "hybrid", fusion.convex(bm25, likely, alpha=command.alpha, full=full)
    watch.lap("fusion")

    # 5. Token similarity: the best candidates are compared with the query token by token.
    tokens = np.full(len(seqs), np.nan)
    fused, is_refined = base, command.fusion == "convex" and bool(bm25.any())
    if is_refined and vector_queries and (command.words or command.former_words):
        tokens, compared = _token_points(reader, snapshot, command, vector_queries, keyword_hits, seqs, base)
        base = moves.between("token_similarity", base, fusion.with_tokens(base, tokens, compared))
        watch.lap("token_similarity")

    # 6. Priors: what a row is worth by its text and its date. The weights of this stage and the next are made for
    #    scaled scores: ranks (rrf) get neither, cosines (no word matches) get the date alone.
    scores, flags = base, reader.flags.records["flags"][seqs]
    is_subject, boost = np.zeros(len(seqs), np.bool_), np.zeros(len(seqs))
    if command.priors and is_refined:
        subject = reader.known_subject(snapshot, command.read, command.filters.only_project, command.query)
        is_subject = (reader.flags.records["subject"][seqs] == subject) & (subject != 0)
        points = context.priors(flags, is_subject, wanted_flags(command.query))
        scores = scores + sum(points.values())
        moves.note(points)
    if command.near_ms is not None and command.fusion == "convex":
        boost = context.date_boost(reader.columns.days_from(seqs, *command.near_ms))
        scores = scores + boost
        moves.note({"date": boost})
    watch.lap("priors")

    # 7. Context: in a conversation, the neighbours and the episode of a row support it.
    strong = np.maximum(fused, base)
    has_context = command.context and is_refined and bool(in_conversation.any())
    if has_context:
        near = _neighbours(reader, seqs, in_conversation)
        supported, strong = context.with_context(base, scores, flags, near), context.strongest_beside(strong, near)
        moves.note_context(scores, supported)
        scores = supported.scores
    scores = moves.between("scale", scores, np.maximum(scores / max(1.0, float(scores.max(initial=0.0))), 0.0))
    watch.lap("context")

    # 8. Order within an episode: which of its rows answers. Without vectors there are no conversations.
    if command.episode_order and has_context and vector_queries:
        scored = episode_order.Scored(
            keyword=fusion.scaled(bm25),
            coverage=bm25 / max(keyword_hits.full, _LEAST_FULL),
            cosine=fusion.relative_cosine(likely),
            tokens=np.nan_to_num(tokens),
            flags=flags,
            wanted=wanted_flags(command.query),
            is_subject=is_subject,
            date=boost,
            fused=fused,
            base=base,
            context=supported,
            scores=scores,
        )
        scores = moves.between("episode_order", scores, episode_order.ordered(scored, near))
        watch.lap("episode_order")

    raised, strong = with_structure(graph, command, seqs, scores, strong, likely, is_flat)
    scores = moves.between("traversal", scores, raised)

    # 9. Rerank the best by cosine, put the newest of near ties first, drop weak candidates, and move exact identifier
    #    matches to the front.
    snapshot.check_preempted()
    scores = moves.between("rerank", scores, rerank.rerank_by_cosine(scores, likely, top=command.rerank_top))
    counted = reader.counted_rows(snapshot, command.read, command.filters)
    legs = [leg for leg, _ in measured]
    measure = Measure(
        snapshot,
        reader.postings,
        reader.keyword.terms,
        counted,
        reader.unrelated,
        legs,
        named=named,
        of_long_text=command.of_long_text,
        is_part=command.is_part,
        hinted=partial(reader.hints.covered, snapshot) if len(keyword_hits.hints) else None,
        flags=reader.flags.records["flags"],
        likeness=partial(_likeness_of_words, reader, snapshot, command, keyword_hits),
        tokens=_likeness_in_context(reader, snapshot, command, legs, keyword_hits),
    )
    if command.newest_first:
        talk = in_conversation if has_context else np.zeros(len(seqs), np.bool_)
        exchanged = newest_first(snapshot, command.read, reader.columns, measure, seqs, scores, talk)
        scores = moves.between("newest_first", scores, exchanged)
    is_semantic = cosine > 0.0
    scores = dampened(reader, snapshot, command, seqs, scores, is_semantic, bm25 > 0.0, moves)
    keep = (strong >= command.min_score) | np.isin(seqs, named)
    missed: list[MissedRow] = []
    if command.min_relevance > 0.0:
        relevant = measure.relevance(seqs, cosine)
        missed = _less_relevant(reader, seqs, np.where(keep & (relevant < command.min_relevance), relevant, -1.0))
        keep &= relevant >= command.min_relevance
    candidates = Candidates(seqs, bm25, cosine, fused, scores, strong)
    seqs, bm25, cosine, scores = seqs[keep], bm25[keep], cosine[keep], scores[keep]
    scores, is_exact = lift_exact_matches(snapshot, command, keyword_hits, named, seqs, scores)

    # 10. Sort (of equal scores an exact match is first, then the newer memory), leave out what the session has
    #     received, explain on request, authorise once more in SQL, and read the content.
    order = np.lexsort((-seqs, -reader.columns.created_ms[seqs], ~is_exact, -scores))
    order, suppressed = _without_received(reader, order, seqs, command)
    received_hits = seqs[suppressed][bm25[suppressed] > 0]
    missed += [_missed(reader, seq, None) for seq in seqs[suppressed[:MOST_MISSED]].tolist()]
    explained = Explained()
    if moves.wanted:
        ranking = Ranking(seqs[order], scores[order])
        legs_found = keyword_hits, vector_hits, vector_queries
        stages = Stages(allowed, *legs_found, measure, candidates, moves, ranking, graph)
        explained = explain(reader, snapshot, command, stages)
    order = order[: command.limit]
    seqs, bm25, cosine = seqs[order], bm25[order], cosine[order]
    by_hint = np.isin(seqs, keyword_hits.hint_only) if len(keyword_hits.hint_only) else np.zeros(len(seqs), np.bool_)
    versions = reader.columns.content_version[seqs]
    own_ms = own_times(snapshot, reader.columns, seqs)
    measures = scores[order], bm25, cosine, measure.relevance(seqs, cosine), by_hint, own_ms, versions
    by_graph = graph.sources(seqs[~is_flat[keep][order]])
    rows = fetch_rows(snapshot, command, seqs, *measures, explained.results, by_graph)
    watch.lap("final_rank")
    return Recalled(
        rows=rows,
        method=method,
        timings=watch.stages,
        common_words=changed_words,
        stale_spaces=_other_spaces(reader, command, frames, lambda leg: leg.in_use),
        second_spaces=_other_spaces(reader, command, frames, lambda leg: leg.is_second),
        pending=reader.pending,
        explained=explained.named,
        suppressed=len(suppressed),
        received_hits=tuple(received_hits.tolist()),
        beside=beside_rows(reader, snapshot, command, graph, rows, allowed) if command.beside else [],
        entities=named_entities(reader, snapshot, command, graph),
        missed=missed,
    )


def _less_relevant(reader: Reader, seqs: Seqs, relevance: Scores) -> list[MissedRow]:
    """Return the rows of the greatest relevance, the best first; those of a negative one do not count."""
    best = np.argpartition(relevance, -MOST_MISSED)[-MOST_MISSED:] if len(seqs) > MOST_MISSED else np.arange(len(seqs))
    best = best[np.argsort(-relevance[best], kind="stable")]
    return [_missed(reader, int(seqs[at]), float(relevance[at])) for at in best.tolist() if relevance[at] >= 0.0]


def _missed(reader: Reader, seq: int, relevance: float | None) -> MissedRow:
    return MissedRow(seq, int(reader.columns.content_version[seq]), relevance)


def probe(reader: Reader, snapshot: Snapshot) -> None:
    """Run one recall per leg, so that a starting searcher fails early and loads what is loaded at first use."""
    for leg in (None, *reader.vector_legs()):
        model, frames = None, []
        if leg is not None:
            model, frames = leg.matrix.model, [np.ones(leg.matrix.dimensions, np.float32).tobytes()]
        query = "are both legs ready?"
        recall(reader, snapshot, Recall(query=query, read=ReadScope(), vector_model=model, hints=True), frames)


def common_words(reader: Reader, snapshot: Snapshot, command: GetCommonWords) -> CommonWords:
    """Return the common words of the memories that the caller may read in ``projects``; other filters do not count."""
    reader.sync(snapshot)
    allowed = reader.allowed_rows(snapshot, command.read, command.projects)
    return reader.common_words.get(snapshot, scope_key(command), command.read, allowed)


def scope_key(command: GetCommonWords) -> str:
    """Return the cache key of a scope: what the caller may read, and the projects."""
    return msgspec.json.encode((command.read, command.projects)).decode()


def _changed_common_words(reader: Reader, snapshot: Snapshot, command: Recall) -> CommonWords | None:
    """Return the scope's common words if the caller embeds queries and has another version of them; else None."""
    if command.vector_model is None or command.common_words_version is None:
        return None
    words = common_words(reader, snapshot, GetCommonWords(command.read, command.filters.projects))
    return words if words.version != command.common_words_version else None


def _vector_queries(
    reader: Reader, snapshot: Snapshot, command: Recall, frames: list[bytes]
) -> list[tuple[VectorLeg, Floats]]:
    """Return each vector leg to search and the query vector for it, the preferred one first; [] = keywords alone.

    A model without stored vectors is skipped, and a better one while its vectors are being read in: then each memory
    counts by its first vector. Raises InvalidRequest for a frame that is not float32.
    """
    models = [model for model in (command.vector_model, command.former_model) if model is not None]
    vector_queries = []
    for model, frame in zip(models, frames, strict=False):
        if len(frame) % 4:
            raise InvalidRequest("the query vector is not float32")
        query = np.frombuffer(frame, np.float32)
        leg = reader.vector_leg(snapshot, model, len(query))
        if leg is None:
            continue
        is_better = command.prefers_former and model == command.former_model
        if not is_better:
            vector_queries.append((leg, query))
        elif leg.complete:
            vector_queries.insert(0, (leg, query))
    return vector_queries


def _other_spaces(
    reader: Reader, command: Recall, frames: list[bytes], counts: Callable[[VectorLeg], bool]
) -> tuple[tuple[str, int], ...]:
    """Return the (model, dimensions) pairs of the legs that count, apart from the query's own.

    The gateway uses them to embed the next query with the other model too. Only legs that are open count.
    """
    current = None if command.vector_model is None or not frames else (command.vector_model, len(frames[0]) // 4)
    spaces = (((leg.matrix.model, leg.matrix.dimensions), leg) for leg in reader.vector_legs())
    return tuple(space for space, leg in spaces if space != current and counts(leg))


def _candidates(
    reader: Reader,
    command: Recall,
    allowed: Mask,
    hits: Sequence[KeywordHits | VectorHits],
    named: Seqs,
) -> tuple[Seqs, Mask]:
    """Return the candidates' ``seqs``, ascending, each once, and which of them are part of a conversation."""
    found = [named, *(each.seqs for each in hits)]
    if command.near_ms is not None:
        found.append(_rows_near(reader, allowed, *command.near_ms))
    seqs = _each_once(found)
    episodes = reader.episodes
    inside = seqs[reader.open_episodes(episodes.episode[seqs])] if command.context else seqs[:0]
    if not len(inside):
        return seqs, np.zeros(len(seqs), np.bool_)
    beside = [inside]
    for neighbours in (episodes.left[inside], episodes.right[inside]):
        rows, of = neighbours[neighbours != NONE], inside[neighbours != NONE]
        rows = rows[episodes.episode[rows] == episodes.episode[of]].astype(np.int64)
        beside.append(rows[allowed[rows]])
    inside = np.concatenate(beside)
    seqs = _each_once((seqs, inside))
    in_conversation = np.zeros(len(seqs), np.bool_)
    in_conversation[np.searchsorted(seqs, inside)] = True
    return seqs, in_conversation


def _with_graph(seqs: Seqs, in_conversation: Mask, graph: GraphFound) -> tuple[Seqs, Mask, Mask]:
    """Return the candidates with those of the graph, and which of them were there without it.

    What only the graph has found has no context, so that it changes no score of the others.
    """
    if not len(graph.seqs):
        return seqs, in_conversation, np.ones(len(seqs), np.bool_)
    every = _each_once((seqs, graph.seqs))
    is_flat, talk = np.zeros(len(every), np.bool_), np.zeros(len(every), np.bool_)
    at = np.searchsorted(every, seqs)
    is_flat[at], talk[at] = True, in_conversation
    return every, talk, is_flat


def _each_once(rows: Sequence[Seqs]) -> Seqs:
    """Return all of ``rows``, ascending, each once: what ``np.unique`` does, in a third of its time."""
    ascending = np.sort(np.concatenate(rows))
    is_first = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=is_first[1:])
    return ascending[is_first]


def _rows_near(reader: Reader, allowed: Mask, start_ms: int, end_ms: int) -> Seqs:
    """Return at most ``DATE_CANDIDATES`` allowed rows of these times, or else of the days before and after them.

    No row if they are longer than a week and a day: then a date says little about a row, and there may be very many.
    """
    if end_ms - start_ms > MOST_NEAR_MS:
        return np.zeros(0, np.int64)
    columns = reader.columns
    created = columns.created_ms[: len(allowed)]
    near: Seqs = np.flatnonzero(allowed & (created >= start_ms - DAY_MS) & (created < end_ms + DAY_MS))
    inside = (created[near] >= start_ms) & (created[near] < end_ms)
    first = _earliest(near[inside], created, DATE_CANDIDATES)
    return np.concatenate((first, _earliest(near[~inside], created, DATE_CANDIDATES - len(first))))


def _earliest(rows: Seqs, created: Seqs, count: int) -> Seqs:
    """Return the ``count`` rows that were created first, in any order."""
    return rows if len(rows) <= count else rows[np.argpartition(created[rows], count)[:count]]


def _strengths(reader: Reader, keyword_hits: KeywordHits, seqs: Seqs) -> Scores:
    """Return the keyword strength of each candidate, 0 = no match: the greater of its content's and its best hint's."""
    bm25 = reader.keyword.strengths(seqs)
    np.maximum.at(bm25, np.searchsorted(seqs, keyword_hits.seqs), keyword_hits.strengths)
    return bm25


def _cosines(
    reader: Reader,
    snapshot: Snapshot,
    vector_queries: Sequence[tuple[VectorLeg, Floats]],
    measured: Sequence[tuple[VectorLeg, Floats]],
    seqs: Seqs,
) -> tuple[Scores, Scores]:
    """Return the exact cosine of each candidate by the first one of ``measured`` that has it, and all on one scale.

    NaN for a row without a vector.
    """
    cosine = likely = np.full(len(seqs), np.nan)
    by_leg = {leg: leg.cosines(snapshot, reader.columns, query, seqs) for leg, query in vector_queries}
    for leg, _ in reversed(vector_queries):
        likely = fusion.on_one_scale(by_leg[leg], likely)
    for leg, _ in reversed(measured):
        cosine = np.where(np.isnan(by_leg[leg]), cosine, by_leg[leg])
    return cosine, likely


def _token_points(
    reader: Reader,
    snapshot: Snapshot,
    command: Recall,
    vector_queries: Sequence[tuple[VectorLeg, Floats]],
    keyword_hits: KeywordHits,
    seqs: Seqs,
    base: Scores,
) -> tuple[Scores, Mask]:
    """Return the points for token similarity of each candidate, NaN if not known, and which were compared: the best.

    A row counts by the codes of the first model that has a vector of it, beside all rows that have codes of that model.
    """
    points, compared = np.full(len(seqs), np.nan), np.zeros(len(seqs), np.bool_)
    best = np.lexsort((-seqs, -base))[: token_similarity.ROWS]
    words = {command.former_model: command.former_words, command.vector_model: command.words}
    for leg, _ in vector_queries:
        model = leg.matrix.model
        unknown = np.isnan(points[best])
        if not words[model] or not unknown.any() or not reader.tokens.supports(model):
            continue
        numbers = leg.embedding_numbers(reader.columns, seqs[best])
        spelled = spelled_otherwise(snapshot, reader.postings, reader.keyword.terms, seqs[best])
        likeness = reader.tokens.likeness(snapshot, model, words[model], keyword_hits.rarity, numbers, spelled)
        points[best[unknown]] = fusion.token_points(likeness)[unknown]
    compared[best] = True
    return points, compared


def _likeness_of_words(
    reader: Reader,
    snapshot: Snapshot,
    command: Recall,
    keyword_hits: KeywordHits,
    terms: AbstractSet[str],
    seqs: Seqs,
) -> Scores:
    """Return how near the words of the query with these terms are to the nearest of each row, NaN if not known."""
    words = [word for word in command.words if not terms.isdisjoint(search_words(word[0]))]
    model = command.vector_model
    if model is None or not words or not reader.tokens.supports(model):
        return np.full(len(seqs), np.nan)
    numbers = reader.columns.embedding_seq[seqs].astype(np.int64)
    return reader.tokens.likeness(snapshot, model, words, keyword_hits.rarity, numbers)


def _likeness_in_context(
    reader: Reader,
    snapshot: Snapshot,
    command: Recall,
    legs: Sequence[VectorLeg],
    keyword_hits: KeywordHits,
) -> Callable[[Seqs], Scores] | None:
    """Return a function of rows for how near the tokens of the query are to theirs, by an encoder that reads contexts.

    NaN for a row without codes of it; None if the query has none, or the first of ``legs`` is of another encoder.
    """
    words = command.words if command.vector_model == MINILM_MODEL else command.former_words
    if not legs or legs[0].matrix.model != MINILM_MODEL or not words or not reader.tokens.supports(MINILM_MODEL):
        return None

    def likeness(seqs: Seqs) -> Scores:
        numbers = legs[0].embedding_numbers(reader.columns, seqs)
        return reader.tokens.likeness(snapshot, MINILM_MODEL, words, keyword_hits.rarity, numbers)

    return likeness


def _neighbours(reader: Reader, seqs: Seqs, in_conversation: Mask) -> context.Neighbours:
    """Return the context of the candidates: neighbours in the same episode that are candidates themselves."""
    episodes = reader.episodes
    number = episodes.episode[seqs].astype(np.int64)
    left, right = (
        np.where(
            in_conversation & (beside != NONE) & (episodes.episode[beside] == number),
            positions(seqs, beside.astype(np.int64)),
            len(seqs),
        )
        for beside in (episodes.left[seqs], episodes.right[seqs])
    )
    return context.Neighbours(left, right, positions(_each_once([number]), number), in_conversation)


def _without_received(reader: Reader, order: Seqs, seqs: Seqs, command: Recall) -> tuple[Seqs, Seqs]:
    """Return ``order`` without received rows, and those of these that are before the last row within the limit."""
    if not command.received:
        return order, order[:0]
    is_received = np.isin(seqs[order], reader.columns.unchanged(command.received))
    fresh = np.flatnonzero(~is_received)
    end = int(fresh[command.limit - 1]) + 1 if len(fresh) >= command.limit else len(order)
    return order[fresh], order[:end][is_received[:end]]
