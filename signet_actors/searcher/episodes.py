"""The order of memories in time, and the episodes that it falls into.

Rows of one agent, scope, project and session are ordered by creation, then arrival. An episode ends where the next row
is over half an hour later. A row that is imported late with an old date finds its place between the others.

The arrays are indexed by ``memories.seq`` and follow the columns after each commit.

Source: docs/quality.md "Context and priors".
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from signet_actors.searcher.columns import MemoryColumns

Rows = npt.NDArray[np.int64]

GAP_MS: Final = 30 * 60 * 1000
NONE: Final = -1
_NO_ROWS: Rows = np.zeros(0, np.int64)


class Episodes:
    """Neighbours and episodes of all live rows. Call ``sync`` after the columns are synced.

    ``left`` and ``right``: the rows before and after in the same session, ``NONE`` at its ends. ``episode``: a number,
    ``NONE`` for a row that is not live. ``group_of``: by episode, a number for its agent, scope and project.
    ``complete`` is False while rows are not in their places yet; such a row has no neighbours.
    """

    def __init__(self, columns: MemoryColumns) -> None:
        self._columns = columns
        self.generation = 0
        self._clear()

    def _clear(self) -> None:
        self.generation += 1
        self.complete = True
        self._moved: list[int] = []
        self._size = 0
        self._seen = 0
        self._columns_generation = self._columns.generation
        self.left: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self.right: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self.episode: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._session: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._sessions: dict[tuple[int, int, int, int], int] = {}
        self._groups: dict[tuple[int, int, int], int] = {}
        self._group_of_session: list[int] = []
        self._order: list[array[int]] = []  # by session: its live rows in order
        self.group_of: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self.count = 0

    @property
    def pending(self) -> int:
        """The number of rows that are not in their places yet."""
        return self._columns.size - self._size + len(self._columns.changed) - self._seen

    def sync(self, *, max_rows: int) -> Rows:
        """Place up to ``max_rows`` of the rows that the columns have added or changed since the last call.

        Return the rows whose left neighbour or episode has changed. A new ``generation`` stands for all rows.
        """
        columns = self._columns
        if self._columns_generation != columns.generation:
            self._clear()
        self._moved = []
        if self._size == columns.size and self._seen == len(columns.changed):
            return _NO_ROWS
        self._reserve(columns.size)
        if self._size == 0:
            self._build()
            return _NO_ROWS
        changed = columns.changed[self._seen : self._seen + max_rows]
        stop = min(columns.size, self._size + max_rows - len(changed))
        for seq in (*dict.fromkeys(seq for seq in changed if seq < self._size), *range(self._size, stop)):
            if not self._place(seq):
                self._clear()
                self._reserve(columns.size)
                self._build()
                return _NO_ROWS
        self._seen, self._size = self._seen + len(changed), stop
        self.complete = stop == columns.size and self._seen == len(columns.changed)
        return np.array(self._moved, np.int64)

    def _build(self) -> None:
        """Order all rows at once."""
        columns = self._columns
        rows = np.flatnonzero(columns.live[: columns.size])
        self._size, self._seen = columns.size, len(columns.changed)
        if not len(rows):
            return
        _, first, of_row = np.unique(columns.session_codes(rows), return_index=True, return_inverse=True)
        sessions = np.array([self._session_of(seq) for seq in rows[first].tolist()], np.int32)[of_row]
        self._session[rows] = sessions
        created = columns.created_ms[rows]
        by_time = np.lexsort((rows, created, sessions))
        order, sessions, created = rows[by_time], sessions[by_time], created[by_time]
        same = sessions[1:] == sessions[:-1]
        self.left[order[1:]] = np.where(same, order[:-1], NONE)
        self.right[order[:-1]] = np.where(same, order[1:], NONE)
        begins = np.append(True, ~same | (np.diff(created) > GAP_MS))
        self.episode[order] = np.cumsum(begins) - 1
        self.count = int(np.count_nonzero(begins))
        groups = np.array(self._group_of_session, np.int32)
        self.group_of = groups[sessions[begins]]
        bounds = np.append(np.flatnonzero(np.append(True, ~same)), len(order)).tolist()
        for start, stop in pairwise(bounds):
            self._order[int(sessions[start])] = array("i", order[start:stop].astype(np.int32).tobytes())

    def _place(self, seq: int) -> bool:
        """Put the row where it belongs now, or take it out if it is not live.

        Return False if the order is not sorted any more, because another program has changed a creation time.
        """
        session = self._session_of(seq) if self._columns.live[seq] else NONE
        if self._session[seq] == session:
            return True
        if self._session[seq] != NONE and not self._remove(seq):
            return False
        if session != NONE:
            self._insert(seq, session)
        return True

    def _session_of(self, seq: int) -> int:
        key = self._columns.session_key(seq)
        session = self._sessions.get(key)
        if session is None:
            session = self._sessions[key] = len(self._order)
            self._order.append(array("i"))
            self._group_of_session.append(self._groups.setdefault(key[:3], len(self._groups)))
        return session

    def _insert(self, seq: int, session: int) -> None:
        order, created = self._order[session], self._columns.created_ms
        at = self._position(order, seq)
        left = order[at - 1] if at else NONE
        right = order[at] if at < len(order) else NONE
        order.insert(at, seq)
        self._session[seq] = session
        self._link(left, seq)
        self._link(seq, right)
        near_left = left != NONE and created[seq] - created[left] <= GAP_MS
        near_right = right != NONE and created[right] - created[seq] <= GAP_MS
        if near_left:
            self.episode[seq] = self.episode[left]
            if near_right and self.episode[right] != self.episode[left]:
                self._renumber(order, at + 1, int(self.episode[left]))
        else:
            self.episode[seq] = self.episode[right] if near_right else self._new_episode(session)
        self._moved.append(seq)
        if right != NONE:
            self._moved.append(right)

    def _remove(self, seq: int) -> bool:
        session = int(self._session[seq])
        order, created = self._order[session], self._columns.created_ms
        at = self._position(order, seq)
        if at == len(order) or order[at] != seq:
            return False
        del order[at]
        left, right = int(self.left[seq]), int(self.right[seq])
        self._link(left, right)
        split = (
            NONE not in {left, right}
            and self.episode[left] == self.episode[right]
            and created[right] - created[left] > GAP_MS
        )
        self.left[seq] = self.right[seq] = self.episode[seq] = self._session[seq] = NONE
        if split:
            self._renumber(order, at, self._new_episode(session))
        self._moved.append(seq)
        if right != NONE:
            self._moved.append(right)
        return True

    def _position(self, order: array[int], seq: int) -> int:
        """Return where ``seq`` is in the order, or where it belongs."""
        created = self._columns.created_ms
        key = (int(created[seq]), seq)
        if not order or (int(created[order[-1]]), order[-1]) < key:
            return len(order)
        return bisect_left(order, key, key=lambda row: (int(created[row]), row))

    def _renumber(self, order: array[int], start: int, episode: int) -> None:
        """Give the rows of the episode that begins at position ``start`` another number."""
        rows = np.frombuffer(order, np.int32)[start:].copy()
        numbers = self.episode[rows]
        other = np.flatnonzero(numbers != numbers[0])
        rows = rows[: other[0]] if len(other) else rows
        self.episode[rows] = episode
        self._moved += rows.tolist()

    def _new_episode(self, session: int) -> int:
        if self.count == len(self.group_of):
            wider = np.zeros(max(1024, self.count * 3 // 2), np.int32)
            wider[: self.count] = self.group_of
            self.group_of = wider
        self.group_of[self.count] = self._group_of_session[session]
        self.count += 1
        return self.count - 1

    def _link(self, left: int, right: int) -> None:
        if left != NONE:
            self.right[left] = right
        if right != NONE:
            self.left[right] = left

    def _reserve(self, size: int) -> None:
        known = len(self.left)
        if size <= known:
            return
        capacity = max(size, 1024, known * 3 // 2)

        def grown(array_: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
            wider = np.full(capacity, NONE, np.int32)
            wider[:known] = array_
            return wider

        self.left, self.right, self.episode = grown(self.left), grown(self.right), grown(self.episode)
        self._session = grown(self._session)


def positions(seqs: Rows, wanted: Rows) -> Rows:
    """Return where each of ``wanted`` is in the sorted ``seqs``, ``len(seqs)`` if it is not there."""
    at = np.searchsorted(seqs, wanted)
    found = at < len(seqs)
    found[found] = seqs[at[found]] == wanted[found]
    return np.where(found, at, len(seqs))
