"""Codes of a text's tokens from the states that MiniLM computes for its vector.

A state is projected to 64 of 384 dimensions by a fixed random rotation, which keeps angles, and scaled to length 1. A
stored code is ``round(127 * x)`` as int8; the query's tokens stay float32. The text embedded last is remembered, since
vector and codes come from one pass.

Source: docs/quality.md "Token similarity"; Johnson and Lindenstrauss (1984), random projections.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from signet_actors.config.embedding_models import MAX_TOKEN_CODES, MINILM_CODE_DIMENSIONS
from signet_actors.domain.normalization import collapsed
from signet_actors.providers.minilm.word_pieces import Token
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
    """The codes of the text embedded last; those of others are computed. For one thread at a time."""

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
        for token, unit in zip(tokens.tokens, tokens.units, strict=True):
            begin = max(text.rfind(blank, 0, token.begin + 1) for blank in _BLANKS) + 1
            found.setdefault(begin, []).append(unit.tobytes())
        return [(text[begin:].split(maxsplit=1)[0], b"".join(units)) for begin, units in found.items()]

    def _tokens(self, text: str) -> _Tokens:
        if text != self._text:
            self.forget()
            self._compute(text)
        return self._tokens_of_text
