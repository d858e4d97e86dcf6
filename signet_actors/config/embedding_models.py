"""Known properties of third-party embedding models: vector width, and the prefixes that they require.

Some models are trained with a prefix that distinguishes a question from a passage, and are much less accurate without
it. The servers that run these models do not add it.

Source: the models' own cards (nomic-embed-text, mxbai-embed-large, bge-*-en-v1.5, e5, text-embedding-3).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from signet_actors.config.schema import (
    EMBEDDED_DIMENSIONS,
    EMBEDDED_MODEL,
    MINILM_DIMENSIONS,
    MINILM_MODEL,
    MULTILINGUAL_DIMENSIONS,
    MULTILINGUAL_MODEL,
    EmbeddingConfig,
)

EMBEDDED_FOLDER: Final = Path(__file__).parents[1] / "third_party" / "wordllama"
MINILM_FOLDER: Final = EMBEDDED_FOLDER.with_name("minilm")
"""Where the files of the two models are that come with this package."""
MULTILINGUAL_FILE: Final = EMBEDDED_FOLDER.with_name("multilingual") / "e5-small-q4.bin"
"""Where that of the third one is when it was downloaded."""
MULTILINGUAL_SHA256: Final = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
EMBEDDED_WEIGHTS: Final = "l2_supercat_256.safetensors"
EMBEDDED_TENSOR: Final = "embedding.weight"

MAX_TOKEN_CODES: Final = 64
"""A text's first telling tokens have codes. Further ones would cost space and time, and gain nothing."""
MINILM_CODE_DIMENSIONS: Final = 64

_BGE_QUERY_PREFIX: Final = "Represent this sentence for searching relevant passages: "


@dataclass(frozen=True, slots=True)
class KnownModel:
    """``dimensions`` is the full width. ``shortens`` means that the model can return shorter vectors on request."""

    dimensions: int
    document_prefix: str = ""
    query_prefix: str = ""
    shortens: bool = False


_KNOWN: Final[dict[str, KnownModel]] = {
    "nomic-embed-text": KnownModel(768, "search_document: ", "search_query: "),
    "nomic-embed-text-v1.5": KnownModel(768, "search_document: ", "search_query: "),
    "mxbai-embed-large": KnownModel(1024, query_prefix=_BGE_QUERY_PREFIX),
    "mxbai-embed-large-v1": KnownModel(1024, query_prefix=_BGE_QUERY_PREFIX),
    "bge-small-en-v1.5": KnownModel(384, query_prefix=_BGE_QUERY_PREFIX),
    "bge-base-en-v1.5": KnownModel(768, query_prefix=_BGE_QUERY_PREFIX),
    "bge-large-en-v1.5": KnownModel(1024, query_prefix=_BGE_QUERY_PREFIX),
    "multilingual-e5-small": KnownModel(384, "passage: ", "query: "),
    "multilingual-e5-large": KnownModel(1024, "passage: ", "query: "),
    "all-minilm": KnownModel(384),
    "all-MiniLM-L6-v2": KnownModel(384),
    "bge-m3": KnownModel(1024),
    "text-embedding-3-small": KnownModel(1536, shortens=True),
    "text-embedding-3-large": KnownModel(3072, shortens=True),
    "text-embedding-ada-002": KnownModel(1536),
}

DEFAULT_OLLAMA_MODEL: Final = "nomic-embed-text"
DEFAULT_FASTEMBED_MODEL: Final = "BAAI/bge-small-en-v1.5"


def width(config: EmbeddingConfig) -> int:
    """Return the number of dimensions of the configured vectors; without a number, those of the provider's model."""
    if config.dimensions:
        return config.dimensions
    if config.provider == "minilm":
        return MINILM_DIMENSIONS
    if config.provider == "multilingual":
        return MULTILINGUAL_DIMENSIONS
    known = known_model(config.model or default_model(config.provider))
    return EMBEDDED_DIMENSIONS if known is None else known.dimensions


def known_model(model: str) -> KnownModel | None:
    """Return the properties of ``model``, ignoring its publisher and tag, or None if it is unknown."""
    return _KNOWN.get(model.rpartition("/")[2].partition(":")[0])


def known_width(provider: str, model: str, dimensions: int) -> int | None:
    """Return the true width of ``model`` if ``dimensions`` cannot be right, else None (also for an unknown model)."""
    known = known_model(model)
    if known is None or known.dimensions == dimensions:
        return None
    shorter = provider == "openai" and known.shortens and dimensions < known.dimensions
    return None if shorter else known.dimensions


def default_model(provider: str) -> str:
    """Return the default model of a provider; empty if the configuration must name one."""
    return {"ollama": DEFAULT_OLLAMA_MODEL, "fastembed": DEFAULT_FASTEMBED_MODEL}.get(provider, "")


def configured_space(config: EmbeddingConfig) -> tuple[str, int] | None:
    """Return the model and the width that vectors of ``config`` are stored with, or None if there are no vectors."""
    if config.provider == "none":
        return None
    if config.provider in {"auto", "embedded"}:
        return EMBEDDED_MODEL, width(config)
    if config.provider == "minilm":
        return MINILM_MODEL, width(config)
    if config.provider == "multilingual":
        return MULTILINGUAL_MODEL, width(config)
    model = config.model or default_model(config.provider)
    folder = Path(model).expanduser()
    if config.provider == "fastembed" and folder.is_dir():
        model = local_model_name(folder)
    return model, width(config)


def second_space(config: EmbeddingConfig) -> tuple[str, int] | None:
    """Return the model and width of the better vectors that follow the first ones, or None if none do."""
    return (MINILM_MODEL, MINILM_DIMENSIONS) if config.provider == "auto" and _has_onnxruntime() else None


@cache
def _has_onnxruntime() -> bool:
    """Return whether the package is installed, which does not exist for every platform."""
    return find_spec("onnxruntime") is not None


def makes_token_codes(config: EmbeddingConfig) -> bool:
    """Return whether vectors of ``config`` are stored with codes of their tokens."""
    return config.provider in {"auto", "embedded", "minilm"}


def local_model_name(folder: Path) -> str:
    """Return the stored name of the model in ``folder``: the directory's name, which survives moving the workspace."""
    return f"local/{folder.resolve().name}"


def space_name(config: EmbeddingConfig) -> str:
    """Return ``configured_space`` as one string; empty for None."""
    space = configured_space(config)
    return "" if space is None else f"{space[0]}:{space[1]}"
