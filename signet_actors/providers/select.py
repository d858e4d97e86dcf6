"""From configuration to the one embedding back end of this process.

Source: decisions.md 22 and 43.
"""

from __future__ import annotations

from signet_actors.config.schema import EmbeddingConfig
from signet_actors.errors import ConfigError
from signet_actors.providers.embedded import DIMENSIONS, FAMILY, MODEL, EmbeddedEmbedder
from signet_actors.providers.embedding import Embedder


def make_embedder(config: EmbeddingConfig) -> Embedder | None:
    """The back end that ``embedding.provider`` names; None for ``none`` (keyword only).

    Raises ``ConfigError`` for a back end that this release cannot serve: silence would leave every memory without
    a vector.
    """
    match config.provider:
        case "none":
            return None
        case "auto" | "embedded":
            if config.model not in {"", FAMILY, MODEL}:
                raise ConfigError(f"embedding.model {config.model!r}: the embedded provider has only {FAMILY!r}")
            if config.dimensions != DIMENSIONS:
                raise ConfigError(f"embedding.dimensions {config.dimensions}: the embedded model has {DIMENSIONS}")
            return EmbeddedEmbedder()
        case other:
            raise ConfigError(f"embedding.provider {other!r} cannot be served by this release")
