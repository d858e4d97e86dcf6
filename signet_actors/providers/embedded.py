"""The embedded model: the static word-piece embeddings of wordllama.

Two files of that package are part of this one; its code is not. A text's vector is the normalised sum of its words'
vectors; the most used words are cached, which makes a short text five times as fast. Uncached words are summed in the
same order, so a text always has the same vector to the last bit. More: providers/DESIGN.md "The embedded model".

Source: docs/decisions.md 22 and 27; docs/quality.md rule 10.
"""

from __future__ import annotations

import itertools
import mmap
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from signet_actors.config.embedding_models import EMBEDDED_FOLDER, EMBEDDED_TENSOR, EMBEDDED_WEIGHTS
from signet_actors.errors import ConfigError
from signet_actors.providers.byte_pairs import SPECIAL, WORD_MARK, BytePairs
from signet_actors.providers.embedding import Vectors, unit
from signet_actors.providers.token_codes import WordPieceCodes
from signet_actors.runtime.tensor_file import map_halves, widened

MODEL: Final = "wordllama-l2-supercat-256"
FAMILY: Final = "wordllama"
"""The name in the configuration; stored rows use ``MODEL``, which identifies the exact weights."""
DIMENSIONS: Final = 256
MAX_TEXT_CHARS: Final = 16_384
"""Only this much of a longer text is embedded: a mean over more tokens adds nothing, and the cost stays bounded."""

TOKENIZER: Final = "l2_supercat_tokenizer_config.json"
MAX_WORDS: Final = 16_384
"""Capacity of the word cache, 1 KB per word; twice the number of words that a text can have."""
_MAX_WORD_CHARS: Final = 64
_ROWS_AT_ONCE: Final = 1024
"""Rows that are added up at once: 1 MB, which stays in the processor's cache."""

Numbers = npt.NDArray[np.intp]


class _Model(msgspec.Struct):
    vocab: dict[str, int]


class _TokenizerFile(msgspec.Struct):
    """What is read of the tokenizer's file. Its list of merges follows from the vocabulary."""

    model: _Model


class EmbeddedEmbedder:
    """Embeds a text as the L2-normalised mean of its token vectors; deterministic, without network, thread-safe."""

    provider: Final = "embedded"
    model: Final = MODEL
    dimensions: Final = DIMENSIONS
    local: Final = True
    endpoint: Final = None

    def __init__(self, folder: Path = EMBEDDED_FOLDER, *, max_words: int = MAX_WORDS) -> None:
        """Map the weights in ``folder``.

        ``max_words`` is the capacity of the word cache; a text may have at most half as many words. Raises
        ``ConfigError`` if the files are missing or not as this release expects.
        """
        self._mapping, self.table = map_halves(folder / EMBEDDED_WEIGHTS, EMBEDDED_TENSOR, DIMENSIONS)
        try:
            vocabulary = msgspec.json.decode((folder / TOKENIZER).read_bytes(), type=_TokenizerFile).model.vocab
            self._pieces = BytePairs(vocabulary)
        except (OSError, ValueError) as error:  # msgspec's errors are ValueErrors
            raise ConfigError(f"the embedded model's tokenizer cannot be read: {error}") from error
        if len(vocabulary) > self.table.shape[0]:
            raise ConfigError("the embedded model's tokenizer and weights do not match")
        self.known_words = _WordTable(max_words)
        self._write_lock = threading.Lock()
        self.token_codes = WordPieceCodes(self._pieces)

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self.embed_query(text)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        if not text.strip():
            return np.zeros(DIMENSIONS, dtype=np.float32)
        if len(text) > MAX_TEXT_CHARS:
            text = text[:MAX_TEXT_CHARS].rstrip()  # a blank at the end would keep its words from being looked up
        words = self._words_of(text)
        total = None if words is None else self._sum_of_words(words)
        if total is None:
            total = _sum_in_parts(self._pieces.numbers_of_text(text), self._rows_of_tokens)
        return unit(total)  # the sum has the same direction as the mean

    def release_memory(self) -> None:
        """Release the mapped pages of the weights, which return from the page cache in microseconds."""
        self._mapping.madvise(mmap.MADV_DONTNEED)

    def _words_of(self, text: str) -> list[str] | None:
        """Split ``text`` into words; None if a token may span two words (unless single blanks separate them all)."""
        words = text.split(" ")
        if words != text.split() or WORD_MARK in text or any(special in text for special in SPECIAL):
            return None
        return words

    def _sum_of_words(self, words: Sequence[str]) -> Vectors | None:
        """Return the sum over ``words`` and cache all of them; None if a word is too long for the cache."""
        while (total := self.known_words.sum_of(words)) is None:
            rows = self.known_words.rows
            unknown = [word for word in dict.fromkeys(words) if word not in rows]
            if any(len(word) > _MAX_WORD_CHARS for word in unknown):
                return None
            # Computed outside the lock, so that the event loop does not wait for a thread with a long text.
            vectors = self._vectors_of_words(unknown)
            with self._write_lock:
                self.known_words = self.known_words.with_more(unknown, vectors)
        return total

    def _vectors_of_words(self, words: Sequence[str]) -> Vectors:
        """Return one row per word, the sum of its tokens, by one gather for all words."""
        ids: list[int] = []
        ends = [0]
        for word in words:
            ids += [self._pieces.vocabulary[piece] for piece in self._pieces.pieces_of_word(word)]
            ends.append(len(ids))
        rows = self._rows_of_tokens(ids)
        vectors: Vectors = np.empty((len(words), DIMENSIONS), dtype=np.float32)
        for vector, (begin, end) in zip(vectors, itertools.pairwise(ends), strict=True):
            np.add.reduce(rows[begin:end], axis=0, out=vector)
        return vectors

    def _rows_of_tokens(self, ids: Sequence[int] | Numbers) -> Vectors:
        return widened(self.table.take(np.asarray(ids, dtype=np.intp), axis=0))


