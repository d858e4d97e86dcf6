"""Questions to a searcher about stored vectors."""

from __future__ import annotations

import msgspec

from signet_actors.protocol.memories import Memory, ReadScope
from signet_actors.protocol.message import Message, Request


class EmbeddingRow(msgspec.Struct, frozen=True):
    """A memory with the index of its raw float32 frame (None if vectors were not requested)."""

    memory: Memory
    frame: int | None


class EmbeddingsExported(Message, frozen=True, tag="searcher.embeddings_exported"):
    """A page of stored embeddings; ``total`` counts all that the scope admits."""

    rows: list[EmbeddingRow]
    total: int


class ExportEmbeddings(Request[EmbeddingsExported], frozen=True, tag="searcher.export_embeddings"):
    """Page through stored embeddings."""

    read: ReadScope
    limit: int = 600
    offset: int = 0
    vectors: bool = False


class EmbeddingHealth(Message, frozen=True, tag="searcher.embedding_health"):
    """Counts for ``GET /api/embeddings/health``, over live memories except ``null_vectors`` and ``orphaned``.

    ``by_model`` maps model names to live memories. ``stale``: the content has changed since. ``orphaned``: the memory
    no longer exists. ``vec_missing``: stored, but not in the vec0 table.
    """

    memories: int
    embedded: int
    by_model: dict[str, int]
    wrong_dimensions: int
    null_vectors: int
    stale: int
    orphaned: int
    vec_missing: int
    second: int = 0


class GetEmbeddingHealth(Request[EmbeddingHealth], frozen=True, tag="searcher.get_embedding_health"):
    """Measure embedding coverage for ``model``, and how many memories have a vector of ``second`` beside it."""

    model: str
    dimensions: int
    second: str | None = None
