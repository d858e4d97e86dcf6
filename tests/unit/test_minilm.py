"""MiniLM returns the vectors of the original model, from pinned files, without the network."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from signet_actors.config.embedding_models import configured_space
from signet_actors.config.schema import MINILM_DIMENSIONS, MINILM_MODEL, EmbeddingConfig
from signet_actors.errors import ConfigError, ProviderError
from signet_actors.providers.minilm import embedder as minilm
from signet_actors.providers.minilm import encoder
from signet_actors.providers.minilm.embedder import MAX_TEXT_CHARS, MAX_TOKENS, ROTATION, MiniLmEmbedder
from signet_actors.providers.minilm.onnx_tensors import tensors
from signet_actors.providers.select import make_embedder
from tests.support.minilm import HAS_RUNTIME, WHY_NOT

pytestmark = pytest.mark.skipif(not HAS_RUNTIME, reason=WHY_NOT)

ORIGINAL = json.loads(Path(__file__).with_name("fixtures").joinpath("minilm_fp32.json").read_text(encoding="utf-8"))
"""Vectors of all-MiniLM-L6-v2 with its own float32 weights, computed with numpy from the definition of BERT."""
TEXTS = list(ORIGINAL)
CLS, SEP = "[CLS]", "[SEP]"


@pytest.fixture(scope="module")
def embedder() -> MiniLmEmbedder:
    return MiniLmEmbedder()


def test_the_vectors_are_nearly_those_of_the_original_model(embedder: MiniLmEmbedder) -> None:
    alike = np.einsum("ij,ij->i", embedder.embed(TEXTS), np.array(list(ORIGINAL.values()), np.float32))
    assert alike.min() > 0.98, dict(zip(TEXTS, alike, strict=True))


def test_vectors_are_unit_float32_of_the_models_width(embedder: MiniLmEmbedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert (vectors.shape, vectors.dtype) == ((len(TEXTS), MINILM_DIMENSIONS), np.float32)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


def test_related_texts_are_nearer_than_unrelated_ones(embedder: MiniLmEmbedder) -> None:
    anchor, near, far = embedder.embed(
        ["The user likes dark mode", "dark theme is preferred", "the invoice is due in March"]
    )
    assert float(anchor @ near) > 0.5 > float(anchor @ far)


def test_the_vector_of_a_text_does_not_depend_on_the_texts_beside_it(embedder: MiniLmEmbedder) -> None:
    for text, vector in zip(TEXTS, embedder.embed(TEXTS), strict=True):
        assert np.array_equal(vector, embedder.embed_query(text))
        assert np.array_equal(vector, embedder.embed(["something else", text])[1])


def test_concurrent_threads_get_the_same_vectors_as_one(embedder: MiniLmEmbedder) -> None:
    expected = embedder.embed(TEXTS)
    with ThreadPoolExecutor(4) as threads:
        assert all(np.array_equal(found, expected) for found in threads.map(embedder.embed, [TEXTS] * 8))


def test_unsigned_weights_give_the_same_vectors(embedder: MiniLmEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    overflow = encoder._sums_overflow()
    monkeypatch.setattr(encoder, "_sums_overflow", lambda: True)
    unsigned = MiniLmEmbedder()
    monkeypatch.setattr(encoder, "_sums_overflow", lambda: False)
    signed = MiniLmEmbedder()
    alike = np.einsum("ij,ij->i", unsigned.embed(TEXTS), signed.embed(TEXTS))
    assert alike.min() > (0.97 if overflow else 0.9999)


def test_the_vector_is_the_mean_of_the_token_states(embedder: MiniLmEmbedder) -> None:
    for text in TEXTS:
        tokens, states = embedder.token_states(text)
        assert states.shape == (len(tokens), MINILM_DIMENSIONS)
        assert (tokens[0].piece, tokens[-1].piece) == (CLS, SEP)
        mean = states.mean(axis=0)
        assert np.allclose(mean / np.linalg.norm(mean), embedder.embed_query(text), atol=1e-6)


def test_the_names_of_special_tokens_in_a_text_are_plain_text(embedder: MiniLmEmbedder) -> None:
    pieces = [token.piece for token in embedder.token_states("why is [SEP] here, and [CLS]?")[0]]
    assert (pieces.count(CLS), pieces.count(SEP)) == (1, 1)


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_a_text_without_words_is_not_embeddable(embedder: MiniLmEmbedder, text: str) -> None:
    assert not embedder.embed_query(text).any()
    assert not embedder.embed(["x", text])[1].any()


def test_an_empty_list_gives_no_rows(embedder: MiniLmEmbedder) -> None:
    assert embedder.embed([]).shape == (0, MINILM_DIMENSIONS)


def test_only_the_beginning_of_a_long_text_counts(embedder: MiniLmEmbedder) -> None:
    tokens, _ = embedder.token_states("word " * MAX_TEXT_CHARS)
    assert len(tokens) == MAX_TOKENS
    beginning = "word " * MAX_TOKENS
    assert np.array_equal(embedder.embed_query(beginning + "secret " * 9), embedder.embed_query(beginning))


def test_the_provider_minilm_is_this_model_and_stored_under_its_name() -> None:
    config = EmbeddingConfig(provider="minilm")
    made = make_embedder(config)
    assert made is not None
    assert (made.provider, made.model, made.dimensions, made.local, made.endpoint) == (
        "minilm",
        MINILM_MODEL,
        MINILM_DIMENSIONS,
        False,
        None,
    )
    assert configured_space(config) == (made.model, made.dimensions), "else all is embedded anew for ever"


def test_weights_with_another_hash_are_a_configuration_error(tmp_path: Path) -> None:
    content = bytearray(minilm.WEIGHTS.read_bytes())
    content[len(content) // 2] ^= 1
    changed = tmp_path / "model.onnx"
    changed.write_bytes(content)
    with pytest.raises(ConfigError, match=r"model.onnx has another hash"):
        MiniLmEmbedder(changed)


def test_missing_weights_are_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be loaded"):
        MiniLmEmbedder(tmp_path / "model.onnx")


def test_without_the_runtime_the_error_names_another_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ConfigError, match=r"needs onnxruntime, .* for this platform; choose embedded"):
        make_embedder(EmbeddingConfig(provider="minilm"))


def test_loading_changes_no_logging_and_uses_no_network() -> None:
    script = """
