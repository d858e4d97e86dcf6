"""Embeddings by an ONNX model in this process, through the optional package fastembed.

The package downloads a named model when it is first loaded; the user requests this by naming it. A model given as a
local directory is loaded from there, without a download.

Source: docs/decisions.md 22 and 27; fastembed's own documentation, "Supported models" and "Adding new models".
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from signet_actors.config.embedding_models import DEFAULT_FASTEMBED_MODEL, local_model_name
from signet_actors.errors import ConfigError, ProviderError
from signet_actors.providers.embedding import Vectors, import_without_telemetry, unit_vectors

MAX_TEXT_CHARS: Final = 8000
_BATCH_TEXTS: Final = 16
_ONNX_FILES: Final = ("model.onnx", "onnx/model.onnx", "model_optimized.onnx")


class FastembedEmbedder:
    """One loaded model; a text takes some milliseconds. Thread-safe."""

    provider: Final = "fastembed"
    local: Final = False
    token_codes: Final = None
    endpoint: Final = None

    def __init__(self, model: str, dimensions: int) -> None:
        """Load the ``model``, a name of fastembed's or a directory with an ONNX model. Raises ``ConfigError``."""
        self.model = model or DEFAULT_FASTEMBED_MODEL
        self.dimensions = dimensions
        try:
            package = import_without_telemetry("fastembed")
        except ImportError as error:
            raise ConfigError(
                "embedding.provider fastembed needs the optional dependency fastembed, which is not installed: "
                "pip install 'signet-actors[fastembed]'"
            ) from error
        folder = Path(self.model).expanduser()
        where: dict[str, Any] = {}
        try:
            if folder.is_dir():
                self.model = local_model_name(folder)
                _make_known(package, self.model, folder, dimensions)
                where["specific_model_path"] = str(folder)
            self._embedding = package.TextEmbedding(model_name=self.model, **where)
            width = self.embed(["width"]).shape[1]
        except ConfigError:
            raise
        except ProviderError as error:
            raise ConfigError(error.detail) from error
        except Exception as error:  # whatever the runtime, the tokenizer or the hub raise
            raise ConfigError(f"the fastembed model {self.model} cannot be loaded ({type(error).__name__})") from error
        assert width == dimensions, "unit_vectors lets no other through"

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self._rows(texts, self._embedding.embed)

    def embed_query(self, text: str) -> Vectors:
        row: Vectors = self._rows([text], self._embedding.query_embed)[0]
        return row

    def _rows(self, texts: Sequence[str], how: Any) -> Vectors:
        vectors: Vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        places = [place for place, text in enumerate(texts) if text.strip()]
        if places:
            given = [texts[place][:MAX_TEXT_CHARS] for place in places]
            rows = list(how(given, batch_size=_BATCH_TEXTS))
            vectors[places] = unit_vectors(rows, len(places), self.dimensions, f"the fastembed model {self.model}")
        return vectors


def _make_known(package: Any, name: str, folder: Path, dimensions: int) -> None:
    """Register the model in ``folder`` with fastembed as ``name``, with mean pooling and normalisation."""
    file = next((file for file in _ONNX_FILES if (folder / file).is_file()), None)
    if file is None:
        raise ConfigError(f"embedding.model {folder}: no ONNX model in it ({' or '.join(_ONNX_FILES)})")
    if any(known["model"] == name for known in package.TextEmbedding.list_supported_models()):
        return
    description = importlib.import_module("fastembed.common.model_description")
    package.TextEmbedding.add_custom_model(
        model=name,
        pooling=description.PoolingType.MEAN,
        normalization=True,
        sources=description.ModelSource(url="file://"),
        dim=dimensions,
        model_file=file,
    )
