"""The encoder MiniLM: tokens, states and vectors of a text; about a millisecond for a query, no network.

Weights and vocabulary are checked by hash; ``third_party/minilm/NOTICE.txt`` names their sources and licences. More:
providers/DESIGN.md "MiniLM".

Source: docs/decisions.md 27 and 57; docs/quality.md rule 10; Reimers and Gurevych 2019, Sentence-BERT.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from signet_actors.config.embedding_models import MAX_TOKEN_CODES, MINILM_CODE_DIMENSIONS, MINILM_FOLDER
from signet_actors.config.schema import MINILM_MODEL
from signet_actors.domain.normalization import collapsed
from signet_actors.errors import ConfigError
from signet_actors.providers.embedding import Vectors, unit
from signet_actors.providers.minilm.encoder import MAX_TOKENS, Encoder, check_hash, runtime_for
from signet_actors.providers.minilm.graph import embeddings, minilm
from signet_actors.providers.minilm.onnx_tensors import tensors
from signet_actors.providers.minilm.word_pieces import Token, WordPieces
from signet_actors.providers.token_codes import is_telling

ROTATION: Final = Path(__file__).with_name("rotation.npy")
"""float32, shape (384, 64), orthonormal columns: the first 64 of a matrix of normal numbers, orthogonalised."""

Floats = npt.NDArray[np.float32]


class _Tokens(NamedTuple):
    tokens: list[Token]
    units: Floats


_BLANKS: Final = " \t\n\r\v\f"
_NO_TOKENS: Final = _Tokens([], np.zeros((0, MINILM_CODE_DIMENSIONS), np.float32))


class StateCodes:
    """The codes of the text embedded last, since vector and codes come from one pass; those of others are computed.

    A state is projected to 64 of 384 dimensions by a fixed random rotation, which keeps angles, and scaled to length 1.
    A stored code is ``round(127 * x)`` as int8; the query's tokens stay float32. For one thread at a time.

    Source: docs/quality.md "Token similarity"; Johnson and Lindenstrauss (1984), random projections.
    """

    def __init__(self, compute: Callable[[str], object]) -> None:
        """``compute`` embeds a text and calls ``remember``."""
        self._compute = compute
        self._rotation: Floats = np.load(ROTATION, allow_pickle=False)
        self._text = ""
        self._tokens_of_text = _NO_TOKENS

    def remember(self, text: str, tokens: Sequence[Token], states: Floats) -> None:
        """Keep the first ``MAX_TOKEN_CODES`` telling tokens of an embedded text, or the first of all if none tells.

        ``states``: shape (len(tokens), 384).
        """
        kept = [at for at, token in enumerate(tokens) if is_telling(token.piece)] or list(range(len(tokens)))
        kept = kept[:MAX_TOKEN_CODES]
        units = states[kept] @ self._rotation
        units /= np.maximum(np.linalg.norm(units, axis=1, keepdims=True), 1e-9)
        self._text, self._tokens_of_text = text, _Tokens([tokens[at] for at in kept], units)

    def forget(self) -> None:
        self._text, self._tokens_of_text = "", _NO_TOKENS

    def of_text(self, text: str) -> bytes:
        """Return the codes of the tokens, 64 bytes each."""
        return np.round(127 * self._tokens(collapsed(text)).units).astype(np.int8).tobytes()

    def of_query(self, text: str) -> list[tuple[str, bytes]]:
        """Return each word with the float32 numbers of its tokens, 256 bytes each."""
        found: dict[int, list[bytes]] = {}
        tokens = self._tokens(text)
        for token, vector in zip(tokens.tokens, tokens.units, strict=True):
            begin = max(text.rfind(blank, 0, token.begin + 1) for blank in _BLANKS) + 1
            found.setdefault(begin, []).append(vector.tobytes())
        return [(text[begin:].split(maxsplit=1)[0], b"".join(units)) for begin, units in found.items()]

    def _tokens(self, text: str) -> _Tokens:
        if text != self._text:
            self.forget()
            self._compute(text)
        return self._tokens_of_text


WEIGHTS: Final = MINILM_FOLDER / "model.onnx"
WEIGHTS_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY: Final = MINILM_FOLDER / "vocab.txt"
VOCABULARY_SHA256: Final = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
MAX_TEXT_CHARS: Final = 4096
"""Only this much of a text is split into tokens, which in prose is three times as much as the model reads."""


class MiniLmEmbedder(Encoder):
    """Questions and texts are embedded alike; a text's token codes come from the same pass."""

    provider = "minilm"
    model = MINILM_MODEL
    token_codes: StateCodes

    def __init__(self, weights: Path = WEIGHTS) -> None:
        """Load the model (a fifth of a second). Raises ``ConfigError``."""
        runtime = runtime_for(self.provider)
        try:
            with weights.open("rb") as file:
                check_hash(file, WEIGHTS_SHA256)
                # Mapped, not read: the table of words stays in the page cache and is shared by all processes.
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            with VOCABULARY.open("rb") as file:
                check_hash(file, VOCABULARY_SHA256)
                file.seek(0)
                self._word_pieces = WordPieces(file.read().decode(), MAX_TOKENS)
            found = tensors(memoryview(mapped))
            self._embeddings = embeddings(found, MAX_TOKENS)
            self.load(runtime, minilm(found))
            mapped.madvise(mmap.MADV_DONTNEED)  # the runtime has packed the matrices
        except (OSError, ValueError, KeyError) as error:
            raise ConfigError(f"the model {MINILM_MODEL} cannot be loaded: {error}") from error
        self.token_codes = StateCodes(self.embed_query)

    def embed_text(self, text: str) -> Vectors:
        if not text.strip():
            return np.zeros(self.dimensions, dtype=np.float32)
        tokens, states = self.token_states(text)
        self.token_codes.remember(text, tokens, states)
        total: Vectors = np.add.reduce(states, axis=0)
        return unit(total)  # the sum has the same direction as the mean

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
        return tokens, self.states(rows)
