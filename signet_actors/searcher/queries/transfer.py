"""Export the memories that an agent may read, page by page, as the lines of a file.

Source: docs/performance.md "Write targets"; docs/decisions.md 35 (the policy holds here like everywhere).
"""

from __future__ import annotations

import msgspec

from signet_actors.operations.transfer import LineTime, MemoryLine
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.searcher import ExportMemories, MemoriesExported
from signet_actors.store.read_policy import conjunction, readable, readable_in_any_scope
from signet_actors.store.rows import decode_tags
from signet_actors.store.snapshot import Snapshot

_STORED = MemoryLine.__struct_fields__[:-1]
_COLUMNS = ", ".join(f"m.{name}" for name in ("seq", *_STORED))
_TAGS_AT, _PINNED_AT = _STORED.index("tags"), _STORED.index("pinned")
_ROWS_AT_ONCE = 50
_encode = msgspec.json.Encoder().encode


def export(snapshot: Snapshot, query: ExportMemories) -> tuple[MemoriesExported, list[bytes]]:
    """Return a page of live memories and the position after which the next page begins."""
    if query.scope is None:
        policy = readable_in_any_scope(snapshot.connection, query.agent_id)
    else:
        policy = readable(snapshot.connection, ReadScope(agent_id=query.agent_id, scope=query.scope))
    where, bindings = conjunction(("m.seq > :after AND m.is_deleted = 0", {}), policy)
    lines: list[bytes] = []
    after: int | None = query.after
    size = 0
    while len(lines) < query.limit and size < query.max_bytes:
        rows = snapshot.rows(
            f"SELECT {_COLUMNS} FROM memories m NOT INDEXED WHERE {where} ORDER BY m.seq LIMIT :limit",
            {**bindings, "after": after, "limit": min(_ROWS_AT_ONCE, query.limit - len(lines))},
        )
        if not rows:
            after = None
            break
        times = _times(snapshot, [row[2] for row in rows])
        for row in rows:
            after = row[0]
            columns = [*row[1:], times.get(row[2], [])]
            columns[_TAGS_AT] = decode_tags(columns[_TAGS_AT])
            columns[_PINNED_AT] = bool(columns[_PINNED_AT])
            lines.append(_encode(MemoryLine(*columns)) + b"\n")
            size += len(lines[-1])
            if size >= query.max_bytes:
                break
    return MemoriesExported(count=len(lines), next=after), [b"".join(lines)]


def _times(snapshot: Snapshot, ids: list[str]) -> dict[str, list[LineTime]]:
    """Return the temporal edges by memory id."""
    found: dict[str, list[LineTime]] = {}
    for memory_id, facet, start, end in snapshot.rows(
        "SELECT subject_id, facet, start_at, end_at FROM temporal_edges WHERE subject_type = 'memory'"
        " AND subject_id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (msgspec.json.encode(ids).decode(),),
    ):
        found.setdefault(memory_id, []).append(LineTime(facet, start, end))
    return found
