"""Check a whole configuration: rules between keys, and values that this release does not support yet. Pure.

Source: docs/decisions.md 22, 44; docs/reliability.md "Supervision policy" and "The writer's loop".
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from signet_actors.config import schema
from signet_actors.config.embedding_models import default_model, known_width, width
from signet_actors.config.pipeline_schema import ExtractionConfig, SynthesisModelConfig

LEAST_DIMENSIONS: Final = 8
_PIPELINE: Final = ("memory", "pipelineV2")
_INSTALLED: Final = {
    "auto": ("embedded", (schema.EMBEDDED_MODEL,), schema.EMBEDDED_DIMENSIONS),
    "embedded": ("embedded", (schema.EMBEDDED_MODEL,), schema.EMBEDDED_DIMENSIONS),
    "minilm": ("minilm", (schema.MINILM_MODEL,), schema.MINILM_DIMENSIONS),
    "multilingual": ("multilingual", (schema.MULTILINGUAL_MODEL,), schema.MULTILINGUAL_DIMENSIONS),
}
"""The providers whose model is part of the installation or an addition to it: name, models and dimensions."""


@dataclass(frozen=True, slots=True)
class ConfigFinding:
    """A problem with one or several keys. The first key is the reported place. A fatal finding aborts the start."""

    paths: tuple[tuple[str, ...], ...]
    message: str
    fatal: bool = True


def findings(config: schema.Config) -> Iterator[ConfigFinding]:
    """Yield every problem that the range of a single key does not cover."""
    yield from _listener(config)
    yield from _embedding(config)
    yield from _roster(config)
    yield from _pipeline(config)
    yield from _limits(config)
    yield from _budgets(config)


def is_loopback(host: str) -> bool:
    """Return whether ``host`` is ``localhost`` or a literal loopback address. Names are not resolved."""
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _listener(config: schema.Config) -> Iterator[ConfigFinding]:
    gateway, mode, proxies = config.gateway, config.auth.mode, config.gateway.trusted_proxies
    host, files = gateway.host, (gateway.tls_certificate, gateway.tls_key)
    if any(files) and not all(Path(file).is_absolute() for file in files):
        yield ConfigFinding(
            (("gateway", "tlsCertificate"), ("gateway", "tlsKey")), "both must be given, as absolute paths"
        )
    if not is_loopback(host) and (mode == "local" or not (proxies or all(files))):
        yield ConfigFinding(
            (("gateway", "host"),),
            f'"{host}" is not a loopback address. For this machine alone use 127.0.0.1, ::1 or localhost. To serve '
            "others, set auth.mode to team, and gateway.tlsCertificate and tlsKey, or name the address of a proxy that "
            "ends TLS in gateway.trustedProxies",
        )
    for proxy in proxies:
        try:
            ipaddress.ip_address(proxy)
        except ValueError:
            yield ConfigFinding((("gateway", "trustedProxies"),), f'"{proxy}" is not an IP address')


def _embedding(config: schema.Config) -> Iterator[ConfigFinding]:
    embedding = config.embedding
    if embedding.provider == "none":
        return
    dimensions = width(embedding)
    installed = _INSTALLED.get(embedding.provider)
    if installed is not None:
        name, names, fixed = installed
        if embedding.model not in {"", *names}:
            yield ConfigFinding(
                (("embedding", "model"), ("embedding", "provider")),
                f'"{embedding.model}" is not a model of the {name} provider; leave it out or use {names[0]}',
            )
        if dimensions != fixed:
            yield ConfigFinding(
                (("embedding", "dimensions"), ("embedding", "provider")),
                f"{dimensions} does not fit the {name} model, which has {fixed} dimensions",
            )
        return
    if dimensions < LEAST_DIMENSIONS:
        yield ConfigFinding((("embedding", "dimensions"),), f"{dimensions} is less than {LEAST_DIMENSIONS}")
    model = embedding.model or default_model(embedding.provider)
    if not model:
        yield ConfigFinding(
            (("embedding", "model"), ("embedding", "provider")),
            f"the provider {embedding.provider} needs a model, for example text-embedding-3-small",
        )
        return
    true_width = known_width(embedding.provider, model, dimensions)
    if true_width is not None:
        yield ConfigFinding(
            (("embedding", "dimensions"), ("embedding", "model"), ("embedding", "provider")),
            f"{dimensions} does not fit {model}, which has {true_width} dimensions; set it to {true_width}",
        )


def _roster(config: schema.Config) -> Iterator[ConfigFinding]:
    here = ("agents", "roster")
    seen: set[str] = set()
    for entry in config.agents.roster:
        if entry.name in seen:
            yield ConfigFinding((here,), f'the agent "{entry.name}" is named twice')
        seen.add(entry.name)
        if entry.read_policy == "group" and not entry.policy_group:
            yield ConfigFinding((here,), f'the agent "{entry.name}" has read_policy group but no policy_group')
        if entry.read_policy != "group" and entry.policy_group:
            yield ConfigFinding(
                (here,),
                f'the agent "{entry.name}" has a policy_group, which is used only with read_policy group',
                fatal=False,
            )


def _pipeline(config: schema.Config) -> Iterator[ConfigFinding]:
    documents = config.memory.pipeline_v2.documents
    if documents.chunk_overlap_chars >= documents.chunk_size_chars:
        yield ConfigFinding(
            ((*_PIPELINE, "documents", "chunkOverlap"), (*_PIPELINE, "documents", "chunkSize")),
            f"{documents.chunk_overlap_chars} must be less than documents.chunkSize ({documents.chunk_size_chars})",
        )
    yield from _extraction(config)
    breaker = config.memory.pipeline_v2.extraction.breaker
    if breaker.cooldown_ms > breaker.max_cooldown_ms:
        here = (*_PIPELINE, "extraction", "breaker")
        yield ConfigFinding(
            ((*here, "cooldownMs"), (*here, "maxCooldownMs")),
            f"{breaker.cooldown_ms} is more than extraction.breaker.maxCooldownMs ({breaker.max_cooldown_ms})",
        )
    guardrails = config.memory.pipeline_v2.guardrails
    if guardrails.chunk_target_chars > guardrails.max_content_chars:
        yield ConfigFinding(
            ((*_PIPELINE, "guardrails", "chunkTargetChars"), (*_PIPELINE, "guardrails", "maxContentChars")),
            f"{guardrails.chunk_target_chars} is more than guardrails.maxContentChars "
            f"({guardrails.max_content_chars}), so the chunks of a long memory would exceed the maximum for a memory",
            fatal=False,
        )


def _extraction(config: schema.Config) -> Iterator[ConfigFinding]:
    """Yield warnings about incomplete or useless provider settings. The daemon runs, but may extract nothing."""
    pipeline = config.memory.pipeline_v2
    yield from _model_settings("extraction", pipeline.extraction, "nothing is extracted")
    yield from _model_settings("synthesis", pipeline.synthesis, "MEMORY.md is not made")
    if pipeline.extraction.provider == "none":
        for section, name, wanted in (
            ("reranker", "useExtractionModel", pipeline.reranker.use_extraction_model),
            ("hints", "enabled", pipeline.hints.enabled),
        ):
            if wanted:
                yield ConfigFinding(
                    ((*_PIPELINE, section, name), (*_PIPELINE, "extraction", "provider")),
                    "needs a language model, but extraction.provider is none",
                    fatal=False,
                )


def _model_settings(
    section: str, settings: ExtractionConfig | SynthesisModelConfig, without_model: str
) -> Iterator[ConfigFinding]:
    """Yield warnings about the settings of a language model that do not fit its provider."""
    here, provider = (*_PIPELINE, section), settings.provider
    if provider == "openai" and not settings.model:
        yield ConfigFinding(
            ((*here, "model"), (*here, "provider")),
            f"the provider openai needs a model, for example gpt-4o-mini; without one {without_model}",
            fatal=False,
        )
    if settings.api_key_env and provider in {"auto", "none", "ollama"}:
        yield ConfigFinding(
            ((*here, "apiKeyEnv"), (*here, "provider")),
            f"the provider {provider} takes no key, so {settings.api_key_env} has no effect",
            fatal=False,
        )
    if settings.endpoint and provider in {"none", "claude-code", "opencode"}:
        yield ConfigFinding(
            ((*here, "endpoint"), (*here, "provider")),
            f"the provider {provider} has no endpoint, so this has no effect",
            fatal=False,
        )


def _budgets(config: schema.Config) -> Iterator[ConfigFinding]:
    """Warn about a core role that would be restarted for ever: its waits alone are longer than its window."""
    supervision = config.supervision
    for role in ("writer", "searcher", "gateway"):
        budget = getattr(supervision.budgets, role)
        waits_ms = sum(
            min(supervision.backoff_max_ms, supervision.backoff_min_ms << min(number, 30))
            for number in range(budget.restarts)
        )
        if waits_ms >= budget.window_ms:
            here = ("supervision", "budgets", role)
            yield ConfigFinding(
                ((*here, "windowMs"), (*here, "restarts"), ("supervision", "backoffMaxMs")),
                f"{budget.window_ms} is not more than the total wait before {budget.restarts} restarts ({waits_ms}), "
                f"so a {role} that crashes at every start never exhausts its budget and the daemon runs without it",
                fatal=False,
            )


def _limits(config: schema.Config) -> Iterator[ConfigFinding]:
    supervision, writer, gateway, logging = config.supervision, config.writer, config.gateway, config.logging
    if supervision.backoff_min_ms > supervision.backoff_max_ms:
        yield ConfigFinding(
            (("supervision", "backoffMinMs"), ("supervision", "backoffMaxMs")),
            f"{supervision.backoff_min_ms} is more than supervision.backoffMaxMs ({supervision.backoff_max_ms})",
        )
    if gateway.max_body_bytes > writer.queue_bytes:
        yield ConfigFinding(
            (("gateway", "maxBodyBytes"), ("writer", "queueBytes")),
            f"{gateway.max_body_bytes} is more than writer.queueBytes ({writer.queue_bytes}): a write of that size "
            "could never be accepted",
        )
    if logging.max_file_bytes > logging.max_total_bytes:
        yield ConfigFinding(
            (("logging", "maxFileBytes"), ("logging", "maxTotalBytes")),
            f"{logging.max_file_bytes} is more than logging.maxTotalBytes ({logging.max_total_bytes})",
        )
    if writer.busy_timeout_ms >= writer.request_timeout_ms:
        yield ConfigFinding(
            (("writer", "busyTimeoutMs"), ("writer", "requestTimeoutMs")),
            f"{writer.busy_timeout_ms} is not less than writer.requestTimeoutMs ({writer.request_timeout_ms}), so "
            "a write times out before the wait for another program's lock ends",
            fatal=False,
        )
    for section, name, value in (
        ("writer", "requestTimeoutMs", writer.request_timeout_ms),
        ("searcher", "readTimeoutMs", config.searcher.read_timeout_ms),
    ):
        if gateway.request_timeout_ms < value:
            yield ConfigFinding(
                (("gateway", "requestTimeoutMs"), (section, name)),
                f"{gateway.request_timeout_ms} is less than {section}.{name} ({value}), so the gateway times out first",
                fatal=False,
            )
