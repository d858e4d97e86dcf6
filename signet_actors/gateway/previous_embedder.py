"""The embedder of the previous model, kept while memories still have its vectors; or that of the second one (``auto``).

After a change of the model, making all vectors anew takes minutes or hours. Until then a query is embedded twice and
compared with both kinds of vectors. A gateway that started after the change learns from a searcher's reply that old
vectors remain. It rebuilds the previous embedder if that needs no guess: an installed one, or another model of the
configured provider.

Source: docs/decisions.md 5 ("search stays up on the old vectors").
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from signet_actors.config import schema
from signet_actors.errors import ConfigError
from signet_actors.providers.embedding import Embedder
from signet_actors.providers.remote_embedder import RemoteEmbedder
from signet_actors.providers.select import make_embedder

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

Space = tuple[str, int]


class PreviousEmbedder:
    """Holds the previous ``embedder``; None if no old vectors remain or it cannot be rebuilt. One event loop only."""

    def __init__(self) -> None:
        self.embedder: Embedder | None = None
        self._making: asyncio.Task[None] | None = None
        self._tried: set[Space] = set()

    async def replace(self, previous: Embedder | None, current: Embedder | None) -> None:
        """Keep ``previous``, which ``current`` replaces, unless both make the same vectors or either is None."""
        needed = previous is not None and current is not None and _space(previous) != _space(current)
        await self._set(previous if needed else None)
        if not needed:
            await _close(previous)
        self._tried.clear()

    def observe_stale(
        self,
        searched_model: str | None,
        spaces: Sequence[Space],
        current: Embedder | None,
        config: schema.EmbeddingConfig,
        log: FilteringBoundLogger,
    ) -> None:
        """Handle a recall's report that the newest vectors of some memories are in ``spaces``. Returns at once.

        ``searched_model`` is the second model of the recall. ``current`` is in use now, configured by
        ``config``.
        """
        if current is None or (self._making is not None and not self._making.done()):
            return
        stale = [space for space in spaces if space != _space(current)]
        previous = self.embedder
        if previous is not None:
            if previous.model == searched_model and _space(previous) not in stale:
                log.info("previous_vectors_replaced", model=previous.model)
                self._tried.discard(_space(previous))
                self._making = asyncio.create_task(self._set(None))
            return
        unknown = [space for space in stale if space not in self._tried]
        if unknown:
            self._tried.update(unknown)
            self._making = asyncio.create_task(self._make(unknown, config, log))

    async def _set(self, embedder: Embedder | None) -> None:
        left, self.embedder = self.embedder, embedder
        await _close(left)

    async def _make(self, spaces: Sequence[Space], current: schema.EmbeddingConfig, log: FilteringBoundLogger) -> None:
        for space in spaces:
            config = previous_config(space, current)
            if config is None:
                log.info("previous_vectors_unknown", model=space[0])
                continue
            try:
                embedder = await asyncio.to_thread(make_embedder, config)
            except ConfigError as error:
                log.info("previous_vectors_unknown", model=space[0], reason=error.detail)
                continue
            log.info("previous_vectors_searched", model=space[0])
            await self._set(embedder)
            return


def _space(embedder: Embedder) -> Space:
    return embedder.model, embedder.dimensions


async def _close(embedder: Embedder | None) -> None:
    if isinstance(embedder, RemoteEmbedder):
        await embedder.close()


def previous_config(space: Space, current: schema.EmbeddingConfig) -> schema.EmbeddingConfig | None:
    """Return a configuration that makes vectors of ``space``; None if that would be a guess."""
    model, dimensions = space
    if space == (schema.EMBEDDED_MODEL, schema.EMBEDDED_DIMENSIONS):
        return schema.EmbeddingConfig(provider="embedded")
    if space == (schema.MINILM_MODEL, schema.MINILM_DIMENSIONS):
        return schema.EmbeddingConfig(provider="minilm")
    if space == (schema.MULTILINGUAL_MODEL, schema.MULTILINGUAL_DIMENSIONS):
        return schema.EmbeddingConfig(provider="multilingual")
    if current.provider in {"ollama", "openai", "fastembed"}:
        return structs.replace(current, model=model, dimensions=dimensions)
    return None
