"""A first pass over very many vectors: one bit per dimension, compared by counting bits.

Each vector is kept as the signs of what it differs by from a common centre, 32 bytes instead of 1 KB at 256
dimensions, and as a scale. A query is compared with all of them by the signs of its larger components alone
(``coarse``), and with the nearest of those by all its components in eight steps, times the scale (``fine``). That finds
what is worth an exact comparison; it decides nothing else.

Why a centre and a scale: embeddings of texts have a direction in common, whose signs tell nobody from anybody; and
signs say how a vector points, not how far it is from the centre. Measured on 100,000 vectors of the embedded model, how
much of the exact 10, 50 and 200 nearest the candidates hold, in per cent:

========================================  =====================  =====================
candidates                                sentences of programs  texts of random words
========================================  =====================  =====================
3,200 by weighted signs, neither of both  100 / 99.89 / 98.76    99.7 / 98.3 / 93.3
2,400 by weighted signs and scale         100 / 99.91 / 98.85    99.9 / 99.4 / 96.2
1,600 of 6,400 by the larger signs        100 / 99.77 / 97.70    99.9 / 98.3 / 92.2
the same, around a centre of other texts  100 / 99.25 / 95.48    98.9 / 95.5 / 84.9
========================================  =====================  =====================

An exact comparison costs ten times a fine one where the vectors are not in the processor's cache: hence the last but
one. What recall then answers first (``bench``, fused) differs in 1 of 1,300 from what it answers by an exact scan.

Source: docs/performance.md "Recall targets"; Charikar, "Similarity Estimation Techniques from Rounding Algorithms",
STOC 2002; centre and scale: Gao and Long, "RaBitQ", SIGMOD 2024, without its random rotation, which gained nothing
here.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float32]
Seqs = npt.NDArray[np.int64]

_BLOCK = 32_768
"""Codes compared at once: what is in between stays in the processor's cache, and numpy's calls are few."""
_LARGE = 0.75  # times the mean size: components whose signs the coarse pass compares
_PLANES = 3
_MEAN_LEVEL = (2**_PLANES - 1) / 2.4  # of a component of mean size


class BinaryCodes:
    """Codes by row number. ``centre``, shape (dimensions,), is best near the vectors' mean; any other costs candidates.

    ``put`` keeps 4 bytes and a bit per dimension of each row, also of rows in between that have no vector.
    """

    def __init__(self, centre: Floats) -> None:
        self._centre = centre
        self._codes: Codes = np.zeros((-(-len(centre) // 64), 0), np.uint64)  # word by word, as they are compared
        self._scale: Floats = np.zeros(0, np.float32)

    def put(self, rows: Seqs, vectors: Floats) -> None:
        """``rows`` have the codes of ``vectors``; of rows that occur twice, the last."""
        size = int(rows.max(initial=-1)) + 1
        known = len(self._scale)
        if size > known:
            capacity = max(size, known * 3 // 2)
            codes, scale = np.zeros((len(self._codes), capacity), np.uint64), np.zeros(capacity, np.float32)
            codes[:, :known], scale[:known] = self._codes, self._scale
            self._codes, self._scale = codes, scale
        apart = vectors - self._centre
        self._codes[:, rows] = _packed(apart > 0).T
        # By least squares: the vector that points as the signs do and is nearest to the true one.
        length = np.abs(apart).sum(axis=1)
        self._scale[rows] = np.einsum("ij,ij->i", apart, apart) / np.maximum(length, 1e-12)

    def candidates(self, query: Floats, valid: npt.NDArray[np.bool_], n: int, *, coarse: int) -> Seqs:
        """At most ``n`` rows of ``valid`` that are probably the nearest to ``query``, in no particular order.

        ``coarse``: so many are looked at more closely. Rows beyond the codes that were put must not be valid.
        """
        size = np.abs(query)
        mean = max(float(size.mean()), 1e-12)
        signs, large = _packed(query > 0), _packed(size > _LARGE * mean)
        valid = valid[: len(self._scale)]
        count = int(np.count_nonzero(valid))
        if count <= coarse:
            rows = np.flatnonzero(valid)
        elif count < len(valid) // 4:
            rows = np.flatnonzero(valid)
            rows = rows[_smallest(_hamming_distances(self._codes.take(rows, axis=1), signs, large), coarse)]
        else:
            distances = _hamming_distances(self._codes[:, : len(valid)], signs, large)
            distances |= valid.astype(np.uint16) - np.uint16(1)  # the largest number where a row is not valid
            rows = _smallest(distances, coarse)
        if len(rows) <= n:
            return rows
        # What is lost of the whole by signs that differ; without its constant part, which orders nothing.
        level = np.minimum(np.rint(size * (_MEAN_LEVEL / mean)), 2**_PLANES - 1).astype(np.uint8)
        differing = self._codes.take(rows, axis=1)
        differing ^= signs[:, np.newaxis]
        lost = np.zeros(len(rows), np.uint32)
        for plane in range(_PLANES):
            heavy = differing & _packed(level & (1 << plane) > 0)[:, np.newaxis]
            lost += np.bitwise_count(heavy).sum(axis=0, dtype=np.uint32) << np.uint32(plane)
        product = (np.float32(level.sum()) - 2 * lost.astype(np.float32)) * self._scale[rows]
        nearest: Seqs = rows[np.argpartition(-product, n - 1)[:n]]
        return nearest


def _packed(bits: npt.NDArray[np.bool_]) -> Codes:
    """Bits of the last axis as whole words, the missing ones 0."""
    packed = np.packbits(bits, axis=-1)
    missing = -packed.shape[-1] % 8
    if missing:
        packed = np.pad(packed, [(0, 0)] * (packed.ndim - 1) + [(0, missing)])
    return packed.view(np.uint64)


def _hamming_distances(codes: Codes, signs: Codes, compared: Codes) -> npt.NDArray[np.uint16]:
    """In how many of the ``compared`` bits each code differs from ``signs``. ``codes``: shape (words, n)."""
    count = np.zeros(codes.shape[1], np.uint16)
    differing, ones = np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.uint8)
    for start in range(0, len(count), _BLOCK):
        total = count[start : start + _BLOCK]
        bits, each = differing[: len(total)], ones[: len(total)]
        for word, sign, mask in zip(codes, signs & compared, compared, strict=True):
            np.bitwise_and(word[start : start + _BLOCK], mask, out=bits)
            np.bitwise_xor(bits, sign, out=bits)
            np.bitwise_count(bits, out=each)
            total += each
    return count


def _smallest(distances: npt.NDArray[np.uint16], n: int) -> Seqs:
    """Where the ``n`` least distances are, in rising order, and at most half as many more that equal the last.

    Of many more equals, those that stand last.
    """
    limit = np.partition(distances, n - 1)[n - 1]
    near = np.flatnonzero(distances <= limit)
    surplus = len(near) - n
    if surplus <= n // 2:
        return near
    return np.delete(near, np.flatnonzero(distances[near] == limit)[:surplus])
