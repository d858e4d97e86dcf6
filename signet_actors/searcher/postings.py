"""Which rows hold a phrase or a tag: argument of the index, kept, and extended by what was committed since.

Reading a row number out of FTS5 costs a tenth of a microsecond and ranking it there one; words follow Zipf's law, so
the lists that are long are also those that the next query needs again. A list holds every row that ever matched: rows
that were deleted since are left out by the mask of admitted rows, and as soon as a known row may match other words
than before, all lists are forgotten.

Source: docs/performance.md "Recall targets"; docs/quality.md rule 4.
"""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import numpy.typing as npt

from signet_actors.searcher.columns import MemoryColumns
from signet_actors.store.snapshot import Snapshot

Rows = npt.NDArray[np.int32]

MAX_CACHED_ROWS = 2_000_000
"""Row numbers kept in all lists together, four bytes each."""
MAX_CACHED_LISTS = 4_096
"""Lists kept, so that words that no row holds do not pile up; a rare word's list is soon read again."""

MATCH = "SELECT group_concat(rowid) FROM memories_fts WHERE memories_fts MATCH ? AND rowid >= ?"
TAG = "SELECT group_concat(memory_seq) FROM memory_tags WHERE tag = ? AND memory_seq >= ?"


class Postings:
    """Lists by statement and what it asks for; the least recently used go first."""

    def __init__(self, columns: MemoryColumns) -> None:
        self._columns = columns
        self._text_version = columns.text_version
        self._cache: OrderedDict[tuple[str, str], tuple[Rows, int]] = OrderedDict()
        self._rows = 0

    def lookup(self, snapshot: Snapshot, statement: str, argument: str) -> Rows:
        """The rows that ``statement`` (``MATCH`` or ``TAG``) finds for ``argument``, each once.

        The columns must show ``snapshot``. Rows that are no longer live may be among them.
        """
        columns = self._columns
        if self._text_version != columns.text_version:
            self._text_version = columns.text_version
            self._cache.clear()
            self._rows = 0
        key = (statement, argument)
        rows, size = self._cache.get(key, (_NOTHING, 0))
        if size < columns.size or key not in self._cache:
            fresh = _read(snapshot, statement, argument, size)
            self._rows += len(fresh)
            rows = np.concatenate((rows, fresh)) if len(rows) else fresh
            self._cache[key] = rows, columns.size
        self._cache.move_to_end(key)
        while (self._rows > MAX_CACHED_ROWS or len(self._cache) > MAX_CACHED_LISTS) and len(self._cache) > 1:
            _, (dropped, _) = self._cache.popitem(last=False)
            self._rows -= len(dropped)
        return rows


_NOTHING: Rows = np.zeros(0, np.int32)


def _read(snapshot: Snapshot, statement: str, argument: str, least: int) -> Rows:
    # One string and not a tuple per row: the rows of a frequent word are many.
    listed: str | None = snapshot.value(statement, (argument, least))
    return _NOTHING if listed is None else np.fromstring(listed, np.int64, sep=",").astype(np.int32)
