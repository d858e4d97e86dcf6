"""The dampening of a recall's candidates: which of them share a word, mention hubs alone, or decide something.

Source: memory-pipeline.txt "Post-Fusion Dampening".
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from signet_actors.domain.ranking import dampening
from signet_actors.protocol.searcher import Recall
from signet_actors.searcher.columns import Mask, Seqs
from signet_actors.searcher.explain import Moves
from signet_actors.searcher.reader import IN_QUERY, Reader
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads.contents import recalled_by_seq

MOST: Final = 64
"""So many of the best candidates are compared by their entities and read for dates."""

Floats = npt.NDArray[np.float64]


def dampened(
    reader: Reader,
    snapshot: Snapshot,
    command: Recall,
    seqs: Seqs,
    scores: Floats,
    is_semantic: Mask,
    shares: Mask,
    moves: Moves,
) -> Floats:
    """Return the scores of the candidates ``seqs`` after the stages that are on; all arrays have shape (n,)."""
    stages = command.dampening
    if stages is None:
        return scores
    if stages.gravity and shares.any():  # a query of stop words alone shares none with anything
        lowered = dampening.with_gravity(scores, is_semantic, shares, stages.gravity_penalty)
        scores = moves.between("gravity", scores, lowered)
    best = np.lexsort((-seqs, -scores))[:MOST]
    if stages.hub:
        has_only_hubs = np.zeros(len(seqs), np.bool_)
        has_only_hubs[best] = _with_only_hubs(reader, snapshot, command, seqs[best], stages.hub_percentile)
        scores = moves.between("hub", scores, dampening.with_hubs(scores, has_only_hubs, stages.hub_penalty))
    if stages.resolution:
        found = recalled_by_seq(snapshot, command.read, command.filters, seqs[best].tolist())
        factors = np.ones(len(seqs))
        for at, seq in zip(best.tolist(), seqs[best].tolist(), strict=True):
            row = found.get(seq)
            factors[at] = 1.0 if row is None else dampening.resolution(row.type, row.content, stages.resolution_boost)
        scores = moves.between("resolution", scores, scores * factors)
    return scores


def _with_only_hubs(reader: Reader, snapshot: Snapshot, command: Recall, seqs: Seqs, percentile: float) -> Mask:
    """Return which of ``seqs`` mention entities of the agent, and only hubs."""
    index = reader.graph
    index.sync(snapshot, max_rows=IN_QUERY.graph)
    agent = index.agent(command.read.agent_id)
    if not index.complete or agent < 0 or command.read.project is not None or command.read.user is not None:
        return np.zeros(len(seqs), np.bool_)
    readable = reader.readable_rows(snapshot, command.read, ())
    degrees = index.degrees(agent, readable)
    bound = dampening.hub_degree(degrees[degrees > 0], int(np.count_nonzero(readable)), percentile)
    has_only = []
    for seq in seqs.tolist():
        entities = {index.resolved(entity) for entity in index.mentioned.of(seq)["target"].tolist()}
        own = [degrees[entity] for entity in entities if degrees[entity] > 0]
        has_only.append(bool(own) and min(own) >= bound)
    return np.array(has_only, np.bool_)
