"""A local embedder for an event loop.

Short texts of an embedder that takes microseconds are embedded inline; everything else runs in a thread. MiniLM, which
works through series of texts, has one thread of low priority.

Source: docs/decisions.md 22 and 23.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from signet_actors.errors import ProviderError, ProviderErrorKind, SignetError
from signet_actors.providers.embedding import BATCH_TIMEOUT_MS, QUERY_TIMEOUT_MS, Embedder, Encoded, Vectors, encode
from signet_actors.providers.llm.provider import Availability
from signet_actors.runtime.processes.priority import lower_thread_priority

_INLINE_CHARS: Final = 2048


class ThreadedEmbedder:
    """Runs ``inner`` without blocking the loop. A call that times out occupies its thread until it finishes."""

    def __init__(self, inner: Embedder, *, background: bool = False) -> None:
        """``background`` runs the embedder in one thread of low priority."""
        self._inner = inner
        self._executor = ThreadPoolExecutor(1, "embedder", initializer=lower_thread_priority) if background else None

    @property
    def provider(self) -> str:
        return self._inner.provider

    @property
    def model(self) -> str:
        return self._inner.model

    @property
    def dimensions(self) -> int:
        return self._inner.dimensions

    @property
    def endpoint(self) -> str | None:
        return self._inner.endpoint

    async def encode_async(self, texts: Sequence[str], *, timeout_ms: int = BATCH_TIMEOUT_MS) -> Encoded:
        try:
            if self._inner.local and sum(map(len, texts)) <= _INLINE_CHARS:
                return encode(self._inner, texts)
            async with asyncio.timeout(timeout_ms / 1000):
                return await asyncio.get_running_loop().run_in_executor(self._executor, encode, self._inner, texts)
        except TimeoutError as error:
            raise self._late(timeout_ms) from error
        except (SignetError, OSError, ValueError, RuntimeError) as error:
            raise self._failed(error) from error

    async def embed_async(self, texts: Sequence[str], *, timeout_ms: int = BATCH_TIMEOUT_MS) -> Vectors:
        return (await self.encode_async(texts, timeout_ms=timeout_ms)).vectors

    async def embed_query_async(self, text: str, *, timeout_ms: int = QUERY_TIMEOUT_MS) -> Vectors:
        try:
            if self._inner.local and len(text) <= _INLINE_CHARS:
                return self._inner.embed_query(text)
            async with asyncio.timeout(timeout_ms / 1000):
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._executor, self._inner.embed_query, text)
        except TimeoutError as error:
            raise self._late(timeout_ms) from error
        except (SignetError, OSError, ValueError, RuntimeError) as error:
            raise self._failed(error) from error

    async def available(self) -> Availability:
        return Availability(True, f"{self.model} is loaded")

    async def close(self) -> None:
        """End the thread when its work is done."""
        if self._executor is not None:
            self._executor.shutdown(wait=False)

    def _late(self, timeout_ms: int) -> ProviderError:
        return ProviderError(ProviderErrorKind.TIMEOUT, f"{self.provider} returned no vectors within {timeout_ms} ms")

    def _failed(self, error: Exception) -> ProviderError:
        # Report only the type of the error: a tokenizer's message may quote the text.
        return ProviderError(ProviderErrorKind.MALFORMED, f"{self.provider} failed ({type(error).__name__})")
