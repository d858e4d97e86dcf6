"""The embedded model: static word-piece embeddings that ship inside the wordllama wheel.

The two files of the wheel are read directly: the weights are mapped read-only as float16, so that they live once in the
page cache instead of once more on the heap (and count as ours only while words are looked up), and only the rows of
words not met before are widened to float32, by a table of all 65,536 values, because numpy's own conversion takes twice
as long. The package itself is never imported: importing it pulls in ``requests`` and replaces the root logger's set-up,
and its loader can download, which nothing here ever may. The vectors equal the package's own (a test compares them).

A text's vector is the sum of its words', and those of the words used most are remembered: a text of thirty words then
is one gather and one sum, in a fifth of the time that its tokens take. Words are summed first whether or not they are
remembered, so that a text has the same vector to the last bit every time.

Source: docs/decisions.md 22 and 27; docs/quality.md rule 10.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import math
import mmap
import struct
import threading
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
_WORD_MARK = "\u2581"
"""What the tokenizer writes for a blank, and before the first word."""
MAX_WORDS: Final = 16_384
"""Words that are remembered, a kilobyte each; twice as many as a text can have."""
_MAX_WORD_CHARS: Final = 64

_WIDENED: Final = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
"""float32 by the bits of a float16."""


class EmbeddedEmbedder:
    """Mean of the token vectors, L2-normalised; deterministic, no network, safe to call from any thread."""

    provider: Final = "embedded"
    model: Final = MODEL
    dimensions: Final = DIMENSIONS
    local: Final = True
    endpoint: Final = None

    def __init__(self, package: Path | None = None, *, max_words: int = MAX_WORDS) -> None:
        """Map the weights below ``package`` (default: where wordllama is installed). ``max_words`` are remembered; no
        text may have more than half as many.

        Raises ``ConfigError`` when the files are missing or not what this release expects.
        """
        folder = package or _package_folder()
        self._mapping, self._table = _map_weights(folder / _WEIGHTS)
        try:
            # from_str, not from_file: a missing file must be an OSError, not the library's bare Exception.
            self._tokenizer = Tokenizer.from_str((folder / _TOKENIZER).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"the embedded model's tokenizer cannot be read: {error}") from error
        if self._tokenizer.get_vocab_size() > self._table.shape[0]:
            raise ConfigError("the embedded model's tokenizer has words that its weights do not have")
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._model = self._tokenizer.model
        # Without a pre-tokenizer the cache would keep whole texts: memory for nothing, and memories' contents at that.
        self._model._resize_cache(0)
        self._special = tuple(token.content for token in self._tokenizer.get_added_tokens_decoder().values())
        self._known = _WordTable(max_words)
        self._write_lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self.embed_query(text)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        zero: Vectors = np.zeros(DIMENSIONS, dtype=np.float32)
        if not text.strip():
            return zero
        text = text[:MAX_TEXT_CHARS]
        words = self._words_of(text)
        total = None if words is None else self._sum_of_words(words)
        if total is None:
            total = np.add.reduce(
                self._rows_of_tokens(self._tokenizer.encode(text, add_special_tokens=False).ids), axis=0
            )
        # The direction of the sum is that of the mean.
        norm = math.sqrt(float(total.dot(total)))
        if not math.isfinite(norm) or norm < 1e-12:
            return zero
        total /= np.float32(norm)
        return total

    def release_memory(self) -> None:
        """The weights count as nobody's memory until they are needed: words used most are remembered apart from them.

        They stay in the machine's page cache, from which a few hundred pages at a time come back in microseconds.
        """
        self._mapping.madvise(mmap.MADV_DONTNEED)

    def _words_of(self, text: str) -> list[str] | None:
        """The words of ``text`` if no token of it spans two of them, which is so between single blanks; else None."""
        words = text.split(" ")
        if words != text.split() or _WORD_MARK in text or any(special in text for special in self._special):
            return None
        return words

    def _sum_of_words(self, words: Sequence[str]) -> Vectors | None:
        """The sum over ``words``, all of which are remembered now; None if one is too long for that."""
        while (total := self._known.sum_of(words)) is None:
            rows = self._known.rows
            unknown = [word for word in dict.fromkeys(words) if word not in rows]
            if any(len(word) > _MAX_WORD_CHARS for word in unknown):
                return None
            # Not under the lock: the event loop must not wait until a thread has been through a long text.
            vectors = self._vectors_of_words(unknown)
            with self._write_lock:
                self._known = self._known.with_more(unknown, vectors)
        return total

    def _vectors_of_words(self, words: Sequence[str]) -> Vectors:
        """A row for each word: the sum of its tokens. One gather for all of them."""
        ids: list[int] = []
        ends = [0]
        for word in words:
            # The model alone: the tokenizer around it only puts the mark before the word, and takes twice as long.
            ids += [token.id for token in self._model.tokenize(_WORD_MARK + word)]
            ends.append(len(ids))
        rows = self._rows_of_tokens(ids)
        vectors: Vectors = np.empty((len(words), DIMENSIONS), dtype=np.float32)
        for vector, (begin, end) in zip(vectors, itertools.pairwise(ends), strict=True):
            np.add.reduce(rows[begin:end], axis=0, out=vector)
        return vectors

    def _rows_of_tokens(self, ids: Sequence[int]) -> Vectors:
        rows: Vectors = _WIDENED.take(self._table.take(np.asarray(ids, dtype=np.intp), axis=0))
        return rows


class _WordTable:
    """The vectors of words by their row. Rows are only added, so that a reader needs no lock: a table that is full is
    replaced by another one, with the half of its words that was used most.
    """

    __slots__ = ("_uses", "_vectors", "rows")

    def __init__(self, capacity: int) -> None:
        self.rows: dict[str, int] = {}
        self._vectors = np.empty((capacity, DIMENSIONS), dtype=np.float32)  # what is not used yet costs no memory
        self._uses = np.zeros(capacity, dtype=np.int64)

    def sum_of(self, words: Sequence[str]) -> Vectors | None:
        """The sum of the vectors of ``words``; None if one of them is not known."""
        known = self.rows
        try:
            rows = np.array([known[word] for word in words], dtype=np.intp)
        except KeyError:
            return None
        self._uses[rows] += 1  # two threads may lose a count; it is no more than a hint
        total: Vectors = np.add.reduce(self._vectors.take(rows, axis=0), axis=0)
        return total

    def with_more(self, words: Sequence[str], vectors: Vectors) -> _WordTable:
        """This table, or the one that replaces it, with ``words``, none of which it had when they were looked up; or
        without them, where another thread was faster with one. For one thread at a time.
        """
        known = self if len(self.rows) + len(words) <= len(self._vectors) else self._most_used()
        if known.rows.keys().isdisjoint(words):
            begin = len(known.rows)
            end = begin + len(words)
            known._vectors[begin:end] = vectors
            known.rows.update(zip(words, range(begin, end), strict=True))
        return known

    def _most_used(self) -> _WordTable:
        words = list(self.rows)  # in the order of their rows
        half = len(words) // 2
        kept = np.argpartition(self._uses[: len(words)], half)[half:]
        fresh = _WordTable(len(self._vectors))
        fresh.rows = {words[row]: place for place, row in enumerate(kept.tolist())}
        fresh._vectors[: len(kept)] = self._vectors[kept]
        fresh._uses[: len(kept)] = self._uses[kept] // 2  # what was used long ago does not weigh for ever
        return fresh


def _package_folder() -> Path:
    """Where wordllama is installed, found without importing it."""
    found = importlib.util.find_spec("wordllama")
    if found is None or found.origin is None:
        raise ConfigError("embedding.provider embedded needs the package wordllama, which is not installed")
    return Path(found.origin).parent


def _map_weights(path: Path) -> tuple[mmap.mmap, np.ndarray[tuple[int, int], np.dtype[np.uint16]]]:
    """The mapping of a safetensors file, and its (vocabulary, 256) float16 matrix by the bits.

    The file is 8 bytes of length, a JSON header, raw tensors.
    """
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if not 0 < length <= _MAX_HEADER_BYTES:
                raise ValueError(f"header of {length} bytes")
            tensor = json.loads(file.read(length))[_TENSOR]
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        begin, end = tensor["data_offsets"]
        rows, width = tensor["shape"]
        if tensor["dtype"] != "F16" or width != DIMENSIONS or end - begin != rows * width * 2:
            raise ValueError(f"unexpected tensor {tensor}")
        table = np.frombuffer(mapping, np.dtype("<u2"), rows * width, 8 + length + begin)
        return mapping, table.reshape(rows, width)
    except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
        raise ConfigError(f"the embedded model's weights cannot be read: {error}") from error
