"""Export the memories that an agent may read, page by page, as the lines of a file.

Source: docs/performance.md "Write targets"; docs/decisions.md 35 (the policy holds here like everywhere).
"""

from __future__ import annotations

import msgspec

from signet_actors.protocol.searcher import ExportMemories, MemoriesExported
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads.import_export import lines_after

_encode = msgspec.json.Encoder().encode


def export(snapshot: Snapshot, query: ExportMemories) -> tuple[MemoriesExported, list[bytes]]:
    """Return a page of live memories and the position after which the next page begins."""
    lines: list[bytes] = []
    after: int | None = query.after
    size = 0
    for seq, line in lines_after(snapshot, query.read, query.after, query.limit):
        after = seq
        lines.append(_encode(line) + b"\n")
        size += len(lines[-1])
        if size >= query.max_bytes:
            break
    else:
        if len(lines) < query.limit:
            after = None
    return MemoriesExported(count=len(lines), next=after), [b"".join(lines)]
