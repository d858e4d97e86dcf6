"""The embedded model: static word-piece embeddings that ship inside the wordllama wheel.

The two files of the wheel are read directly: the weights are mapped read-only as float16, so that they live once in
the page cache instead of once more on the heap, and only a text's own rows are widened to float32, by a table of all
65,536 values, because numpy's own conversion takes twice as long. The package itself is never imported: importing it
pulls in ``requests`` and replaces the root logger's set-up, and its loader can download, which nothing here ever may.
The vectors equal the package's own (a test compares them).

Source: decisions.md 22 and 27; quality.md rule 10.
"""

from __future__ import annotations

import importlib.util
import json
import math
import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from tokenizers import Tokenizer

from signet_actors.errors import ConfigError
from signet_actors.providers.embedding import Vectors

MODEL: Final = "wordllama-l2-supercat-256"
FAMILY: Final = "wordllama"
"""The name that the configuration gives it; rows in the store bear ``MODEL``, which names the exact weights."""
DIMENSIONS: Final = 256
MAX_TEXT_CHARS: Final = 16_384
"""Longer texts are embedded by their beginning: a mean over more tokens says no more, and costs no bound."""

_WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
_TOKENIZER = Path("tokenizers", "l2_supercat_tokenizer_config.json")
_TENSOR = "embedding.weight"
_MAX_HEADER_BYTES = 1 << 20
_ODD_BLANKS = re.compile(r"^ | $|  |[^\S ]|\u2581")
"""Blanks that stand at an end, side by side, or are none of ours: such a text is tokenized whole."""
_MAX_WORDS = 30_000
_MAX_WORD_CHARS = 40

_WIDENED: Final = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
"""float32 by the bits of a float16."""


class EmbeddedEmbedder:
    """Mean of the token vectors, L2-normalised; deterministic, no network, safe to call from any thread."""

    provider: Final = "embedded"
    model: Final = MODEL
    dimensions: Final = DIMENSIONS
    local: Final = True
    endpoint: Final = None

    def __init__(self, package: Path | None = None) -> None:
        """Map the weights below ``package`` (default: where wordllama is installed).

        Raises ``ConfigError`` when the files are missing or not what this release expects.
        """
        folder = package or _package_folder()
        self._table = np.asarray(_map_weights(folder / _WEIGHTS)).view(np.uint16)
        try:
            # from_str, not from_file: a missing file must be an OSError, not the library's bare Exception.
            self._tokenizer = Tokenizer.from_str((folder / _TOKENIZER).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"the embedded model's tokenizer cannot be read: {error}") from error
        # Without a pre-tokenizer the cache would keep whole texts: memory for nothing, and memories' contents at that.
        self._tokenizer.model._resize_cache(0)
        self._ids_of_words: dict[str, tuple[int, ...]] = {}
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self.embed_query(text)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        zero: Vectors = np.zeros(DIMENSIONS, dtype=np.float32)
        if not text.strip():
            return zero
        ids = self._token_ids(text[:MAX_TEXT_CHARS])
        if not ids:
            return zero
        rows = np.minimum(np.asarray(ids, dtype=np.intp), self._table.shape[0] - 1)
        # The direction of the sum is that of the mean.
        total: Vectors = np.add.reduce(_WIDENED.take(self._table.take(rows, axis=0)), axis=0)
        norm = math.sqrt(float(np.dot(total, total)))
        if not math.isfinite(norm) or norm < 1e-12:
            return zero
        total /= np.float32(norm)
        return total

    def _token_ids(self, text: str) -> list[int]:
        """The model's tokens. No token of it spans two words, so that words between single blanks are tokenized once
        and remembered: without a pre-tokenizer the library merges over the whole text each time.
        """
        if _ODD_BLANKS.search(text):
            return self._encode(text)
        known = self._ids_of_words
        ids: list[int] = []
        for word in text.split(" "):
            found = known.get(word)
            if found is None:
                found = tuple(self._encode(word))
                if len(known) >= _MAX_WORDS:
                    known.clear()
                if len(word) <= _MAX_WORD_CHARS:
                    known[word] = found
            ids.extend(found)
        return ids

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids


def _package_folder() -> Path:
    """Where wordllama is installed, found without importing it."""
    found = importlib.util.find_spec("wordllama")
    if found is None or found.origin is None:
        raise ConfigError("embedding.provider embedded needs the package wordllama, which is not installed")
    return Path(found.origin).parent


def _map_weights(path: Path) -> np.memmap[tuple[int, ...], np.dtype[np.float16]]:
    """The (vocabulary, 256) float16 matrix of a safetensors file: 8 bytes of length, a JSON header, raw tensors."""
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if not 0 < length <= _MAX_HEADER_BYTES:
                raise ValueError(f"header of {length} bytes")
            tensor = json.loads(file.read(length))[_TENSOR]
        begin, end = tensor["data_offsets"]
        rows, width = tensor["shape"]
        if tensor["dtype"] != "F16" or width != DIMENSIONS or end - begin != rows * width * 2:
            raise ValueError(f"unexpected tensor {tensor}")
        return np.memmap(path, dtype=np.dtype("<f2"), mode="r", offset=8 + length + begin, shape=(rows, width))
    except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
        raise ConfigError(f"the embedded model's weights cannot be read: {error}") from error
