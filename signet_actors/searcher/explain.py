"""Explain a recall: why each result has its score, and why a named memory is not among the results.

Everything is computed from rows that the caller may read: a row that is not among them is ``not_found``, whether it
exists or not. The strength of a keyword match is counted over these rows too, because the weight of a word in the whole
store would tell how many hidden rows have it. Terms that no memory of the whole store holds have alternatives.

Source: docs/compatibility.md "Recall"; docs/decisions.md 35.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from signet_actors.domain.query_words import phrase_expression
from signet_actors.domain.ranking import bm25, relevance
from signet_actors.domain.ranking.context import InContext
from signet_actors.domain.ranking.explanation import ExplainedId, Explanation, LegScore, Move
from signet_actors.domain.ranking.reasons import with_reasons, with_why
from signet_actors.protocol.memories import Filters
from signet_actors.protocol.searcher import Recall
from signet_actors.searcher.columns import Mask, Seqs
from signet_actors.searcher.graph.stage import GraphFound, path_to
from signet_actors.searcher.legs.keyword import UNCERTAIN, KeywordHits
from signet_actors.searcher.legs.vector import VectorHits, VectorLeg
from signet_actors.searcher.postings import MATCH, Rows
from signet_actors.searcher.reader import Reader
from signet_actors.searcher.relevance import Measure, rows_hold
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads.memories import seq_of_readable

TIME_WINDOW: Final = "time"
"""Named as a filter where a recall is restricted to a time window."""
_DECIMALS: Final = 6

Floats = npt.NDArray[np.float64]


class Moves:
    """What the stages of a recall added to the score of each candidate, in order; nothing unless ``wanted``."""

    def __init__(self, *, wanted: bool) -> None:
        self.wanted = wanted
        self.stages: list[tuple[str, Floats]] = []

    def note(self, points: Mapping[str, Floats]) -> None:
        """Note the points of each candidate by stage."""
        if self.wanted:
            self.stages.extend(points.items())

    def note_context(self, before: Floats, context: InContext) -> None:
        """Note the points of context, which raised the scores ``before``."""
        if self.wanted:
            support = {"neighbours": context.neighbours, "answer": context.answer, "episode": context.episode}
            self.note({**support, "compensation": context.scores - before - sum(support.values(), np.zeros(1))})

    def between(self, stage: str, before: Floats, after: Floats) -> Floats:
        """Note the difference of two scores of each candidate; return ``after``."""
        if self.wanted:
            self.stages.append((stage, after - before))
        return after


class Candidates(NamedTuple):
    """All candidates, ascending by ``seqs``. All arrays have shape (n,).

    ``fused`` is the score of the legs, before any move; ``scores`` are those before identifiers were lifted; ``strong``
    is compared with ``min_score``.
    """

    seqs: Seqs
    bm25: Floats
    cosine: Floats
    fused: Floats
    scores: Floats
    strong: Floats


class Ranking(NamedTuple):
    """The candidates that are strong, relevant and new enough, best first, whatever the limit. Shape (n,) each."""

    seqs: Seqs
    scores: Floats


class Stages(NamedTuple):
    """What the stages of a recall hand over. ``allowed`` marks the rows that were searched, shape (size,)."""

    allowed: Mask
    keyword_hits: KeywordHits
    vector_hits: Sequence[VectorHits]
    vector_queries: Sequence[tuple[VectorLeg, npt.NDArray[np.float32]]]
    measure: Measure
    candidates: Candidates
    moves: Moves
    ranking: Ranking
    graph: GraphFound = GraphFound()


class Explained(NamedTuple):
    """The explanations of results by ``seq``, and of the memory that the request names."""

    results: Mapping[int, Explanation] = MappingProxyType({})
    named: ExplainedId | None = None


def explain(reader: Reader, snapshot: Snapshot, command: Recall, stages: Stages) -> Explained:
    """Return the explanations that the request wants."""
    explainer = _Explainer(reader, snapshot, command, stages)
    named = explainer.named()
    return Explained(explainer.results(), None if named is None else with_why(named))


class _Term(NamedTuple):
    """A term of the query, or a word that it may have been meant as (``meant_by``)."""

    text: str
    rows: Rows
    idf: float
    meant_by: str | None = None


class _Explainer:
    """Explains one recall. The caches of ``reader`` must be those of the recall, at ``snapshot``."""

    def __init__(self, reader: Reader, snapshot: Snapshot, command: Recall, stages: Stages) -> None:
        self._reader, self._snapshot, self._command, self._stages = reader, snapshot, command, stages
        readable = reader.readable_rows(snapshot, command.read, command.filters.only_project)
        tokens = reader.columns.tokens[: len(readable)][readable]
        self._mean_length = float(tokens.mean()) if len(tokens) else 1.0
        self._terms = []
        for term in reader.keyword.terms:
            searched: list[tuple[str, Rows, str | None]] = [(term.text, term.rows(snapshot, reader.postings), None)]
            for other in term.alternatives:
                rows = reader.postings.lookup(snapshot, MATCH, phrase_expression(other))
                searched.append((other, rows, term.text))
            for text, rows, meant_by in searched:
                holding = int(np.count_nonzero(readable[rows]))
                idf = bm25.inverse_document_frequency(len(tokens), holding)
                self._terms.append(_Term(text, rows, idf if meant_by is None else UNCERTAIN * idf, meant_by))

    def results(self) -> dict[int, Explanation]:
        """Return the explanations of the rows within the limit by ``seq``; none unless the request wants them."""
        shown = self._stages.ranking.seqs[: self._command.limit if self._command.explain else 0]
        return {seq: self._candidate(seq) for seq in shown.tolist()}

    def named(self) -> ExplainedId | None:
        """Return what became of the memory that the request names, None if it names none."""
        memory_id = self._command.explain_id
        if memory_id is None:
            return None
        seq = seq_of_readable(self._snapshot, memory_id, self._command.read)
        if seq is None or seq >= self._reader.columns.size:
            return ExplainedId(memory_id, "not_found")
        if not self._stages.allowed[seq]:
            return ExplainedId(memory_id, "filtered", filters=self._excluding_filters(seq) or [TIME_WINDOW])
        if seq not in self._stages.candidates.seqs:
            return ExplainedId(memory_id, "not_a_candidate", explanation=self._outside(seq))
        explanation = self._candidate(seq)
        fate = self._fate_of_candidate(memory_id, seq, explanation.relevance)
        return msgspec.structs.replace(fate, explanation=explanation)

    def _fate_of_candidate(self, memory_id: str, seq: int, relevance: float) -> ExplainedId:
        command, stages = self._command, self._stages
        strong = float(stages.candidates.strong[np.searchsorted(stages.candidates.seqs, seq)])
        if strong < command.min_score:
            value = round(strong, _DECIMALS)
            return ExplainedId(memory_id, "below_min_score", value=value, threshold=command.min_score)
        if relevance < command.min_relevance:
            return ExplainedId(memory_id, "below_min_relevance", value=relevance, threshold=command.min_relevance)
        if seq in self._reader.columns.unchanged(command.received):
            return ExplainedId(memory_id, "already_recalled")
        rank = _rank(stages.ranking.seqs, seq)
        if rank is not None and rank > command.limit:
            return ExplainedId(memory_id, "beyond_limit", rank=rank, threshold=float(command.limit))
        return ExplainedId(memory_id, "returned", rank=rank)

    def _excluding_filters(self, seq: int) -> list[str]:
        """Return the names of the filters that the readable row does not pass; ``scope`` counts as one."""
        reader, command = self._reader, self._command
        if not reader.readable_rows(self._snapshot, command.read, ())[seq]:
            return ["scope"]
        given = msgspec.structs.asdict(command.filters)
        empty = msgspec.structs.asdict(Filters())
        return [
            name
            for name, value in given.items()
            if value != empty[name]
            and not reader.allowed_rows(
                self._snapshot,
                command.read,
                Filters(**{"former_project": command.filters.former_project, name: value}),
            )[seq]
        ]

    def _candidate(self, seq: int) -> Explanation:
        stages = self._stages
        at = int(np.searchsorted(stages.candidates.seqs, seq))
        moves = [(stage, float(points[at])) for stage, points in stages.moves.stages]
        score = before = float(stages.candidates.scores[at])
        place = np.flatnonzero(stages.ranking.seqs == seq)
        if len(place):
            score = float(stages.ranking.scores[place[0]])
            moves.append(("exact_match", score - before))
        return self._explanation(
            seq,
            float(stages.candidates.bm25[at]),
            float(stages.candidates.cosine[at]),
            float(stages.candidates.fused[at]),
            moves,
            score,
        )

    def _outside(self, seq: int) -> Explanation:
        """Return the explanation of an allowed row that is no candidate."""
        row, cosine = np.array([seq], np.int64), np.full(1, np.nan)
        for leg, query in self._stages.vector_queries:
            missing = np.isnan(cosine)
            cosine[missing] = leg.cosines(self._snapshot, self._reader.columns, query, row[missing])
        return self._explanation(seq, float(self._reader.keyword.strengths(row)[0]), float(cosine[0]), 0.0, [], 0.0)

    def _explanation(
        self, seq: int, strength: float, cosine: float, base: float, moves: Sequence[tuple[str, float]], score: float
    ) -> Explanation:
        stages, row = self._stages, np.array([seq], np.int64)
        held = [term for term in self._terms if rows_hold(term.rows, row)[0]]
        terms = [term.text for term in held if term.meant_by is None]
        cosines = np.array([cosine])
        covered, standing = stages.measure.coverage(row), stages.measure.standing(row, cosines)
        explanation = Explanation(
            legs=self._legs(seq, strength, cosine),
            terms=terms,
            missing_terms=[term.text for term in self._terms if term.meant_by is None and term.text not in terms],
            similar_terms=[term.text for term in held if term.meant_by is not None],
            base=round(base, _DECIMALS),
            moves=[Move(stage, rounded) for stage, points in moves if (rounded := round(points, _DECIMALS))],
            score=round(score, _DECIMALS),
            coverage=round(float(covered[0]), relevance.DECIMALS),
            standing=None if np.isnan(standing[0]) else round(float(standing[0]), relevance.DECIMALS),
            relevance=float(stages.measure.relevance(row, cosines)[0]),
            path=path_to(self._snapshot, self._reader.graph, stages.graph, seq),
        )
        return with_reasons(explanation)

    def _legs(self, seq: int, strength: float, cosine: float) -> list[LegScore]:
        hits, legs = self._stages.keyword_hits, []
        by_words = self._strength(seq)
        if by_words > 0.0:
            found = hits.seqs[~np.isin(hits.seqs, hits.hint_only)]
            legs.append(LegScore("keyword", _rank(found, seq), round(by_words, _DECIMALS)))
        if seq in hits.hints:
            best = float(self._stages.candidates.bm25.max(initial=strength))
            legs.append(LegScore("hint", _rank(hits.hints, seq), round(strength / best, _DECIMALS)))
        if cosine == cosine:  # noqa: PLR0124 - NaN is unequal to itself
            ranks = [_rank(found.seqs, seq) for found in self._stages.vector_hits]
            rank = next((rank for rank in ranks if rank is not None), None)
            legs.append(LegScore("vector", rank, round(cosine, _DECIMALS)))
        return legs

    def _strength(self, seq: int) -> float:
        """Return the BM25 strength of the row's content, counted over the rows that the caller may read."""
        row = np.array([seq], np.int64)
        weight = float(bm25.weights(self._reader.columns.tokens[row], self._mean_length)[0])
        return weight * sum(term.idf for term in self._terms if rows_hold(term.rows, row)[0])


def _rank(found: Seqs, seq: int) -> int | None:
    at = np.flatnonzero(found == seq)
    return int(at[0]) + 1 if len(at) else None
