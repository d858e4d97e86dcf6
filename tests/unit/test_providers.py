"""The embedded model returns the vectors that its weights and its tokenizer define, without side effects."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from signet_actors.config.embedding_models import EMBEDDED_FOLDER, EMBEDDED_TENSOR, EMBEDDED_WEIGHTS
from signet_actors.config.schema import EmbeddingConfig
from signet_actors.errors import ConfigError
from signet_actors.providers import embedded
from signet_actors.providers.embedded import DIMENSIONS, MAX_TEXT_CHARS, MODEL, EmbeddedEmbedder
from signet_actors.providers.embedding import Vectors
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


def mapped_weights_bytes() -> int:
    """How much of the model's files counts as this process's memory."""
    found, of_weights = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, _, value = line.partition(":")
        if " " in name:
            of_weights = line.endswith(".safetensors")
        elif of_weights and name == "Rss":
            found += int(value.split()[0]) * 1024
    return found


def test_vectors_are_unit_float32_of_the_models_width(embedder: EmbeddedEmbedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), DIMENSIONS)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


def test_a_query_is_embedded_like_a_text(embedder: EmbeddedEmbedder) -> None:
    assert np.array_equal(embedder.embed_query(TEXTS[0]), embedder.embed(TEXTS[:1])[0])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what is mapped")
def test_a_text_has_the_same_vector_after_the_weights_were_released() -> None:
    embedder = EmbeddedEmbedder()
    before = embedder.embed_query("the lighthouse keeper writes a letter")
    resting = mapped_weights_bytes()
    assert resting > 0
    embedder.release_memory()
    assert mapped_weights_bytes() < resting
    assert np.array_equal(EmbeddedEmbedder().embed_query("the lighthouse keeper writes a letter"), before)
    assert np.array_equal(embedder.embed_query("the lighthouse keeper writes a letter"), before)
    assert embedder.embed_query("words that were never looked up before").any()


def test_related_texts_are_nearer_than_unrelated_ones(embedder: EmbeddedEmbedder) -> None:
    anchor, near, far = embedder.embed(
        ["The user likes dark mode", "dark theme is preferred", "the invoice is due in March"]
    )
    assert float(anchor @ near) > float(anchor @ far)


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_a_text_without_tokens_is_not_embeddable(embedder: EmbeddedEmbedder, text: str) -> None:
    assert not embedder.embed_query(text).any()
    assert not embedder.embed(["x", text])[1].any()


def test_an_empty_list_gives_no_rows(embedder: EmbeddedEmbedder) -> None:
    assert embedder.embed([]).shape == (0, DIMENSIONS)


def test_a_very_long_text_is_truncated_before_embedding(embedder: EmbeddedEmbedder) -> None:
    long = "word " * MAX_TEXT_CHARS
    assert np.array_equal(embedder.embed_query(long), embedder.embed_query(long[:MAX_TEXT_CHARS]))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """The model's own, used on whole texts."""
    return Tokenizer.from_file(str(EMBEDDED_FOLDER / embedded.TOKENIZER))


def mean_of_tokens(embedder: EmbeddedEmbedder, tokenizer: Tokenizer, text: str) -> Vectors:
    """The definition of a text's vector, in double precision."""
    ids = tokenizer.encode(text[:MAX_TEXT_CHARS], add_special_tokens=False).ids
    total = embedder.table.view(np.float16)[ids].astype(np.float64).sum(axis=0)
    return np.asarray(total / np.linalg.norm(total), dtype=np.float32)


PIECES = [
    "a",
    "Deploy",
    "deploy.",
    "caf\u00e9",
    "\u6570\u636e\u5e93",
    "\U0001f642",
    "KA-6",
    "src/app.py:42",
    "x" * 70,
    "\u2581",
    "<s>",
]
ODDITIES = ["</s>", "<unk>", "foo<s>bar", "\u00a0", "\t", "\n", "", "``", "0", "\u0130", "w" * 64, "w" * 65]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(PIECES) | st.sampled_from(ODDITIES) | st.text(max_size=12), min_size=1, max_size=20),
    st.sampled_from([" ", "  ", ""]),
)
def test_a_text_has_the_vector_of_its_tokens_with_and_without_the_cache(
    embedder: EmbeddedEmbedder, tokenizer: Tokenizer, pieces: list[str], between: str
) -> None:
    text = between.join(pieces)
    if not text.strip():
        return
    found = embedder.embed_query(text)
    assert np.allclose(found, mean_of_tokens(embedder, tokenizer, text), atol=1e-6)
    assert np.array_equal(found, embedder.embed_query(text))


def numbered(first: int, words: int = 8) -> str:
    return " ".join(f"word{number}" for number in range(first, first + words))


def test_the_word_cache_is_bounded_and_does_not_change_vectors(
    embedder: EmbeddedEmbedder,
) -> None:
    forgetful = EmbeddedEmbedder(max_words=32)
    for first in (*range(100), *range(0, 100, 7)):
        assert np.array_equal(forgetful.embed_query(numbered(first)), embedder.embed_query(numbered(first)))
        assert len(forgetful.known_words.rows) <= 32


def test_frequently_used_words_stay_longer_in_the_cache() -> None:
    embedder = EmbeddedEmbedder(max_words=32)
    for number in range(100):
        embedder.embed_query(f"the cat word{number}")
    assert {"the", "cat"} <= set(embedder.known_words.rows)


