"""The encoder MiniLM: tokens, states and vectors of a text; about a millisecond for a query, no network.

Weights and vocabulary are checked by hash; ``third_party/minilm/NOTICE.txt`` names their sources and licences. More:
providers/DESIGN.md "MiniLM".

Source: docs/decisions.md 27 and 57; docs/quality.md rule 10; Reimers and Gurevych 2019, Sentence-BERT.
"""

from __future__ import annotations

import hashlib
import math
import mmap
import platform
import threading
from collections.abc import Sequence
from io import BufferedReader
from pathlib import Path
from typing import Any, Final

import numpy as np

from signet_actors.config.embedding_models import MINILM_FOLDER
from signet_actors.config.schema import MINILM_DIMENSIONS, MINILM_MODEL
from signet_actors.errors import ConfigError, ProviderError, ProviderErrorKind
from signet_actors.providers.embedding import Vectors, import_without_telemetry
from signet_actors.providers.minilm.graph import EMBEDDED, STATES, Model, build, embeddings
from signet_actors.providers.minilm.onnx_tensors import tensors
from signet_actors.providers.minilm.state_codes import StateCodes
from signet_actors.providers.minilm.word_pieces import Token, WordPieces

WEIGHTS: Final = MINILM_FOLDER / "model.onnx"
WEIGHTS_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY: Final = MINILM_FOLDER / "vocab.txt"
VOCABULARY_SHA256: Final = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
MAX_TOKENS: Final = 256
"""The model was trained with at most so many; the rest of a longer text does not count."""
MAX_TEXT_CHARS: Final = 4096
"""Only this much of a text is split into tokens, which in prose is three times as much as the model reads."""
_ERRORS_ONLY: Final = 3


class MiniLmEmbedder:
    """Embeds a text as the L2-normalised mean of its tokens' last states; deterministic, one thread a call.

    Calls of several threads wait for each other.
    """

    provider: Final = "minilm"
    model: Final = MINILM_MODEL
    dimensions: Final = MINILM_DIMENSIONS
    local: Final = False
    endpoint: Final = None

    def __init__(self, weights: Path = WEIGHTS) -> None:
        """Load the model (a fifth of a second).

        Raises ``ConfigError`` if onnxruntime or the file is missing, or a hash is wrong.
        """
        runtime = _runtime()
        try:
            with weights.open("rb") as file:
                _check(file, WEIGHTS_SHA256)
                # Mapped, not read: the table of words stays in the page cache and is shared by all processes.
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            with VOCABULARY.open("rb") as file:
                _check(file, VOCABULARY_SHA256)
                file.seek(0)
                self._word_pieces = WordPieces(file.read().decode(), MAX_TOKENS)
            found = tensors(memoryview(mapped))
            self._embeddings = embeddings(found, MAX_TOKENS)
            model = build(found, unsigned=_sums_overflow())
            self._outside = model.outside  # the session may refer to these numbers
            self._session = _session(runtime, model)
            mapped.madvise(mmap.MADV_DONTNEED)  # the runtime has packed the matrices
        except (OSError, ValueError, KeyError) as error:
            raise ConfigError(f"the model {MINILM_MODEL} cannot be loaded: {error}") from error
        self._lock = threading.Lock()
        self.token_codes = StateCodes(self.embed_query)

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), MINILM_DIMENSIONS), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self.embed_query(text)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        zero: Vectors = np.zeros(MINILM_DIMENSIONS, dtype=np.float32)
        if not text.strip():
            return zero
        tokens, states = self.token_states(text)
        self.token_codes.remember(text, tokens, states)
        total: Vectors = np.add.reduce(states, axis=0)
        # The sum has the same direction as the mean.
        norm = math.sqrt(float(total.dot(total)))
        if not math.isfinite(norm) or norm < 1e-12:
            return zero
        total /= np.float32(norm)
        return total

    def token_states(self, text: str) -> tuple[list[Token], Vectors]:
        """Return the text's word pieces, with [CLS] and [SEP], and the last state of each.

        Shape (tokens, 384). The vector of a text is the mean of these states.
        """
        tokens = self._word_pieces.tokens(text[:MAX_TEXT_CHARS])
        ids = [self._word_pieces.numbers[token.piece] for token in tokens]
        words, scales, positions = self._embeddings
        rows = words.take(ids, axis=0).astype(np.float32)
        rows *= scales.take(ids, axis=0)
        rows += positions[: len(ids)]
        with self._lock:
            try:
                (states,) = self._session.run((STATES,), {EMBEDDED: rows[np.newaxis]})
            except Exception as error:  # noqa: BLE001 - the runtime's errors have no other class in common
                raise ProviderError(ProviderErrorKind.UNAVAILABLE, f"onnxruntime: {type(error).__name__}") from None
        return tokens, states[0]


def _runtime() -> Any:
    try:
        return import_without_telemetry("onnxruntime")
    except ImportError as error:
        raise ConfigError(
            "embedding.provider minilm needs onnxruntime, which is not installed or does not exist for this platform; "
            "choose embedded"
        ) from error


def _sums_overflow() -> bool:
    """Return whether sums of products with int8 weights may overflow: on x86 processors without VNNI instructions.

    Source: onnxruntime, "Quantize ONNX models", "When to use U8U8".
    """
    if platform.machine() not in {"x86_64", "AMD64"}:
        return False
    try:
        return "vnni" not in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return True


def _check(file: BufferedReader, digest: str) -> None:
    """Raise ``ValueError`` unless the file has this SHA-256."""
    if hashlib.file_digest(file, "sha256").hexdigest() != digest:
        raise ValueError(f"{Path(file.name).name} has another hash than this release expects")


def _session(runtime: Any, model: Model) -> Any:
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    # Without an arena, the memory of a long text is returned at once.
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    values = [runtime.OrtValue.ortvalue_from_numpy(numbers) for numbers in model.outside.values()]
    options.add_external_initializers(list(model.outside), values)
    try:
        return runtime.InferenceSession(model.content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime's errors have no other class in common
        raise ConfigError(f"the model {MINILM_MODEL} cannot be loaded: onnxruntime: {type(error).__name__}") from error
