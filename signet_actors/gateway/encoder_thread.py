"""The thread of an encoder, which takes milliseconds for a text.

Queries run in order of arrival. A text that is to be stored is embedded before its commit only while the thread is
idle, else after it, by the extractor. So neither a query nor a write waits for a series of texts.

Source: docs/decisions.md 23 and 57; docs/performance.md "Write targets".
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

from signet_actors.domain.normalization import collapsed
from signet_actors.providers.embedding import Encoded, Vectors, Words, encode, encode_query
from signet_actors.providers.minilm.encoder import Encoder

IDLE_CHARS: Final = 600
"""Texts that take longer than MiniLM for so many characters are left to the extractor: a query that arrives meanwhile
would wait for more than ten milliseconds."""

T = TypeVar("T")


class EncoderThread:
    """One thread that runs one text at a time; serves any number of event loops."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="encoder")
        self._lock = threading.Lock()
        self._admitted = 0

    async def encode_query(self, embedder: Encoder, text: str) -> tuple[Vectors, Words]:
        """Return the vector of a query and the codes of its words, after the texts that came before it."""
        return await self._run(lambda: encode_query(embedder, text))

    async def encode_if_idle(self, embedder: Encoder, texts: Sequence[str]) -> Encoded | None:
        """Return the vectors and codes of ``texts``, or None if they are long or the thread is at work."""
        if self._admitted or embedder.cost * sum(map(len, texts)) > IDLE_CHARS:
            return None
        return await self._run(lambda: encode(embedder, [collapsed(text) for text in texts]))

    async def _run(self, work: Callable[[], T]) -> T:
        with self._lock:
            self._admitted += 1
        future = self._executor.submit(work)
        # Not when the caller is cancelled: the thread cannot be stopped, so it is at work until it is done.
        future.add_done_callback(self._leave)
        return await asyncio.wrap_future(future)

    def _leave(self, _: Future[T]) -> None:
        with self._lock:
            self._admitted -= 1


ENCODER_THREAD: Final = EncoderThread()
