"""An encoder on onnxruntime: the network of a model in a session of its own, whose texts run one after the other.

Source: docs/decisions.md 27 and 57; providers/DESIGN.md "MiniLM".
"""

from __future__ import annotations

import hashlib
import platform
import threading
from collections.abc import Sequence
from io import BufferedReader
from pathlib import Path
from typing import Any, Final

import numpy as np

from signet_actors.errors import ConfigError, ProviderError, ProviderErrorKind
from signet_actors.providers.embedding import Vectors, import_without_telemetry
from signet_actors.providers.minilm.graph import EMBEDDED, STATES, WIDTH, Model, Network, build
from signet_actors.providers.token_codes import TokenCodes

MAX_TOKENS: Final = 256
"""MiniLM was trained with at most so many; the rest of a longer text does not count."""
_ERRORS_ONLY: Final = 3


class Encoder:
    """Embeds a text as the L2-normalised mean of its tokens' last states; deterministic, one call at a time."""

    provider: str
    model: str
    dimensions: int = WIDTH
    local: Final = False
    endpoint: Final = None
    token_codes: TokenCodes | None = None
    cost: int = 1
    """The time for a text as a multiple of MiniLM's."""

    def load(self, runtime: Any, network: Network) -> None:
        """Make the session. Raises ``ConfigError``."""
        model = build(network, unsigned=_sums_overflow())
        self._outside = model.outside  # the session may refer to these numbers
        self._session = _session(runtime, model, self.model)
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), WIDTH), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self.embed_text(text)
        return vectors

    def embed_text(self, text: str) -> Vectors:
        """Return the vector of a text that is to be stored."""
        raise NotImplementedError

    def embed_query(self, text: str) -> Vectors:
        return self.embed_text(text)

    def states(self, embedded: Vectors) -> Vectors:
        """Return the last state of each token; both of shape (tokens, WIDTH)."""
        with self._lock:
            try:
                (states,) = self._session.run((STATES,), {EMBEDDED: embedded[np.newaxis]})
            except Exception as error:  # noqa: BLE001 - the runtime's errors have no other class in common
                raise ProviderError(ProviderErrorKind.UNAVAILABLE, f"onnxruntime: {type(error).__name__}") from None
        found: Vectors = states[0]
        return found


class AbsentEncoder(Encoder):
    """Stands for a model that cannot be used: every text is refused with the reason."""

    def __init__(self, provider: str, model: str, dimensions: int, reason: str) -> None:
        self.provider, self.model, self.dimensions, self._reason = provider, model, dimensions, reason

    @property
    def problem(self) -> str:
        return f"queries are answered by keywords alone, because of {self._reason}"

    def embed_text(self, text: str) -> Vectors:  # noqa: ARG002 - as of every encoder
        raise ProviderError(ProviderErrorKind.UNAVAILABLE, self._reason)


def runtime_for(provider: str) -> Any:
    """Return the module onnxruntime. Raises ``ConfigError`` where it is not installed."""
    try:
        return import_without_telemetry("onnxruntime")
    except ImportError as error:
        raise ConfigError(
            f"embedding.provider {provider} needs onnxruntime, which is not installed or does not exist for this "
            "platform; choose embedded"
        ) from error


def check_hash(file: BufferedReader, digest: str) -> None:
    """Raise ``ValueError`` unless the file has this SHA-256."""
    if hashlib.file_digest(file, "sha256").hexdigest() != digest:
        raise ValueError(f"{Path(file.name).name} has another hash than this release expects")


def _sums_overflow() -> bool:
    """Return whether sums of products with int8 weights may overflow: on x86 processors without VNNI instructions.

    Source: onnxruntime, "Quantize ONNX models", "When to use U8U8".
    """
    if platform.machine() not in {"x86_64", "AMD64"}:
        return False
    try:
        return "vnni" not in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return True


def _session(runtime: Any, model: Model, name: str) -> Any:
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    # Without an arena, the memory of a long text is returned at once.
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    values = [runtime.OrtValue.ortvalue_from_numpy(numbers) for numbers in model.outside.values()]
    options.add_external_initializers(list(model.outside), values)
    try:
        return runtime.InferenceSession(model.content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime's errors have no other class in common
        raise ConfigError(f"the model {name} cannot be loaded: onnxruntime: {type(error).__name__}") from error