def _sum_in_parts(numbers: Sequence[int] | Numbers, rows_of: Callable[[Sequence[int] | Numbers], Vectors]) -> Vectors:
    """Return the sum of the rows with these numbers, added in their order, without a copy of all of them at once."""
    total: Vectors = np.zeros(DIMENSIONS, dtype=np.float32)
    for begin in range(0, len(numbers), _ROWS_AT_ONCE):
        rows = rows_of(numbers[begin : begin + _ROWS_AT_ONCE])
        rows[0] += total
        total = np.add.reduce(rows, axis=0)
    return total


class _WordTable:
    """Word vectors, only added, so read without a lock. A full table is replaced by one with its more used half."""

    __slots__ = ("_uses", "_vectors", "rows")

    def __init__(self, capacity: int) -> None:
        self.rows: dict[str, int] = {}
        self._vectors = np.empty((capacity, DIMENSIONS), dtype=np.float32)  # what is not used yet costs no memory
        self._uses = np.zeros(capacity, dtype=np.int64)

    def sum_of(self, words: Sequence[str]) -> Vectors | None:
        """Return the sum of the vectors of ``words``; None if a word is not in the table."""
        known = self.rows
        try:
            rows = np.array([known[word] for word in words], dtype=np.intp)
        except KeyError:
            return None
        self._uses[rows] += 1  # concurrent threads may lose a count, which does not matter
        return _sum_in_parts(rows, lambda part: self._vectors.take(part, axis=0))

    def with_more(self, words: Sequence[str], vectors: Vectors) -> _WordTable:
        """Add ``words`` to this table, or to its replacement if it is full, and return that table.

        Adds nothing if another thread has added one of the words meanwhile. Call it under the lock.
        """
        known = self if len(self.rows) + len(words) <= len(self._vectors) else self._most_used()
        if known.rows.keys().isdisjoint(words):
            begin = len(known.rows)
            end = begin + len(words)
            known._vectors[begin:end] = vectors
            known.rows.update(zip(words, range(begin, end), strict=True))
        return known

    def _most_used(self) -> _WordTable:
        words = list(self.rows)  # in row order
        half = len(words) // 2
        kept = np.argpartition(self._uses[: len(words)], half)[half:]
        fresh = _WordTable(len(self._vectors))
        fresh.rows = {words[row]: place for place, row in enumerate(kept.tolist())}
        fresh._vectors[: len(kept)] = self._vectors[kept]
        fresh._uses[: len(kept)] = self._uses[kept] // 2  # let old uses decay
        return fresh
