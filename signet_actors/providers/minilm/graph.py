"""A network of the form BERT as one ONNX graph of fused int8 operators, and that of MiniLM-L6 from the pinned package.

The package's own graph turns the int8 weights into float32 first, which takes four times the memory and more than
twice the time. Here each product quantises its left side as it runs (``DynamicQuantizeMatMul``), and the weights keep
their bits. Every text is a run of its own: padding would cost more than it saves, and a text's vector must not depend
on the texts beside it.

Source: docs/decisions.md 57; onnxruntime, "Contrib operators"; Devlin et al. 2019, BERT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from signet_actors.providers.minilm.onnx_tensors import Tensor
from signet_actors.providers.minilm.onnx_writer import GraphWriter

LAYERS: Final = 6
WIDTH: Final = 384
HEADS: Final = 12
INNER_WIDTH: Final = 1536
_EPSILON: Final = 1e-12
_MIDDLE: Final = 128
"""The uint8 that stands for 0."""
_MICROSOFT: Final = "com.microsoft"
_QUANTISED: Final = "_q"
_SCALE: Final = "_scale"
_BIASES: Final = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)

EMBEDDED: Final = "embedded"
"""The graph's input: the sums of the embeddings of tokens, positions and segment, shape (1, tokens, WIDTH)."""
STATES: Final = "states"
"""Its output: the states of the last layer, shape (1, tokens, WIDTH)."""


class Model(NamedTuple):
    """An ONNX model, and the tensors that it names without containing them."""

    content: bytes
    outside: Mapping[str, Tensor]


class Embeddings(NamedTuple):
    """The tables from which the input of the graph is summed."""

    words: Tensor
    word_scales: Tensor
    positions: Tensor


class Product(NamedTuple):
    """The right side of a product: int8, shape (inputs, outputs), a scale for each output, and the bias."""

    weights: Tensor
    scales: Tensor
    bias: Tensor


class Norm(NamedTuple):
    """Weight and bias of a layer normalisation."""

    weight: Tensor
    bias: Tensor


class Layer(NamedTuple):
    """The products and normalisations of a layer, in the order in which it uses them."""

    query: Product
    key: Product
    value: Product
    attended: Product
    attended_norm: Norm
    inner: Product
    outer: Product
    outer_norm: Norm


class Network(NamedTuple):
    """The normalisation of the embeddings, and the layers."""

    norm: Norm
    layers: Sequence[Layer]


def embeddings(tensors: Mapping[str, Tensor], max_tokens: int) -> Embeddings:
    """Return the tables. The only segment is added to the positions. Raises ``KeyError`` if one is missing."""
    here = "inner.embeddings"
    positions = tensors[f"{here}.position_embeddings.weight{_QUANTISED}"][:max_tokens].astype(np.float32)
    positions *= tensors[f"{here}.position_embeddings.weight{_SCALE}"][:max_tokens]
    positions += tensors[f"{here}.token_type_embeddings.weight"][0]
    words = f"{here}.word_embeddings.weight"
    return Embeddings(tensors[words + _QUANTISED], tensors[words + _SCALE], positions)


def build(network: Network, *, unsigned: bool = False) -> Model:
    """Return the model.

    ``unsigned`` stores the weights as uint8 around 128, with the same products: for processors whose sums of products
    with int8 weights overflow.
    """
    graph = GraphWriter()
    state = "layer.0"
    norm = (graph.tensor(f"norm.{name}", numbers) for name, numbers in network.norm._asdict().items())
    graph.node("LayerNormalization", (EMBEDDED, *norm), (state,), axis=-1, epsilon=_EPSILON)
    for number, layer in enumerate(network.layers):
        following = STATES if number == len(network.layers) - 1 else f"layer.{number + 1}"
        _layer(graph, layer, f"of.{number}", state, following, unsigned=unsigned)
        state = following
    shape = (1, "tokens", WIDTH)
    return Model(graph.model({EMBEDDED: shape}, {STATES: shape}), graph.outside)


