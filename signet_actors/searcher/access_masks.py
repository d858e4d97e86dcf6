"""Cached masks of the rows that a caller may read.

Most queries of an agent have the same policy, scope and project. Their mask is computed once. After a commit it is
extended by the new rows and corrected at the changed ones. Filters are applied to a copy.

Source: docs/decisions.md 35 (an accelerator: SQL authorises again); docs/performance.md "Recall targets".
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from signet_actors.searcher.columns import Mask, MemoryColumns, Seqs
from signet_actors.store.read_policy import Policy

_MAX_MASKS = 16


@dataclass(slots=True)
class _CachedMask:
    mask: Mask
    generation: int
    seen: int  # length of ``MemoryColumns.changed`` that the mask includes


class AccessMasks:
    """A bounded cache of masks by policy, scope and project; the least recently used are dropped first."""

    def __init__(self, columns: MemoryColumns) -> None:
        self._columns = columns
        self._cache: OrderedDict[tuple[Policy, str | None, tuple[str, ...]], _CachedMask] = OrderedDict()

    def mask(self, policy: Policy, scope: str | None, project: tuple[str, ...]) -> Mask:
        """Return the live rows that the policy admits in the scope, of one project if it is given by its names.

        The array is read-only, shape (columns.size,).
        """
        columns = self._columns
        key = (policy, scope, project)
        kept = self._cache.get(key)
        if kept is None or kept.generation != columns.generation:
            kept = _CachedMask(self._compute(key, slice(0, columns.size)), columns.generation, len(columns.changed))
            self._cache[key] = kept
            while len(self._cache) > _MAX_MASKS:
                self._cache.popitem(last=False)
        else:
            self._update(key, kept)
        self._cache.move_to_end(key)
        kept.mask.setflags(write=False)
        return kept.mask

    def _update(self, key: tuple[Policy, str | None, tuple[str, ...]], kept: _CachedMask) -> None:
        columns, known = self._columns, len(kept.mask)
        changed = np.array(columns.changed[kept.seen :], np.int64)
        changed = changed[changed < known]
        if columns.size == known and not len(changed):
            kept.seen = len(columns.changed)
            return
        mask = np.empty(columns.size, np.bool_)
        mask[:known] = kept.mask
        mask[known:] = self._compute(key, slice(known, columns.size))
        mask[changed] = self._compute(key, changed)
        kept.mask, kept.seen = mask, len(columns.changed)

    def _compute(self, key: tuple[Policy, str | None, tuple[str, ...]], rows: slice | Seqs) -> Mask:
        policy, scope, project = key
        mask = self._columns.readable(policy, scope, rows)
        if project:
            mask &= self._columns.in_project(project, rows)
        return mask
