"""The tensors of an ONNX file, read without the package ``onnx``, which is larger than the model.

Only named tensors of float32, int8 or int64 with their numbers in ``raw_data`` are returned. The caller has checked the
file's hash.

Source: Protocol Buffers, "Encoding"; ONNX, ``onnx.proto`` (ModelProto, GraphProto, TensorProto).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Tensor = npt.NDArray[Any]

_GRAPH: Final = 7
_INITIALIZER: Final = 5
_TYPES: Final[dict[int, np.dtype[Any]]] = {1: np.dtype("<f4"), 3: np.dtype("i1"), 7: np.dtype("<i8")}
_FIXED_BYTES: Final = {1: 8, 5: 4}
"""The length of a field by its wire type, where it is fixed."""


def tensors(model: memoryview) -> dict[str, Tensor]:
    """Return the initializers of the graph by name, as read-only views of ``model``. Raises ``ValueError``."""
    try:
        (graph,) = (value for number, value in _fields(model) if number == _GRAPH)
        found = (_tensor(value) for number, value in _fields(graph) if number == _INITIALIZER)
        return {
            name: np.frombuffer(raw, _TYPES[kind]).reshape(dims) for name, kind, dims, raw in found if kind in _TYPES
        }
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError("not an ONNX model with plain tensors") from error


def _tensor(message: memoryview) -> tuple[str, int, list[int], memoryview]:
    dims: list[int] = []
    name, kind, raw = "", 0, memoryview(b"")
    for number, value in _fields(message):
        match number:
            case 1 if isinstance(value, int):
                dims.append(value)
            case 1:
                dims.extend(_packed(value))
            case 2:
                kind = value
            case 8:
                name = str(value, "utf-8")
            case 9:
                raw = value
    return name, kind, dims, raw


def _packed(data: memoryview) -> Iterator[int]:
    place = 0
    while place < len(data):
        value, place = _varint(data, place)
        yield value


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each field: an int, or a view of the bytes."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        number, wire_type = key >> 3, key & 7
        if wire_type == 0:
            value, place = _varint(message, place)
            yield number, value
            continue
        if wire_type == 2:
            length, place = _varint(message, place)
        else:
            length = _FIXED_BYTES[wire_type]
        if place + length > len(message):
            raise ValueError("cut off")
        yield number, message[place : place + length]
        place += length


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    """Return the number at ``place`` and where it ends."""
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
