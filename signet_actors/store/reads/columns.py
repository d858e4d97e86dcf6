"""The filterable columns of memories, and which rows changed since the last time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from signet_actors.store.engine import Dialect, Snapshot
from signet_actors.store.read_policy import ORIGIN

BATCH = 20_000
"""The most rows that one call returns."""

_SELECT = (
    "SELECT m.seq, m.is_deleted, m.agent_id, m.visibility, coalesce(m.scope, ''), coalesce(m.project, ''), m.type,"
    " coalesce(m.who, ''), coalesce(m.source_type, ''), coalesce(m.session_id, ''), m.pinned, m.importance,"
    " coalesce({}, 0), coalesce({}, 0), coalesce(m.embedding_seq, 0), coalesce(m.type_source, ''), m.content_version,"
    f" m.content_sha256, m.tags, coalesce({ORIGIN}, ''), d.sz"
    " FROM memories m LEFT JOIN {} d ON d.id = m.seq"
)
_FROM = f"{_SELECT} WHERE m.seq >= :seq ORDER BY m.seq LIMIT {BATCH}"
_OF = f"{_SELECT} WHERE m.seq IN ({{}})"
_TAGS_FROM = "SELECT m.seq, m.tags FROM memories m WHERE m.seq >= :first AND m.seq < :end ORDER BY m.seq"
_TAGS_OF = "SELECT m.seq, m.tags FROM memories m WHERE m.seq IN ({})"
_OLDEST_CHANGE = "SELECT min(c.change) FROM memory_changes c"
_CHANGED = "SELECT DISTINCT c.memory_seq FROM memory_changes c WHERE c.change > :after ORDER BY c.memory_seq"


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
    session_id: Sequence[str]
    pinned: Sequence[int]
    importance: Sequence[float]
    created_ms: Sequence[int]
    content_ms: Sequence[int]
    embedding_seq: Sequence[int]
    type_source: Sequence[str]
    content_version: Sequence[int]
    content_sha256: Sequence[bytes]
    tags: Sequence[str]
    origin: Sequence[str]
    """The source type; of a chunk, that of the whole text."""
    tokens: Sequence[int]
    """The lengths of the indexed texts; 0 for a row that is not indexed."""


class ChangeFeed(NamedTuple):
    """The ends of ``memory_changes``: the oldest kept change (None if there are none), the newest ever made."""

    oldest: int | None
    newest: int


def change_feed(snapshot: Snapshot) -> ChangeFeed:
    """Return the ends of the list of changed rows."""
    return ChangeFeed(snapshot.value(_OLDEST_CHANGE), snapshot.last_number("memory_changes"))


def changed_after(snapshot: Snapshot, change: int) -> list[int]:
    """Return the ``memories.seq`` of rows that changed after ``change``, ascending, each once."""
    return [seq for (seq,) in snapshot.rows(_CHANGED, {"after": change})]


def from_seq(snapshot: Snapshot, seq: int) -> ColumnsOfRows | None:
    """Return at most ``BATCH`` rows from ``seq`` on in order of ``seq``, None if there are none."""
    dialect = snapshot.dialect
    sql = _FROM.format(*_times(dialect), dialect.text_sizes)
    return _by_column(dialect, snapshot.rows(sql, {"seq": seq}))


def of_seqs(snapshot: Snapshot, seqs: Sequence[int]) -> ColumnsOfRows | None:
    """Return the rows with these ``seq`` that exist, None if none does."""
    dialect = snapshot.dialect
    sql = _OF.format(*_times(dialect), dialect.text_sizes, dialect.members("seqs"))
    return _by_column(dialect, snapshot.rows(sql, {"seqs": dialect.listed(seqs)}))


def tags_between(snapshot: Snapshot, first: int, end: int) -> list[tuple[int, str]]:
    """Return ``seq`` and the JSON of the tags of the rows from ``first`` to before ``end``."""
    return [(seq, tags) for seq, tags in snapshot.rows(_TAGS_FROM, {"first": first, "end": end})]


def tags_of_seqs(snapshot: Snapshot, seqs: Sequence[int]) -> list[tuple[int, str]]:
    """Return ``seq`` and the JSON of the tags of the rows with these ``seq`` that exist."""
    dialect = snapshot.dialect
    rows = snapshot.rows(_TAGS_OF.format(dialect.members("seqs")), {"seqs": dialect.listed(seqs)})
    return [(seq, tags) for seq, tags in rows]


def _times(dialect: Dialect) -> tuple[str, str]:
    return dialect.unix_ms("m.created_at"), dialect.unix_ms("coalesce(m.content_at, m.created_at)")


def _by_column(dialect: Dialect, rows: list[tuple[Any, ...]]) -> ColumnsOfRows | None:
    if not rows:
        return None
    columns = ColumnsOfRows(*zip(*rows, strict=True))
    return columns._replace(tokens=list(map(dialect.token_count, columns.tokens)))
