"""Links from owners to targets, found from both sides and replaced by owner, in few bytes each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[Any]
Seqs = npt.NDArray[np.int64]

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
        if not len(rows) and owner not in self._recent and not len(self.of(owner)) and not self._added:
            return
        for target in self._recent.get(owner, rows[:0])["target"].tolist():
            self._recent_to[target].pop(owner, None)
        self._is_current[_range(self._owners, owner)] = False
        self._recent[owner] = rows
        for target in rows["target"].tolist():
            self._recent_to.setdefault(target, {})[owner] = None
        if len(self._recent) > max(_MOST_RECENT, len(self._rows) // _SHARE_RECENT) and not self._added:
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
        rows: Rows = self._rows[_range(self._owners, owner)]
        return rows

    def to(self, target: int) -> Rows:
        """Return the links to ``target``."""
        return self.to_each([target])[0]

    def to_each(self, targets: Sequence[int]) -> tuple[Rows, Seqs]:
        """Return the links to all of ``targets``, and at which place of these the target of each is."""
        wanted = np.array(targets, np.int32)
        first = np.searchsorted(self._targets, wanted)
        counts = np.searchsorted(self._targets, wanted, "right") - first
        place: Seqs = np.repeat(np.arange(len(wanted)), counts)
        at = self._by_target[np.arange(len(place)) + (first - counts.cumsum() + counts)[place]]
        if self._recent:
            is_current = self._is_current[at]
            at, place = at[is_current], place[is_current]
        rows: Rows = self._rows[at]
        for number, target in enumerate(targets if self._recent else ()):
            recent = [self._recent[owner] for owner in self._recent_to.get(target, ())]
            if recent:
                more = np.concatenate(recent)
                more = more[more["target"] == target]
                rows, place = np.concatenate((rows, more)), np.append(place, np.full(len(more), number))
        return rows, place


def _range(numbers: npt.NDArray[np.int32], number: int) -> slice:
    """Return where ``number`` is in ascending numbers. The search copies them unless the types are equal."""
    return slice(*np.searchsorted(numbers, np.array((number, number + 1), np.int32)).tolist())
