"""A cache of posting lists: the rows that contain a phrase or have a tag.

Reading a row number from FTS5 costs 0.1 us, ranking it there costs 1 us. By Zipf's law the long lists belong to words
that later queries use again, so lists are cached and extended after each commit. A list keeps deleted rows, which the
mask of readable rows leaves out. When the words or tags of a known row change, all lists are dropped.

Source: docs/performance.md "Recall targets"; docs/quality.md rule 4.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from signet_actors.searcher.columns import MemoryColumns
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import text_index

Rows = npt.NDArray[np.int32]

MAX_CACHED_ROWS = 2_000_000
"""Limit of row numbers in all lists together, four bytes each."""
MAX_CACHED_LISTS = 4_096
"""Limit of lists, so that empty lists do not accumulate; the list of a rare word is quickly read again."""

RowsFrom = Callable[[Snapshot, str, int], str | None]
MATCH: RowsFrom = text_index.rows_containing
TAG: RowsFrom = text_index.rows_tagged


class Postings:
    """A bounded cache of posting lists by kind and argument; the least recently used are dropped first."""

    def __init__(self, columns: MemoryColumns) -> None:
        self._columns = columns
        self._text_version = columns.text_version
        self._cache: OrderedDict[tuple[RowsFrom, str], tuple[Rows, int]] = OrderedDict()
        self._rows = 0

    def lookup(self, snapshot: Snapshot, kind: RowsFrom, argument: str) -> Rows:
        """Return the rows that ``kind`` (``MATCH`` or ``TAG``) finds for ``argument``, each once.

        The columns must be synced to ``snapshot``. The result may contain rows that are no longer live.
        """
        columns = self._columns
        if self._text_version != columns.text_version:
            self._text_version = columns.text_version
            self._cache.clear()
            self._rows = 0
        key = (kind, argument)
        rows, size = self._cache.get(key, (_NOTHING, 0))
        if size < columns.size or key not in self._cache:
            fresh = _read(snapshot, kind, argument, size)
            self._rows += len(fresh)
            rows = np.concatenate((rows, fresh)) if len(rows) else fresh
            self._cache[key] = rows, columns.size
        self._cache.move_to_end(key)
        while (self._rows > MAX_CACHED_ROWS or len(self._cache) > MAX_CACHED_LISTS) and len(self._cache) > 1:
            _, (dropped, _) = self._cache.popitem(last=False)
            self._rows -= len(dropped)
        return rows


_NOTHING: Rows = np.zeros(0, np.int32)


def _read(snapshot: Snapshot, kind: RowsFrom, argument: str, least: int) -> Rows:
    listed = kind(snapshot, argument, least)
    return _NOTHING if listed is None else np.fromstring(listed, np.int64, sep=",").astype(np.int32)
