"""Similar memories, export of stored vectors, and the counts behind embedding health.

Source: memory-api.txt "similar", "Embeddings"; docs/compatibility.md "Embeddings".
"""

from __future__ import annotations

import numpy as np

from signet_actors.protocol.searcher import (
    EmbeddingHealth,
    EmbeddingRow,
    EmbeddingsExported,
    ExportEmbeddings,
    FindSimilar,
    GetEmbeddingHealth,
    SimilarFound,
)
from signet_actors.searcher.reader import Reader
from signet_actors.store.read_policy import conjunction, readable, readable_in_any_scope
from signet_actors.store.reads.contents import memories_by_seq
from signet_actors.store.rows import MEMORY_COLUMNS, to_memory
from signet_actors.store.snapshot import Snapshot
from signet_actors.store.vectors import vec_table

_CURRENT = "JOIN embeddings e ON e.seq = m.embedding_seq"


def find_similar(reader: Reader, snapshot: Snapshot, query: FindSimilar) -> SimilarFound:
    """Return the readable memories nearest to a stored one, without itself; None if that one has no vector.

    The stored memory is accessed by id, so it may be in any scope; the results are limited to the requested scope.
    """
    policy = readable_in_any_scope(snapshot.connection, query.read.agent_id)
    where, bindings = conjunction(("m.id = :id AND m.is_deleted = 0", {"id": query.id}), policy)
    anchor = snapshot.one(f"SELECT m.seq, e.vector, e.model FROM memories m {_CURRENT} WHERE {where}", bindings)
    if anchor is None:
        return SimilarFound(rows=None)
    seq, raw, model = anchor
    reader.sync(snapshot)
    vector = np.frombuffer(raw, np.float32)
    leg = reader.vector_leg(snapshot, model, len(vector))
    if leg is None:
        return SimilarFound(rows=None)
    length = float(np.linalg.norm(vector))
    allowed = reader.allowed_rows(snapshot, query.read, query.filters).copy()
    allowed[seq] = False
    hits = leg.search(snapshot, reader.columns, vector / length if length else vector, allowed, pool=max(query.k, 1))
    seqs, cosines = hits.seqs[: query.k], hits.cosines[: query.k]
    found = memories_by_seq(snapshot, query.read, query.filters, seqs.tolist())
    return SimilarFound(
        rows=[(found[s], c) for s, c in zip(seqs.tolist(), cosines.tolist(), strict=True) if s in found]
    )


def export(snapshot: Snapshot, query: ExportEmbeddings) -> tuple[EmbeddingsExported, list[bytes]]:
    """Return a page of stored embeddings, newest memory first, with the raw vectors as frames if requested."""
    where, bindings = conjunction(("m.is_deleted = 0", {}), readable(snapshot.connection, query.read))
    total = snapshot.value(f"SELECT count(*) FROM memories m {_CURRENT} WHERE {where}", bindings)
    vector = "e.vector" if query.vectors else "NULL"
    rows: list[EmbeddingRow] = []
    frames: list[bytes] = []
    for row in snapshot.rows(
        f"SELECT {MEMORY_COLUMNS}, {vector} FROM memories m {_CURRENT} WHERE {where}"
        " ORDER BY m.created_at DESC, m.seq DESC LIMIT :limit OFFSET :offset",
        {**bindings, "limit": query.limit, "offset": query.offset},
    ):
        frame = None
        if row[-1] is not None:
            frame = len(frames)
            frames.append(row[-1])
        rows.append(EmbeddingRow(memory=to_memory(row), frame=frame))
    return EmbeddingsExported(rows=rows, total=total), frames


def health(snapshot: Snapshot, query: GetEmbeddingHealth) -> EmbeddingHealth:
    """Return counts of live memories with and without vectors, and of inconsistent rows."""
    table = vec_table(snapshot.connection, query.model, query.dimensions)
    current = "FROM memories m JOIN embeddings e ON e.seq = m.embedding_seq WHERE m.is_deleted = 0"
    by_model = dict(snapshot.rows(f"SELECT e.model, count(*) {current} GROUP BY e.model"))
    vec_missing = (
        snapshot.value(f"SELECT count(*) {current} AND e.model = ?", (query.model,))
        if table is None
        else snapshot.value(
            f"SELECT count(*) {current} AND e.model = ? AND e.seq NOT IN (SELECT rowid FROM {table})", (query.model,)
        )
    )
    return EmbeddingHealth(
        memories=snapshot.value("SELECT count(*) FROM memories WHERE is_deleted = 0"),
        embedded=snapshot.value(f"SELECT count(*) {current}"),
        by_model=by_model,
        wrong_dimensions=snapshot.value(
            f"SELECT count(*) {current} AND e.model = ? AND e.dimensions <> ?", (query.model, query.dimensions)
        ),
        null_vectors=snapshot.value("SELECT count(*) FROM embeddings WHERE length(vector) <> 4 * dimensions"),
        stale=snapshot.value(f"SELECT count(*) {current} AND e.content_hash <> m.content_hash"),
        orphaned=snapshot.value(
            "SELECT count(*) FROM embeddings e WHERE e.source_type = 'memory'"
            " AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.id = e.source_id)"
        ),
        vec_missing=vec_missing,
    )
