"""Select the embedding back end of this process from the configuration.

Network back ends are imported only when chosen, so that the embedded model needs no HTTP client.

Source: docs/decisions.md 22 and 43.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from signet_actors.config.embedding_models import default_model, known_model, known_width, width
from signet_actors.config.schema import EmbeddingConfig
from signet_actors.errors import ConfigError, MissingKey, ProviderError
from signet_actors.providers.embedded import DIMENSIONS, FAMILY, MODEL, EmbeddedEmbedder
from signet_actors.providers.embedding import AsyncEmbedder, Embedder
from signet_actors.providers.remote_embedder import EmbeddingClient, RemoteEmbedder
from signet_actors.providers.threaded_embedder import ThreadedEmbedder


def make_embedder(config: EmbeddingConfig, environment: Mapping[str, str] | None = None) -> Embedder | None:
    """Return the back end that ``embedding.provider`` names; None for ``none`` (keywords only).

    A network back end is not contacted yet. Raises ``ConfigError`` for an unusable configuration, because every memory
    would silently stay without a vector.
    """
    match config.provider:
        case "none":
            return None
        case "auto" | "embedded":
            if config.model not in {"", FAMILY, MODEL}:
                raise ConfigError(
                    f"embedding.model {config.model!r}: the embedded provider only has the model {FAMILY!r}"
                )
            if width(config) != DIMENSIONS:
                raise ConfigError(
                    f"embedding.dimensions {width(config)}: the embedded model has {DIMENSIONS} dimensions"
                )
            return EmbeddedEmbedder()
        case "minilm":
            from signet_actors.providers.minilm.embedder import MiniLmEmbedder  # noqa: PLC0415 - the extractor needs it only if chosen

            return MiniLmEmbedder()
        case "multilingual":
            from signet_actors.providers.multilingual.embedder import MultilingualEmbedder  # noqa: PLC0415 - likewise

            return MultilingualEmbedder()
        case "ollama":
            return _ollama(config)
        case "openai":
            return _openai(config, os.environ if environment is None else environment)
        case "fastembed":
            from signet_actors.providers.fastembed import FastembedEmbedder  # noqa: PLC0415 - imported only if it is chosen

            model = config.model or default_model(config.provider)
            _check_width(config, model)
            return FastembedEmbedder(model, width(config))


def for_event_loop(embedder: Embedder) -> AsyncEmbedder:
    """Wrap ``embedder`` for an event loop, if it is not asynchronous already."""
    if isinstance(embedder, RemoteEmbedder):
        return embedder
    return ThreadedEmbedder(embedder, background=embedder.provider in {"minilm", "multilingual"})


def _ollama(config: EmbeddingConfig) -> RemoteEmbedder:
    from signet_actors.providers.embedding_servers import OllamaEmbeddingClient  # noqa: PLC0415 - imported only if it is chosen

    model = config.model or default_model(config.provider)
    _check_width(config, model)

    def new_client() -> EmbeddingClient:
        return OllamaEmbeddingClient(config.endpoint, model)

    return RemoteEmbedder(config.provider, model, width(config), new_client)


def _openai(config: EmbeddingConfig, environment: Mapping[str, str]) -> RemoteEmbedder:
    from signet_actors.providers.embedding_servers import OpenAiEmbeddingClient  # noqa: PLC0415 - imported only if it is chosen
    from signet_actors.providers.llm.openai_compatible import key_from  # noqa: PLC0415 - imported only if it is chosen

    if not config.model:
        raise ConfigError("embedding.model: the provider openai needs a model, for example text-embedding-3-small")
    try:
        key = key_from(environment, config.api_key_env)
    except ProviderError as error:
        raise MissingKey(f"embedding.apiKeyEnv: {error.detail}") from error
    _check_width(config, config.model)
    known = known_model(config.model)
    shortened = known is not None and known.dimensions != width(config)

    def new_client() -> EmbeddingClient:
        return OpenAiEmbeddingClient(
            config.endpoint, config.model, key, shortened_to=width(config) if shortened else None
        )

    return RemoteEmbedder(config.provider, config.model, width(config), new_client)


def _check_width(config: EmbeddingConfig, model: str) -> None:
    """Raise ``ConfigError`` if ``embedding.dimensions`` is known to be wrong for the model."""
    true_width = known_width(config.provider, model, width(config))
    if true_width is not None:
        raise ConfigError(
            f"embedding.dimensions {width(config)}: {model} has {true_width} dimensions; set it to {true_width}"
        )
