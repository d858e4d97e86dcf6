"""The rows' filterable columns in memory, following commits, so that a filter is a few array operations.

An accelerator, never an authority: what it admits is authorised again in SQL before any content is read. Arrays are
indexed by ``memories.seq``. New rows have a higher ``seq``; changes of known rows come from ``memory_changes``.

Source: house.md section 2 "recall"; decisions.md 35.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from signet_actors.protocol.memories import Filters
from signet_actors.store.read_policy import Policy
from signet_actors.store.snapshot import Snapshot

Mask = npt.NDArray[np.bool_]

_CODED = ("agent_id", "visibility", "scope", "project", "type", "who", "source_type")
_SELECT = (
    "SELECT seq, is_deleted, agent_id, visibility, coalesce(scope, ''), coalesce(project, ''), type,"
    " coalesce(who, ''), coalesce(source_type, ''), pinned, importance,"
    " CAST(round(unixepoch(created_at, 'subsec') * 1000) AS INTEGER), coalesce(embedding_seq, 0) FROM memories"
)
_BATCH = 20_000


class MemoryColumns:
    """Call ``follow`` inside a snapshot before using the arrays; they then show exactly that snapshot.

    ``version`` changes whenever they do.
    """

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.size = 0  # highest known seq + 1
        self._last_change = 0
        self.live: Mask = np.zeros(0, np.bool_)
        self.pinned: Mask = np.zeros(0, np.bool_)
        self.importance: npt.NDArray[np.float64] = np.zeros(0, np.float64)
        self.created_ms: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self.embedding_seq: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._codes: dict[str, npt.NDArray[np.int32]] = {name: np.zeros(0, np.int32) for name in _CODED}
        self._dictionary: dict[str, dict[str, int]] = {name: {"": 0} for name in _CODED}
        self.version: int | None = None

    def follow(self, view: Snapshot) -> bool:
        """The arrays show ``view``; True when anything had changed since the last call."""
        version = view.value("PRAGMA data_version")
        if version == self.version:
            return False
        row = view.one(
            "SELECT (SELECT min(change) FROM memory_changes),"
            " (SELECT seq FROM sqlite_sequence WHERE name = 'memory_changes')"
        )
        oldest, newest = row if row is not None else (None, None)
        newest = newest or 0
        if newest > self._last_change and (oldest is None or oldest > self._last_change + 1):
            self._clear()  # the feed was cut before we read it
        if newest > self._last_change and self.size:
            self._apply_changes(view)
        self._last_change = newest
        self._append(view)
        self.version = version
        return True

    def admit(self, policy: Policy, scope: str | None, filters: Filters) -> Mask:
        """Which rows the policy and the filters admit; tags are left to SQL. Shape (size,)."""
        n = self.size
        mask = self.live[:n].copy()
        visibility, agent = self._codes["visibility"][:n], self._codes["agent_id"][:n]
        own = agent == self._code("agent_id", policy.agent_id)
        shared = visibility == self._code("visibility", "global")
        if policy.kind == "shared":
            mask &= shared | own
        elif policy.kind == "group":
            members = [self._code("agent_id", member) for member in policy.members]
            mask &= (shared & np.isin(agent, members)) | own
        else:
            mask &= own
        mask &= visibility != self._code("visibility", "archived")
        mask &= self._codes["scope"][:n] == self._code("scope", scope or "")
        for name, wanted in (
            ("type", filters.type),
            ("who", filters.who),
            ("project", filters.project),
            ("source_type", filters.source_type),
        ):
            if wanted is not None:
                mask &= self._codes[name][:n] == self._code(name, wanted)
        if filters.pinned is not None:
            mask &= self.pinned[:n] == filters.pinned
        if filters.importance_min is not None:
            mask &= self.importance[:n] >= filters.importance_min
        if filters.since is not None:
            mask &= self.created_ms[:n] >= _ms(filters.since)
        if filters.until is not None:
            mask &= self.created_ms[:n] <= _ms(filters.until)
        return mask

    def _code(self, column: str, text: str) -> int:
        """The code of ``text``; -1, which no row has, when no row ever had it."""
        return self._dictionary[column].get(text, -1)

    def _intern(self, column: str, text: str) -> int:
        dictionary = self._dictionary[column]
        return dictionary.setdefault(text, len(dictionary))

    def _append(self, view: Snapshot) -> None:
        while True:
            rows = view.rows(f"{_SELECT} WHERE seq >= ? ORDER BY seq LIMIT {_BATCH}", (max(self.size, 1),))
            if not rows:
                return
            self._reserve(rows[-1][0] + 1)
            for row in rows:
                self._put(row)
            self.size = rows[-1][0] + 1

    def _apply_changes(self, view: Snapshot) -> None:
        seqs = [
            seq
            for (seq,) in view.rows(
                "SELECT DISTINCT memory_seq FROM memory_changes WHERE change > ?", (self._last_change,)
            )
            if seq < self.size
        ]
        for seq in seqs:
            row = view.one(f"{_SELECT} WHERE seq = ?", (seq,))
            if row is None:
                self.live[seq] = False
                self.embedding_seq[seq] = 0
            else:
                self._put(row)

    def _put(self, row: Any) -> None:
        seq = row[0]
        self.live[seq] = row[1] == 0
        for name, text in zip(_CODED, row[2:9], strict=True):
            self._codes[name][seq] = self._intern(name, text)
        self.pinned[seq] = row[9] == 1
        self.importance[seq] = row[10]
        self.created_ms[seq] = row[11] if row[11] is not None else 0
        self.embedding_seq[seq] = row[12]

    def _reserve(self, size: int) -> None:
        if size <= len(self.live):
            return
        capacity = max(size, 1024, len(self.live) * 3 // 2)

        def grown(array: Any) -> Any:
            wider = np.zeros(capacity, array.dtype)
            wider[: len(array)] = array
            return wider

        self.live, self.pinned = grown(self.live), grown(self.pinned)
        self.importance, self.created_ms = grown(self.importance), grown(self.created_ms)
        self.embedding_seq = grown(self.embedding_seq)
        self._codes = {name: grown(array) for name, array in self._codes.items()}


def _ms(iso_text: str) -> int:
    return round(datetime.fromisoformat(iso_text).timestamp() * 1000)
