"""Structured output: requests carry a JSON Schema until the server refuses one.

Source: wire format: Ollama's API reference, "Structured outputs" (``format``); OpenAI's, "Structured Outputs"
(``response_format``).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from signet_actors.domain.extraction.answers import AnswerFormat
from signet_actors.errors import ProviderError
from signet_actors.providers.llm.provider import Generated

_REFUSED_STATUSES: Final = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.NOT_IMPLEMENTED}
)
_SCHEMA_WORDS: Final = ("format", "schema", "grammar")

Send = Callable[[AnswerFormat | None, int], Awaitable[Generated]]


class StructuredOutput:
    """Decides whether requests to one model carry a schema.

    ``asks`` becomes false when the server has refused a request with a schema and answered the same one without it.
    """

    def __init__(self, *, asks: bool) -> None:
        self.asks = asks

    async def generate(self, send: Send, answer: AnswerFormat | None, timeout_ms: int) -> Generated:
        """Call ``send`` with the format, and without if it is refused, in ``timeout_ms``. Raises ProviderError."""
        if answer is None or not self.asks:
            return await send(None, timeout_ms)
        began_ns = time.monotonic_ns()
        try:
            return await send(answer, timeout_ms)
        except ProviderError as error:
            if not _refuses_schema(error):
                raise
        generated = await send(None, max(1, timeout_ms - (time.monotonic_ns() - began_ns) // 1_000_000))
        self.asks = False
        return generated


def _refuses_schema(error: ProviderError) -> bool:
    """Return True if the schema may have caused the error; older servers fail instead of refusing it."""
    if error.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return any(word in error.detail.lower() for word in _SCHEMA_WORDS)
    return error.status in _REFUSED_STATUSES
