"""Epochs: which run of the writer gave out which ``embeddings.seq``; they match a vector file to its database.

A copy of the database keeps its id. If it is put back, it gives out the same numbers again for other vectors. So each
run of the writer (an epoch) has a random id and records after which number it began. A vector file names the epoch of
its last number. If the database has another epoch for that number, the file belongs to another history.

Source: docs/reliability.md R18.
"""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.store.engine import Reads

STORE_META_KEY: Final = "vector_epochs"
_MOST_EPOCHS: Final = 32
"""A vector file whose last number is of an older epoch is rebuilt."""

_decoder = msgspec.json.Decoder(tuple[tuple[str, int], ...])


class VectorEpochs:
    """The epochs of one database, each with the number after which it began."""

    def __init__(self, stored: str | None = None) -> None:
        """Decode ``stored``, the result of ``read_stored``. An invalid text counts as no epochs: no file matches."""
        self.stored = stored
        try:
            self._epochs = _decoder.decode(stored) if stored is not None else ()
        except msgspec.MsgspecError:
            self._epochs = ()

    @property
    def names(self) -> list[str]:
        """The ids of the epochs, oldest first."""
        return [name for name, _ in self._epochs]

    def of(self, seq: int) -> str:
        """Return the epoch that gave out ``seq``, or an empty string if it is not known."""
        for epoch, began_after in reversed(self._epochs):
            if seq > began_after:
                return epoch
        return ""

    def begin(self, epoch: str, last_seq: int) -> str:
        """Return the text to store when an epoch begins after ``last_seq``. Epochs without numbers are left out.

        Numbers from before epochs were recorded count as numbers of the first epoch.
        """
        used = [(name, after) for name, after in self._epochs if after < last_seq]
        used.append((epoch, last_seq if used else 0))
        return msgspec.json.encode(used[-_MOST_EPOCHS:]).decode()


def read_stored(view: Reads) -> str | None:
    """Return the stored epochs as text, so that callers can detect a change without decoding."""
    stored = view.value("SELECT s.value FROM store_meta s WHERE s.key = :key", {"key": STORE_META_KEY})
    return None if stored is None else str(stored)
