"""Which tags each memory has, as arrays: one entry for each tag of each memory.

The entries follow the table by steps of new rows. Those of rows that changed since are read again some at a time, the
last ones by the next count.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from signet_actors.searcher.columns import Mask, MemoryColumns
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import columns as stored
from signet_actors.store.rows import decode_tags

_MANY_CHANGES: Final = 500


class MemoryTags:
    """The tags of the rows of ``columns``, which must be synced to the same snapshot first."""

    def __init__(self, columns: MemoryColumns) -> None:
        self._columns = columns
        self._clear()

    def _clear(self) -> None:
        self._generation = self._columns.generation
        self._rows = array("i")
        self._codes = array("i")
        self._dictionary: dict[str, int] = {}
        self._size = self._seen = 0

    @property
    def complete(self) -> bool:
        """True if the entries include every row of the columns."""
        return self._generation == self._columns.generation and self._size >= self._columns.size

    def sync(self, snapshot: Snapshot, *, max_rows: int) -> None:
        """Read the tags of at most ``max_rows`` rows that are new, and of those that changed if they are many."""
        columns = self._columns
        if self._generation != columns.generation:
            self._clear()
        if not self._size:
            self._seen = len(columns.changed)  # every row is read as it is now, or later
        if len(columns.changed) - self._seen >= _MANY_CHANGES:
            self._read_changed(snapshot)
        if self._size < columns.size:
            end = min(self._size + max_rows, columns.size)
            self._add(stored.tags_between(snapshot, self._size, end))
            self._size = end

    def _add(self, rows: Iterable[tuple[int, str]]) -> None:
        """Add the tags of all rows. Raises ``StoredValueInvalid`` if one cannot be read; then none is added."""
        known = self._dictionary
        for seq, tags in [(seq, decode_tags(text)) for seq, text in rows]:
            for tag in tags:
                self._rows.append(seq)
                self._codes.append(known.setdefault(tag, len(known)))

    def _complete(self, snapshot: Snapshot) -> None:
        """Read what is missing, and the rows that changed after they were read."""
        self.sync(snapshot, max_rows=max(1, self._columns.size))
        self._read_changed(snapshot)

    def _read_changed(self, snapshot: Snapshot) -> None:
        columns = self._columns
        changed = sorted({row for row in columns.changed[self._seen :] if row < self._size})
        self._seen = len(columns.changed)
        if not changed:
            return
        outdated = np.zeros(columns.size, np.bool_)
        outdated[changed] = True
        rows, codes = np.array(self._rows, np.int32), np.array(self._codes, np.int32)
        kept = ~outdated[rows]
        self._rows, self._codes = array("i", rows[kept].tobytes()), array("i", codes[kept].tobytes())
        for start in range(0, len(changed), stored.BATCH):
            self._add(stored.tags_of_seqs(snapshot, changed[start : start + stored.BATCH]))

    def with_any(self, snapshot: Snapshot, tags: Iterable[str]) -> Mask:
        """Return which rows, deleted ones too, have at least one of the tags; shape (columns.size,)."""
        self._complete(snapshot)
        wanted = np.zeros(len(self._dictionary) + 1, np.bool_)
        wanted[[self._dictionary.get(tag, -1) for tag in tags]] = True
        wanted[-1] = False
        found = np.zeros(self._columns.size, np.bool_)
        found[np.array(self._rows, np.int32)[wanted[np.array(self._codes, np.int32)]]] = True
        return found

    def counts(self, snapshot: Snapshot, mask: Mask) -> Mapping[str, int]:
        """Return how many rows of ``mask``, shape (columns.size,), have each tag, without tags that none has."""
        self._complete(snapshot)
        codes = np.array(self._codes, np.int32)[mask[np.array(self._rows, np.int32)]]
        numbers = np.bincount(codes, minlength=len(self._dictionary)).tolist()
        return {tag: number for tag, number in zip(self._dictionary, numbers, strict=True) if number}
