"""Memories that a caller may read, by id, by page, and by the caller's own search expression."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from signet_actors.domain.memories import CHUNK
from signet_actors.protocol.memories import Filters, Memory, ReadScope
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, matching, readable, readable_in_any_scope
from signet_actors.store.reads.contents import beginnings, contents_that_fit, in_order
from signet_actors.store.rows import MEMORY_COLUMNS, to_memory

_LIVE = "m.is_deleted = 0"
_DELETED = "m.is_deleted = 1"
_NEWEST_FIRST = "m.created_at DESC, m.seq DESC"
_DELETED_LAST_FIRST = "m.deleted_at DESC, m.seq DESC"
_MOST_USED_FIRST = "m.access_count DESC, {}"
_SIZED = "m.seq, octet_length(m.content)"
_PAGE = f"SELECT {_SIZED} FROM memories m WHERE {{}} ORDER BY {{}} LIMIT :limit OFFSET :offset"
_ONE = f"SELECT {MEMORY_COLUMNS} FROM memories m WHERE {{}}"
_BY_PREFIX = f"SELECT {_SIZED} FROM memories m WHERE {{}} ORDER BY m.id LIMIT :limit"
_IDS_BY_PREFIX = "SELECT m.id FROM memories m WHERE {} ORDER BY m.id LIMIT :limit"
_PARTS = f"SELECT m.seq, m.id FROM memories m WHERE m.source_id = :group AND m.source_type = '{CHUNK}' AND {{}}"
_OTHER_PARTS = (
    f"SELECT m.id FROM memories m WHERE m.source_type = '{CHUNK}' AND m.source_id IN"
    f" (SELECT c.source_id FROM memories c WHERE c.id IN ({{0}}) AND c.source_type = '{CHUNK}')"
    " AND m.id NOT IN ({0}) AND {1} ORDER BY m.seq"
)
_EXISTS = "SELECT 1 FROM memories m WHERE m.id = :id AND {}"
_SEQ = "SELECT m.seq FROM memories m WHERE m.id = :id AND m.is_deleted = 0 AND {}"
_VERSIONS = "SELECT m.id, m.version, m.last_accessed FROM memories m WHERE m.id IN ({})"
_AUTHORS = "SELECT DISTINCT m.who FROM memories m WHERE {} AND m.who IS NOT NULL ORDER BY m.who"
_MATCHING = f"SELECT {_SIZED}, {{}} FROM {{}} AND {{}} ORDER BY {{}} LIMIT :limit"
_HIGHEST_CHARACTER = "\U0010ffff"
_MOST_SEARCHED: Final = 20_000
"""Texts without an index that one query reads, some 0.1 s."""
_MOST_SEARCHED_BYTES: Final = 16 << 20
_BATCH: Final = 500


class Page(NamedTuple):
    """A part of a list. With ``most_used``, memories that recalls return more often come first.

    ``chars``: how much of each content, None for all of it; see ``SHORTENED_COLUMNS``.
    """

    limit: int
    offset: int
    most_used: bool = False
    chars: int | None = None


def live_page(snapshot: Snapshot, read: ReadScope, filters: Filters, page: Page) -> list[Memory]:
    """Return a page of the live memories that pass the filters, newest first."""
    where, bindings = _searched(snapshot, read, filters, deleted=False)
    return _page(snapshot, where, bindings, _NEWEST_FIRST, page)


def deleted_page(snapshot: Snapshot, read: ReadScope, filters: Filters, page: Page) -> list[Memory]:
    """Return a page of the deleted memories that pass the filters, last deleted first."""
    where, bindings = _searched(snapshot, read, filters, deleted=True)
    return _page(snapshot, where, bindings, _DELETED_LAST_FIRST, page)


def deleted_with_words(
    snapshot: Snapshot, read: ReadScope, filters: Filters, page: Page, words: Sequence[str]
) -> tuple[list[Memory], int, bool]:
    """Return a page of the deleted memories whose content has each of the words, in any case, last deleted first.

    Also how many there are, and whether all were searched: only the last deleted ones are if they are many or long.
    """
    where, bindings = _searched(snapshot, read, filters, deleted=True)
    sql = _PAGE.format(where, _DELETED_LAST_FIRST)
    rows = snapshot.rows(sql, {**bindings, "limit": _MOST_SEARCHED + 1, "offset": 0})
    fitting = sum(total <= _MOST_SEARCHED_BYTES for total in accumulate(size for _, size in rows))
    searched, folded, found = rows[: min(fitting, _MOST_SEARCHED)], [word.casefold() for word in words], []
    for start in range(0, len(searched), _BATCH):
        batch = searched[start : start + _BATCH]
        texts = beginnings(snapshot, [seq for seq, _ in batch], _MOST_SEARCHED_BYTES)
        found += [row for row in batch if all(word in texts[row[0]].casefold() for word in folded)]
    shown = found[page.offset : page.offset + page.limit]
    return in_order(snapshot, shown, chars=page.chars), len(found), len(searched) == len(rows)


def readable_by_id(snapshot: Snapshot, memory_id: str, read: ReadScope, *, include_deleted: bool) -> Memory | None:
    """Return the memory, in any scope; None if it is missing, not readable, or deleted and these are left out."""
    policy = readable_in_any_scope(snapshot, read)
    state = "1 = 1" if include_deleted else _LIVE
    where, bindings = conjunction(("m.id = :id", {"id": memory_id}), (state, {}), policy)
    row = snapshot.one(_ONE.format(where), bindings)
    return None if row is None else to_memory(row)


def readable_by_prefix(
    snapshot: Snapshot, prefix: str, read: ReadScope, limit: int, *, deleted: bool | None = None
) -> list[Memory]:
    """Return the memories whose ids begin with ``prefix``, by id, in any scope; None for ``deleted``: live or not."""
    where, bindings = _beginning_with(snapshot, prefix, read, deleted=deleted)
    return in_order(snapshot, snapshot.rows(_BY_PREFIX.format(where), {**bindings, "limit": limit}))


def readable_ids(snapshot: Snapshot, prefix: str, read: ReadScope, limit: int, *, deleted: bool) -> list[str]:
    """Return the ids that begin with ``prefix``, of live or of deleted memories, in order, in any scope."""
    where, bindings = _beginning_with(snapshot, prefix, read, deleted=deleted)
    return [found for (found,) in snapshot.rows(_IDS_BY_PREFIX.format(where), {**bindings, "limit": limit})]


def _beginning_with(
    snapshot: Snapshot, prefix: str, read: ReadScope, *, deleted: bool | None
) -> tuple[str, dict[str, Any]]:
    """Return the condition that an id begins with the prefix, as a range of the index on ``id``."""
    between = ("m.id >= :first AND m.id < :last", {"first": prefix, "last": prefix + _HIGHEST_CHARACTER})
    state = "1 = 1" if deleted is None else _DELETED if deleted else _LIVE
    return conjunction(between, (state, {}), readable_in_any_scope(snapshot, read))


def readable_parts(snapshot: Snapshot, group_id: str, read: ReadScope) -> list[tuple[str, str | None]]:
    """Return id and content, None if a reply has no room, of the live parts of a long text in order, in any scope."""
    where, bindings = conjunction((_LIVE, {}), readable_in_any_scope(snapshot, read))
    rows = snapshot.rows(_PARTS.format(where) + " ORDER BY m.seq", {**bindings, "group": group_id})
    texts = contents_that_fit(snapshot, [seq for seq, _ in rows])
    return [(memory_id, texts.get(seq)) for seq, memory_id in rows]


def other_parts(snapshot: Snapshot, ids: Sequence[str], read: ReadScope) -> list[str]:
    """Return the other live parts of the long texts that these memories are parts of, in order, in any scope."""
    where, bindings = conjunction((_LIVE, {}), readable_in_any_scope(snapshot, read))
    members = snapshot.dialect.members("ids")
    rows = snapshot.rows(_OTHER_PARTS.format(members, where), {**bindings, "ids": snapshot.dialect.listed(ids)})
    return [memory_id for (memory_id,) in rows]


def is_readable(snapshot: Snapshot, memory_id: str, read: ReadScope) -> bool:
    """Return True if the memory exists, deleted or not, and the caller may read it in any scope."""
    predicate, bindings = readable_in_any_scope(snapshot, read)
    return snapshot.one(_EXISTS.format(predicate), {"id": memory_id, **bindings}) is not None


def seq_of_readable(snapshot: Snapshot, memory_id: str, read: ReadScope) -> int | None:
    """Return ``memories.seq`` of the live memory, in any scope; None if it is missing or not readable."""
    predicate, bindings = readable_in_any_scope(snapshot, read)
    seq: int | None = snapshot.value(_SEQ.format(predicate), {"id": memory_id, **bindings})
    return seq


def versions_and_recalls(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, tuple[int, str | None]]:
    """Return ``(version, time of the last recall)`` of the memories by id, whoever may read them."""
    dialect = snapshot.dialect
    rows = snapshot.rows(_VERSIONS.format(dialect.members("ids")), {"ids": dialect.listed(ids)})
    return {memory_id: (version, recalled_at) for memory_id, version, recalled_at in rows}


def authors(snapshot: Snapshot, read: ReadScope) -> list[str]:
    """Return the distinct authors of the live memories, sorted."""
    where, bindings = conjunction((_LIVE, {}), readable(snapshot, read))
    return [who for (who,) in snapshot.rows(_AUTHORS.format(where), bindings)]


def newest(snapshot: Snapshot, read: ReadScope, filters: Filters, limit: int) -> list[Memory]:
    """Return the newest live memories that pass the filters, newest first."""
    where, bindings = _searched(snapshot, read, filters, deleted=False)
    return _page(snapshot, where, bindings, _NEWEST_FIRST, Page(limit, 0))


def ranked_by_expression(
    snapshot: Snapshot, read: ReadScope, filters: Filters, expression: str, limit: int
) -> list[tuple[Memory, float]]:
    """Return the live memories that match an expression of the caller, best first, each with its rank (< 0).

    Raises ``QueryRefused`` for an expression that is not valid. A single step may be slow, so the deadline is checked
    often.
    """
    where, bindings = _searched(snapshot, read, filters, deleted=False)
    snapshot.check_often()
    search = snapshot.dialect.ranked_search
    sql = _MATCHING.format(search.score, search.source, where, search.order)
    found = snapshot.rows(sql, {**bindings, "match": expression, "limit": limit})
    memories = in_order(snapshot, [(seq, size) for seq, size, _ in found])
    return [(memory, rank) for memory, (*_, rank) in zip(memories, found, strict=True)]


def _searched(snapshot: Snapshot, read: ReadScope, filters: Filters, *, deleted: bool) -> tuple[str, dict[str, Any]]:
    state = _DELETED if deleted else _LIVE
    return conjunction((state, {}), readable(snapshot, read), matching(snapshot.dialect, filters))


def _page(snapshot: Snapshot, where: str, bindings: dict[str, Any], order: str, page: Page) -> list[Memory]:
    sql = _PAGE.format(where, _MOST_USED_FIRST.format(order) if page.most_used else order)
    rows = snapshot.rows(sql, {**bindings, "limit": page.limit, "offset": page.offset})
    return in_order(snapshot, rows, chars=page.chars)
