"""Embeddings from a server: from Ollama, and from any server that implements OpenAI's ``/embeddings``.

Ollama silently truncates a text that exceeds the model's context.

Source: docs/decisions.md 22 and 43; Ollama's own API description, "Generate Embeddings"; OpenAI's API reference,
"Embeddings".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from signet_actors.errors import ProviderError, ProviderErrorKind
from signet_actors.providers.http_calls import HttpCalls
from signet_actors.providers.llm import ollama, openai_compatible
from signet_actors.providers.llm.provider import MAX_ANSWER_BYTES, Availability

_ANSWER_BYTES_PER_TEXT: Final = 256 << 10
"""A vector of 4096 decimal numbers is about 90 kB. Decoded numbers take several times as much memory as their text."""


class _OllamaAnswer(msgspec.Struct):
    embeddings: list[list[float]]


class _OpenAiRow(msgspec.Struct):
    index: int
    embedding: list[float]


class _OpenAiAnswer(msgspec.Struct):
    data: list[_OpenAiRow]


class _Client:
    def __init__(self, model: str, calls: HttpCalls) -> None:
        self.endpoint = calls.endpoint
        self._model = model
        self._calls = calls

    async def close(self) -> None:
        await self._calls.close()


class OllamaEmbeddingClient(_Client):
    def __init__(self, endpoint: str, model: str) -> None:
        super().__init__(model, HttpCalls("Ollama", ollama.server_address(endpoint), max_bytes=MAX_ANSWER_BYTES))

    async def vectors(self, texts: Sequence[str], *, timeout_ms: int) -> list[list[float]]:
        answer = await self._calls.post(
            "/api/embed",
            {"model": self._model, "input": list(texts)},
            _OllamaAnswer,
            timeout_ms=timeout_ms,
            max_bytes=_ANSWER_BYTES_PER_TEXT * (1 + len(texts)),
        )
        return answer.embeddings

    async def available(self) -> Availability:
        return await ollama.server_has_model(self._calls, self._model)


class OpenAiEmbeddingClient(_Client):
    """A client for one embedding model. ``shortened_to`` requests fewer dimensions, if the model supports that."""

    def __init__(self, endpoint: str, model: str, key: str | None, *, shortened_to: int | None = None) -> None:
        address = openai_compatible.server_address(endpoint)
        super().__init__(model, HttpCalls("the OpenAI-compatible server", address, key=key, max_bytes=MAX_ANSWER_BYTES))
        self._shortened_to = shortened_to

    async def vectors(self, texts: Sequence[str], *, timeout_ms: int) -> list[list[float]]:
        body: dict[str, Any] = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        if self._shortened_to is not None:
            body["dimensions"] = self._shortened_to
        answer = await self._calls.post(
            "/embeddings",
            body,
            _OpenAiAnswer,
            timeout_ms=timeout_ms,
            max_bytes=_ANSWER_BYTES_PER_TEXT * (1 + len(texts)),
        )
        # Order by index: a vector assigned to another text would be worse than none.
        rows = {row.index: row.embedding for row in answer.data}
        if len(answer.data) != len(texts) or rows.keys() != set(range(len(texts))):
            raise ProviderError(
                ProviderErrorKind.MALFORMED,
                "the OpenAI-compatible server did not return exactly one vector for each text",
            )
        return [rows[place] for place in range(len(texts))]

    async def available(self) -> Availability:
        return await openai_compatible.server_lists_model(self._calls, self._model)
