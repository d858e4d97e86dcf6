"""The filterable columns of all memories in arrays, so that a filter costs a few array operations.

The arrays are indexed by ``memories.seq`` and updated after each commit: new rows have a higher ``seq``, and changes of
known rows are listed in ``memory_changes``. The arrays only preselect; SQL authorises every row again before its
content is read.

Source: docs/architecture.md "The path of a recall"; docs/decisions.md 35.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from datetime import datetime
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from signet_actors.domain.memories import AGGREGATE, IMPORTED_SOURCE_TYPES
from signet_actors.protocol.memories import ANY_DIRECTORY, Filters, Wording
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import Policy
from signet_actors.store.reads import columns as stored
from signet_actors.store.reads.columns import ColumnsOfRows

Mask = npt.NDArray[np.bool_]
Seqs = npt.NDArray[np.int64]

_CODED = (
    *("agent_id", "visibility", "scope", "project", "type", "who", "source_type", "session_id", "type_source"),
    "origin",
)
_MAX_CHANGES = 50_000
_CHANGES_PER_ROW = 4
DAY_MS = 86_400_000


class MemoryColumns:
    """The arrays of one searcher. Call ``sync`` inside a snapshot first; the arrays then show exactly that snapshot.

    ``version`` changes with every update. ``generation`` changes when everything was read again, which invalidates all
    that was derived from earlier arrays. ``text_version`` changes when the words or tags of a known row changed.
    ``changed`` lists the known rows that changed in this generation, in order; a row may occur several times.
    """

    def __init__(self) -> None:
        self.generation = 0
        self.text_version = 0
        self._clear()

    def _clear(self) -> None:
        self.size = 0  # highest known seq + 1
        self.generation += 1
        self.text_version += 1
        self.changed = array("i")
        self._last_change = 0
        self.live: Mask = np.zeros(0, np.bool_)
        self.deleted: Mask = np.zeros(0, np.bool_)
        """Rows that are deleted and can be recovered; one that was purged is neither."""
        self.pinned: Mask = np.zeros(0, np.bool_)
        self.importance: npt.NDArray[np.float64] = np.zeros(0, np.float64)
        self.created_ms: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self.content_ms: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        """When the row was given its present words: when it was created, or its content was last edited."""
        self.embedding_seq: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self.tokens: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        """Number of tokens of the indexed text, 0 for a row that is not indexed."""
        self.indexed_rows = 0
        self.indexed_tokens = 0
        self.content_code: npt.NDArray[np.uint32] = np.zeros(0, np.uint32)
        """The first four bytes of the content's SHA-256."""
        self.content_version: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._digest: npt.NDArray[np.int64] = np.zeros(0, np.int64)  # of content and tags, within this process
        self._codes: dict[str, npt.NDArray[np.int32]] = {name: np.zeros(0, np.int32) for name in _CODED}
        self._dictionary: dict[str, dict[str, int]] = {name: {"": 0} for name in _CODED}
        self.version: int | None = None

    def sync(self, snapshot: Snapshot) -> bool:
        """Update the arrays to ``snapshot``; return True if anything has changed since the last call."""
        version = snapshot.data_version()
        if version == self.version:
            return False
        oldest, newest = stored.change_feed(snapshot)
        cut = newest > self._last_change and (oldest is None or oldest > self._last_change + 1)
        if cut or len(self.changed) > _MAX_CHANGES + _CHANGES_PER_ROW * self.size:
            self._clear()
        if newest > self._last_change and self.size:
            self._apply_changes(snapshot)
        self._last_change = newest
        self._append(snapshot)
        self.version = version
        return True

    def readable(self, policy: Policy, scope: str | None, rows: slice | Seqs) -> Mask:
        """Return which of ``rows`` are live and readable by the policy in the scope; same shape as ``rows``."""
        in_scope = self._codes["scope"][rows] == self._code("scope", scope or "")
        mask: Mask = self.readable_in_any_scope(policy, self.live, rows) & in_scope
        return mask

    def readable_in_any_scope(self, policy: Policy, state: Mask, rows: slice | Seqs) -> Mask:
        """Return which of ``rows`` are in ``state`` (``live`` or ``deleted``) and readable by the policy."""
        visibility, agent = self._codes["visibility"][rows], self._codes["agent_id"][rows]
        mask: Mask = state[rows].copy()
        own = agent == self._code("agent_id", policy.agent_id)
        if policy.kind == "archived":
            mask &= False
        elif policy.kind == "isolated":
            mask &= own
        else:
            shared = visibility == self._code("visibility", "global")
            if policy.kind == "group":
                shared &= np.isin(agent, [self._code("agent_id", member) for member in policy.members])
            mask &= shared | own
        if policy.archived:
            mask &= ~np.isin(agent, [self._code("agent_id", name) for name in policy.archived])
        mask &= visibility != self._code("visibility", "archived")
        for column, limit in (("project", policy.project), ("who", policy.user)):
            if limit is not None:
                mask &= self._codes[column][rows] == self._code(column, limit)
        return mask

    def in_project(self, names: tuple[str, ...], rows: slice | Seqs) -> Mask:
        """Return which of ``rows`` belong to the project that has these names (``project_names``)."""
        endings = tuple(name.removeprefix("*") for name in names if name.startswith(ANY_DIRECTORY))
        codes = [self._code("project", name) for name in names]
        if endings:
            codes += [code for text, code in self._dictionary["project"].items() if text.endswith(endings)]
        mask: Mask = np.isin(self._codes["project"][rows], codes)
        return mask

    def narrow(self, mask: Mask, filters: Filters) -> Mask:
        """Return ``mask`` (shape (size,)) restricted to rows that pass the filters; ``mask`` itself if none is set.

        The filters ``project`` (without ``or_no_project``) and ``tags`` are not applied here.
        """
        n = self.size
        for name, wanted in (
            ("type", filters.type),
            ("who", filters.who),
            ("agent_id", filters.owner),
            ("visibility", filters.visibility),
        ):
            if wanted is not None:
                mask = mask & (self._codes[name][:n] == self._code(name, wanted))
        if filters.source_type is not None:
            sources = [self.with_texts(name, (filters.source_type,), n) for name in ("source_type", "origin")]
            mask = mask & (sources[0] | sources[1])
        if filters.without_answers:
            mask = mask & ~self.with_texts("source_type", (AGGREGATE,), n)
        if filters.no_project:
            mask = mask & (self._codes["project"][:n] == self._code("project", ""))
        if filters.or_no_project and filters.project is not None:
            mask = mask & self.in_project(("", *filters.spellings), slice(0, n))
        if filters.pinned is not None:
            mask = mask & (self.pinned[:n] == filters.pinned)
        if filters.importance_min is not None:
            mask = mask & (self.importance[:n] >= filters.importance_min)
        if filters.since is not None:
            mask = mask & (self.created_ms[:n] >= _ms(filters.since))
        if filters.until is not None:
            mask = mask & (self.created_ms[:n] <= _ms(filters.until))
        return mask

    def with_texts(self, column: str, texts: Sequence[str], rows: int | Seqs) -> Mask:
        """Return which of ``rows``, or of the first so many, have one of the ``texts`` in the column."""
        codes = self._codes[column][slice(rows) if isinstance(rows, int) else rows]
        mask: Mask = np.isin(codes, [self._code(column, text) for text in texts])
        return mask

    def counts(self, column: str, rows: Mask) -> dict[str, int]:
        """Return how many of ``rows``, shape (size,), have each text in the column; the empty one: none."""
        numbers = np.bincount(self._codes[column][: self.size][rows], minlength=len(self._dictionary[column])).tolist()
        return {text: number for text, number in zip(self._dictionary[column], numbers, strict=True) if number}

    def pair_counts(self, first: str, second: str, rows: Mask) -> dict[tuple[str, str], int]:
        """Return how many of ``rows``, shape (size,), have each pair of texts in the two columns."""
        texts, others = list(self._dictionary[first]), list(self._dictionary[second])
        left, right = (self._codes[name][: self.size][rows].astype(np.int64) for name in (first, second))
        pairs, numbers = np.unique(left * len(others) + right, return_counts=True)
        return {
            (texts[pair // len(others)], others[pair % len(others)]): number
            for pair, number in zip(pairs.tolist(), numbers.tolist(), strict=True)
        }

    def imported(self, rows: int | Seqs) -> Mask:
        """Return which of ``rows``, or of the first so many, are notes that were imported, or chunks of these."""
        return self.with_texts("origin", IMPORTED_SOURCE_TYPES, rows)

    def constraint_ranks(self, rows: int | Seqs) -> npt.NDArray[np.int8]:
        """Return 3 for pinned rows, 2 for constraints whose type was named, 1 for orders in form, 0 for others.

        An order in a note that was imported is one of its sentences, and no constraint of every session.
        """
        orders = self.with_texts("type_source", ("order",), rows) & ~self.imported(rows)
        ranks = orders + 2 * self.with_texts("type_source", ("named",), rows)
        pinned = self.pinned[slice(rows) if isinstance(rows, int) else rows]
        found: npt.NDArray[np.int8] = np.where(pinned, 3, ranks).astype(np.int8)
        return found

    def wordings(self, rows: Seqs) -> list[Wording]:
        """Return ``rows`` with the version since which each has its words."""
        return list(zip(rows.tolist(), self.content_version[rows].tolist(), strict=True))

    def unchanged(self, wordings: Sequence[Wording]) -> Seqs:
        """Return those rows that still have these words."""
        given = np.fromiter(chain.from_iterable(wordings), np.int64).reshape(-1, 2)
        rows, versions = given[given[:, 0] < self.size].T
        same: Seqs = rows[self.content_version[rows] == versions]
        return same

    def days_from(self, rows: Seqs, start_ms: int, end_ms: int) -> Seqs:
        """Return how many days ``rows`` were created after the times from ``start_ms`` to before ``end_ms``.

        0 within them, negative before them; the first instant of the next day is one day after.
        """
        created = self.created_ms[rows]
        early, late = (start_ms - created + DAY_MS - 1) // DAY_MS, (created - end_ms) // DAY_MS + 1
        days: Seqs = np.maximum(late, 0) - np.maximum(early, 0)
        return days

    def project_codes(self, rows: Seqs) -> npt.NDArray[np.int32]:
        """Return a number for each row that is equal for rows of the same project."""
        return self._codes["project"][rows]

    def with_session(self, rows: Seqs) -> Seqs:
        """Return those of ``rows`` that have a session id."""
        with_session: Seqs = rows[self._codes["session_id"][rows] != 0]
        return with_session

    def session_numbers(self, rows: Seqs) -> Seqs:
        """Return a number for each row that is equal for rows with the same agent and session id."""
        numbers: Seqs = self._codes["agent_id"][rows].astype(np.int64) << 32 | self._codes["session_id"][rows]
        return numbers

    def has_session_rows_outside(self, allowed: Mask, numbers: Seqs, start_ms: int, end_ms: int) -> Mask:
        """Return which of the sessions with these ``session_numbers`` have allowed rows not created in the window."""
        if not len(numbers):
            return np.zeros(0, np.bool_)
        n = len(allowed)
        wanted = np.zeros(len(self._dictionary["session_id"]), np.bool_)
        wanted[numbers & 0xFFFFFFFF] = True
        created = self.created_ms[:n]
        outside = allowed & wanted[self._codes["session_id"][:n]] & ((created < start_ms) | (created >= end_ms))
        return np.isin(numbers, self.session_numbers(np.flatnonzero(outside)))

    def same_place(self, seq: int) -> Mask:
        """Return which rows have the agent, visibility, project, scope, author and type of the row; shape (size,)."""
        mask = np.ones(self.size, np.bool_)
        for name in ("agent_id", "visibility", "project", "scope", "who", "type"):
            codes = self._codes[name][: self.size]
            mask &= codes == codes[seq]
        return mask

    def session_key(self, seq: int) -> tuple[int, int, int, int]:
        """Return the codes of the row's agent, scope, project and session."""
        codes = self._codes
        return (
            int(codes["agent_id"][seq]),
            int(codes["scope"][seq]),
            int(codes["project"][seq]),
            int(codes["session_id"][seq]),
        )

    def session_codes(self, rows: Seqs) -> Seqs:
        """Return a number for each row that is equal for rows with the same ``session_key``, and only for these."""
        numbers: Seqs = np.zeros(len(rows), np.int64)
        for name in ("agent_id", "scope", "project", "session_id"):
            codes = self._codes[name][rows].astype(np.int64)
            numbers = np.unique(numbers * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
        return numbers

    def _code(self, column: str, text: str) -> int:
        """Return the code of ``text``, or -1, which no row has, if no row ever had that text."""
        return self._dictionary[column].get(text, -1)

    def _append(self, snapshot: Snapshot) -> None:
        while True:
            rows = stored.from_seq(snapshot, max(self.size, 1))
            if rows is None:
                return
            size = rows.seq[-1] + 1
            self._reserve(size)
            self._store_rows(rows)
            self.size = size

    def _apply_changes(self, snapshot: Snapshot) -> None:
        seqs = [seq for seq in stored.changed_after(snapshot, self._last_change) if seq < self.size]
        self.changed.extend(seqs)
        for start in range(0, len(seqs), stored.BATCH):
            batch = seqs[start : start + stored.BATCH]
            rows = stored.of_seqs(snapshot, batch)
            gone = np.array(sorted(set(batch).difference(() if rows is None else rows.seq)), np.int64)
            self._count(gone, -1)
            self.live[gone] = self.deleted[gone] = False
            self.embedding_seq[gone] = self.tokens[gone] = 0
            if rows is not None:
                self._store_rows(rows)

    def _store_rows(self, rows: ColumnsOfRows) -> None:
        at = np.array(rows.seq, np.int64)
        live = np.array(rows.is_deleted) == 0
        digest = np.array([hash(pair) for pair in zip(rows.content_sha256, rows.tags, strict=True)], np.int64)
        known = at < self.size
        # Cached posting lists lack a recovered row and the new words of a changed row.
        if (known & live & (~self.live[at] | (self._digest[at] != digest))).any():
            self.text_version += 1
        self._count(at, -1)
        self.live[at], self.deleted[at], self._digest[at] = live, ~live, digest
        self.tokens[at] = rows.tokens
        self.content_code[at] = np.frombuffer(b"".join([sha[:4] for sha in rows.content_sha256]), "<u4")
        self.content_version[at] = rows.content_version
        self._count(at, 1)
        for name in _CODED:
            dictionary = self._dictionary[name]
            self._codes[name][at] = [dictionary.setdefault(text, len(dictionary)) for text in getattr(rows, name)]
        self.pinned[at] = np.array(rows.pinned) == 1
        self.importance[at], self.created_ms[at] = rows.importance, rows.created_ms
        self.content_ms[at] = rows.content_ms
        self.embedding_seq[at] = rows.embedding_seq

    def _count(self, at: Seqs, sign: int) -> None:
        tokens = self.tokens[at]
        self.indexed_rows += sign * int(np.count_nonzero(tokens))
        self.indexed_tokens += sign * int(tokens.sum(dtype=np.int64))

    def _reserve(self, size: int) -> None:
        if size <= len(self.live):
            return
        capacity = max(size, 1024, len(self.live) * 3 // 2)

        def grown(array: Any) -> Any:
            wider = np.zeros(capacity, array.dtype)
            wider[: len(array)] = array
            return wider

        self.live, self.deleted, self.pinned = grown(self.live), grown(self.deleted), grown(self.pinned)
        self.importance = grown(self.importance)
        self.created_ms, self.content_ms = grown(self.created_ms), grown(self.content_ms)
        self.embedding_seq, self.tokens, self._digest = map(grown, (self.embedding_seq, self.tokens, self._digest))
        self.content_code, self.content_version = grown(self.content_code), grown(self.content_version)
        self._codes = {name: grown(array) for name, array in self._codes.items()}


def _ms(iso_text: str) -> int:
    return round(datetime.fromisoformat(iso_text).timestamp() * 1000)
