"""Similar memories, export of stored vectors, and the counts behind embedding health.

Source: memory-api.txt "similar", "Embeddings"; docs/compatibility.md "Embeddings".
"""

from __future__ import annotations

import numpy as np

from signet_actors.protocol import embeddings as messages
from signet_actors.protocol.searcher import FindSimilar, SimilarFound
from signet_actors.searcher.legs.vector import IndexIncomplete
from signet_actors.searcher.reader import Reader
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import embeddings as stored
from signet_actors.store.reads.contents import memories_by_seq


def find_similar(reader: Reader, snapshot: Snapshot, query: FindSimilar) -> SimilarFound:
    """Return the readable memories nearest to a stored one, without itself; None if that one has no vector.

    The stored memory is accessed by id, so it may be in any scope; the results are limited to the requested scope.
    Raises ``IndexIncomplete`` while a large import is being indexed.
    """
    anchor = stored.newest_vector(snapshot, query.id, query.read)
    if anchor is None:
        return SimilarFound(rows=None)
    reader.sync(snapshot)
    vector = np.frombuffer(anchor.vector, np.float32)
    leg = reader.vector_leg(snapshot, anchor.model, len(vector))
    if leg is None:
        return SimilarFound(rows=None)
    length = float(np.linalg.norm(vector))
    allowed = reader.allowed_rows(snapshot, query.read, query.filters).copy()
    allowed[anchor.memory_seq] = False
    if not leg.searches_all(reader.columns, allowed):
        raise IndexIncomplete
    hits = leg.search(snapshot, reader.columns, vector / length if length else vector, allowed, pool=max(query.k, 1))
    seqs, cosines = hits.seqs[: query.k], hits.cosines[: query.k]
    found = memories_by_seq(snapshot, query.read, query.filters, seqs.tolist())
    return SimilarFound(
        rows=[(found[s], c) for s, c in zip(seqs.tolist(), cosines.tolist(), strict=True) if s in found]
    )


def export(snapshot: Snapshot, query: messages.ExportEmbeddings) -> tuple[messages.EmbeddingsExported, list[bytes]]:
    """Return a page of stored embeddings, newest memory first, with the raw vectors as frames if requested."""
    page, total = stored.page(snapshot, query.read, vectors=query.vectors, limit=query.limit, offset=query.offset)
    rows: list[messages.EmbeddingRow] = []
    frames: list[bytes] = []
    for memory, vector in page:
        frame = None
        if vector is not None:
            frame = len(frames)
            frames.append(vector)
        rows.append(messages.EmbeddingRow(memory=memory, frame=frame))
    return messages.EmbeddingsExported(rows=rows, total=total), frames


def health(snapshot: Snapshot, query: messages.GetEmbeddingHealth) -> messages.EmbeddingHealth:
    """Return counts of live memories with and without vectors, and of inconsistent rows."""
    return stored.health(snapshot, query.model, query.dimensions, query.second)
