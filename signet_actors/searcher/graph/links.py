"""Links from owners to targets, found from both sides and replaced by owner, in few bytes each."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[Any]

_MOST_RECENT: Final = 512
_SHARE_RECENT: Final = 64


class Links:
    """Links as rows of a structured array; the first fields of its type are ``owner`` and ``target``, int32.

    Most rows are in one array in order of their owners. Those of owners that changed since are kept apart, so that a
    change costs microseconds, and are merged into the array when they are many.
    """

    def __init__(self, row: np.dtype[Any]) -> None:
        self.row = row
        self._rows: Rows = np.zeros(0, row)
        self._added: list[Rows] = []
        self._recent: dict[int, Rows] = {}
        self._recent_to: dict[int, dict[int, None]] = {}
        self._sort()

    def _sort(self) -> None:
        """Make the orders by which rows are found."""
        self._owners = np.ascontiguousarray(self._rows["owner"])
        self._by_target = np.argsort(self._rows["target"], kind="stable").astype(np.int32)
        self._targets = self._rows["target"][self._by_target]
        self._is_current = np.ones(len(self._rows), np.bool_)

    def add(self, rows: Rows) -> None:
        """Add links of owners that have none here; they are found after ``settle``."""
        self._added.append(rows)

    def settle(self) -> None:
        """Let the added links be found, but not those of owners that were ``put`` meanwhile."""
        added: Rows = np.concatenate((self._rows[:0], *self._added))
        self._added = []
        self._recent[-1] = added[~np.isin(added["owner"], list(self._recent))]
        self._merge()

    def put(self, owner: int, rows: Rows) -> None:
        """Replace all links of ``owner``."""
        if not len(rows) and owner not in self._recent and not len(self.of(owner)):
            return
        for target in self._recent.get(owner, rows[:0])["target"].tolist():
            self._recent_to[target].pop(owner, None)
        self._is_current[slice(*np.searchsorted(self._owners, (owner, owner + 1)))] = False
        self._recent[owner] = rows
        for target in rows["target"].tolist():
            self._recent_to.setdefault(target, {})[owner] = None
        if len(self._recent) > max(_MOST_RECENT, len(self._rows) // _SHARE_RECENT):
            self._merge()

    def _merge(self) -> None:
        self._rows = self.all()
        self._recent.clear()
        self._recent_to.clear()
        self._sort()

    def all(self) -> Rows:
        """Return all links in order of their owners."""
        rows: Rows = np.concatenate((self._rows[self._is_current], *self._recent.values()))
        return rows[np.argsort(rows["owner"], kind="stable")]

    def of(self, owner: int) -> Rows:
        """Return the links of ``owner``."""
        recent = self._recent.get(owner)
        if recent is not None:
            return recent
        rows: Rows = self._rows[slice(*np.searchsorted(self._owners, (owner, owner + 1)))]
        return rows

    def to(self, target: int) -> Rows:
        """Return the links to ``target``."""
        at = self._by_target[slice(*np.searchsorted(self._targets, (target, target + 1)))]
        rows: Rows = self._rows[at[self._is_current[at]]]
        recent = [self._recent[owner] for owner in self._recent_to.get(target, ())]
        if not recent:
            return rows
        return np.concatenate((rows, *(each[each["target"] == target] for each in recent)))
