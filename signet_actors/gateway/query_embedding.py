"""The dense half of a query: the words that tell something, embedded, with what is known about a scope's common words.

A searcher computes which words are too common in what a caller may read; the gateway keeps the small sets and drops
those words before it embeds. An unseen scope costs one extra ask; afterwards each recall's reply corrects the set.
Whatever fails here costs quality, never the recall: without common words the whole query is embedded, without a
vector the recall is keyword only.

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
    """The common words of a scope; ``version`` -1 when nothing is known."""

    words: frozenset[str]
    version: int


_NOTHING_KNOWN: Final = KnownWords(frozenset(), UNKNOWN_VERSION)


class QueryVector(NamedTuple):
    """``frame`` is raw float32, None for keyword only; ``model`` names its space."""

    model: str | None
    frame: bytes | None
    common_words_version: int


_NO_VECTOR: Final = QueryVector(None, None, UNKNOWN_VERSION)


class CommonWordsCache:
    """The latest common words of the scopes used last, at most ``max_scopes`` of them. One event loop only."""

    def __init__(self, max_scopes: int = 1024) -> None:
        self._max_scopes = max_scopes
        self._known: OrderedDict[ScopeKey, KnownWords] = OrderedDict()
        self._asking: dict[ScopeKey, asyncio.Task[KnownWords]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def learn(self, read: ReadScope, project: str | None, common: CommonWords) -> KnownWords:
        """The scope's words are those of ``common`` from now on."""
        return self._remember(_key(read, project), KnownWords(frozenset(common.words), common.version))

    async def known(self, state: GatewayState, read: ReadScope, project: str | None, *, trace_id: str) -> KnownWords:
        """The scope's words; an unseen scope is asked for once, however many queries wait for it.

        When no searcher answers in time the scope counts as known to be empty, so that an overload is not doubled
        by these asks: the version -1 makes the next recall's reply bring the words.
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
        # Shielded: a client that hangs up must not take the answer from the others.
        return await asyncio.shield(task)

    async def _ask(self, state: GatewayState, key: ScopeKey, request: GetCommonWords, trace_id: str) -> KnownWords:
        try:
            common, _ = await state.bus.ask_searcher(request, trace_id=trace_id, timeout_ms=COMMON_WORDS_TIMEOUT_MS)
        except SignetError as error:
            state.log.info("common_words_unknown", agent=key[0], error=error.detail, trace=trace_id)
            # A recall may have taught the words meanwhile; never forget them for a failure.
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
    """``query_vector``, and the same by the former model while memories still have its vectors."""
    former = state.previous_embedder.embedder
    if former is None:
        return await query_vector(state, query, read, project, trace_id=trace_id), _NO_VECTOR
    return await asyncio.gather(
        query_vector(state, query, read, project, trace_id=trace_id),
        query_vector(state, query, read, project, trace_id=trace_id, embedder=former),
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
    """The vector of ``query`` without its scope's common words; without a frame when there can be none in time.

    ``embedder``: None is the one in use.
    """
    embedder = embedder or state.embedder
    if embedder is None:
        return _NO_VECTOR
    known = await state.common_words.known(state, read, project, trace_id=trace_id)
    telling = dense_query(query, known.words)
    try:
        vector: Vectors
        if embedder.local and len(telling) <= INLINE_CHARS:
            vector = embedder.embed_query(telling)
        elif isinstance(embedder, RemoteEmbedder):
            vector = await embedder.embed_query_async(telling, timeout_ms=int(QUERY_EMBEDDING_TIMEOUT_S * 1000))
        else:
            vector = await asyncio.wait_for(
                asyncio.to_thread(embedder.embed_query, telling), timeout=QUERY_EMBEDDING_TIMEOUT_S
            )
    except (SignetError, TimeoutError, OSError, ValueError, RuntimeError) as error:
        state.log.warning("query_embedding_failed", model=embedder.model, error=type(error).__name__, trace=trace_id)
        return QueryVector(None, None, known.version)
    if not vector.any():
        return QueryVector(None, None, known.version)
    return QueryVector(embedder.model, raw_frame(vector), known.version)


def _key(read: ReadScope, project: str | None) -> ScopeKey:
    return (read.agent_id, read.scope, project)
