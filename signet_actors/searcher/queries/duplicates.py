"""Compare the vectors of an agent's memories, a short step at a time.

Source: memory-pipeline.txt "Configuration Reference" (dedupSemanticThreshold).
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from signet_actors.domain.dated_sections import SUMMARY_TYPE
from signet_actors.features.duplicates.api import CompareVectors, FoundDuplicates, FoundPair
from signet_actors.features.duplicates.reads import UNMERGED, candidates, found_pair, was_merged
from signet_actors.features.duplicates.rules import kept_and_merged
from signet_actors.protocol.message import Answered
from signet_actors.searcher.columns import Mask
from signet_actors.searcher.legs.vector import IndexIncomplete, VectorHits, VectorLeg
from signet_actors.searcher.reader import Reader
from signet_actors.store.engine import Snapshot

_STEP_NS: Final = 30_000_000
"""A step ends after this time, so that a recall that waits for the process waits little."""
_NEAREST: Final = 4
"""So many of the nearest older memories of each one are compared by their words."""


def compare(reader: Reader, snapshot: Snapshot, query: CompareVectors) -> Answered:
    """Return pairs among the memories whose vectors are newer than ``after``, each compared with all older ones.

    Raises ``IndexIncomplete`` while a large import is being indexed.
    """
    reader.sync(snapshot)
    legs = list(reader.vector_legs())
    if not all(leg.complete for leg in legs):
        raise IndexIncomplete
    columns = reader.columns
    numbers = columns.embedding_seq[: columns.size]
    eligible = _eligible(reader, query.agent_id)
    left = np.flatnonzero(eligible & (numbers > query.after))
    left = left[np.argsort(numbers[left], kind="stable")]
    until_ns = reader.clock.monotonic_ns() + _STEP_NS
    pairs: list[FoundPair] = []
    merged = list(query.without)
    compared, done = query.after, True
    for seq in left.tolist():
        if len(pairs) >= query.limit or (compared > query.after and reader.clock.monotonic_ns() >= until_ns):
            done = False
            break
        older = eligible & (numbers < numbers[seq]) & columns.same_place(seq)
        older[merged] = False
        if older.any():
            found = _pair(snapshot, query, seq, _nearest(reader, snapshot, legs, seq, older))
            if found is not None:
                pairs.append(found[0])
                merged.append(found[1])
        compared = int(numbers[seq])
    return Answered(msgspec.json.encode(FoundDuplicates(pairs, compared, done, merged)))


def _eligible(reader: Reader, agent_id: str) -> Mask:
    """Return which rows may be merged or stay: live ones of the agent that are not pinned and stand for themselves."""
    columns, size = reader.columns, reader.columns.size
    mask = columns.live[:size] & ~columns.pinned[:size] & columns.with_texts("agent_id", (agent_id,), size)
    for column, texts in (("source_type", UNMERGED), ("type", (SUMMARY_TYPE,)), ("visibility", ("archived",))):
        mask &= ~columns.with_texts(column, texts, size)
    return mask


def _nearest(reader: Reader, snapshot: Snapshot, legs: list[VectorLeg], seq: int, among: Mask) -> VectorHits | None:
    columns, row = reader.columns, np.array([seq])
    own = columns.embedding_seq[seq]
    leg = next((leg for leg in legs if leg.embedding_numbers(columns, row)[0] == own), None)
    vector = None if leg is None else leg.vector_of(seq)
    if leg is None or vector is None:
        return None
    return leg.search(snapshot, columns, vector, among, pool=_NEAREST)


def _pair(snapshot: Snapshot, query: CompareVectors, seq: int, hits: VectorHits | None) -> tuple[FoundPair, int] | None:
    """Return the pair of the row and the nearest one that says the same, and the row that would be merged."""
    if hits is None:
        return None
    near = {
        other: cosine
        for other, cosine in zip(hits.seqs.tolist(), hits.cosines.tolist(), strict=True)
        if cosine >= query.threshold
    }
    if not near:
        return None
    rows = candidates(snapshot, query.agent_id, [seq, *near])
    for other, cosine in near.items():
        if seq in rows and other in rows:
            chosen = kept_and_merged(rows[seq], rows[other])
            if chosen is not None and not was_merged(snapshot, chosen[0].id, chosen[1].id):
                return found_pair(*chosen, cosine), chosen[1].seq
    return None
