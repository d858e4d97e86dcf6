"""Which episodes are conversations: those whose neighbours are more alike than any two rows of the same group.

Context helps where neighbours belong together. In a bulk import they do not, and support from a neighbour would only
add noise; there the gate stays closed. All sums follow the commits: a row that is added, changed or deleted costs one
product per pair that it belongs to.

Source: docs/quality.md "Context and priors".
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from signet_actors.searcher.columns import MemoryColumns
from signet_actors.searcher.episodes import NONE, Episodes
from signet_actors.searcher.legs.vector import VectorLeg

Rows = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Gate(NamedTuple):
    """An episode is open if its coherence is at least ``least``; ``prior_pairs`` weigh the mean of its group."""

    prior_pairs: int
    least: float


EMBEDDED: Final = Gate(prior_pairs=20, least=0.03)
OTHER: Final = Gate(prior_pairs=5, least=0.04)
"""Chosen on the development half of LoCoMo: for the embedded model's vectors, and for those of a transformer."""


class Coherence:
    """The coherence of all episodes in one vector space. Call ``sync`` after the episodes and the leg are synced.

    The coherence of an episode with n pairs of neighbours is ``(sum of their cosines + P * mean of the group) /
    (n + P) - |mean vector of the group|^2``; P is ``Gate.prior_pairs``. An episode of one row is closed.
    """

    def __init__(self, columns: MemoryColumns, episodes: Episodes, leg: VectorLeg, gate: Gate) -> None:
        self._columns, self._episodes, self._leg, self._gate = columns, episodes, leg, gate
        self._generations = (-1, -1)
        self._clear()

    def _clear(self) -> None:
        self._version: object = None
        # Rows that still have to be counted: those whose vector had changed at ``_version``, and those that were moved.
        self._stale: Rows = np.zeros(0, np.int64)
        self._left_over: Rows = np.zeros(0, np.int64)
        self._newest: npt.NDArray[np.int32] = np.zeros(0, np.int32)  # by row: the record of its vector at ``_version``
        self.complete = False
        self.pending = 0
        # By row: the counted pair with its left neighbour, the counted vector, and where they were counted.
        self._cosine: npt.NDArray[np.float32] = np.zeros(0, np.float32)
        self._pair_episode: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._record: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._vector_group: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        # By episode and by group: the sum of the counted cosines and their number.
        self._sums: npt.NDArray[np.float64] = np.zeros(0)
        self._pairs: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._group_sums: npt.NDArray[np.float64] = np.zeros(0)
        self._group_pairs: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._group_rows: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._group_vectors: npt.NDArray[np.float64] = np.zeros((0, self._leg.matrix.dimensions))
        # By group: the mean cosine of neighbours, and the square of the mean vector's length.
        self._typical: npt.NDArray[np.float64] = np.zeros(0)
        self._chance: npt.NDArray[np.float64] = np.zeros(0)
        self._changed_groups: set[int] = set()

    def sync(self, moved: Rows, *, max_rows: int) -> None:
        """Count up to ``max_rows`` of the rows that have changed; ``moved`` is the result of ``Episodes.sync``.

        ``complete`` is False while rows are not counted yet; their episodes may still be closed.
        """
        columns, episodes, leg = self._columns, self._episodes, self._leg
        generations = (episodes.generation, leg.matrix.generation)
        if self._generations != generations:
            self._clear()
        version = (columns.version, leg.indexed_records)
        if self._version == version and self.complete and not len(moved):
            return
        self._generations = (-1, -1)  # after an exception, all is counted again
        self._reserve()
        if self._version != version and not len(self._stale):
            newest = leg.records(columns.live)
            self._newest[: len(newest)], self._newest[len(newest) :] = newest, NONE
            self._stale = np.flatnonzero(self._present(slice(columns.size)) != self._record[: columns.size])
            self._version = version
        moved = np.concatenate((self._left_over, moved))
        stale, self._stale = self._stale[:max_rows], self._stale[max_rows:]
        moved, self._left_over = moved[:max_rows], moved[max_rows:]
        self.pending = max(len(self._stale), len(self._left_over))
        self.complete = self.pending == 0 and self._version == version
        right = episodes.right[stale].astype(np.int64)
        rows = np.unique(np.concatenate((stale, right[right != NONE], moved)))
        self._subtract_pairs(rows)
        self._count_vectors(rows)
        self._add_pairs(rows)
        self._update_means()
        self._generations = generations

    def is_open(self, numbers: npt.NDArray[np.int32]) -> Bools:
        """Return whether each of the episodes is open; False for ``NONE``. Shape (len(numbers),)."""
        if not self._episodes.count:
            return np.zeros(len(numbers), np.bool_)
        group, prior = self._episodes.group_of[numbers], self._gate.prior_pairs
        pairs, chance = self._pairs[numbers], self._chance[group]
        coherence = (self._sums[numbers] + prior * self._typical[group]) / (pairs + prior) - chance
        open_: Bools = (numbers != NONE) & (pairs > 0) & (coherence >= self._gate.least)
        return open_

    def _subtract_pairs(self, rows: Rows) -> None:
        counted = rows[self._pair_episode[rows] != NONE]
        self._sum_up(counted, self._pair_episode[counted], -1)
        self._pair_episode[counted] = NONE

    def _add_pairs(self, rows: Rows) -> None:
        episodes = self._episodes
        left = episodes.left[rows]
        rows, left = rows[left != NONE], left[left != NONE]
        paired = (
            (episodes.episode[rows] == episodes.episode[left]) & (self._record[rows] >= 0) & (self._record[left] >= 0)
        )
        rows, left = rows[paired], left[paired]
        if not len(rows):
            return
        vectors = self._leg.matrix.vectors
        self._cosine[rows] = np.einsum("ij,ij->i", vectors[self._record[rows]], vectors[self._record[left]])
        self._pair_episode[rows] = episodes.episode[rows]
        self._sum_up(rows, self._pair_episode[rows], 1)

    def _sum_up(self, rows: Rows, episode: npt.NDArray[np.int32], sign: int) -> None:
        group, cosines = self._episodes.group_of[episode], sign * self._cosine[rows].astype(np.float64)
        np.add.at(self._sums, episode, cosines)
        np.add.at(self._pairs, episode, sign)
        np.add.at(self._group_sums, group, cosines)
        np.add.at(self._group_pairs, group, sign)
        self._changed_groups.update(np.unique(group).tolist())

    def _present(self, rows: Rows | slice) -> npt.NDArray[np.int32]:
        """Return the record of each row's vector at ``_version``, ``NONE`` for a row without a vector or an episode."""
        return np.where(self._episodes.episode[rows] == NONE, np.int32(NONE), self._newest[rows])

    def _count_vectors(self, rows: Rows) -> None:
        """Replace the counted vectors of ``rows`` by their present ones."""
        episode, present = self._episodes.episode[rows], self._present(rows)
        group = np.where(present == NONE, NONE, self._episodes.group_of[episode])
        changed = (present != self._record[rows]) | (group != self._vector_group[rows])
        rows, present, group = rows[changed], present[changed], group[changed]
        self._add_vectors(self._record[rows], self._vector_group[rows], -1)
        self._record[rows], self._vector_group[rows] = present, group
        self._add_vectors(present, group, 1)

    def _add_vectors(self, records: npt.NDArray[np.int32], groups: npt.NDArray[np.int32], sign: int) -> None:
        counted = records != NONE
        records, groups = records[counted], groups[counted]
        if not len(records):
            return
        order = np.argsort(groups, kind="stable")
        starts = np.flatnonzero(np.append(True, np.diff(groups[order]) != 0))
        changed = groups[order][starts]
        sums = np.add.reduceat(self._leg.matrix.vectors[records[order]], starts, axis=0, dtype=np.float64)
        self._group_vectors[changed] += sign * sums
        self._group_rows[changed] += sign * np.diff(np.append(starts, len(order)))
        self._changed_groups.update(changed.tolist())

    def _update_means(self) -> None:
        groups = np.array(sorted(self._changed_groups), np.int64)
        self._changed_groups.clear()
        means = self._group_vectors[groups] / np.maximum(self._group_rows[groups], 1)[:, None]
        self._chance[groups] = np.einsum("ij,ij->i", means, means)
        counted = self._group_pairs[groups]
        typical = self._group_sums[groups] / np.maximum(counted, 1)
        self._typical[groups] = np.where(counted > 0, typical, self._chance[groups])

    def _reserve(self) -> None:
        rows, episodes = len(self._episodes.left), len(self._episodes.group_of)
        groups = int(self._episodes.group_of[: self._episodes.count].max(initial=NONE)) + 1
        self._cosine = _grown(self._cosine, rows, 0)
        self._pair_episode = _grown(self._pair_episode, rows, NONE)
        self._record = _grown(self._record, rows, NONE)
        self._newest = _grown(self._newest, rows, NONE)
        self._vector_group = _grown(self._vector_group, rows, NONE)
        self._sums, self._pairs = _grown(self._sums, episodes, 0), _grown(self._pairs, episodes, 0)
        self._group_sums, self._group_pairs = _grown(self._group_sums, groups, 0), _grown(self._group_pairs, groups, 0)
        self._group_rows = _grown(self._group_rows, groups, 0)
        self._typical, self._chance = _grown(self._typical, groups, 0), _grown(self._chance, groups, 0)
        if groups > len(self._group_vectors):
            wider = np.zeros((max(groups, len(self._group_vectors) * 3 // 2), self._group_vectors.shape[1]))
            wider[: len(self._group_vectors)] = self._group_vectors
            self._group_vectors = wider


def _grown(array: npt.NDArray[np.generic], size: int, fill: int) -> npt.NDArray:  # type: ignore[type-arg]
    """Return ``array`` with at least ``size`` elements, the new ones equal to ``fill``."""
    if size <= len(array):
        return array
    wider = np.full(max(size, len(array) * 3 // 2), fill, array.dtype)
    wider[: len(array)] = array
    return wider
