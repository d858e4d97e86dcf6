"""The own time of a memory, when it occurred or else was created, and the order of near ties by it.

Source: docs/quality.md "Versions of a fact".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from signet_actors.domain.ranking import newest_first as ranking
from signet_actors.domain.versions import are_alike
from signet_actors.protocol.memories import ReadScope
from signet_actors.searcher.columns import Mask, MemoryColumns, Seqs
from signet_actors.searcher.relevance import Measure
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads.contents import contents_by_seq
from signet_actors.store.reads.temporal_edges import occurred_ms

Scores = npt.NDArray[np.float64]


def newest_first(
    snapshot: Snapshot,
    read: ReadScope,
    columns: MemoryColumns,
    measure: Measure,
    seqs: Seqs,
    scores: Scores,
    in_conversation: Mask,
) -> Scores:
    """Return the scores of the candidates, exchanged among near ties that cover the same words of the query.

    Only texts that are alike are exchanged, those of a conversation only if they are much alike: the order of
    different facts and turns tells more than their time.
    """
    best = np.lexsort((-seqs, -scores))[: ranking.ROWS]
    rows = seqs[best]
    groups = ranking.near_groups(scores[best].tolist(), measure.covered_words(rows).tolist())
    if not groups:
        return scores
    talk = in_conversation[best].tolist()
    texts = contents_by_seq(snapshot, read, rows[[at for group in groups for at in group]].tolist())
    exchanged = scores.copy()
    for group in groups:
        first = texts.get(int(rows[group[0]]), "")
        tied = [
            at for at in group if are_alike(first, texts.get(int(rows[at]), ""), much=bool(talk[at] or talk[group[0]]))
        ]
        if len(tied) > 1:
            exchanged[best] = ranking.newest_first(exchanged[best], tied, own_times(snapshot, columns, rows[tied]))
    return exchanged


def own_times(snapshot: Snapshot, columns: MemoryColumns, seqs: Seqs) -> Seqs:
    """Return when each row occurred, or else was created, in milliseconds since 1970. Shape (len(seqs),)."""
    times: Seqs = columns.created_ms[seqs]
    occurred = occurred_ms(snapshot, seqs.tolist())
    if occurred:
        times = np.array([occurred.get(seq, time) for seq, time in zip(seqs.tolist(), times.tolist(), strict=True)])
    return times
