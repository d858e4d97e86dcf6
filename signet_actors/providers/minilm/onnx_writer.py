"""Write an ONNX model as bytes, without the package ``onnx``.

Source: Protocol Buffers, "Encoding"; ONNX, ``onnx.proto`` (ModelProto, GraphProto, NodeProto, TensorProto).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Shape = Sequence[int | str]
"""Numbers, and names of dimensions whose length varies."""

_IR_VERSION: Final = 8
_OPSETS: Final = {"": 17, "com.microsoft": 1}
_TYPES: Final = {np.dtype("<f4"): 1, np.dtype("u1"): 2, np.dtype("i1"): 3, np.dtype("<i8"): 7}
_FLOAT, _INT, _INTS = 1, 2, 7
"""``AttributeProto.type``."""
_EXTERNAL: Final = 1
"""``TensorProto.data_location``."""


class GraphWriter:
    """Collects the nodes and tensors of a graph; ``model`` returns all of it, but for the tensors in ``outside``.

    The runtime gets those by name, without copies of their numbers.
    """

    def __init__(self) -> None:
        self.outside: dict[str, npt.NDArray[Any]] = {}
        self._nodes: list[bytes] = []
        self._tensors: list[bytes] = []

    def node(
        self, operator: str, inputs: Sequence[str], outputs: Sequence[str], *, domain: str = "", **attributes: Any
    ) -> None:
        """Add a node. An input that is an empty string is left out."""
        self._nodes.append(
            b"".join(
                (
                    *(_text(1, name) for name in inputs),
                    *(_text(2, name) for name in outputs),
                    _text(4, operator),
                    *(_bytes(5, _attribute(name, value)) for name, value in attributes.items()),
                    _text(7, domain),
                )
            )
        )

    def tensor(self, name: str, numbers: npt.NDArray[Any], *, outside: bool = False) -> str:
        """Add a constant and return its name."""
        numbers = np.ascontiguousarray(numbers)
        if outside:
            self.outside[name] = numbers
            place = {"location": "outside", "offset": "0", "length": str(numbers.nbytes)}
            entries = (_bytes(13, _text(1, key) + _text(2, value)) for key, value in place.items())
            content = b"".join(entries) + _number(14, _EXTERNAL)
        else:
            content = _bytes(9, numbers.tobytes())
        lengths = (_number(1, length) for length in numbers.shape)
        self._tensors.append(b"".join((*lengths, _number(2, _TYPES[numbers.dtype]), _text(8, name), content)))
        return name

    def model(self, inputs: Mapping[str, Shape], outputs: Mapping[str, Shape]) -> bytes:
        """Return the model, whose inputs and outputs are float32."""
        graph = b"".join(
            (
                *(_bytes(1, node) for node in self._nodes),
                _text(2, "graph"),
                *(_bytes(5, tensor) for tensor in self._tensors),
                *(_bytes(11, _value_info(name, shape)) for name, shape in inputs.items()),
                *(_bytes(12, _value_info(name, shape)) for name, shape in outputs.items()),
            )
        )
        opsets = (_text(1, domain) + _number(2, version) for domain, version in _OPSETS.items())
        return b"".join((_number(1, _IR_VERSION), _bytes(7, graph), *(_bytes(8, opset) for opset in opsets)))


def _attribute(name: str, value: float | Sequence[int]) -> bytes:
    match value:
        case float():
            return _text(1, name) + _key(2, 5) + struct.pack("<f", value) + _number(20, _FLOAT)
        case int():
            return _text(1, name) + _number(3, value) + _number(20, _INT)
        case _:
            return _text(1, name) + b"".join(_number(8, each) for each in value) + _number(20, _INTS)


def _value_info(name: str, shape: Shape) -> bytes:
    dims = (_bytes(1, _text(2, length) if isinstance(length, str) else _number(1, length)) for length in shape)
    tensor_type = _number(1, _FLOAT) + _bytes(2, b"".join(dims))
    return _text(1, name) + _bytes(2, _bytes(1, tensor_type))


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode())


def _bytes(number: int, value: bytes) -> bytes:
    return _key(number, 2) + _varint(len(value)) + value


def _number(number: int, value: int) -> bytes:
    return _key(number, 0) + _varint(value % (1 << 64))


def _key(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
