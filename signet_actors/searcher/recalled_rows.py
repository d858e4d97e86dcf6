"""The results of a recall: stored rows, read once more by policy, with what the recall has found of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from signet_actors.domain.ranking.explanation import Explanation
from signet_actors.protocol.searcher import Recall, RecalledRow
from signet_actors.searcher.columns import Mask, Seqs
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads.contents import RecallableRow, recalled_by_seq
from signet_actors.store.rows import decode_tags


def fetch_rows(
    snapshot: Snapshot,
    command: Recall,
    seqs: Seqs,
    scores: npt.NDArray[np.float64],
    bm25: npt.NDArray[np.float64],
    cosine: npt.NDArray[np.float64],
    relevances: npt.NDArray[np.float64],
    by_hint: Mask,
    own_ms: Seqs,
    versions: npt.NDArray[np.int32],
    explanations: Mapping[int, Explanation],
    by_graph: Mapping[int, str],
) -> list[RecalledRow]:
    """Read the rows, in the order of ``seqs``. SQL applies policy and filters again before any content is read.

    The in-memory columns only preselect; this query decides what the caller sees. ``by_graph``: the sources of rows
    that no leg has found.
    """
    found = recalled_by_seq(snapshot, command.read, command.filters, seqs.tolist())
    rows = []
    measures = (array.tolist() for array in (seqs, scores, bm25, cosine, relevances, by_hint, own_ms, versions))
    for seq, score, strength, similarity, relevant, hint_only, own, version in zip(*measures, strict=True):
        row = found.get(seq)
        if row is None:
            continue
        in_dense = similarity == similarity and similarity > 0  # noqa: PLR0124 - NaN is unequal to itself
        by_words = "hint" if hint_only else "keyword"
        source = (
            "hybrid" if strength > 0 and in_dense else by_words if strength > 0 else "vector" if in_dense else "context"
        )
        measured = RowScores(round(min(1.0, score), 6), relevant, by_graph.get(seq, source), seq, own, version)
        rows.append(recalled_row(row, command, measured, explanations.get(seq)))
    return rows


class RowScores(NamedTuple):
    """What a recall has found of a row, beside its content: as of ``RecalledRow``."""

    score: float
    relevance: float
    source: str
    seq: int
    own_ms: int
    content_version: int
    supplementary: str | None = None


def recalled_row(
    row: RecallableRow, command: Recall, measured: RowScores, explanation: Explanation | None = None
) -> RecalledRow:
    """Return a stored row as a result of the recall, with as much of its content as is wanted."""
    length = len(row.content)
    return RecalledRow(
        id=row.id,
        content=row.content[: command.content_chars],
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
        content_at=row.content_at,
        session_id=row.session_id,
        source_id=row.source_id,
        source_type=row.source_type,
        source_path=row.source_path,
        content_length=length if length > (command.content_chars or length) else None,
        explanation=explanation,
        **measured._asdict(),
    )
