"""Binary quantization: choose candidates for an exact comparison by one bit per dimension.

A vector is stored as the signs of its difference from a common centre, and a scale. The coarse pass compares the signs
of the query's larger components with all vectors by counting bits. The fine pass compares the nearest of those with all
components, quantized to eight levels, times the scale. Measurements: searcher/DESIGN.md "Candidates by signs".

Source: docs/performance.md "Recall targets"; Charikar, "Similarity Estimation Techniques from Rounding Algorithms",
STOC 2002; centre and scale: Gao and Long, "RaBitQ", SIGMOD 2024, without its random rotation.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float32]
Seqs = npt.NDArray[np.int64]

_BLOCK = 32_768
"""Codes per block: small enough for the processor's cache, large enough to keep the number of numpy calls low."""
_LARGE = 0.75  # the coarse pass uses components larger than this multiple of the mean absolute value
_PLANES = 3
_MEAN_LEVEL = (2**_PLANES - 1) / 2.4  # level of a component of mean absolute value


class BinaryCodes:
    """Codes by row number, 4 bytes and one bit per dimension each, also for rows without a vector.

    ``centre``, shape (dimensions,), should be near the mean of the vectors; the farther it is, the fewer true
    neighbours are among the candidates.
    """

    def __init__(self, centre: Floats) -> None:
        self._centre = centre
        self._codes: Codes = np.zeros((-(-len(centre) // 64), 0), np.uint64)  # shape (words, rows)
        self._scale: Floats = np.zeros(0, np.float32)

    def put(self, rows: Seqs, vectors: Floats) -> None:
        """Store the codes of ``vectors`` for ``rows``; if a row occurs twice, the last one counts."""
        size = int(rows.max(initial=-1)) + 1
        known = len(self._scale)
        if size > known:
            capacity = max(size, known * 3 // 2)
            codes, scale = np.zeros((len(self._codes), capacity), np.uint64), np.zeros(capacity, np.float32)
            codes[:, :known], scale[:known] = self._codes, self._scale
            self._codes, self._scale = codes, scale
        apart = vectors - self._centre
        self._codes[:, rows] = _packed(apart > 0).T
        # The least-squares scale: the multiple of the sign vector that is nearest to the true vector.
        length = np.abs(apart).sum(axis=1)
        self._scale[rows] = np.einsum("ij,ij->i", apart, apart) / np.maximum(length, 1e-12)

    def candidates(self, query: Floats, valid: npt.NDArray[np.bool_], n: int, *, coarse: int) -> Seqs:
        """Return at most ``n`` rows of ``valid`` that are probably nearest to ``query``, in no particular order.

        ``coarse`` is the number of rows that the fine pass examines. Rows beyond those given to ``put`` must not be
        valid.
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
            distances |= valid.astype(np.uint16) - np.uint16(1)  # rows that are not valid get the largest distance
            rows = _smallest(distances, coarse)
        if len(rows) <= n:
            return rows
        # Approximate the inner product: the sum of all levels minus twice the levels whose signs differ.
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
    """Pack the bits of the last axis into 64-bit words, padded with zeros."""
    packed = np.packbits(bits, axis=-1)
    missing = -packed.shape[-1] % 8
    if missing:
        packed = np.pad(packed, [(0, 0)] * (packed.ndim - 1) + [(0, missing)])
    return packed.view(np.uint64)


def _hamming_distances(codes: Codes, signs: Codes, compared: Codes) -> npt.NDArray[np.uint16]:
    """Return in how many of the ``compared`` bits each code differs from ``signs``. ``codes`` has shape (words, n)."""
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
    """Return the indices, ascending, of the ``n`` smallest distances, plus ties with the largest of these.

    If there are more than ``n // 2`` surplus ties, the result is cut to ``n`` and the last of the ties are kept.
    """
    limit = np.partition(distances, n - 1)[n - 1]
    near = np.flatnonzero(distances <= limit)
    surplus = len(near) - n
    if surplus <= n // 2:
        return near
    return np.delete(near, np.flatnonzero(distances[near] == limit)[:surplus])
