"""The optional dependency fastembed: with and without it."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from signet_actors.config.schema import EmbeddingConfig
from signet_actors.errors import ConfigError
from signet_actors.providers.fastembed import MAX_TEXT_CHARS, FastembedEmbedder
from signet_actors.providers.select import make_embedder

WIDTH = 6


class TextEmbedding:
    """The part of fastembed's class that is used, with the package's own signatures (0.6 to 0.9)."""

    made: ClassVar[list[dict[str, Any]]] = []
    added: ClassVar[list[dict[str, Any]]] = []
    texts: ClassVar[list[str]] = []

    def __init__(self, model_name: str = "BAAI/bge-small-en-v1.5", cache_dir: str | None = None, **kwargs: Any) -> None:
        if model_name not in {known["model"] for known in self.list_supported_models()}:
            raise ValueError(f"Model {model_name} is not supported in TextEmbedding.")
        TextEmbedding.made.append({"model_name": model_name, "cache_dir": cache_dir, **kwargs})

    @classmethod
    def list_supported_models(cls) -> list[dict[str, Any]]:
        return [{"model": "some/model", "dim": WIDTH}, *({"model": added["model"]} for added in cls.added)]

    @classmethod
    def add_custom_model(
        cls, model: str, pooling: str, normalization: bool, sources: Any, dim: int, model_file: str = "onnx/model.onnx"
    ) -> None:
        cls.added.append({"model": model, "pooling": pooling, "dim": dim, "model_file": model_file})

    def embed(self, documents: Iterable[str], batch_size: int = 256) -> Iterator[Any]:
        for text in documents:
            TextEmbedding.texts.append(text)
            yield np.full(WIDTH, len(text), dtype=np.float32)

    def query_embed(self, query: Iterable[str], **kwargs: Any) -> Iterator[Any]:
        yield from self.embed([f"query: {text}" for text in query], **kwargs)


@dataclass(frozen=True)
class ModelSource:
    hf: str | None = None
    url: str | None = None


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> type[TextEmbedding]:
    module = types.ModuleType("fastembed")
    module.TextEmbedding = TextEmbedding  # type: ignore[attr-defined]
    common = types.ModuleType("fastembed.common")
    description = types.ModuleType("fastembed.common.model_description")
    description.PoolingType = types.SimpleNamespace(MEAN="MEAN")  # type: ignore[attr-defined]
    description.ModelSource = ModelSource  # type: ignore[attr-defined]
    for each in (module, common, description):
        monkeypatch.setitem(sys.modules, each.__name__, each)
    for kept in (TextEmbedding.made, TextEmbedding.added, TextEmbedding.texts):
        kept.clear()
    return TextEmbedding


def test_without_the_extra_the_error_explains_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(ConfigError, match=r"pip install 'signet-actors\[fastembed\]'"):
        make_embedder(EmbeddingConfig(provider="fastembed", dimensions=384))


def test_a_named_model_returns_unit_vectors_and_embeds_queries_separately(package: type[TextEmbedding]) -> None:
    embedder = FastembedEmbedder("some/model", WIDTH)
    vectors = embedder.embed(["a", " ", "bb"])
    assert np.allclose(np.linalg.norm(vectors, axis=1), [1, 0, 1])
    assert embedder.embed_query("q").shape == (WIDTH,)
    assert package.texts == ["width", "a", "bb", "query: q"]
    assert (embedder.provider, embedder.model, embedder.local, embedder.endpoint) == (
        "fastembed",
        "some/model",
        False,
        None,
    )


def test_a_long_text_is_truncated_before_embedding(package: type[TextEmbedding]) -> None:
    FastembedEmbedder("some/model", WIDTH).embed(["x" * 100_000])
    assert package.texts[-1] == "x" * MAX_TEXT_CHARS


def test_a_directory_with_an_onnx_model_is_loaded_from_there(package: type[TextEmbedding], tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx" / "model.onnx").touch()
    for _ in range(2):
        assert FastembedEmbedder(str(folder), WIDTH).model == "local/my-model"
    assert package.added == [
        {"model": "local/my-model", "pooling": "MEAN", "dim": WIDTH, "model_file": "onnx/model.onnx"}
    ]
    assert package.made[0] == {
        "model_name": "local/my-model",
        "cache_dir": None,
        "specific_model_path": str(folder),
    }


def test_a_directory_without_a_model_is_refused(package: type[TextEmbedding], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no ONNX model in it"):
        FastembedEmbedder(str(tmp_path), WIDTH)


@pytest.mark.parametrize(
    ("model", "dimensions", "problem"),
    [
        ("no/such", WIDTH, r"no/such cannot be loaded \(ValueError\)"),
        ("some/model", WIDTH + 1, f"embedding.dimensions is {WIDTH + 1}: set it to {WIDTH}"),
    ],
)
def test_an_unsuitable_model_is_refused(
    package: type[TextEmbedding], model: str, dimensions: int, problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        FastembedEmbedder(model, dimensions)
