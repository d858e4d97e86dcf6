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

    A row of a conversation is exchanged only with one of much the same text: other turns are no versions of each other,
    and their order tells more than their time.
    """
    best = np.lexsort((-seqs, -scores))[: ranking.ROWS]
    groups = ranking.near_groups(scores[best], measure.covered_words(seqs[best]))
    if not groups:
        return scores
    talk = in_conversation[best]
    said = np.unique(np.concatenate([group for group in groups if talk[group].any()] or [groups[0][:0]]))
    texts = contents_by_seq(snapshot, read, seqs[best[said]].tolist()) if len(said) else {}
    exchanged = scores.copy()
    for group in groups:
        tied = group
        if talk[group].any():
            first, *_ = words = [texts.get(seq, "") for seq in seqs[best[group]].tolist()]
            alike = [
                not (talk[at] or talk[group[0]]) or are_alike(first, text)
                for at, text in zip(group, words, strict=True)
            ]
            tied = group[alike]
        exchanged[best] = ranking.newest_first(exchanged[best], tied, own_times(snapshot, columns, seqs[best[tied]]))
    return exchanged


def own_times(snapshot: Snapshot, columns: MemoryColumns, seqs: Seqs) -> Seqs:
    """Return when each row occurred, or else was created, in milliseconds since 1970. Shape (len(seqs),)."""
    times: Seqs = columns.created_ms[seqs]
    occurred = occurred_ms(snapshot, seqs.tolist())
    if occurred:
        times = np.array([occurred.get(seq, time) for seq, time in zip(seqs.tolist(), times.tolist(), strict=True)])
    return times
