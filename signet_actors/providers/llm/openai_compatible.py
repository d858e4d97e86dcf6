"""Any server with OpenAI's chat completions interface: hosted ones, and a local vLLM, llama.cpp or LM Studio.

Source: docs/decisions.md 18 and 43; wire format: OpenAI's API reference, "Chat completions" and "Models".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from signet_actors.domain.extraction.answers import AnswerFormat
from signet_actors.errors import ProviderError, ProviderErrorKind
from signet_actors.providers.http_calls import HttpCalls
from signet_actors.providers.llm.provider import (
    AVAILABILITY_TIMEOUT_MS,
    MAX_ANSWER_BYTES,
    Availability,
    Generated,
    counted,
)
from signet_actors.providers.llm.structured_output import StructuredOutput

DEFAULT_ENDPOINT: Final = "https://api.openai.com/v1"
_OWN_HOST: Final = "api.openai.com"
_MAX_KEY_CHARS: Final = 4096


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message


class _Usage(msgspec.Struct):
    prompt_tokens: Any = None
    prompt_tokens_details: Any = None
    completion_tokens: Any = None
    cost: Any = None
    """In US dollars; only some servers report it."""


class _Answer(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


class _Model(msgspec.Struct):
    id: str = ""


class _Models(msgspec.Struct):
    data: list[_Model] | None = None


class OpenAiCompatibleProvider:
    """One model of one server. With ``key`` None no key is sent."""

    name: Final = "openai"

    def __init__(self, endpoint: str, model: str, key: str | None, *, structured: bool = True) -> None:
        self.model = model
        self._structured = StructuredOutput(asks=structured)
        self._calls = HttpCalls(
            "the OpenAI-compatible server", server_address(endpoint), key=key, max_bytes=MAX_ANSWER_BYTES
        )
        # OpenAI rejects the older field name; most other servers know only that one.
        own = urlsplit(self._calls.endpoint).hostname == _OWN_HOST
        self.limit_field = "max_completion_tokens" if own else "max_tokens"

    @property
    def endpoint(self) -> str:
        return self._calls.endpoint

    @property
    def structured(self) -> bool:
        return self._structured.asks

    async def generate(
        self, prompt: str, *, timeout_ms: int, max_tokens: int | None = None, answer: AnswerFormat | None = None
    ) -> Generated:
        return await self._structured.generate(partial(self._generate, prompt, max_tokens), answer, timeout_ms)

    async def _generate(
        self, prompt: str, max_tokens: int | None, wanted: AnswerFormat | None, timeout_ms: int
    ) -> Generated:
        body: dict[str, Any] = {"model": self.model, "messages": [{"role": "user", "content": prompt}], "stream": False}
        if max_tokens is not None:
            body[self.limit_field] = max_tokens
        if wanted is not None:
            json_schema = {"name": wanted.name, "strict": True, "schema": wanted.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": json_schema}
        answer = await self._calls.post("/chat/completions", body, _Answer, timeout_ms=timeout_ms)
        text = answer.choices[0].message.content if answer.choices else None
        if text is None or not text.strip():
            raise ProviderError(
                ProviderErrorKind.MALFORMED, f"the OpenAI-compatible server returned no text (model {self.model})"
            )
        usage = answer.usage or _Usage()
        details = usage.prompt_tokens_details
        return counted(
            prompt,
            text,
            usage.prompt_tokens,
            usage.completion_tokens,
            cost_microusd=_microusd(usage.cost),
            cached_tokens=details.get("cached_tokens") if isinstance(details, dict) else None,
        )

    async def available(self) -> Availability:
        return await server_lists_model(self._calls, self.model)

    async def close(self) -> None:
        await self._calls.close()


async def server_lists_model(calls: HttpCalls, model: str) -> Availability:
    """Check that the server answers, accepts the key and, if it lists models, lists ``model``; within three seconds."""
    try:
        models = await calls.get("/models", _Models, timeout_ms=AVAILABILITY_TIMEOUT_MS)
    except ProviderError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return Availability(True, f"the server at {calls.endpoint} is running; it does not list its models")
        return Availability(False, error.detail)
    if models.data and not any(known.id == model for known in models.data):
        return Availability(False, f"the server at {calls.endpoint} is running but does not list the model {model}")
    return Availability(True, f"the server at {calls.endpoint} is running")


def server_address(endpoint: str) -> str:
    """Return ``endpoint`` with ``/v1`` added if it has no path; OpenAI's address if it is empty."""
    address = (endpoint or DEFAULT_ENDPOINT).rstrip("/")
    return address if urlsplit(address).path else f"{address}/v1"


def key_from(environment: Mapping[str, str], variable: str) -> str | None:
    """Return the key in the environment variable ``variable``, None if no variable is named.

    Raises ``ProviderError`` if the variable is missing or cannot be a key; the error never quotes its value.
    """
    if not variable:
        return None
    key = environment.get(variable, "").strip()
    if not key:
        raise ProviderError(ProviderErrorKind.REFUSED, f"the environment variable {variable} is not set")
    if len(key) > _MAX_KEY_CHARS or not key.isascii() or not key.isprintable() or " " in key:
        raise ProviderError(
            ProviderErrorKind.REFUSED, f"the environment variable {variable} does not contain a valid key"
        )
    return key


def _microusd(cost: object) -> int | None:
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not math.isfinite(cost) or not 0 <= cost < 1e6:
        return None
    return round(cost * 1_000_000)
