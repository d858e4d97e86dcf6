"""Embeddings from any server that implements OpenAI's ``/embeddings``.

Source: docs/decisions.md 22 and 43; wire format: OpenAI's API reference, "Embeddings".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from signet_actors.errors import ProviderError, ProviderErrorKind
from signet_actors.providers.http_calls import HttpCalls
from signet_actors.providers.llm.openai_compatible import server_address, server_lists_model
from signet_actors.providers.llm.provider import MAX_ANSWER_BYTES, Availability
from signet_actors.providers.ollama_embedding import ANSWER_BYTES_PER_TEXT


class _Row(msgspec.Struct):
    index: int
    embedding: list[float]


class _Answer(msgspec.Struct):
    data: list[_Row]


class OpenAiEmbeddingClient:
    """A client for one embedding model. ``shortened_to`` requests fewer dimensions, if the model supports that."""

    def __init__(self, endpoint: str, model: str, key: str | None, *, shortened_to: int | None = None) -> None:
        self._model = model
        self._shortened_to = shortened_to
        self._calls = HttpCalls(
            "the OpenAI-compatible server", server_address(endpoint), key=key, max_bytes=MAX_ANSWER_BYTES
        )

    @property
    def endpoint(self) -> str:
        return self._calls.endpoint

    async def vectors(self, texts: Sequence[str], *, timeout_ms: int) -> list[list[float]]:
        body: dict[str, Any] = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        if self._shortened_to is not None:
            body["dimensions"] = self._shortened_to
        answer = await self._calls.post(
            "/embeddings",
            body,
            _Answer,
            timeout_ms=timeout_ms,
            max_bytes=ANSWER_BYTES_PER_TEXT * (1 + len(texts)),
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
        return await server_lists_model(self._calls, self._model)

    async def close(self) -> None:
        await self._calls.close()
