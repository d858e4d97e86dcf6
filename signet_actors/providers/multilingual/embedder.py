"""The encoder multilingual-e5-small: vectors of texts in a hundred languages, without the network.

It was trained with a word before each text that tells a question from a text. All of its vectors point in nearly one
direction; so their mean is subtracted, and what remains is scaled to length 1. More: providers/DESIGN.md
"The multilingual model".

Source: docs/decisions.md 57; docs/quality.md rule 10; Wang et al. (2024), "Multilingual E5 Text Embeddings"; Mu and
Viswanath (2018), "All-but-the-Top".
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Final

import numpy as np

from signet_actors.config.embedding_models import MULTILINGUAL_FILE, MULTILINGUAL_SHA256, known_model
from signet_actors.config.schema import MULTILINGUAL_MODEL
from signet_actors.errors import ConfigError
from signet_actors.providers.embedding import Vectors, unit
from signet_actors.providers.minilm.encoder import MAX_TOKENS, Encoder, check_hash, runtime_for
from signet_actors.providers.multilingual.packed_file import read, widened
from signet_actors.providers.multilingual.unigram import Unigram

MEAN: Final = Path(__file__).with_name("mean.npy")
"""float32, shape (384,): the mean vector of texts in many languages (``python -m bench.mean_vector``)."""
MAX_TEXT_CHARS: Final = 2048
"""Only this much of a text is split into pieces, which in prose is twice as much as the model reads."""


class MultilingualEmbedder(Encoder):
    """Questions are embedded otherwise than texts; there are no token codes."""

    provider = "multilingual"
    model = MULTILINGUAL_MODEL
    cost = 2

    def __init__(self, weights: Path = MULTILINGUAL_FILE) -> None:
        """Load the model (half a second). Raises ``ConfigError``."""
        runtime = runtime_for(self.provider)
        try:
            with weights.open("rb") as file:
                check_hash(file, MULTILINGUAL_SHA256)
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            found = read(memoryview(mapped))
            self._words, self._positions = found.words, found.positions
            self.load(runtime, found.network)
            self._unigram = Unigram(found.pieces, MAX_TOKENS)
            mapped.madvise(mmap.MADV_DONTNEED)
            self.mean: Vectors = np.load(MEAN, allow_pickle=False)
        except FileNotFoundError as error:
            raise ConfigError(
                f"embedding.provider multilingual needs {weights}, which is not there: `signet setup` downloads it"
            ) from error
        except (OSError, ValueError, KeyError, struct.error) as error:
            raise ConfigError(f"the model {self.model} cannot be loaded: {error}") from error
        known = known_model("multilingual-e5-small")
        assert known is not None
        self._text_prefix, self._query_prefix = known.document_prefix, known.query_prefix

    def embed_text(self, text: str) -> Vectors:
        return self._embed(self._text_prefix, text)

    def embed_query(self, text: str) -> Vectors:
        return self._embed(self._query_prefix, text)

    def _embed(self, prefix: str, text: str) -> Vectors:
        if not text.strip():
            return np.zeros(self.dimensions, dtype=np.float32)
        numbers = self._unigram.numbers(prefix + text[:MAX_TEXT_CHARS])
        rows = widened(self._words[numbers])
        rows += self._positions[: len(numbers)]
        total: Vectors = np.add.reduce(self.states(rows), axis=0)
        return unit(unit(total) - self.mean)
