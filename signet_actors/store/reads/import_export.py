"""The memories of an export as the lines of its file."""

from __future__ import annotations

from collections.abc import Iterator

from signet_actors.domain.memories import AGGREGATE, CONSTRAINT_TYPES
from signet_actors.operations.import_export import LineTime, MemoryLine
from signet_actors.protocol.memories import ReadScope
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, readable, readable_in_any_scope
from signet_actors.store.reads import graph_contributions
from signet_actors.store.rows import decode_tags

_STORED = MemoryLine.__struct_fields__[:-2]
_TYPE_INFERRED = f"m.type IN {CONSTRAINT_TYPES} AND m.type_source IS DISTINCT FROM 'named'"
_COLUMNS = ", ".join(_TYPE_INFERRED if name == "type_inferred" else f"m.{name}" for name in ("seq", *_STORED))
_TAGS_AT, _FLAGS_AT = _STORED.index("tags"), (_STORED.index("pinned"), _STORED.index("type_inferred"))
_ROWS_AT_ONCE = 50
_AFTER = f"SELECT {_COLUMNS} FROM memories m WHERE {{}} ORDER BY m.seq LIMIT :limit"
# Every index over live memories is partial: the sum keeps SQLite from sorting a whole scope by one of them.
_LIVE_AFTER = f"m.seq > :after AND m.is_deleted + 0 = 0 AND coalesce(m.source_type, '') <> '{AGGREGATE}'"
_TIMES = (
    "SELECT t.subject_id, t.facet, t.start_at, t.end_at FROM temporal_edges t WHERE t.subject_type = 'memory'"
    " AND t.subject_id IN ({}) ORDER BY t.id"
)


def lines_after(snapshot: Snapshot, read: ReadScope, after: int, limit: int) -> Iterator[tuple[int, MemoryLine]]:
    """Yield ``(memories.seq, line)`` of the live, readable memories after ``after``, at most ``limit``, in this order.

    Without a scope, memories of all scopes. Answers of aggregate recalls are left out: elsewhere they would not be
    forgotten with their sources. Few rows are read ahead, so the caller may stop at any line.
    """
    policy = (readable_in_any_scope if read.scope is None else readable)(snapshot, read)
    where, bindings = conjunction((_LIVE_AFTER, {}), policy)
    sql = _AFTER.format(where)
    while limit > 0:
        rows = snapshot.rows(sql, {**bindings, "after": after, "limit": min(_ROWS_AT_ONCE, limit)})
        if not rows:
            return
        times = _times(snapshot, [row[2] for row in rows])
        stated = graph_contributions.stated(snapshot, read.agent_id, [row[2] for row in rows])
        for row in rows:
            columns = [*row[1:], stated.get(row[2]), times.get(row[2], [])]
            columns[_TAGS_AT] = decode_tags(columns[_TAGS_AT])
            for at in _FLAGS_AT:
                columns[at] = bool(columns[at])
            yield row[0], MemoryLine(*columns)
        after = rows[-1][0]
        limit -= len(rows)


def _times(snapshot: Snapshot, ids: list[str]) -> dict[str, list[LineTime]]:
    """Return the temporal edges by memory id."""
    found: dict[str, list[LineTime]] = {}
    dialect = snapshot.dialect
    rows = snapshot.rows(_TIMES.format(dialect.members("ids")), {"ids": dialect.listed(ids)})
    for memory_id, facet, start, end in rows:
        found.setdefault(memory_id, []).append(LineTime(facet, start, end))
    return found
