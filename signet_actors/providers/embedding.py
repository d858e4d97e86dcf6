"""What an embedding back end is, whichever it is.

Source: architecture of the providers room in house.md section 1; decisions.md 22 and 23.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into unit vectors.

    ``provider``, ``model`` name it in answers and in the ``embeddings`` rows; ``dimensions`` is the width of every
    vector; ``local`` is true when a text costs microseconds and no network, so that a caller may embed inline;
    ``endpoint`` is the address of a network back end, else None.
    """

    @property
    def provider(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    @property
    def local(self) -> bool: ...

    @property
    def endpoint(self) -> str | None: ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One L2-normalised float32 row per text, shape (n, dimensions).

        A text that has no meaning to the model (no token, no finite vector) is a row of zeros: not embeddable, and
        to be stored without a vector. May block; raises ``SignetError`` when the back end cannot answer.
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """The same for one query text, shape (dimensions,); back ends with a query prefix add it here."""
        ...
