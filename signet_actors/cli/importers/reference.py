"""Memories of the reference daemon: its database ``memories.db``, which is only read.

Source: architecture.txt "memories", "Multi-Agent Support"; memory-system.txt "Memory Types";
docs/transfer.md "Other formats".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from signet_actors.cli.importers import source
from signet_actors.cli.presentation import print_message

READABLE = (None, "global", "private")
ARCHIVED = "archived"
TEXTS = {
    "who": "who",
    "project": "project",
    "scope": "scope",
    "agent_id": "agentId",
    "source_path": "sourcePath",
    "runtime_path": "runtimePath",
    "source_type": "sourceType",
    "source_id": "sourceId",
    "session_id": "sessionId",
}
"""Columns that are copied, and the member of a line that each becomes."""


def memories(path: Path, findings: source.Findings) -> Iterator[source.Line]:
    """Yield the live memories of the database; raise NotThisFormat if it is not one of the reference daemon."""
    if not source.is_database(path):
        raise source.NotThisFormat(
            f"{path} is not a database; give the file memories.db of the reference daemon's workspace"
        )
    tables = source.rows_of(path, ("memories", "entities", "memory_tags"))
    found = tables.get("memories")
    if found is None or (found and not {"id", "content", "importance"} <= found[0].keys()):
        raise source.NotThisFormat(
            f"{path} is a database, but not one of the reference daemon: it has no table of memories"
        )
    if "memory_tags" in tables:
        raise source.NotThisFormat(f"{path} belongs to this daemon, not to the reference daemon: use `signet restore`")
    archived = 0
    for row in found:
        if row.get("is_deleted") or not str(row.get("content") or "").strip():
            continue
        visibility = row.get("visibility")
        if visibility == ARCHIVED:
            archived += 1
        elif visibility in READABLE:
            yield _line(row, findings)
        else:
            raise source.NotThisFormat(
                f"{path}: the memory {row.get('id')} has the unknown visibility {visibility!r};"
                f" known are {', '.join(filter(None, READABLE))} and {ARCHIVED}"
            )
    if archived:
        print_message(f"Left out: {archived} archived memories, which belonged to removed agents.")


def _line(row: dict[str, Any], findings: source.Findings) -> source.Line:
    place = f"the memory {row.get('id')}"
    importance = row.get("importance")
    known = isinstance(importance, int | float) and 0 <= importance <= 1
    given = {member: row[column] for column, member in TEXTS.items() if isinstance(row.get(column), str)}
    return source.line(
        str(row["content"]),
        **given,
        id=source.uuid_of(row.get("id")),
        type=row.get("type"),
        tags=source.tags_of(source.listed(row.get("tags")), [source.tag_of(row.get("why") or "")]),
        importance=importance if known else None,
        pinned=True if row.get("pinned") else None,
        visibility=row.get("visibility"),
        createdAt=findings.time(place, created_at=row.get("created_at")),
        updatedAt=findings.time(place, updated_at=row.get("updated_at")),
        accessCount=row.get("access_count") or None,
        lastAccessed=findings.time(place, last_accessed=row.get("last_accessed")),
    )
