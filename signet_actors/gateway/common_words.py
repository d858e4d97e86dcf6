"""The words that are too common in a scope to be embedded, as the searchers count them.

A searcher computes which words are too common among the memories that a caller may read. The gateway caches these small
sets and drops the words before it embeds a query. A new scope costs one extra request to a searcher; afterwards each
recall's reply updates the set.

Source: docs/quality.md rule 3; docs/architecture.md "The path of a recall".
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from signet_actors.errors import SignetError
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.searcher import CommonWords, GetCommonWords
from signet_actors.runtime.messaging.bus_client import BusClient

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

COMMON_WORDS_TIMEOUT_MS: Final = 500
UNKNOWN_VERSION: Final = -1

ScopeKey = tuple[ReadScope, Filters]


class KnownWords(NamedTuple):
    """The common words of a scope; ``version`` is -1 if they are unknown."""

    words: frozenset[str]
    version: int


_NOTHING_KNOWN: Final = KnownWords(frozenset(), UNKNOWN_VERSION)


class CommonWordsCache:
    """An LRU cache of the common words of at most ``max_scopes`` scopes. One event loop only."""

    def __init__(self, max_scopes: int = 1024) -> None:
        self._max_scopes = max_scopes
        self._known: OrderedDict[ScopeKey, KnownWords] = OrderedDict()
        self._asking: dict[ScopeKey, asyncio.Task[KnownWords]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def learn(self, read: ReadScope, projects: Filters, common: CommonWords) -> KnownWords:
        return self._remember(_key(read, projects), KnownWords(frozenset(common.words), common.version))

    async def known(
        self, bus: BusClient, log: FilteringBoundLogger, read: ReadScope, projects: Filters, *, trace_id: str
    ) -> KnownWords:
        """Return the scope's words; ask a searcher once for an unknown scope, however many queries wait for it.

        If no searcher replies in time, the scope is cached as empty, so that these requests do not add to an overload.
        Its version -1 makes the reply to the next recall bring the words.
        """
        key = _key(read, projects)
        found = self._known.get(key)
        if found is not None:
            self._known.move_to_end(key)
            return found
        task = self._asking.get(key)
        if task is None:
            request = GetCommonWords(read=read, projects=projects)
            task = self._asking[key] = asyncio.ensure_future(self._ask(bus, log, key, request, trace_id))
            task.add_done_callback(lambda _: self._asking.pop(key, None))
        # Shielded: a client that disconnects must not cancel the request for the others.
        return await asyncio.shield(task)

    async def _ask(
        self, bus: BusClient, log: FilteringBoundLogger, key: ScopeKey, request: GetCommonWords, trace_id: str
    ) -> KnownWords:
        try:
            common, _ = await bus.ask_searcher(request, trace_id=trace_id, timeout_ms=COMMON_WORDS_TIMEOUT_MS)
        except SignetError as error:
            log.info("common_words_unknown", agent=key[0].agent_id, error=error.detail, trace=trace_id)
            # A recall may have brought the words meanwhile; a failure must not drop them.
            return self._known.get(key) or self._remember(key, _NOTHING_KNOWN)
        return self._remember(key, KnownWords(frozenset(common.words), common.version))

    def _remember(self, key: ScopeKey, words: KnownWords) -> KnownWords:
        self._known[key] = words
        self._known.move_to_end(key)
        while len(self._known) > self._max_scopes:
            self._known.popitem(last=False)
        return words


def _key(read: ReadScope, projects: Filters) -> ScopeKey:
    return (read, projects)