def test_concurrent_threads_get_the_same_vectors_as_one(
    embedder: EmbeddedEmbedder,
) -> None:
    shared = EmbeddedEmbedder(max_words=256)
    texts = [numbered(first) for first in range(400)]
    expected = embedder.embed(texts)

    def work(order: Sequence[int]) -> bool:
        return all(np.array_equal(shared.embed_query(texts[at]), expected[at]) for at in order)

    with ThreadPoolExecutor(4) as threads:
        orders = [range(400), range(399, -1, -1), [*range(0, 400, 2), *range(1, 400, 2)], range(400)]
        assert all(threads.map(work, orders))


def test_the_longest_text_of_short_words_fits_into_the_cache(embedder: EmbeddedEmbedder, tokenizer: Tokenizer) -> None:
    for shift in (0, 8192):
        text = " ".join(chr(0x4E00 + (shift + number) % 20_000) for number in range(MAX_TEXT_CHARS // 2))
        # Thirty thousand tokens add up to more rounding than thirty.
        assert np.allclose(embedder.embed_query(text), mean_of_tokens(embedder, tokenizer, text), atol=1e-5)


def test_weights_with_fewer_words_than_the_tokenizer_are_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / embedded.TOKENIZER).write_bytes((EMBEDDED_FOLDER / embedded.TOKENIZER).read_bytes())
    shape = [10, DIMENSIONS]
    tensor = {"dtype": "F16", "shape": shape, "data_offsets": [0, 2 * 10 * DIMENSIONS]}
    header = json.dumps({EMBEDDED_TENSOR: tensor}).encode()
    (tmp_path / EMBEDDED_WEIGHTS).write_bytes(struct.pack("<Q", len(header)) + header + bytes(2 * 10 * DIMENSIONS))
    with pytest.raises(ConfigError, match="tokenizer and weights do not match"):
        EmbeddedEmbedder(tmp_path)


VECTORS_OF_WORDLLAMA = {
    "User prefers vim keybindings": [0.0693279, -0.0260510, 0.0342843, 0.0566758, 0.1153792, 0.0046216],
    "café naïve Straße": [-0.0693193, 0.0356667, 0.0588022, -0.1052229, -0.0473574, -0.0522655],
    "数据库使用PostgreSQL": [-0.1070707, 0.0653110, -0.0295152, -0.0459281, 0.0180304, -0.0070196],
    "KA-6 pre-compaction hook: src/app.py:42": [-0.0572498, 0.0565857, -0.0569930, -0.0452574, 0.0370062, 0.0744865],
    "🙂": [0.1256763, 0.0897160, -0.0535059, 0.1037144, -0.0464715, -0.0043617],
    "a": [0.0090874, 0.0115483, -0.0502664, 0.0373989, -0.0111780, 0.0675773],
}
"""The first numbers of what the package wordllama 0.4.0.post1 returns."""


@pytest.mark.parametrize("text", TEXTS)
def test_the_vectors_equal_those_of_the_package(embedder: EmbeddedEmbedder, text: str) -> None:
    expected = VECTORS_OF_WORDLLAMA[text]
    assert np.allclose(embedder.embed_query(text)[: len(expected)], expected, atol=1e-6)


@pytest.mark.parametrize("vocabulary", ["", "{}", "[1", '{"a": "b"}', '{"a": 1}'])
def test_a_damaged_tokenizer_is_a_configuration_error(tmp_path: Path, vocabulary: str) -> None:
    (tmp_path / EMBEDDED_WEIGHTS).symlink_to(EMBEDDED_FOLDER / EMBEDDED_WEIGHTS)
    (tmp_path / embedded.TOKENIZER).write_text(f'{{"model": {{"vocab": {vocabulary}}}}}')
    with pytest.raises(ConfigError, match="tokenizer cannot be read"):
        EmbeddedEmbedder(tmp_path)


def test_loading_changes_no_logging_and_uses_no_network() -> None:
    script = """
import logging, sys
from signet_actors.providers.embedded import EmbeddedEmbedder
EmbeddedEmbedder().embed_query("x")
assert logging.getLogger().handlers == []
assert not {"tokenizers", "requests", "urllib3", "http.client"} & set(sys.modules), sorted(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_missing_weights_are_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="weights cannot be read"):
        EmbeddedEmbedder(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff" * 8, (2).to_bytes(8, "little") + b"{}", (9).to_bytes(8, "little") + b"not json!"],
)
def test_damaged_weights_are_a_configuration_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / EMBEDDED_WEIGHTS).write_bytes(content)
    with pytest.raises(ConfigError, match="weights cannot be read"):
        EmbeddedEmbedder(tmp_path)


@pytest.mark.parametrize("provider", ["auto", "embedded"])
@pytest.mark.parametrize("model", ["wordllama", MODEL])
def test_auto_selects_the_embedded_model(provider: str, model: str) -> None:
    made = make_embedder(EmbeddingConfig(provider=provider, model=model))  # type: ignore[arg-type]
    assert made is not None
    assert (made.provider, made.model, made.dimensions, made.local, made.endpoint) == (
        "embedded",
        MODEL,
        DIMENSIONS,
        True,
        None,
    )


def test_none_selects_no_embedder() -> None:
    assert make_embedder(EmbeddingConfig(provider="none")) is None


@pytest.mark.parametrize(
    "config",
    [
        EmbeddingConfig(provider="ollama", dimensions=256),
        EmbeddingConfig(provider="openai"),
        EmbeddingConfig(model="nomic-embed-text"),
        EmbeddingConfig(dimensions=768),
    ],
)
def test_an_unsupported_provider_is_refused(config: EmbeddingConfig) -> None:
    with pytest.raises(ConfigError):
        make_embedder(config)
