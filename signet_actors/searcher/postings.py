"""Which rows hold a phrase or a tag: asked of the index, kept, and extended by what was committed since.

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

KEPT_ROWS = 2_000_000
"""Row numbers kept in all lists together, four bytes each."""
KEPT_LISTS = 4_096
"""Lists kept, so that words that no row holds do not pile up; a rare word's list is soon read again."""

MATCH = "SELECT group_concat(rowid) FROM memories_fts WHERE memories_fts MATCH ? AND rowid >= ?"
TAG = "SELECT group_concat(memory_seq) FROM memory_tags WHERE tag = ? AND memory_seq >= ?"


class Postings:
    """Lists by statement and what it asks for; the least recently used go first."""

    def __init__(self, columns: MemoryColumns) -> None:
        self._columns = columns
        self._texts = columns.texts
        self._kept: OrderedDict[tuple[str, str], tuple[Rows, int]] = OrderedDict()
        self._rows = 0

    def of(self, view: Snapshot, statement: str, asked: str) -> Rows:
        """The rows that ``statement`` (``MATCH`` or ``TAG``) finds for ``asked``, each once.

        The columns must show ``view``. Rows that are no longer live may be among them.
        """
        columns = self._columns
        if self._texts != columns.texts:
            self._texts = columns.texts
            self._kept.clear()
            self._rows = 0
        key = (statement, asked)
        rows, until = self._kept.get(key, (_NOTHING, 0))
        if until < columns.size or key not in self._kept:
            fresh = _read(view, statement, asked, until)
            self._rows += len(fresh)
            rows = np.concatenate((rows, fresh)) if len(rows) else fresh
            self._kept[key] = rows, columns.size
        self._kept.move_to_end(key)
        while (self._rows > KEPT_ROWS or len(self._kept) > KEPT_LISTS) and len(self._kept) > 1:
            _, (dropped, _) = self._kept.popitem(last=False)
            self._rows -= len(dropped)
        return rows


_NOTHING: Rows = np.zeros(0, np.int32)


def _read(view: Snapshot, statement: str, asked: str, least: int) -> Rows:
    # One string and not a tuple per row: the rows of a frequent word are many.
    listed: str | None = view.value(statement, (asked, least))
    return _NOTHING if listed is None else np.fromstring(listed, np.int64, sep=",").astype(np.int32)
