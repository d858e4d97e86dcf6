"""Embeddings from a server: no secrets, batches, prefixes, one deadline, and a circuit breaker.

All texts of all requests leave the process here, so secrets are taken out here, too: of a query, which is not stored,
and of a memory that was stored with ``redaction.memories: false``.

A batch of texts passes a circuit breaker. Whoever has a query waits for its vector, so one that got none in its time
is enough: the following ones are refused at once, until a probe in the background shows that the server answers them in
time. A probe waits long, because a server that loads a model for a request may stop when the client gives up. The HTTP
client is imported with the client class, not with this module.

Source: docs/decisions.md 22 and 23; docs/reliability.md R11; docs/security.md "What a model is sent".
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

import numpy as np

from signet_actors.config.embedding_models import KnownModel, known_model
from signet_actors.domain.redaction.scan import Redactor
from signet_actors.errors import ProviderError, ProviderErrorKind
from signet_actors.providers.embedding import BATCH_TIMEOUT_MS, QUERY_TIMEOUT_MS, Encoded, Vectors, unit_vectors
from signet_actors.providers.llm.breaker import BreakerPolicy, CircuitBreaker
from signet_actors.providers.llm.provider import Availability

MAX_TEXT_CHARS: Final = 8000
"""Only this much of a longer text is embedded: models read about 8,000 tokens, and some servers reject more."""
_SEARCHED_CHARS: Final = MAX_TEXT_CHARS + 1024
"""A secret that the limit would cut is found whole."""
BATCH_TEXTS: Final = 32
BATCH_CHARS: Final = 65_536
_POLICY: Final = BreakerPolicy(failures=3, cooldown_ms=2000, max_cooldown_ms=60_000)
PROBE_TEXT: Final = "Is the embedding provider available?"
PROBE_TIMEOUT_MS: Final = 30_000
"""For a server that loads its model first."""
LEAST_WAIT_MS: Final = 200
"""Without a response in less time nothing is known about a server."""
QUICK_MS: Final = 400
"""A server that answers a probe in this time is used, although a query had even less."""
_PROBE_PAUSE_S: Final = 1.0
_MAX_PROBE_PAUSE_S: Final = 30.0
_LONG_PAUSE_MS: Final = 60_000
"""Only a server that asks for it is left alone so long; it is told then until when."""
_MODEL_UNKNOWN: Final = KnownModel(0)


class EmbeddingClient(Protocol):
    """A client for one kind of embedding server. For one event loop."""

    @property
    def endpoint(self) -> str: ...

    async def vectors(self, texts: Sequence[str], *, timeout_ms: int) -> list[list[float]]:
        """Return the rows as the server sent them, in the order of ``texts``. Raises ``ProviderError``."""

    async def available(self) -> Availability: ...

    async def close(self) -> None: ...


class RemoteEmbedder:
    """One model of one server. Use the asynchronous methods in one event loop, the others in any thread."""

    local: Final = False
    token_codes: Final = None

    def __init__(
        self,
        provider: str,
        model: str,
        dimensions: int,
        new_client: Callable[[], EmbeddingClient],
        now_ms: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000,
    ) -> None:
        self.provider = provider
        self.model = model
        self.dimensions = dimensions
        self._new_client = new_client
        self._client = new_client()
        self.now_ms = now_ms
        self._breaker = CircuitBreaker(_POLICY)
        self._last_error = ""
        self._needs_ms = 0.0
        self._wanted_ms = math.inf
        self._probed_ms = 0.0
        self._probing: asyncio.Task[None] | None = None
        self._redactor = Redactor()
        known = known_model(model) or _MODEL_UNKNOWN
        self._document_prefix, self._query_prefix = known.document_prefix, known.query_prefix

    @property
    def endpoint(self) -> str:
        return self._client.endpoint

    async def encode_async(self, texts: Sequence[str], *, timeout_ms: int = BATCH_TIMEOUT_MS) -> Encoded:
        return Encoded(await self.embed_async(texts, timeout_ms=timeout_ms), [None] * len(texts))

    async def embed_async(self, texts: Sequence[str], *, timeout_ms: int = BATCH_TIMEOUT_MS) -> Vectors:
        return await self._guarded(texts, self._document_prefix, timeout_ms)

    async def embed_query_async(self, text: str, *, timeout_ms: int = QUERY_TIMEOUT_MS) -> Vectors:
        """Embed a query. It is refused at once if one got no vector in time, unless it is known that this one will.

        Queries have no breaker but this, and a cancelled one says nothing about the server.
        """
        if timeout_ms < self._needs_ms:
            raise ProviderError(ProviderErrorKind.UNAVAILABLE, self.problem)
        try:
            rows = await self._rows(self._client, [text], self._query_prefix, timeout_ms)
        except ProviderError as error:
            if error.kind is not ProviderErrorKind.TIMEOUT or timeout_ms >= LEAST_WAIT_MS:
                self._needs_ms, self._last_error = math.inf, error.detail
                self._wanted_ms = min(self._wanted_ms, max(timeout_ms, QUICK_MS))
                if self._probing is None or self._probing.done():
                    self._probing = asyncio.create_task(self._probe((error.retry_after_ms or 0) / 1000))
                    self._probed_ms = self.now_ms() + (error.retry_after_ms or 0)
            raise
        row: Vectors = rows[0]
        return row

    @property
    def problem(self) -> str:
        """Which queries get no vector, and why; empty if all do."""
        if not self._needs_ms:
            return ""
        if self._needs_ms == math.inf:
            return f"queries are answered by keywords alone, because {self._last_error}{self._asked_again()}"
        return (
            f"queries that wait no longer than {self._wanted_ms:.0f} ms, as those of prompts, are answered by keywords "
            f"alone, because {self.provider} takes {self._needs_ms:.0f} ms"
        )

    def _asked_again(self) -> str:
        """Return when the server, which has asked for a long pause, is asked again."""
        left_ms = self._probed_ms - self.now_ms()
        if left_ms < _LONG_PAUSE_MS:
            return ""
        moment = datetime.now().astimezone() + timedelta(milliseconds=left_ms)
        return f"; the server asks to wait, and is asked again at {moment:%H:%M}"

    async def _pause(self, pause_s: float) -> None:
        self._probed_ms = self.now_ms() + pause_s * 1000
        await asyncio.sleep(pause_s)

    async def _probe(self, pause_s: float) -> None:
        """Ask the server until it answers in the time that a query had; the second answer of a cold model counts."""
        await self._pause(pause_s)
        pause_s = _PROBE_PAUSE_S
        while self._needs_ms:
            begun_ms, was_away = self.now_ms(), self._needs_ms == math.inf
            wait_s = pause_s
            try:
                await self._rows(self._client, [PROBE_TEXT], self._query_prefix, PROBE_TIMEOUT_MS)
            except ProviderError as error:
                self._needs_ms, self._last_error = math.inf, error.detail
                wait_s = max(pause_s, (error.retry_after_ms or 0) / 1000)
            else:
                took_ms = self.now_ms() - begun_ms
                if took_ms <= self._wanted_ms:
                    self._needs_ms, self._wanted_ms = 0.0, math.inf
                    return
                self._needs_ms = took_ms
                if was_away:
                    continue
            await self._pause(wait_s)
            pause_s = min(2 * pause_s, _MAX_PROBE_PAUSE_S)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed in a thread without an event loop, through a separate connection and without the breaker."""
        return asyncio.run(self._once(texts, self._document_prefix, BATCH_TIMEOUT_MS))

    def embed_query(self, text: str) -> Vectors:
        row: Vectors = asyncio.run(self._once([text], self._query_prefix, QUERY_TIMEOUT_MS))[0]
        return row

    async def available(self) -> Availability:
        """Check that the server answers and has the model; never raises, takes at most three seconds."""
        return await self._client.available()

    async def close(self) -> None:
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.wait((self._probing,))
        await self._client.close()

    async def _once(self, texts: Sequence[str], prefix: str, timeout_ms: int) -> Vectors:
        wire = self._new_client()
        try:
            return await self._rows(wire, texts, prefix, timeout_ms)
        finally:
            await wire.close()

    async def _guarded(self, texts: Sequence[str], prefix: str, timeout_ms: int) -> Vectors:
        now = self.now_ms()
        permit = self._breaker.admit(now)
        if permit is None:
            raise ProviderError(
                ProviderErrorKind.UNAVAILABLE,
                f"{self.provider} is paused after a failure: {self._last_error}",
                retry_after_ms=max(1, self._breaker.waits_ms(now)),
            )
        try:
            rows = await self._rows(self._client, texts, prefix, timeout_ms)
        except ProviderError as error:
            self._last_error = error.detail
            self._breaker.failed(permit, self.now_ms(), retry_after_ms=error.retry_after_ms)
            raise
        except BaseException:
            self._breaker.abandoned(permit)
            raise
        self._breaker.succeeded(permit)
        return rows

    async def _rows(self, wire: EmbeddingClient, texts: Sequence[str], prefix: str, timeout_ms: int) -> Vectors:
        """Return one row per text; a blank text is not sent, and its row stays zero."""
        vectors: Vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        places = [place for place, text in enumerate(texts) if text.strip()]
        deadline_ms = self.now_ms() + timeout_ms
        for batch in _batches(texts, places):
            left_ms = deadline_ms - self.now_ms()
            if left_ms <= 0:
                raise ProviderError(
                    ProviderErrorKind.TIMEOUT, f"{self.provider} returned no vectors within {timeout_ms} ms"
                )
            sent = [prefix + self._without_secrets(texts[place]) for place in batch]
            raw = await wire.vectors(sent, timeout_ms=left_ms)
            rows = unit_vectors(raw, len(batch), self.dimensions, self.provider)
            if not rows.any(axis=1).all():
                # A row of zeros would count as "this text has no vector" for good.
                raise ProviderError(
                    ProviderErrorKind.MALFORMED, f"{self.provider} returned a vector of zeros for a text"
                )
            vectors[batch] = rows
        return vectors

    def _without_secrets(self, text: str) -> str:
        return self._redactor.clean(text[:_SEARCHED_CHARS])[0][:MAX_TEXT_CHARS]


def _batches(texts: Sequence[str], places: Sequence[int]) -> Iterator[list[int]]:
    """Split ``places`` into batches that a server accepts in one request."""
    batch: list[int] = []
    chars = 0
    for place in places:
        size = min(len(texts[place]), MAX_TEXT_CHARS)
        if batch and (len(batch) == BATCH_TEXTS or chars + size > BATCH_CHARS):
            yield batch
            batch, chars = [], 0
        batch.append(place)
        chars += size
    if batch:
        yield batch
