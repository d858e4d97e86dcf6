"""What is known beforehand about embedding models of others: their width, and the words that they want before a text.

Some models are trained with a prefix that tells a question from a passage, and lose much of their worth without it.
The servers that run them do not add it.

Source: the models' own cards (nomic-embed-text, mxbai-embed-large, bge-*-en-v1.5, e5, text-embedding-3).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from signet_actors.config.schema import EMBEDDED_MODEL, EmbeddingConfig

_BGE_QUERY_PREFIX: Final = "Represent this sentence for searching relevant passages: "


@dataclass(frozen=True, slots=True)
class KnownModel:
    """``dimensions`` is the full width; ``shortens`` says that the model gives fewer when asked."""

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


def known_model(model: str) -> KnownModel | None:
    """What is known about ``model``, whoever publishes it and whatever tag it bears; None when nothing is."""
    return _KNOWN.get(model.rpartition("/")[2].partition(":")[0])


def known_width(provider: str, model: str, dimensions: int) -> int | None:
    """The width that ``model`` has, when ``dimensions`` cannot be right; None when it can, or nothing is known."""
    known = known_model(model)
    if known is None or known.dimensions == dimensions:
        return None
    shorter = provider == "openai" and known.shortens and dimensions < known.dimensions
    return None if shorter else known.dimensions


def default_model(provider: str) -> str:
    """The model of a provider for which none is named; empty where one must be."""
    return {"ollama": DEFAULT_OLLAMA_MODEL, "fastembed": DEFAULT_FASTEMBED_MODEL}.get(provider, "")


def configured_space(config: EmbeddingConfig) -> tuple[str, int] | None:
    """The model and the width of the vectors that ``config`` asks for, as they are stored; None where there are to be
    none."""
    if config.provider == "none":
        return None
    if config.provider in {"auto", "embedded"}:
        return EMBEDDED_MODEL, config.dimensions
    model = config.model or default_model(config.provider)
    folder = Path(model).expanduser()
    if config.provider == "fastembed" and folder.is_dir():
        model = local_model_name(folder)
    return model, config.dimensions


def local_model_name(folder: Path) -> str:
    """What vectors of the model in ``folder`` bear: the directory's name, which stays when the workspace moves."""
    return f"local/{folder.resolve().name}"


def space_name(config: EmbeddingConfig) -> str:
    """``configured_space`` in one line, empty for None."""
    space = configured_space(config)
    return "" if space is None else f"{space[0]}:{space[1]}"
