"""Which words are subjects in what a caller may read: first words, such as speakers, of at least 2 % of the rows.

Source: docs/quality.md "Context and priors".
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable
from typing import Final

import numpy as np
import numpy.typing as npt

from signet_actors.searcher.columns import Mask, MemoryColumns
from signet_actors.searcher.row_flags import RowFlags

SHARE: Final = 0.02
ROWS_AT_LEAST: Final = 5
_BUCKETS: Final = 65_536
_MAX_SCOPES: Final = 16


class _Counted:
    """The rows of one scope up to ``size``, counted by the low 16 bits of their subject."""

    def __init__(self) -> None:
        self.buckets: npt.NDArray[np.int64] = np.zeros(_BUCKETS, np.int64)
        self.rows = self.size = 0


class Subjects:
    """The subjects of each scope, counted once and then with each commit; the least recently used are dropped."""

    def __init__(self, columns: MemoryColumns, flags: RowFlags) -> None:
        self._columns, self._flags = columns, flags
        self._scopes: OrderedDict[Hashable, tuple[_Counted, tuple[object, ...]]] = OrderedDict()

    def find(self, scope: Hashable, readable: Mask, codes: Collection[int]) -> int:
        """Return the one of ``codes`` that is a subject of the ``readable`` rows, 0 if none or several are.

        ``scope`` is a key for what is readable, apart from commits.
        """
        counted = self._count(scope, readable)
        least = max(ROWS_AT_LEAST, SHARE * counted.rows)
        found = 0
        for code in codes:
            if counted.buckets[code % _BUCKETS] < least:
                continue
            # Another word may be in the same bucket.
            subject = self._flags.records["subject"][: len(readable)]
            if np.count_nonzero((subject == code) & readable) < least:
                continue
            if found:
                return 0
            found = code
        return found

    def _count(self, scope: Hashable, readable: Mask) -> _Counted:
        # A change of a row counts twice: when it is seen, and when its flags are up to date.
        state = (self._columns.generation, len(self._columns.changed), self._flags.changes_seen)
        counted, counted_state = self._scopes.get(scope, (None, state))
        if counted is None or counted_state != state:
            counted = _Counted()
        known = min(self._flags.checked, len(readable))  # during a large import further rows have no record yet
        new = slice(counted.size, known)
        subjects = self._flags.records["subject"][new][readable[new]]
        if len(subjects):
            counted.buckets += np.bincount(subjects % _BUCKETS, minlength=_BUCKETS)
            counted.rows += len(subjects)
        counted.size = max(counted.size, known)
        self._scopes[scope] = counted, state
        self._scopes.move_to_end(scope)
        while len(self._scopes) > _MAX_SCOPES:
            self._scopes.popitem(last=False)
        return counted
