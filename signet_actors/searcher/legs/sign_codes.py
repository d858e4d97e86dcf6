"""A first pass over very many vectors: one bit per dimension, compared by counting bits.

Each vector is kept as the signs of its components, 32 bytes instead of 1 KB at 256 dimensions. A query keeps more:
every dimension in which the signs differ costs 0 to 3, by the size of the query's component there. That finds what is
worth an exact comparison; it decides nothing else.

Measured: of the 200 nearest by an exact scan of 100,000 vectors of the embedded model (sentences of program
documentation, questions of five of their words), the 3,200 nearest by signs hold 99.3 %, of the 50 nearest 99.97 %, of
the 10 nearest all. Without the query's weights 12,800 were needed for that. Reading 100,000 codes takes a sixth of
the time of reading the vectors.

Source: targets.md "Recall"; Charikar, "Similarity Estimation Techniques from Rounding Algorithms", STOC 2002.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float32]

_BLOCK = 8192
"""Codes compared at once, so that what is in between stays in the processor's cache."""
_LEVELS = 3
_MEAN_LEVEL = _LEVELS / 2.2  # of a component of mean size


def sign_codes(vectors: Floats) -> Codes:
    """The signs of each vector, shape (words, len(vectors)): word by word, as they are compared."""
    packed = np.packbits(vectors > 0, axis=1)
    missing = -packed.shape[1] % 8
    if missing:
        packed = np.pad(packed, ((0, 0), (0, missing)))
    return np.ascontiguousarray(packed).view(np.uint64).T


def sign_distances(codes: Codes, query: Floats) -> npt.NDArray[np.uint16]:
    """How unlike the query each code is, shape (n,). Only their order means anything. ``codes``: shape (words, n)."""
    size = np.abs(query)
    level = np.minimum(np.rint(size * (_MEAN_LEVEL / max(float(size.mean()), 1e-12))), _LEVELS).astype(np.uint8)
    signs = sign_codes(query[np.newaxis])[:, 0]
    once = sign_codes((level & 1).astype(np.float32)[np.newaxis])[:, 0]
    twice = sign_codes((level & 2).astype(np.float32)[np.newaxis])[:, 0]
    distances = np.zeros(codes.shape[1], np.uint16)
    for start in range(0, len(distances), _BLOCK):
        total = distances[start : start + _BLOCK]
        for word, sign, single, double in zip(codes, signs, once, twice, strict=True):
            differing = word[start : start + _BLOCK] ^ sign
            cost = np.bitwise_count(differing & double)
            cost += cost
            cost += np.bitwise_count(differing & single)  # at most 3 * 64, so a byte holds it
            total += cost
    return distances
