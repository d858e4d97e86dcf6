"""The interface of embedding back ends.

Source: docs/architecture.md "Directories"; docs/decisions.md 22 and 23.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from signet_actors.errors import ProviderError, ProviderErrorKind
from signet_actors.providers.token_codes import TokenCodes

Vectors = npt.NDArray[np.float32]
Words = tuple[tuple[str, bytes], ...]
"""The words of a query with their token codes."""

QUERY_TIMEOUT_MS: Final = 2000
BATCH_TIMEOUT_MS: Final = 30_000
_LEAST_NORM: Final = 1e-12


def import_without_telemetry(package: str) -> Any:
    """Import a package that loads onnxruntime, with the telemetry of onnxruntime switched off.

    By default its builds for Linux and macOS send events to their vendor, and store an identifier of the device in the
    home directory, as soon as they are imported. They read this variable when they start.

    Source: docs/decisions.md 27; onnxruntime, "Privacy", "Disabling Telemetry".
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    return importlib.import_module(package)


class Encoded(NamedTuple):
    """Vectors, shape (n, dimensions), and for each the token codes of its text, None if the model makes none."""

    vectors: Vectors
    token_codes: Sequence[bytes | None]


class Embedder(Protocol):
    """Turns texts into unit vectors.

    ``provider`` and ``model`` name it in replies and in ``embeddings`` rows. ``dimensions`` is the length of every
    vector. ``local`` is true if a text costs microseconds and no network, so that a caller may embed inline.
    ``endpoint`` is the address of a network back end, else None. ``token_codes`` makes the codes that are stored with
    the vectors, None if the model has none.
    """

    @property
    def provider(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    @property
    def token_codes(self) -> TokenCodes | None: ...

    @property
    def local(self) -> bool: ...

    @property
    def endpoint(self) -> str | None: ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one L2-normalised float32 row per text, shape (n, dimensions).

        A text that a local model cannot represent (no token, no finite vector) gets a row of zeros and must be stored
        without a vector; from a server such a row is an error. May block. Raises ``SignetError`` if the back end does
        not answer.
        """

    def embed_query(self, text: str) -> Vectors:
        """Embed one query text, shape (dimensions,); back ends with a query prefix add it here."""


class AsyncEmbedder(Protocol):
    """An embedder for an event loop; no method blocks."""

    @property
    def provider(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    @property
    def endpoint(self) -> str | None: ...

    async def encode_async(self, texts: Sequence[str], *, timeout_ms: int = BATCH_TIMEOUT_MS) -> Encoded:
        """Return the vectors as ``embed_async`` does, and the token codes of the same pass."""

    async def embed_async(self, texts: Sequence[str], *, timeout_ms: int = BATCH_TIMEOUT_MS) -> Vectors:
        """Embed any number of texts in batches, all or none, within one deadline. Raises ``ProviderError``."""

    async def embed_query_async(self, text: str, *, timeout_ms: int = QUERY_TIMEOUT_MS) -> Vectors:
        """Embed one query text; see ``Embedder.embed_query``. Raises ``ProviderError``."""

    async def close(self) -> None:
        """Close all sockets of the embedder."""


def encode(embedder: Embedder, texts: Sequence[str]) -> Encoded:
    """Return the vectors of ``texts`` as ``Embedder.embed`` does, and their token codes. May block."""
    codes = embedder.token_codes
    if codes is None:
        return Encoded(embedder.embed(texts), [None] * len(texts))
    vectors = np.zeros((len(texts), embedder.dimensions), np.float32)
    made: list[bytes | None] = []
    for row, text in enumerate(texts):
        vectors[row] = embedder.embed_query(text)
        made.append(codes.of_text(text))
    return Encoded(vectors, made)


def encode_query(embedder: Embedder, text: str) -> tuple[Vectors, Words]:
    """Return the vector of a query as ``Embedder.embed_query`` does, and its words with their codes. May block."""
    vector = embedder.embed_query(text)
    return vector, () if embedder.token_codes is None else tuple(embedder.token_codes.of_query(text))


def unit(total: Vectors) -> Vectors:
    """Scale ``total`` to length 1 in place and return it; zeros if it has no direction."""
    norm = math.sqrt(float(total.dot(total)))
    if not math.isfinite(norm) or norm < _LEAST_NORM:
        return np.zeros(len(total), dtype=np.float32)
    total /= np.float32(norm)
    return total


def unit_vectors(rows: object, count: int, dimensions: int, who: str) -> Vectors:
    """Validate ``rows`` from a back end and return them as ``count`` L2-normalised rows of ``dimensions``.

    A row of zeros stays zero. Raises ``ProviderError`` if the number of rows or their length is wrong, or a number is
    not finite: a bad vector would be stored and compared with others for years. ``who`` names the back end in errors.
    """
    try:
        wide = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ProviderError(ProviderErrorKind.MALFORMED, f"{who} returned vectors of different widths") from error
    if wide.ndim != 2 or wide.shape[0] != count:
        raise ProviderError(ProviderErrorKind.MALFORMED, f"{who} did not return exactly one vector for each text")
    if wide.shape[1] != dimensions:
        raise ProviderError(
            ProviderErrorKind.REFUSED,
            f"{who} returns vectors with {wide.shape[1]} dimensions, but embedding.dimensions is {dimensions}: "
            f"set it to {wide.shape[1]}, or choose another model",
        )
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(wide, axis=1, keepdims=True)
    if not np.isfinite(norms).all():
        raise ProviderError(ProviderErrorKind.MALFORMED, f"{who} returned a vector with NaN or infinite values")
    unit: Vectors = np.where(norms < _LEAST_NORM, 0.0, wide / np.maximum(norms, _LEAST_NORM)).astype(np.float32)
    return unit
