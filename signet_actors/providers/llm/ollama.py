"""Ollama: prompts to a local or remote model through Ollama's own HTTP interface.

Source: memory-pipeline.txt "Provider Abstraction" (OllamaProvider); docs/decisions.md 18.
Departs: the context size follows the prompt, because Ollama's default truncates prompts silently; there are few steps,
because a change reloads the model. Thinking is switched off, because small models spend the whole deadline on it.
"""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from signet_actors.config.checks import is_loopback
from signet_actors.domain.extraction.answers import AnswerFormat
from signet_actors.errors import ProviderError, ProviderErrorKind
from signet_actors.providers.http_calls import HttpCalls
from signet_actors.providers.llm import provider
from signet_actors.providers.llm.structured_output import StructuredOutput
from signet_actors.runtime.socket_uids import listener_uids

DEFAULT_ENDPOINT: Final = "http://localhost:11434"
DEFAULT_MODEL: Final = "qwen3:4b"
_CONTEXT_STEPS: Final = (8192, 16_384, 32_768)
_ANSWER_TOKENS: Final = 2048


class _Answer(msgspec.Struct):
    response: str
    prompt_eval_count: Any = None
    eval_count: Any = None


class _Model(msgspec.Struct):
    name: str = ""
    model: str = ""


class Tags(msgspec.Struct):
    """The list of models that an Ollama server has."""

    models: list[_Model] | None = None

    def have(self, model: str) -> bool:
        """Return True if ``model`` is in the list; without a tag it means ``latest``."""
        wanted = model if ":" in model.rpartition("/")[2] else f"{model}:latest"
        return any(wanted in {known.name, known.model} for known in self.models or ())


class OllamaProvider:
    """One model of one Ollama server."""

    name: Final = "ollama"

    def __init__(self, endpoint: str = "", model: str = "", *, structured: bool = True, named: bool = True) -> None:
        """Unless the configuration ``named`` this provider, refuse a server that another user of the machine runs."""
        self._named = named
        self.model = model or DEFAULT_MODEL
        self._structured = StructuredOutput(asks=structured)
        self._calls = HttpCalls("Ollama", server_address(endpoint), max_bytes=provider.MAX_ANSWER_BYTES)

    @property
    def endpoint(self) -> str:
        return self._calls.endpoint

    @property
    def structured(self) -> bool:
        return self._structured.asks

    async def generate(
        self, prompt: str, *, timeout_ms: int, max_tokens: int | None = None, answer: AnswerFormat | None = None
    ) -> provider.Generated:
        # Another program may listen at the port since the provider was selected.
        foreign = None if self._named else await foreign_listener(self.endpoint)
        if foreign is not None:
            raise ProviderError(ProviderErrorKind.UNAVAILABLE, foreign)

        return await self._structured.generate(partial(self._generate, prompt, max_tokens), answer, timeout_ms)

    async def _generate(
        self, prompt: str, max_tokens: int | None, wanted: AnswerFormat | None, timeout_ms: int
    ) -> provider.Generated:
        options: dict[str, float] = {"temperature": 0, "num_ctx": _context(prompt, max_tokens or _ANSWER_TOKENS)}
        if max_tokens is not None:
            options["num_predict"] = max_tokens
        body: dict[str, Any] = {
            "model": self.model,
            "prompt": prompt,
            "stream": False,
            "think": False,
            "options": options,
        }
        if wanted is not None:
            body["format"] = wanted.schema
        answer = await self._calls.post("/api/generate", body, _Answer, timeout_ms=timeout_ms)
        if not answer.response.strip():
            raise ProviderError(ProviderErrorKind.MALFORMED, f"Ollama returned no text (model {self.model})")
        counts = answer.prompt_eval_count, answer.eval_count
        return provider.counted(prompt, answer.response, *counts, cost_microusd=0, reports_cost=False)

    async def available(self) -> provider.Availability:
        foreign = None if self._named else await foreign_listener(self.endpoint)
        if foreign is not None:
            return provider.Availability(False, foreign)
        return await server_has_model(self._calls, self.model)

    async def close(self) -> None:
        await self._calls.close()


def how_to_start(model: str) -> str:
    """Return advice for the user if the server does not answer."""
    return f"start it with `ollama serve`, or install it (https://ollama.com) and run `ollama pull {model}`"


async def server_has_model(calls: HttpCalls, model: str) -> provider.Availability:
    """Check that the server answers and has ``model``, within three seconds."""
    try:
        tags = await calls.get("/api/tags", Tags, timeout_ms=provider.AVAILABILITY_TIMEOUT_MS)
    except ProviderError as error:
        return provider.Availability(False, f"{error.detail}; {how_to_start(model)}")
    if not tags.have(model):
        return provider.Availability(
            False, f"Ollama is running but does not have the model {model}; install it with `ollama pull {model}`"
        )
    return provider.Availability(True, f"Ollama is running at {calls.endpoint} and has the model {model}")


def server_address(endpoint: str) -> str:
    """Return ``endpoint`` without the ``/v1`` or ``/api`` that users often copy along; the default if it is empty."""
    address = (endpoint or DEFAULT_ENDPOINT).rstrip("/")
    return address.removesuffix("/v1").removesuffix("/api").rstrip("/")


def _context(prompt: str, answer_tokens: int) -> int:
    needed = provider.estimated_tokens(prompt) + answer_tokens
    return next((step for step in _CONTEXT_STEPS if needed <= step), _CONTEXT_STEPS[-1])


SYSTEM_UIDS: Final = 1000
"""Uids below this belong to root and to system accounts."""
DYNAMIC_UIDS: Final = range(61_184, 65_520)
"""Uids of systemd's services with ``DynamicUser=``."""


def local_end(address: str) -> tuple[str, int] | None:
    """Return host and port of an address of this machine; None for another, and for one that is not valid."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port or {"https": 443}.get(parts.scheme, 80)
    except ValueError:  # the HTTP client will report it
        return None
    return (host, port) if is_loopback(host) else None


async def foreign_listener(address: str) -> str | None:
    """Return why the server at ``address`` must not be used unnamed; None if it may be.

    A provider that nobody named must not receive memories only because it listens at Ollama's port. Its sockets must
    belong to this user, to root, or to a system account, such as that of Ollama's service. Systems other than Linux do
    not report uids; any local server is then accepted.

    Source: docs/security.md "Where the specification is unsafe"; login.defs(5), SYS_UID_MAX.
    """
    end = local_end(address)
    if end is None:
        return None
    uids = await asyncio.to_thread(listener_uids, end[1])
    own = os.geteuid()
    foreign = sorted(uid for uid in uids if uid >= SYSTEM_UIDS and uid not in DYNAMIC_UIDS and uid != own)
    if not foreign:
        return None
    return (
        f"the program that listens at {address} belongs to another user (uid {foreign[0]}); to use it anyway,"
        " set memory.pipelineV2.extraction.provider to ollama"
    )
