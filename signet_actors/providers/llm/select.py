"""Select the language model provider from the configuration, with a reason for the user.

``auto`` selects Ollama if it answers, has the model and is not run by another user, else no provider: a provider that
may cost money is used only if the configuration names it. Each call of ``select_provider`` selects again; callers
without a provider repeat it. If nothing listens at Ollama's local port, the check is one connect, without HTTP.

Source: docs/decisions.md 18 and 43; memory-pipeline.txt "Provider Abstraction".
Departs: the reference falls back to a paid program if Ollama is unavailable; users complain most about silent costs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from signet_actors.config.checks import is_loopback
from signet_actors.config.pipeline_schema import ExtractionConfig
from signet_actors.domain.providers import NO_PROVIDER, DailyLimits, Selection
from signet_actors.errors import ProviderError
from signet_actors.providers.llm.breaker import BreakerPolicy
from signet_actors.providers.llm.cli_provider import ClaudeCodeProvider, OpencodeProvider
from signet_actors.providers.llm.guarded import GuardLimits
from signet_actors.providers.llm.ollama import DEFAULT_MODEL, OllamaProvider, how_to_start, local_end, server_address
from signet_actors.providers.llm.openai_compatible import OpenAiCompatibleProvider, key_from
from signet_actors.providers.llm.provider import Availability, LlmProvider

PAID_CALLS_A_DAY: Final = 2000
PAID_TOKENS_A_DAY: Final = 2_000_000
"""Daily limits for a provider that may cost money, if the configuration sets none."""

_CONNECT_S: Final = 1.0

SETUP_HINT: Final = (
    f"install Ollama (https://ollama.com) and run `ollama pull {DEFAULT_MODEL}`; or choose another provider in "
    "memory.pipelineV2.extraction.provider"
)


@dataclass(frozen=True, slots=True)
class Selected:
    """The selected provider, None if there is none; ``selection`` gives the reason."""

    provider: LlmProvider | None
    selection: Selection


async def select_provider(config: ExtractionConfig, environment: Mapping[str, str]) -> Selected:
    """Select the provider for ``config``; the caller closes it. Takes at most about three seconds, never raises.

    A provider that the configuration names is returned even if it is unreachable; its circuit breaker handles that.
    """
    try:
        return await _select(config, environment)
    except ProviderError as error:
        return _no_provider(config, f"the provider {config.provider} cannot be used: {error.detail}")


async def _select(config: ExtractionConfig, environment: Mapping[str, str]) -> Selected:
    match config.provider:
        case "none":
            return _no_provider(
                config,
                "memory.pipelineV2.extraction.provider is none",
                f"set it to auto (the default), then {SETUP_HINT}",
            )
        case "auto":
            return await _automatic(config)
        case "ollama":
            return await _named(
                config, OllamaProvider(config.endpoint, config.model, structured=config.structured_output)
            )
        case "openai":
            return await _openai(config, environment)
        case "claude-code":
            return await _named(config, ClaudeCodeProvider(config.model, environment, config.api_key_env))
        case "opencode":
            return await _named(config, OpencodeProvider(config.model, environment, config.api_key_env))


def daily_limits(config: ExtractionConfig, selection: Selection) -> DailyLimits:
    """Return the daily limits: those of the configuration, else defaults for a provider that may cost money."""
    return DailyLimits(
        config.daily_call_limit or (PAID_CALLS_A_DAY if selection.may_cost else 0),
        config.daily_token_limit or (PAID_TOKENS_A_DAY if selection.may_cost else 0),
    )


def guard_limits(config: ExtractionConfig) -> GuardLimits:
    """Return the concurrency and breaker limits from the configuration."""
    breaker = config.breaker
    return GuardLimits(
        config.concurrency, BreakerPolicy(breaker.failures, breaker.cooldown_ms, breaker.max_cooldown_ms)
    )


async def _automatic(config: ExtractionConfig) -> Selected:
    address = server_address(config.endpoint)
    if not await _may_be_listening(address):
        way_out = how_to_start(config.model or DEFAULT_MODEL)
        return _ollama_missing(config, f"Ollama cannot be reached at {address} (no server listens there); {way_out}")
    provider = OllamaProvider(config.endpoint, config.model, structured=config.structured_output, named=False)
    found = await _check_availability(provider)
    if not found.ok:
        await provider.close()
        return _ollama_missing(config, found.detail)
    return _selected(config, provider, found, "the provider is auto, and Ollama is running and has the model")


def _ollama_missing(config: ExtractionConfig, detail: str) -> Selected:
    what, _, _way_out = detail.partition("; ")
    return _no_provider(config, f"the provider is auto, and {what}", detail)


async def _may_be_listening(address: str) -> bool:
    """Return False if ``address`` is local and refuses connections; True for remote ones, which may need a proxy."""
    end = local_end(address)
    if end is None:
        return True
    try:
        async with asyncio.timeout(_CONNECT_S):
            _, writer = await asyncio.open_connection(*end)
            writer.close()
            with suppress(OSError):  # the server accepted the connection; how it closes does not matter
                await writer.wait_closed()
    except TimeoutError:  # a busy server is not an absent one
        return True
    except OSError:
        return False
    return True


async def _openai(config: ExtractionConfig, environment: Mapping[str, str]) -> Selected:
    if not config.model:
        return _no_provider(
            config,
            "the provider openai needs memory.pipelineV2.extraction.model",
            "set it to a model that the server has",
        )
    try:
        key = key_from(environment, config.api_key_env)
    except ProviderError as error:
        return _no_provider(
            config,
            f"the provider openai has no usable key: {error.detail}",
            "set the variable in the daemon's environment and restart it, or leave"
            " memory.pipelineV2.extraction.apiKeyEnv empty for a server without keys",
        )
    return await _named(
        config, OpenAiCompatibleProvider(config.endpoint, config.model, key, structured=config.structured_output)
    )


async def _named(config: ExtractionConfig, provider: LlmProvider) -> Selected:
    found = await _check_availability(provider)
    return _selected(config, provider, found, f"the configuration sets {config.provider}")


def _selected(config: ExtractionConfig, provider: LlmProvider, found: Availability, reason: str) -> Selected:
    return Selected(
        provider,
        Selection(
            configured=config.provider,
            name=provider.name,
            model=provider.model,
            reason=reason,
            available=found.ok,
            detail=found.detail,
            endpoint=provider.endpoint,
            may_cost=_may_cost(provider),
        ),
    )


async def _check_availability(provider: LlmProvider) -> Availability:
    """Run the provider's own check; close the provider if the check is cancelled."""
    try:
        return await provider.available()
    except BaseException:
        await provider.close()
        raise


def _no_provider(config: ExtractionConfig, reason: str, detail: str = SETUP_HINT) -> Selected:
    return Selected(None, Selection(config.provider, NO_PROVIDER, "", reason, available=False, detail=detail))


def _may_cost(provider: LlmProvider) -> bool:
    """Return False for a local server and for Ollama on any machine; anything else may cost money."""
    if provider.endpoint is None:
        return True
    return provider.name != OllamaProvider.name and not is_loopback(urlsplit(provider.endpoint).hostname or "")