def minilm(tensors: Mapping[str, Tensor]) -> Network:
    """Return the network of MiniLM. Raises ``KeyError`` or ``ValueError`` if the tensors are not those of MiniLM-L6."""

    def norm(name: str) -> Norm:
        return Norm(tensors[f"{name}.LayerNorm.weight"], tensors[f"{name}.LayerNorm.bias"])

    matrices, layers = _matrices(tensors), []
    for number in range(LAYERS):
        here = f"inner.encoder.layer.{number}"
        query, key, value, attended, inner, outer = (
            Product(*matrix, tensors[f"{here}.{name}.bias"])
            for matrix, name in zip(matrices[6 * number : 6 * number + 6], _BIASES, strict=True)
        )
        attended_norm, outer_norm = norm(f"{here}.attention.output"), norm(f"{here}.output")
        layers.append(Layer(query, key, value, attended, attended_norm, inner, outer, outer_norm))
    return Network(norm("inner.embeddings"), layers)


def _matrices(tensors: Mapping[str, Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Return the matrices of all layers with their scales, in the order in which a layer uses them.

    The exporter has named them by number, in this order.
    """
    names = [name for name in tensors if name.endswith(_QUANTISED) and not name.startswith("inner.")]
    found = [(tensors[name], tensors[name.removesuffix(_QUANTISED) + _SCALE].reshape(-1)) for name in names]
    square = (WIDTH, WIDTH)
    layer = [square, square, square, square, (WIDTH, INNER_WIDTH), (INNER_WIDTH, WIDTH)]
    if [weights.shape for weights, _ in found] != LAYERS * layer:
        raise ValueError("the matrices are not those of MiniLM-L6")
    return found


def _layer(graph: GraphWriter, layer: Layer, here: str, state: str, following: str, *, unsigned: bool) -> None:
    three = (layer.query, layer.key, layer.value)
    together = Product(*(np.concatenate(parts, axis=-1) for parts in zip(*three, strict=True)))
    all_three = _multiply(graph, state, f"{here}.qkv", together, unsigned)
    heads = [f"{here}.{part}" for part in ("query", "key", "value")]
    lengths = graph.tensor(f"{here}.lengths", np.full(3, WIDTH, "<i8"))
    graph.node("Split", (all_three, lengths), heads, axis=-1)
    attention = f"{here}.attention"
    graph.node("MultiHeadAttention", heads, (attention,), domain=_MICROSOFT, num_heads=HEADS)
    dense = _multiply(graph, attention, f"{here}.attended", layer.attended, unsigned)
    middle = _normalise(graph, layer.attended_norm, (dense, state), f"{here}.middle")
    activated = f"{here}.activated"
    wide = _multiply(graph, middle, f"{here}.inner", layer.inner, unsigned)
    graph.node("Gelu", (wide,), (activated,), domain=_MICROSOFT)
    dense = _multiply(graph, activated, f"{here}.outer", layer.outer, unsigned)
    _normalise(graph, layer.outer_norm, (dense, middle), following)


def _multiply(graph: GraphWriter, left: str, name: str, right: Product, unsigned: bool) -> str:
    """Add the product and return the name of its result."""
    zeros = ""
    if unsigned:
        right = right._replace(weights=right.weights.view(np.uint8) ^ np.uint8(_MIDDLE))
        zeros = graph.tensor(f"{name}.zeros", np.full(right.scales.shape, _MIDDLE, np.uint8))
    weights = graph.tensor(f"{name}.weights", right.weights, outside=True)
    scales, bias = graph.tensor(f"{name}.scales", right.scales), graph.tensor(f"{name}.bias", right.bias)
    graph.node("DynamicQuantizeMatMul", (left, weights, scales, zeros, bias), (name,), domain=_MICROSOFT)
    return name


def _normalise(graph: GraphWriter, norm: Norm, both: tuple[str, str], result: str) -> str:
    """Add the normalised sum of both and return its name."""
    weight, bias = (graph.tensor(f"{result}.{name}", numbers) for name, numbers in norm._asdict().items())
    graph.node("SkipLayerNormalization", (*both, weight, bias), (result,), domain=_MICROSOFT, epsilon=_EPSILON)
    return result
