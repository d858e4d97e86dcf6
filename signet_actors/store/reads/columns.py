"""The filterable columns of memories, and which rows changed since the last time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from signet_actors.store.sqlite.snapshot import Snapshot

BATCH = 20_000
"""The most rows that one call returns."""

_SELECT = (
    "SELECT m.seq, m.is_deleted, m.agent_id, m.visibility, coalesce(m.scope, ''), coalesce(m.project, ''), m.type,"
    " coalesce(m.who, ''), coalesce(m.source_type, ''), m.pinned, m.importance,"
    " coalesce(CAST(round(unixepoch(m.created_at, 'subsec') * 1000) AS INTEGER), 0), coalesce(m.embedding_seq, 0),"
    " m.content_sha256, m.tags, d.sz FROM memories m LEFT JOIN memories_fts_docsize d ON d.id = m.seq"
)
_FROM = f"{_SELECT} WHERE m.seq >= ? ORDER BY m.seq LIMIT {BATCH}"
_OF = f"{_SELECT} WHERE m.seq IN (SELECT value FROM json_each(?))"
_DATA_VERSION = "PRAGMA data_version"
_CHANGE_FEED = (
    "SELECT (SELECT min(change) FROM memory_changes), (SELECT seq FROM sqlite_sequence WHERE name = 'memory_changes')"
)
_CHANGED = "SELECT DISTINCT memory_seq FROM memory_changes WHERE change > ? ORDER BY memory_seq"


class ColumnsOfRows(NamedTuple):
    """Rows by column: parallel tuples. A text that is NULL is empty, a number that is NULL is 0."""

    seq: Sequence[int]
    is_deleted: Sequence[int]
    agent_id: Sequence[str]
    visibility: Sequence[str]
    scope: Sequence[str]
    project: Sequence[str]
    type: Sequence[str]
    who: Sequence[str]
    source_type: Sequence[str]
    pinned: Sequence[int]
    importance: Sequence[float]
    created_ms: Sequence[int]
    embedding_seq: Sequence[int]
    content_sha256: Sequence[Any]
    tags: Sequence[str]
    token_sizes: Sequence[bytes | None]
    """FTS5's sizes of the indexed text, for ``token_count``; None for a row that is not indexed."""


class ChangeFeed(NamedTuple):
    """The ends of ``memory_changes``: the oldest kept change (None if there are none), the newest ever made."""

    oldest: int | None
    newest: int


def data_version(snapshot: Snapshot) -> int:
    """Return a number that differs after every commit of another connection."""
    version: int = snapshot.value(_DATA_VERSION)
    return version


def change_feed(snapshot: Snapshot) -> ChangeFeed:
    """Return the ends of the list of changed rows."""
    row = snapshot.one(_CHANGE_FEED)
    oldest, newest = row if row is not None else (None, None)
    return ChangeFeed(oldest, newest or 0)


def changed_after(snapshot: Snapshot, change: int) -> list[int]:
    """Return the ``memories.seq`` of rows that changed after ``change``, ascending, each once."""
    return [seq for (seq,) in snapshot.rows(_CHANGED, (change,))]


def from_seq(snapshot: Snapshot, seq: int) -> ColumnsOfRows | None:
    """Return at most ``BATCH`` rows from ``seq`` on in order of ``seq``, None if there are none."""
    return _by_column(snapshot.rows(_FROM, (seq,)))


def of_seqs(snapshot: Snapshot, seqs: Sequence[int]) -> ColumnsOfRows | None:
    """Return the rows with these ``seq`` that exist, None if none does."""
    return _by_column(snapshot.rows(_OF, (msgspec.json.encode(seqs).decode(),)))


def _by_column(rows: list[tuple[Any, ...]]) -> ColumnsOfRows | None:
    return ColumnsOfRows(*zip(*rows, strict=True)) if rows else None
