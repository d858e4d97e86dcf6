"""Epochs: which run of the writer gave out which ``embeddings.seq``; they match a vector file to its database.

A copy of the database keeps its id. If it is put back, it gives out the same numbers again for other vectors. So each
run of the writer (an epoch) has a random id and records after which number it began. A vector file names the epoch of
its last number. If the database has another epoch for that number, the file belongs to another history.

Source: docs/reliability.md R18.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import msgspec

STORE_META_KEY: Final = "vector_epochs"
_MOST_EPOCHS: Final = 32
"""A vector file whose last number is of an older epoch is rebuilt."""

_decoder = msgspec.json.Decoder(tuple[tuple[str, int], ...])


class _Reads(Protocol):
    def one(self, sql: str, bindings: Any = ...) -> Any | None: ...


class _Writes(_Reads, Protocol):
    def execute(self, sql: str, bindings: Any = ...) -> Any: ...


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


def read_stored(view: _Reads) -> str | None:
    """Return the stored epochs as text, so that callers can detect a change without decoding."""
    row = view.one("SELECT value FROM store_meta WHERE key = ?", (STORE_META_KEY,))
    return None if row is None else str(row[0])


def last_given_out(view: _Reads) -> int:
    """Return the highest ``embeddings.seq`` that was ever given out."""
    row = view.one("SELECT seq FROM sqlite_sequence WHERE name = 'embeddings'")
    return row[0] if row is not None and isinstance(row[0], int) else 0


def begin_epoch(tx: _Writes, epoch: str) -> None:
    """Record that a new run of the writer gives out numbers from here on."""
    stored = VectorEpochs(read_stored(tx)).begin(epoch, last_given_out(tx))
    tx.execute(
        "INSERT INTO store_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (STORE_META_KEY, stored),
    )
