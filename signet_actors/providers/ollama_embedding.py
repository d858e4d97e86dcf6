"""Embeddings from Ollama: ``POST /api/embed``, many texts in one request.

The server silently truncates a text that exceeds the model's context.

Source: docs/decisions.md 22; Ollama's own API description, "Generate Embeddings".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from signet_actors.providers.http_calls import HttpCalls
from signet_actors.providers.llm.ollama import server_address, server_has_model
from signet_actors.providers.llm.provider import MAX_ANSWER_BYTES, Availability

ANSWER_BYTES_PER_TEXT: Final = 256 << 10
"""A vector of 4096 decimal numbers is about 90 kB. Decoded numbers take several times as much memory as their text."""


class _Answer(msgspec.Struct):
    embeddings: list[list[float]]


class OllamaEmbeddingClient:
    def __init__(self, endpoint: str, model: str) -> None:
        self._model = model
        self._calls = HttpCalls("Ollama", server_address(endpoint), max_bytes=MAX_ANSWER_BYTES)

    @property
    def endpoint(self) -> str:
        return self._calls.endpoint

    async def vectors(self, texts: Sequence[str], *, timeout_ms: int) -> list[list[float]]:
        answer = await self._calls.post(
            "/api/embed",
            {"model": self._model, "input": list(texts)},
            _Answer,
            timeout_ms=timeout_ms,
            max_bytes=ANSWER_BYTES_PER_TEXT * (1 + len(texts)),
        )
        return answer.embeddings

    async def available(self) -> Availability:
        return await server_has_model(self._calls, self._model)

    async def close(self) -> None:
        await self._calls.close()
