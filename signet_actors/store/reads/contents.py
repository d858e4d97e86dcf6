"""Contents of memories by row number, each authorised in SQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from signet_actors.errors import ReplyTooLong
from signet_actors.protocol.memories import Filters, Memory, ReadScope
from signet_actors.protocol.message import MAX_FRAME_BYTES, REPLY_TOO_LONG
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, matching, readable
from signet_actors.store.rows import MEMORY_COLUMNS, SHORTENED_COLUMNS, to_memory

_MOST_BESIDE = 6 << 20
"""Bytes of the texts beside another memory in a reply."""
_SAMPLED = "SELECT m.content FROM memories m WHERE m.seq IN ({}) AND m.is_deleted = 0 AND {}"
# CROSS JOIN makes SQLite read the listed rows by their numbers, whatever indexes the rest of the condition has.
_LISTED = "FROM ({}) i CROSS JOIN memories m WHERE m.seq = i.value"
_CONTENTS = f"SELECT m.seq, m.content {_LISTED} AND m.is_deleted = 0 AND {{}}"
_BEGINNINGS = f"SELECT m.seq, substr(m.content, 1, :chars) {_LISTED}"
_RECALLED = (
    "SELECT m.seq, m.id, m.content, m.type, m.tags, m.pinned, m.importance, m.who, m.project, m.scope,"
    f" m.visibility, m.agent_id, m.created_at, m.content_at, m.session_id, m.source_id, m.source_type,"
    f" m.source_path, m.content_version {_LISTED} AND m.is_deleted = 0 AND {{}}"
)
_SIZES = f"SELECT m.seq, octet_length(m.content) {_LISTED}"
_MEMORIES = f"SELECT {MEMORY_COLUMNS}, m.seq {_LISTED} AND {{}}"
_SHORTENED = f"SELECT {SHORTENED_COLUMNS}, m.seq {_LISTED} AND {{}}"


class RecallableRow(NamedTuple):
    """The columns of a memory that recall returns; ``tags`` is JSON, ``pinned`` is 0 or 1."""

    seq: int
    id: str
    content: str
    type: str
    tags: str
    pinned: int
    importance: float
    who: str | None
    project: str | None
    scope: str | None
    visibility: str
    agent_id: str
    created_at: str
    content_at: str | None
    session_id: str | None
    source_id: str | None
    source_type: str | None
    source_path: str | None
    content_version: int


def contents(snapshot: Snapshot, read: ReadScope, seqs: Sequence[int]) -> list[str]:
    """Return the contents of the live, readable ones of the rows, in order of ``seq``."""
    predicate, bindings = readable(snapshot, read)
    rows = _rows(snapshot, _SAMPLED, predicate, bindings, seqs)
    return [content for (content,) in rows]


def contents_by_seq(snapshot: Snapshot, read: ReadScope, seqs: Sequence[int]) -> dict[int, str]:
    """Return the contents of the live, readable ones of the rows by ``memories.seq``."""
    predicate, bindings = readable(snapshot, read)
    return dict(_rows(snapshot, _CONTENTS, predicate, bindings, seqs))


def contents_that_fit(snapshot: Snapshot, seqs: Sequence[int]) -> dict[int, str]:
    """Return contents by ``memories.seq``, as far as a reply has room. Who may read the rows is not checked."""
    sizes = dict(_rows(snapshot, _SIZES, "", {}, seqs))
    total = 0
    fitting = [seq for seq in seqs if (total := total + sizes[seq]) <= _MOST_BESIDE]
    return dict(_rows(snapshot, _CONTENTS, "1 = 1", {}, fitting))


def in_order(snapshot: Snapshot, rows: Sequence[tuple[Any, ...]], *, chars: int | None = None) -> list[Memory]:
    """Return the memories of the rows ``(seq, bytes of the content)``, in their order.

    Who may read the rows is not checked. ``chars``: as in ``memories_by_seq``. Raises ``ReplyTooLong`` before reading.
    """
    if chars is None:
        check_reply(size for _, size in rows)
    sql = _MEMORIES if chars is None else _SHORTENED
    found = {row[-1]: row for row in _rows(snapshot, sql, "1 = 1", {"chars": chars}, [seq for seq, _ in rows])}
    return [to_memory(found[seq]) for seq, _ in rows]


def check_reply(sizes: Iterable[int]) -> None:
    """Raise ``ReplyTooLong`` if texts of these sizes are too long for a reply, which is told before they are read."""
    if sum(sizes) > MAX_FRAME_BYTES:
        raise ReplyTooLong(REPLY_TOO_LONG)


def beginnings(snapshot: Snapshot, seqs: Sequence[int], chars: int) -> dict[int, str]:
    """Return the first ``chars`` characters of the rows by ``memories.seq``, without a check of who may read them.

    For data that is derived from all texts and that no caller sees, or of rows that the caller was found to read.
    """
    return dict(_rows(snapshot, _BEGINNINGS, "", {"chars": chars}, seqs))


def recalled_by_seq(
    snapshot: Snapshot, read: ReadScope, filters: Filters, seqs: Sequence[int]
) -> dict[int, RecallableRow]:
    """Return the live, readable ones of the rows that pass the filters, by ``memories.seq``."""
    predicate, bindings = conjunction(readable(snapshot, read), matching(snapshot.dialect, filters))
    rows = _rows(snapshot, _RECALLED, predicate, bindings, seqs)
    return {row[0]: RecallableRow._make(row) for row in rows}


def memories_by_seq(
    snapshot: Snapshot, read: ReadScope, filters: Filters, seqs: Sequence[int], *, chars: int | None = None
) -> dict[int, Memory]:
    """Return the live, readable ones of the memories that pass the filters, by ``memories.seq``.

    ``chars``: how much of each content to return, then also without very long tags; None for all of it, which
    raises ``ReplyTooLong`` if a reply cannot have it.
    """
    where, bindings = conjunction(
        ("m.is_deleted = 0", {}), readable(snapshot, read), matching(snapshot.dialect, filters)
    )
    if chars is None:
        check_reply(size for _, size in _rows(snapshot, _SIZES, "", {}, seqs))
    rows = _rows(snapshot, _MEMORIES if chars is None else _SHORTENED, where, {**bindings, "chars": chars}, seqs)
    return {row[-1]: to_memory(row) for row in rows}


def _rows(
    snapshot: Snapshot, sql: str, predicate: str, bindings: dict[str, Any], seqs: Sequence[int]
) -> list[tuple[Any, ...]]:
    dialect = snapshot.dialect
    bindings["seqs"] = dialect.listed(seqs)
    return snapshot.rows(sql.format(dialect.members("seqs"), predicate), bindings)
