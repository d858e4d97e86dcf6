"""Protected keys: where texts and provider keys are sent, and what protects them. Only the file itself changes them.

Source: docs/configuration.md "Keys of providers".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from signet_actors.config.pipeline_schema import ExtractionConfig, PipelineV2Config, SynthesisModelConfig
from signet_actors.config.schema import Config, EmbeddingConfig, RetentionConfig

_DESTINATION: Final = (("endpoint", "endpoint"), ("api_key_env", "apiKeyEnv"))
_LOCAL_EMBEDDING: Final = ("auto", "embedded", "minilm", "multilingual", "none")
_LOCAL_EXTRACTION: Final = ("none",)
_LOCAL_SYNTHESIS: Final = ("none",)
"""Providers that send no text to other machines. Any of them may replace another provider."""


def protected_changes(former: Config, new: Config) -> list[str]:
    """Return the dotted names of the protected keys that ``new`` changes in the direction that is refused over HTTP."""
    was, now = former.memory.pipeline_v2, new.memory.pipeline_v2
    protections = (
        *((f"memory.pipelineV2.{name}", weaker) for name, weaker in _weaker_pipeline(was, now)),
        ("agents.roster", _changes_a_read_policy(former, new)),
        ("projects.only", _opens_a_directory(former.projects.only, new.projects.only)),
        ("gateway.allowedHosts", not set(new.gateway.allowed_hosts) <= set(former.gateway.allowed_hosts)),
        ("auth.mode", new.auth.mode != former.auth.mode),
        ("auth.rateLimits", new.auth.rate_limits != former.auth.rate_limits),
        ("gateway.trustedProxies", not set(new.gateway.trusted_proxies) <= set(former.gateway.trusted_proxies)),
        ("gateway.tlsCertificate", new.gateway.tls_certificate != former.gateway.tls_certificate),
        ("gateway.tlsKey", new.gateway.tls_key != former.gateway.tls_key),
        ("gateway.users", not set(new.gateway.users) <= set(former.gateway.users)),
        ("gateway.requireOwner", former.gateway.require_owner and not new.gateway.require_owner),
        ("git.autoSync", new.git.auto_sync and not former.git.auto_sync),
        ("git.remote", new.git.remote != former.git.remote),
        ("redaction.memories", former.redaction.memories and not new.redaction.memories),
        ("backup.keep", new.backup.keep < former.backup.keep),
        *_shorter_windows(former, new),
    )
    return [
        *_changed_destination("embedding", former.embedding, new.embedding, _LOCAL_EMBEDDING),
        *_changed_destination("memory.pipelineV2.extraction", was.extraction, now.extraction, _LOCAL_EXTRACTION),
        *_changed_destination("memory.pipelineV2.synthesis", was.synthesis, now.synthesis, _LOCAL_SYNTHESIS),
        *(name for name, weaker in protections if weaker),
    ]


def _weaker_pipeline(was: PipelineV2Config, now: PipelineV2Config) -> Iterator[tuple[str, bool]]:
    """Yield each switch of the pipeline that sends texts or holds changes back, and whether it is weaker now."""
    for name, before, after in (
        ("enabled", was.enabled, now.enabled),
        ("reranker.useExtractionModel", was.reranker.use_extraction_model, now.reranker.use_extraction_model),
        ("synthesis.enabled", was.synthesis.enabled, now.synthesis.enabled),
        ("autonomous.allowUpdateDelete", was.autonomous.allow_update_delete, now.autonomous.allow_update_delete),
    ):
        yield name, after and not before
    yield "confirm", was.confirm == "review" and now.confirm != "review"
    for name, before, after in (
        ("mutationsFrozen", was.mutations_frozen, now.mutations_frozen),
        ("shadowMode", was.shadow_mode, now.shadow_mode),
        ("autonomous.frozen", was.autonomous.frozen, now.autonomous.frozen),
        ("semanticContradictionEnabled", was.semantic_contradiction_enabled, now.semantic_contradiction_enabled),
    ):
        yield name, before and not after
    yield "extraction.minConfidence", now.extraction.min_confidence < was.extraction.min_confidence
    # 0 stands for a limit that depends on the provider, so every change but a decrease may be an increase.
    for name, before_limit, after_limit in (
        ("extraction.dailyCallLimit", was.extraction.daily_call_limit, now.extraction.daily_call_limit),
        ("extraction.dailyTokenLimit", was.extraction.daily_token_limit, now.extraction.daily_token_limit),
    ):
        yield name, after_limit != before_limit and not 0 < after_limit < before_limit


def _shorter_windows(former: Config, new: Config) -> Iterator[tuple[str, bool]]:
    """Yield each time that data is kept, and whether it is shorter now."""
    for field in msgspec.structs.fields(RetentionConfig):
        if field.encode_name.endswith("RetentionMs"):
            was, now = getattr(former.retention, field.name), getattr(new.retention, field.name)
            yield f"retention.{field.encode_name}", now < was
    days = former.memory.pipeline_v2.continuity.retention_days
    yield "memory.pipelineV2.continuity.retentionDays", new.memory.pipeline_v2.continuity.retention_days < days


def _changes_a_read_policy(former: Config, new: Config) -> bool:
    policies = {agent.name: (agent.read_policy, agent.policy_group) for agent in new.agents.roster}
    return any(policies.get(agent.name) != (agent.read_policy, agent.policy_group) for agent in former.agents.roster)


def _opens_a_directory(former: tuple[str, ...], new: tuple[str, ...]) -> bool:
    return bool(former) and not (new and set(new) <= set(former))


def _changed_destination(
    section: str,
    former: EmbeddingConfig | ExtractionConfig | SynthesisModelConfig,
    new: EmbeddingConfig | ExtractionConfig | SynthesisModelConfig,
    local: tuple[str, ...],
) -> list[str]:
    changed = [f"{section}.{name}" for field, name in _DESTINATION if getattr(former, field) != getattr(new, field)]
    if new.provider not in local:
        if new.provider != former.provider:
            changed.append(f"{section}.provider")
        if new.model != former.model:  # also a destination: opencode's provider/model, Ollama's cloud models
            changed.append(f"{section}.model")
    return changed
