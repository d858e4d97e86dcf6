"""Which run of the writer gave out which ``embeddings.seq``, so that a file of vectors can be matched to its database.

A copy of the database keeps its id. Once it is put back, it gives out the same numbers again for other vectors. So each
run of the writer (an epoch) has a random id and notes after which number it began. A file of vectors names the epoch
of its last number. Where the database names another epoch for that number, their histories have parted.

Source: docs/reliability.md R18.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import msgspec

_KEY: Final = "vector_epochs"
_MOST_EPOCHS: Final = 32
"""A file whose last number is of an earlier epoch than these is built anew."""

_decoder = msgspec.json.Decoder(tuple[tuple[str, int], ...])


class _Reads(Protocol):
    def one(self, sql: str, bindings: Any = ...) -> Any | None: ...


class _Writes(_Reads, Protocol):
    def execute(self, sql: str, bindings: Any = ...) -> Any: ...


class VectorEpochs:
    """The epochs of one database, each with the number after which it began."""

    def __init__(self, stored: str | None = None) -> None:
        """``stored`` is what ``read_stored`` returned. A text that cannot be read is as none: no file matches it."""
        self.stored = stored
        try:
            self._epochs = _decoder.decode(stored) if stored is not None else ()
        except msgspec.MsgspecError:
            self._epochs = ()

    def of(self, seq: int) -> str:
        """Return the epoch that gave out ``seq``, or an empty string where that is not known."""
        for epoch, began_after in reversed(self._epochs):
            if seq > began_after:
                return epoch
        return ""

    def begin(self, epoch: str, last_seq: int) -> str:
        """Return what to store when an epoch begins after ``last_seq``; epochs that gave out nothing are left out.

        Numbers that were given out before epochs were noted are counted to the first one.
        """
        used = [(name, after) for name, after in self._epochs if after < last_seq]
        used.append((epoch, last_seq if used else 0))
        return msgspec.json.encode(used[-_MOST_EPOCHS:]).decode()


def read_stored(view: _Reads) -> str | None:
    """Return the stored epochs. A text that is equal to an earlier one need not be decoded again."""
    row = view.one("SELECT value FROM store_meta WHERE key = ?", (_KEY,))
    return None if row is None else str(row[0])


def last_given_out(view: _Reads) -> int:
    """Return the highest ``embeddings.seq`` that was ever given out."""
    row = view.one("SELECT seq FROM sqlite_sequence WHERE name = 'embeddings'")
    return row[0] if row is not None and isinstance(row[0], int) else 0


def begin_epoch(tx: _Writes, epoch: str) -> None:
    """Note that from here on another run of the writer gives out numbers."""
    stored = VectorEpochs(read_stored(tx)).begin(epoch, last_given_out(tx))
    tx.execute(
        "INSERT INTO store_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (_KEY, stored),
    )
