"""Recall: search memories by keywords and by vectors, fuse the scores, and return the best rows.

``recall`` is the whole recipe; read it from top to bottom. Each search method is a leg in ``legs/``. Arrays hold one
entry per candidate and are parallel: ``seqs`` (``memories.seq``), ``bm25``, ``cosine`` and ``scores``.

Source: memory-api.txt "recall"; docs/quality.md rules 1-4 and 7; docs/decisions.md 6-9, 35.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from time import perf_counter

import msgspec
import numpy as np
import numpy.typing as npt

from signet_actors.domain.ranking import fusion, rerank
from signet_actors.errors import InvalidRequest
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.searcher import CommonWords, GetCommonWords, Recall, Recalled, RecalledRow, StageTiming
from signet_actors.runtime.sync_points import sync_point
from signet_actors.searcher.columns import Mask
from signet_actors.searcher.legs.keyword import KeywordHits
from signet_actors.searcher.legs.vector import VectorHits, VectorLeg
from signet_actors.searcher.reader import Reader
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads.contents import contents_by_seq, recalled_by_seq
from signet_actors.store.rows import decode_tags

RANK_ALL_BELOW = 2_000
"""When the caller may read fewer memories than this, all of them are candidates."""
_MAX_IDENTIFIERS = 64
"""Identifiers of one query that are looked for literally; further ones are ignored."""

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


def recall(reader: Reader, snapshot: Snapshot, command: Recall, frames: list[bytes]) -> Recalled:
    """Return the best memories that the caller may read, best first.

    ``frames`` holds the query's vector in ``command.vector_model`` and, after a change of model, a second one in
    ``command.former_model``. Without a vector, recall searches by keywords alone.
    """
    watch = _Stopwatch()

    # 1. Bring the in-memory caches up to date, then mark the rows that the caller may read and that pass the filters.
    reader.sync(snapshot)
    allowed = reader.allowed_rows(snapshot, command.read, command.filters)
    changed_words = _changed_common_words(reader, snapshot, command)
    allowed_count = int(np.count_nonzero(allowed))
    pool = allowed_count if allowed_count < RANK_ALL_BELOW else max(command.pool, command.limit)
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

    # 3. Vector leg, and fusion of both legs into one score per candidate.
    vector_queries = _vector_queries(reader, snapshot, command, frames)
    if not vector_queries:
        method, seqs, bm25 = "keyword", keyword_hits.seqs, keyword_hits.strengths
        cosine = np.full(len(seqs), np.nan)
        scores = fusion.scaled(bm25)
    else:
        method = "hybrid"
        # The newest vector of a row belongs to exactly one model, so no row is found twice.
        vector_hits = [
            leg.search(snapshot, reader.columns, query, allowed, pool=max(pool, 1)) for leg, query in vector_queries
        ]
        watch.lap("vector_knn")
        snapshot.check_preempted()
        sync_point("searcher.vec_done")
        seqs, bm25, cosine = _merge_hits(keyword_hits, vector_hits)
        # Compute the true cosine of rows that only the keyword leg found, so that fusion compares like with like.
        for leg, query in vector_queries:
            missing = np.isnan(cosine)
            cosine[missing] = leg.cosines(snapshot, query, seqs[missing])
        if command.fusion == "rrf":
            scores = fusion.rrf(bm25, cosine)
        else:
            scores = fusion.convex(bm25, cosine, alpha=command.alpha)
        watch.lap("fusion")

    # 4. Rerank the best by cosine, drop weak candidates, and move exact identifier matches to the front.
    snapshot.check_preempted()
    scores = rerank.rerank_by_cosine(scores, cosine, top=command.rerank_top)
    keep = scores >= command.min_score
    seqs, bm25, cosine, scores = seqs[keep], bm25[keep], cosine[keep], scores[keep]
    scores = _lift_exact_matches(snapshot, command, keyword_hits, seqs, scores)

    # 5. Sort (the newer memory wins a tie), authorise once more in SQL, and read the content.
    order = np.lexsort((-seqs, -scores))[: command.limit]
    by_hint = np.isin(seqs[order], keyword_hits.hint_only)
    rows = _fetch_rows(snapshot, command, seqs[order], scores[order], bm25[order], cosine[order], by_hint)
    watch.lap("final_rank")
    return Recalled(
        rows=rows,
        method=method,
        timings=watch.stages,
        common_words=changed_words,
        stale_spaces=_stale_spaces(reader, command, frames),
    )


def probe(reader: Reader, snapshot: Snapshot) -> None:
    """Run one recall per leg, so that a starting searcher fails early and loads what is loaded at first use."""
    for leg in (None, *reader.vector_legs()):
        model, frames = None, []
        if leg is not None:
            model, frames = leg.matrix.model, [np.ones(leg.matrix.dimensions, np.float32).tobytes()]
        query = "are both legs ready?"
        recall(reader, snapshot, Recall(query=query, read=ReadScope(), vector_model=model, hints=True), frames)


def common_words(reader: Reader, snapshot: Snapshot, command: GetCommonWords) -> CommonWords:
    """Return the common words of the memories that the caller may read in ``project``; other filters do not count."""
    reader.sync(snapshot)
    allowed = reader.allowed_rows(snapshot, command.read, Filters(project=command.project))
    return reader.common_words.get(snapshot, scope_key(command), command.read, allowed)


def scope_key(command: GetCommonWords) -> str:
    """Return the cache key of a scope: the agent, the scope value and the project."""
    return msgspec.json.encode((command.read.agent_id, command.read.scope, command.project)).decode()


def _changed_common_words(reader: Reader, snapshot: Snapshot, command: Recall) -> CommonWords | None:
    """Return the scope's common words if the caller embeds queries and has another version of them; else None."""
    if command.vector_model is None or command.common_words_version is None:
        return None
    words = common_words(reader, snapshot, GetCommonWords(command.read, command.filters.project))
    return words if words.version != command.common_words_version else None


