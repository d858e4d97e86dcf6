"""The thread of an encoder, which takes milliseconds for a text.

Queries run in order of arrival. A text that is to be stored is embedded before its commit only while the thread is
idle, else after it, by the extractor. So neither a query nor a write waits for a series of texts.

Source: docs/decisions.md 23 and 57; docs/performance.md "Write targets".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from signet_actors.domain.normalization import collapsed
from signet_actors.gateway.limits import CountedThreads
from signet_actors.providers.embedding import Encoded, Vectors, Words, encode, encode_query
from signet_actors.providers.minilm.encoder import Encoder

IDLE_CHARS: Final = 600
"""Texts that take longer than MiniLM for so many characters are left to the extractor: a query that arrives meanwhile
would wait for more than ten milliseconds."""


class EncoderThread:
    """One thread that runs one text at a time."""

    def __init__(self) -> None:
        self._thread = CountedThreads(1, "encoder")

    async def encode_query(self, embedder: Encoder, text: str) -> tuple[Vectors, Words]:
        """Return the vector of a query and the codes of its words, after the texts that came before it."""
        return await self._thread.run(lambda: encode_query(embedder, text))

    async def encode_if_idle(self, embedder: Encoder, texts: Sequence[str]) -> Encoded | None:
        """Return the vectors and codes of ``texts``, or None if they are long or the thread is at work."""
        if self._thread.unfinished or embedder.cost * sum(map(len, texts)) > IDLE_CHARS:
            return None
        return await self._thread.run(lambda: encode(embedder, [collapsed(text) for text in texts]))


ENCODER_THREAD: Final = EncoderThread()
