"""The embedded model gives the package's own vectors, without the package's side effects."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from signet_actors.config.schema import EmbeddingConfig
from signet_actors.errors import ConfigError
from signet_actors.providers.embedded import DIMENSIONS, MAX_TEXT_CHARS, MODEL, EmbeddedEmbedder
from signet_actors.providers.select import make_embedder

TEXTS = [
    "User prefers vim keybindings",
    "café naïve Straße",
    "数据库使用PostgreSQL",
    "KA-6 pre-compaction hook: src/app.py:42",
    "🙂",
    "a",
]


@pytest.fixture(scope="module")
def embedder() -> EmbeddedEmbedder:
    return EmbeddedEmbedder()


def test_vectors_are_unit_float32_of_the_models_width(embedder: EmbeddedEmbedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), DIMENSIONS)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


def test_a_query_is_embedded_like_a_text(embedder: EmbeddedEmbedder) -> None:
    assert np.array_equal(embedder.embed_query(TEXTS[0]), embedder.embed(TEXTS[:1])[0])


def test_related_texts_are_nearer_than_unrelated_ones(embedder: EmbeddedEmbedder) -> None:
    anchor, near, far = embedder.embed(
        ["The user likes dark mode", "dark theme is preferred", "the invoice is due in March"]
    )
    assert float(anchor @ near) > float(anchor @ far)


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_a_text_without_tokens_is_not_embeddable(embedder: EmbeddedEmbedder, text: str) -> None:
    assert not embedder.embed_query(text).any()
    assert not embedder.embed(["x", text])[1].any()


def test_no_text_gives_no_rows(embedder: EmbeddedEmbedder) -> None:
    assert embedder.embed([]).shape == (0, DIMENSIONS)


def test_a_very_long_text_is_embedded_by_its_beginning(embedder: EmbeddedEmbedder) -> None:
    long = "word " * MAX_TEXT_CHARS
    assert np.array_equal(embedder.embed_query(long), embedder.embed_query(long[:MAX_TEXT_CHARS]))


def test_the_vectors_equal_the_packages_own_in_a_process_of_their_own() -> None:
    """In another process, because importing the package sets up the root logger."""
    script = f"""
import pathlib, numpy, wordllama
from signet_actors.providers.embedded import EmbeddedEmbedder
folder = pathlib.Path(wordllama.__file__).parent
theirs = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
texts = {TEXTS!r}
assert numpy.allclose(EmbeddedEmbedder().embed(texts), theirs.embed(texts, norm=True), atol=1e-6)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_loading_leaves_the_logging_alone_and_the_network_out() -> None:
    script = """
import logging, sys
from signet_actors.providers.embedded import EmbeddedEmbedder
EmbeddedEmbedder().embed_query("x")
assert logging.getLogger().handlers == []
assert not {"wordllama", "requests", "urllib3", "http.client"} & set(sys.modules), sorted(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert logging.getLogger("wordllama").handlers == []


def test_missing_weights_are_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="weights cannot be read"):
        EmbeddedEmbedder(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff" * 8, (2).to_bytes(8, "little") + b"{}", (9).to_bytes(8, "little") + b"not json!"],
)
def test_damaged_weights_are_a_configuration_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/l2_supercat_256.safetensors").write_bytes(content)
    with pytest.raises(ConfigError, match="weights cannot be read"):
        EmbeddedEmbedder(tmp_path)


@pytest.mark.parametrize("provider", ["auto", "embedded"])
@pytest.mark.parametrize("model", ["wordllama", MODEL])
def test_auto_is_the_embedded_model(provider: str, model: str) -> None:
    made = make_embedder(EmbeddingConfig(provider=provider, model=model))  # type: ignore[arg-type]
    assert made is not None
    assert (made.provider, made.model, made.dimensions, made.local, made.endpoint) == (
        "embedded",
        MODEL,
        DIMENSIONS,
        True,
        None,
    )


def test_none_is_no_embedder() -> None:
    assert make_embedder(EmbeddingConfig(provider="none")) is None


@pytest.mark.parametrize(
    "config",
    [
        EmbeddingConfig(provider="ollama"),
        EmbeddingConfig(provider="openai"),
        EmbeddingConfig(model="nomic-embed-text"),
        EmbeddingConfig(dimensions=768),
    ],
)
def test_what_this_release_cannot_serve_is_refused(config: EmbeddingConfig) -> None:
    with pytest.raises(ConfigError):
        make_embedder(config)