def _vector_queries(
    reader: Reader, snapshot: Snapshot, command: Recall, frames: list[bytes]
) -> list[tuple[VectorLeg, Floats]]:
    """Return each vector leg to search and the query vector for it; an empty list means keywords alone.

    A model without stored vectors is skipped. Raises InvalidRequest for a frame that is not float32.
    """
    models = [model for model in (command.vector_model, command.former_model) if model is not None]
    vector_queries = []
    for model, frame in zip(models, frames, strict=False):
        if len(frame) % 4:
            raise InvalidRequest("the query vector is not float32")
        query = np.frombuffer(frame, np.float32)
        leg = reader.vector_leg(snapshot, model, len(query))
        if leg is not None:
            vector_queries.append((leg, query))
    return vector_queries


def _stale_spaces(reader: Reader, command: Recall, frames: list[bytes]) -> tuple[tuple[str, int], ...]:
    """Return the (model, dimensions) pairs, apart from the query's own, that still hold the newest vector of a row.

    The gateway uses them to embed the next query with the former model too. Only legs that are open count.
    """
    current = None if command.vector_model is None or not frames else (command.vector_model, len(frames[0]) // 4)
    spaces = (((leg.matrix.model, leg.matrix.dimensions), leg) for leg in reader.vector_legs())
    return tuple(space for space, leg in spaces if space != current and leg.in_use)


def _merge_hits(
    keyword_hits: KeywordHits, vector_hits: Sequence[VectorHits]
) -> tuple[Seqs, npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return ``(seqs, bm25, cosine)`` with every candidate once.

    ``bm25`` is 0 for a row that the keyword leg did not find; ``cosine`` is NaN for one that no vector leg found.
    """
    seqs = np.concatenate((keyword_hits.seqs, *(hits.seqs for hits in vector_hits)))
    order = np.argsort(seqs, kind="stable")
    seqs = seqs[order]
    first = np.ones(len(seqs), np.bool_)
    first[1:] = seqs[1:] != seqs[:-1]
    slot = np.empty(len(seqs), np.int64)
    slot[order] = np.cumsum(first) - 1
    seqs = seqs[first]
    bm25, cosine = np.zeros(len(seqs)), np.full(len(seqs), np.nan)
    bm25[slot[: len(keyword_hits.seqs)]] = keyword_hits.strengths
    cosine[slot[len(keyword_hits.seqs) :]] = np.concatenate([hits.cosines for hits in vector_hits])
    return seqs, bm25, cosine


def _lift_exact_matches(
    snapshot: Snapshot, command: Recall, keyword_hits: KeywordHits, seqs: Seqs, scores: Scores
) -> Scores:
    """Return the scores, raised for memories that contain an identifier of the query literally.

    A raised score lies between the best other score and 1. All other scores stay as they are, so that ``min_score``
    keeps its meaning.

    Source: docs/decisions.md 8; docs/quality.md rule 6.
    """
    identifiers = keyword_hits.identifiers[:_MAX_IDENTIFIERS]
    candidates = seqs[np.isin(seqs, keyword_hits.identifier_hits)] if identifiers else seqs[:0]
    if not len(candidates):
        return scores
    # The text index stores parts of words only. KA-6 must not match KA-61, nor read_config match read_configs.
    whole = re.compile("|".join(rf"(?<!\w){re.escape(identifier)}(?!\w)" for identifier in identifiers))
    exact_seqs = {
        seq
        for seq, content in contents_by_seq(snapshot, command.read, candidates.tolist()).items()
        if whole.search(content.lower())
    }
    if not exact_seqs:
        return scores
    is_exact = np.array([seq in exact_seqs for seq in seqs.tolist()])
    best_other = float(scores[~is_exact].max(initial=0.0))
    lifted = scores.copy()
    lifted[is_exact] = best_other + (1.0 - best_other) * (1.0 + scores[is_exact]) / 2.0
    return lifted


def _fetch_rows(
    snapshot: Snapshot,
    command: Recall,
    seqs: Seqs,
    scores: npt.NDArray[np.float64],
    bm25: npt.NDArray[np.float64],
    cosine: npt.NDArray[np.float64],
    by_hint: Mask,
) -> list[RecalledRow]:
    """Read the rows, in the order of ``seqs``. SQL applies policy and filters again before any content is read.

    The in-memory columns only preselect; this query decides what the caller sees.
    """
    found = recalled_by_seq(snapshot, command.read, command.filters, seqs.tolist())
    rows = []
    for seq, score, strength, similarity, hint_only in zip(
        seqs.tolist(), scores.tolist(), bm25.tolist(), cosine.tolist(), by_hint.tolist(), strict=True
    ):
        row = found.get(seq)
        if row is None:
            continue
        in_dense = similarity == similarity and similarity > 0  # noqa: PLR0124 - NaN is unequal to itself
        by_words = "hint" if hint_only else "keyword"
        source = "hybrid" if strength > 0 and in_dense else by_words if strength > 0 else "vector"
        length = len(row.content)
        rows.append(
            RecalledRow(
                id=row.id,
                content=row.content[: command.content_chars],
                score=round(min(1.0, score), 6),
                source=source,
                type=row.type,
                tags=decode_tags(row.tags),
                pinned=bool(row.pinned),
                importance=row.importance,
                who=row.who,
                project=row.project,
                scope=row.scope,
                visibility=row.visibility,
                agent_id=row.agent_id,
                created_at=row.created_at,
                session_id=row.session_id,
                content_length=length if length > (command.content_chars or length) else None,
            )
        )
    return rows
