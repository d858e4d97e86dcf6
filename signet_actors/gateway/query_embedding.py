"""Embedding of queries, without the words that are common in their scope.

A failure here reduces quality, but never fails the recall: without common words the whole query is embedded, without a
vector the recall is by keyword only.

Source: docs/quality.md rule 3; docs/architecture.md "The path of a recall".
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from signet_actors.config.embedding_models import second_space
from signet_actors.domain.query_words import MAX_QUERY_CHARS, dense_query
from signet_actors.errors import ProviderError, ProviderErrorKind, SignetError
from signet_actors.features.analytics.rules import embedding_error
from signet_actors.gateway.common_words import UNKNOWN_VERSION
from signet_actors.gateway.encoder_thread import ENCODER_THREAD
from signet_actors.gateway.ingest import INLINE_CHARS, raw_frame
from signet_actors.gateway.state import GatewayState
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.providers.embedding import Embedder, Vectors, Words, encode_query
from signet_actors.providers.minilm.encoder import Encoder
from signet_actors.providers.remote_embedder import RemoteEmbedder

QUERY_EMBEDDING_TIMEOUT_S: Final = 2.0
QUERY_SHARE: Final = 0.7
"""A query waits for its vector no longer than this part of what its caller waits; the search needs the rest."""
SECOND_TIMEOUT_S: Final = 0.25
"""A recall waits for a better vector no longer, because it has a first one."""


class QueryVector(NamedTuple):
    """``frame`` is raw float32, or None for a recall by keyword only. ``model`` names the vector space.

    ``words``: the embedded words with their token codes, empty if the model makes none.
    """

    model: str | None
    frame: bytes | None
    common_words_version: int
    words: tuple[tuple[str, bytes], ...] = ()


_NO_VECTOR: Final = QueryVector(None, None, UNKNOWN_VERSION)


async def query_vectors(
    state: GatewayState, query: str, read: ReadScope, projects: Filters, *, trace_id: str, left_s: float
) -> tuple[QueryVector, QueryVector]:
    """Return ``query_vector``, and the same from another model while memories have its vectors, too.

    ``left_s``: how long the caller waits for the whole search.
    """
    other = state.previous_embedder.embedder
    within_s = min(QUERY_EMBEDDING_TIMEOUT_S, QUERY_SHARE * left_s)
    if other is None:
        return await query_vector(state, query, read, projects, trace_id=trace_id, within_s=within_s), _NO_VECTOR
    other_s = min(within_s, SECOND_TIMEOUT_S) if is_second(state, other.model) else within_s
    return await asyncio.gather(
        query_vector(state, query, read, projects, trace_id=trace_id, within_s=within_s),
        query_vector(state, query, read, projects, trace_id=trace_id, embedder=other, within_s=other_s),
    )


def is_second(state: GatewayState, model: str | None) -> bool:
    """Return whether ``model`` makes the better vectors that follow the first ones."""
    second = second_space(state.config.embedding)
    return second is not None and second[0] == model


async def query_vector(
    state: GatewayState,
    query: str,
    read: ReadScope,
    projects: Filters,
    *,
    trace_id: str,
    embedder: Embedder | None = None,
    within_s: float = QUERY_EMBEDDING_TIMEOUT_S,
) -> QueryVector:
    """Return the vector of ``query`` without its scope's common words; without a frame if there is none in time.

    ``embedder`` None means the one in use.
    """
    embedder = embedder or state.embedder
    if embedder is None:
        return _NO_VECTOR
    known = await state.common_words.known(state.bus, state.log, read, projects, trace_id=trace_id)
    if isinstance(embedder, RemoteEmbedder):  # while the name of a secret, a common word, is still beside it
        query = state.redactor.clean(query[:MAX_QUERY_CHARS])[0]
    content_words = dense_query(query, known.words)
    try:
        vector: Vectors
        words: Words = ()
        if embedder.local and len(content_words) <= INLINE_CHARS:
            vector, words = encode_query(embedder, content_words)
        elif isinstance(embedder, RemoteEmbedder):
            vector = await embedder.embed_query_async(content_words, timeout_ms=int(within_s * 1000))
        elif isinstance(embedder, Encoder):
            vector, words = await asyncio.wait_for(
                ENCODER_THREAD.encode_query(embedder, content_words), timeout=within_s
            )
        else:
            vector, words = await asyncio.wait_for(
                asyncio.to_thread(encode_query, embedder, content_words), timeout=within_s
            )
    except (SignetError, TimeoutError, OSError, ValueError, RuntimeError) as error:
        state.usage.note_error(embedding_error(timed_out=_timed_out(error)))
        state.log.warning("query_embedding_failed", model=embedder.model, error=type(error).__name__, trace=trace_id)
        return QueryVector(None, None, known.version)
    if not vector.any():
        return QueryVector(None, None, known.version)
    return QueryVector(embedder.model, raw_frame(vector), known.version, words)


def _timed_out(error: Exception) -> bool:
    return isinstance(error, TimeoutError) or (
        isinstance(error, ProviderError) and error.kind is ProviderErrorKind.TIMEOUT
    )
