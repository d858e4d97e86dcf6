"""The keys that only the owner's file may change: where texts and provider keys are sent, and what protects them.

Source: docs/configuration.md "Keys of providers".
"""

from __future__ import annotations

from typing import Final

from signet_actors.config.schema import Config, EmbeddingConfig, ExtractionConfig

_DESTINATION: Final = (("endpoint", "endpoint"), ("api_key_env", "apiKeyEnv"))
_LOCAL_EMBEDDING: Final = ("auto", "embedded", "none")
_LOCAL_EXTRACTION: Final = ("none",)
"""Providers that send nothing anywhere; any of them may take the place of another provider."""


def owner_only_changes(former: Config, new: Config) -> list[str]:
    """Return the dotted names of the keys that differ and that only the owner's file may change."""
    was, now = former.memory.pipeline_v2, new.memory.pipeline_v2
    protections = (
        ("memory.pipelineV2.enabled", now.enabled and not was.enabled),
        (
            "memory.pipelineV2.autonomous.allowUpdateDelete",
            now.autonomous.allow_update_delete and not was.autonomous.allow_update_delete,
        ),
        ("gateway.allowedHosts", not set(new.gateway.allowed_hosts) <= set(former.gateway.allowed_hosts)),
        ("gateway.requireOwner", former.gateway.require_owner and not new.gateway.require_owner),
        ("redaction.memories", former.redaction.memories and not new.redaction.memories),
    )
    return [
        *_changed_destination("embedding", former.embedding, new.embedding, _LOCAL_EMBEDDING),
        *_changed_destination("memory.pipelineV2.extraction", was.extraction, now.extraction, _LOCAL_EXTRACTION),
        *(name for name, weaker in protections if weaker),
    ]


def _changed_destination(
    section: str,
    former: EmbeddingConfig | ExtractionConfig,
    new: EmbeddingConfig | ExtractionConfig,
    local: tuple[str, ...],
) -> list[str]:
    changed = [f"{section}.{name}" for field, name in _DESTINATION if getattr(former, field) != getattr(new, field)]
    if new.provider not in local:
        if new.provider != former.provider:
            changed.append(f"{section}.provider")
        if new.model != former.model:  # it names a destination too: opencode's provider/model, Ollama's cloud models
            changed.append(f"{section}.model")
    return changed