import logging, sys
def refuse(event, arguments):
    assert not event.startswith("socket."), (event, arguments)
sys.addaudithook(refuse)
from signet_actors.providers.minilm.embedder import MiniLmEmbedder
assert MiniLmEmbedder().embed_query("x").any()
assert logging.getLogger().handlers == []
assert not {"tokenizers", "requests", "urllib3", "http.client", "onnx"} & set(sys.modules), sorted(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (done.stdout, done.stderr) == ("", "")


def test_the_telemetry_of_the_runtime_is_off(tmp_path: Path) -> None:
    """docs/decisions.md 27. Its sender is native code, which no audit hook sees, but it first stores a device id."""
    script = "from signet_actors.providers.minilm.embedder import MiniLmEmbedder; MiniLmEmbedder()"
    environment = {"HOME": str(tmp_path), "PATH": "", "ORT_DISABLE_TELEMETRY": "0"}
    subprocess.run([sys.executable, "-c", script], env=environment, cwd=Path(__file__).parents[2], check=True)
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 8, b"\x3a\x05\x2a\x03\x08\x01", b"\x3a\x7f", b"\x3c", b"\x3a\x00" * 2]
)
def test_other_bytes_are_no_tensors(content: bytes) -> None:
    with pytest.raises(ValueError, match="not an ONNX model"):
        tensors(memoryview(content))


def test_this_platform_has_the_runtime_that_the_lock_installs() -> None:
    lock = Path(__file__).parents[2].joinpath("requirements.lock").read_text(encoding="utf-8")
    (line,) = [line for line in lock.splitlines() if line.startswith("onnxruntime==")]
    assert f"platform_machine == '{platform.machine()}' and sys_platform == '{sys.platform}'" in line


def units(codes: bytes) -> np.ndarray:
    return np.frombuffer(codes, np.int8).reshape(-1, 64) / 127


def test_a_text_is_stored_with_the_projected_states_of_its_telling_tokens(embedder: MiniLmEmbedder) -> None:
    text = "The doctor saw the dog!"
    tokens, states = embedder.token_states(text)
    telling = [at for at, token in enumerate(tokens) if token.piece in {"doctor", "saw", "dog"}]
    assert len(telling) == 3
    expected = states[telling] @ np.load(ROTATION)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.abs(units(embedder.token_codes.of_text(text)) - expected).max() <= 0.5 / 127 + 1e-6


def test_the_rotation_keeps_angles_of_states_roughly(embedder: MiniLmEmbedder) -> None:
    rotation = np.load(ROTATION)
    assert np.allclose(rotation.T @ rotation, np.eye(64), atol=1e-5)
    states = np.concatenate([embedder.token_states(text)[1] for text in TEXTS])
    full, projected = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (states, states @ rotation))
    assert np.abs(full @ full.T - projected @ projected.T).mean() < 0.15


def test_layout_makes_no_difference_to_the_codes(embedder: MiniLmEmbedder) -> None:
    assert embedder.token_codes.of_text("red fox\n\n  den") == embedder.token_codes.of_text("red fox den")


def test_the_words_of_a_query_come_with_their_tokens(embedder: MiniLmEmbedder) -> None:
    words = embedder.token_codes.of_query("What  did the doctor's dog eat?")
    assert [word for word, _ in words] == ["doctor's", "dog", "eat?"]
    assert all(len(numbers) == 256 for _, numbers in words)
    (dog,) = (np.frombuffer(numbers, np.float32) for word, numbers in words if word == "dog")
    stored = units(embedder.token_codes.of_text("What  did the doctor's dog eat?"))
    assert (stored @ dog).max() > 0.99


@pytest.mark.parametrize("text", ["", "  \n"])
def test_a_text_without_words_has_no_codes(embedder: MiniLmEmbedder, text: str) -> None:
    assert embedder.token_codes.of_text(text) == b""
    assert embedder.token_codes.of_query(text) == []


def test_the_codes_of_a_text_are_the_same_whether_remembered_or_not(embedder: MiniLmEmbedder) -> None:
    first = embedder.token_codes.of_text("the kettle boils")
    embedder.embed([f"another text {number}" for number in range(200)])
    assert embedder.token_codes.of_text("the kettle boils") == first


def test_an_error_of_the_runtime_is_a_providers_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class RuntimeFailed(Exception):
        """The errors of onnxruntime have no other class in common."""

    class Session:
        def run(self, *_: object) -> None:
            raise RuntimeFailed("shape of a text")

    failing = MiniLmEmbedder()
    monkeypatch.setattr(failing, "_session", Session())
    with pytest.raises(ProviderError, match="RuntimeFailed") as caught:
        failing.embed_query("some text")
    assert "shape" not in str(caught.value)
