"""The own time of a memory, when it occurred or else was given its words, and the order of near ties by it.

Source: docs/quality.md "Versions of a fact".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from signet_actors.domain.ranking import newest_first as ranking
from signet_actors.domain.versions import are_alike, groups_of_versions, telling_words
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
    different facts and turns tells more than their time. The scores of versions of one fact may differ as they like.
    """
    best = np.lexsort((-seqs, -scores))[: ranking.ROWS]
    rows, talk = seqs[best], in_conversation[best].tolist()
    covered, by_rank = measure.covered_words(rows).tolist(), scores[best].tolist()
    near = ranking.near_groups(by_rank, covered)
    projects = columns.project_codes(rows).tolist()
    told_apart = [
        (code, project) if code and not talks else 0
        for talks, code, project in zip(talk, covered, projects, strict=True)
    ]
    groups = ranking.near_groups(by_rank, told_apart, ranking.SHARE_OF_VERSIONS)
    if not near and not groups:
        return scores
    listed = sorted({at for group in (*near, *groups) for at in group})
    texts = contents_by_seq(snapshot, read, rows[listed].tolist())
    content = {at: texts.get(int(rows[at]), "") for at in listed}
    words = {at: telling_words(content[at]) for group in near for at in group}
    ties = [
        [at for at in group if are_alike(words[group[0]], words[at], much=bool(talk[at] or talk[group[0]]))]
        for group in near
    ]
    ties += [[group[at] for at in same] for group in groups for same in groups_of_versions([content[a] for a in group])]
    exchanged = scores.copy()
    for tied in ties:
        if len(tied) > 1:
            order = sorted(tied, key=lambda at: -exchanged[best[at]])
            exchanged[best] = ranking.newest_first(exchanged[best], order, own_times(snapshot, columns, rows[order]))
    return exchanged


def own_times(snapshot: Snapshot, columns: MemoryColumns, seqs: Seqs) -> Seqs:
    """Return when each row occurred, or else was given its words, in milliseconds since 1970. Shape (len(seqs),)."""
    times: Seqs = columns.content_ms[seqs]
    occurred = occurred_ms(snapshot, seqs.tolist())
    if occurred:
        times = np.array([occurred.get(seq, time) for seq, time in zip(seqs.tolist(), times.tolist(), strict=True)])
    return times
