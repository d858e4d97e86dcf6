"""The keys that say where texts and provider keys are sent: only the owner's file may change them.

Source: docs/configuration.md "Keys of providers".
"""

from __future__ import annotations

from typing import Final

from signet_actors.config.schema import Config, EmbeddingConfig, ExtractionConfig

_FIXED: Final = (("endpoint", "endpoint"), ("api_key_env", "apiKeyEnv"))
_KEYLESS_EMBEDDING: Final = ("auto", "embedded", "none")
_KEYLESS_EXTRACTION: Final = ("auto", "none")
"""Providers that are given no key; any of them may take the place of another provider."""
_NAMED_BY_MODEL: Final = "opencode"
"""Its model has the form ``provider/model``, and so decides where a text is sent."""


def changed_destinations(former: Config, new: Config) -> list[str]:
    """Return the dotted names of the keys that differ and decide where a text or a provider's key is sent.

    A provider that takes no key may be chosen; the endpoint of the former one is kept then.
    """
    return [
        *_changed("embedding", former.embedding, new.embedding, _KEYLESS_EMBEDDING),
        *_changed(
            "memory.pipelineV2.extraction",
            former.memory.pipeline_v2.extraction,
            new.memory.pipeline_v2.extraction,
            _KEYLESS_EXTRACTION,
        ),
    ]


def _changed(
    section: str,
    former: EmbeddingConfig | ExtractionConfig,
    new: EmbeddingConfig | ExtractionConfig,
    keyless: tuple[str, ...],
) -> list[str]:
    changed = [f"{section}.{name}" for field, name in _FIXED if getattr(former, field) != getattr(new, field)]
    if new.provider != former.provider and new.provider not in keyless:
        changed.append(f"{section}.provider")
    if new.provider == _NAMED_BY_MODEL and new.model != former.model:
        changed.append(f"{section}.model")
    return changed
