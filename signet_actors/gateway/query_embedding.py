"""Embedding of queries, without the words that are common in their scope.

A searcher computes which words are too common among the memories that a caller may read. The gateway caches these small
sets and drops the words before it embeds a query. A new scope costs one extra request to a searcher; afterwards each
recall's reply updates the set. A failure here reduces quality, but never fails the recall: without common words the
whole query is embedded, without a vector the recall is by keyword only.

Source: docs/quality.md rule 3; docs/architecture.md "The path of a recall".
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from signet_actors.domain.query_words import dense_query
from signet_actors.errors import SignetError
from signet_actors.gateway.ingest import INLINE_CHARS, raw_frame
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.searcher import CommonWords, GetCommonWords
from signet_actors.providers.embedding import Embedder, Vectors
from signet_actors.providers.remote_embedder import RemoteEmbedder

if TYPE_CHECKING:
    from signet_actors.gateway.state import GatewayState

COMMON_WORDS_TIMEOUT_MS: Final = 500
QUERY_EMBEDDING_TIMEOUT_S: Final = 2.0
UNKNOWN_VERSION: Final = -1

ScopeKey = tuple[str, str | None, str | None]


class KnownWords(NamedTuple):
    """The common words of a scope; ``version`` is -1 if they are unknown."""

    words: frozenset[str]
    version: int


_NOTHING_KNOWN: Final = KnownWords(frozenset(), UNKNOWN_VERSION)


class QueryVector(NamedTuple):
    """``frame`` is raw float32, or None for a recall by keyword only. ``model`` names the vector space."""

    model: str | None
    frame: bytes | None
    common_words_version: int


_NO_VECTOR: Final = QueryVector(None, None, UNKNOWN_VERSION)


class CommonWordsCache:
    """An LRU cache of the common words of at most ``max_scopes`` scopes. One event loop only."""

    def __init__(self, max_scopes: int = 1024) -> None:
        self._max_scopes = max_scopes
        self._known: OrderedDict[ScopeKey, KnownWords] = OrderedDict()
        self._asking: dict[ScopeKey, asyncio.Task[KnownWords]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def learn(self, read: ReadScope, project: str | None, common: CommonWords) -> KnownWords:
        """Replace the scope's words by those of ``common``."""
        return self._remember(_key(read, project), KnownWords(frozenset(common.words), common.version))

    async def known(self, state: GatewayState, read: ReadScope, project: str | None, *, trace_id: str) -> KnownWords:
        """Return the scope's words; ask a searcher once for an unknown scope, however many queries wait for it.

        If no searcher replies in time, the scope is cached as empty, so that these requests do not add to an overload.
        Its version -1 makes the reply to the next recall bring the words.
        """
        key = _key(read, project)
        found = self._known.get(key)
        if found is not None:
            self._known.move_to_end(key)
            return found
        task = self._asking.get(key)
        if task is None:
            task = asyncio.ensure_future(self._ask(state, key, GetCommonWords(read=read, project=project), trace_id))
            self._asking[key] = task
            task.add_done_callback(lambda _: self._asking.pop(key, None))
        # Shielded: a client that disconnects must not cancel the request for the others.
        return await asyncio.shield(task)

    async def _ask(self, state: GatewayState, key: ScopeKey, request: GetCommonWords, trace_id: str) -> KnownWords:
        try:
            common, _ = await state.bus.ask_searcher(request, trace_id=trace_id, timeout_ms=COMMON_WORDS_TIMEOUT_MS)
        except SignetError as error:
            state.log.info("common_words_unknown", agent=key[0], error=error.detail, trace=trace_id)
            # A recall may have brought the words meanwhile; a failure must not drop them.
            return self._known.get(key) or self._remember(key, _NOTHING_KNOWN)
        return self._remember(key, KnownWords(frozenset(common.words), common.version))

    def _remember(self, key: ScopeKey, words: KnownWords) -> KnownWords:
        self._known[key] = words
        self._known.move_to_end(key)
        while len(self._known) > self._max_scopes:
            self._known.popitem(last=False)
        return words


async def query_vectors(
    state: GatewayState, query: str, read: ReadScope, project: str | None, *, trace_id: str
) -> tuple[QueryVector, QueryVector]:
    """Return ``query_vector``, and the same from the previous model while memories still have its vectors."""
    previous = state.previous_embedder.embedder
    if previous is None:
        return await query_vector(state, query, read, project, trace_id=trace_id), _NO_VECTOR
    return await asyncio.gather(
        query_vector(state, query, read, project, trace_id=trace_id),
        query_vector(state, query, read, project, trace_id=trace_id, embedder=previous),
    )


async def query_vector(
    state: GatewayState,
    query: str,
    read: ReadScope,
    project: str | None,
    *,
    trace_id: str,
    embedder: Embedder | None = None,
) -> QueryVector:
    """Return the vector of ``query`` without its scope's common words; without a frame if there is none in time.

    ``embedder`` None means the one in use.
    """
    embedder = embedder or state.embedder
    if embedder is None:
        return _NO_VECTOR
    known = await state.common_words.known(state, read, project, trace_id=trace_id)
    content_words = dense_query(query, known.words)
    try:
        vector: Vectors
        if embedder.local and len(content_words) <= INLINE_CHARS:
            vector = embedder.embed_query(content_words)
        elif isinstance(embedder, RemoteEmbedder):
            vector = await embedder.embed_query_async(content_words, timeout_ms=int(QUERY_EMBEDDING_TIMEOUT_S * 1000))
        else:
            vector = await asyncio.wait_for(
                asyncio.to_thread(embedder.embed_query, content_words), timeout=QUERY_EMBEDDING_TIMEOUT_S
            )
    except (SignetError, TimeoutError, OSError, ValueError, RuntimeError) as error:
        state.log.warning("query_embedding_failed", model=embedder.model, error=type(error).__name__, trace=trace_id)
        return QueryVector(None, None, known.version)
    if not vector.any():
        return QueryVector(None, None, known.version)
    return QueryVector(embedder.model, raw_frame(vector), known.version)


def _key(read: ReadScope, project: str | None) -> ScopeKey:
    return (read.agent_id, read.scope, project)
