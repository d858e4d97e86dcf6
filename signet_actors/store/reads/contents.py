"""Contents of memories by row number, each authorised in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from signet_actors.protocol.memories import Filters, Memory, ReadScope
from signet_actors.store.read_policy import conjunction, matching, readable
from signet_actors.store.rows import MEMORY_COLUMNS, to_memory
from signet_actors.store.sqlite.snapshot import Snapshot

_SAMPLED = (
    "SELECT m.content FROM memories m WHERE m.seq IN (SELECT value FROM json_each(:seqs)) AND m.is_deleted = 0 AND {}"
)
_CONTENTS = (
    "SELECT m.seq, m.content FROM json_each(:seqs) i CROSS JOIN memories m ON m.seq = i.value"
    " WHERE m.is_deleted = 0 AND {}"
)
_RECALLED = (
    "SELECT m.seq, m.id, m.content, m.type, m.tags, m.pinned, m.importance, m.who, m.project, m.scope,"
    " m.visibility, m.agent_id, m.created_at, m.session_id"
    " FROM json_each(:seqs) i CROSS JOIN memories m ON m.seq = i.value"
    " WHERE m.is_deleted = 0 AND {}"
)
_MEMORIES = (
    f"SELECT {MEMORY_COLUMNS}, m.seq FROM json_each(:seqs) i CROSS JOIN memories m ON m.seq = i.value WHERE {{}}"
)


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
    session_id: str | None


def contents(snapshot: Snapshot, read: ReadScope, seqs: Sequence[int]) -> list[str]:
    """Return the contents of the live, readable ones of the rows, in order of ``seq``."""
    predicate, bindings = readable(snapshot.connection, read)
    rows = snapshot.rows(_SAMPLED.format(predicate), {**bindings, "seqs": _json(seqs)})
    return [content for (content,) in rows]


def contents_by_seq(snapshot: Snapshot, read: ReadScope, seqs: Sequence[int]) -> dict[int, str]:
    """Return the contents of the live, readable ones of the rows by ``memories.seq``."""
    predicate, bindings = readable(snapshot.connection, read)
    return dict(snapshot.rows(_CONTENTS.format(predicate), {**bindings, "seqs": _json(seqs)}))


def recalled_by_seq(
    snapshot: Snapshot, read: ReadScope, filters: Filters, seqs: Sequence[int]
) -> dict[int, RecallableRow]:
    """Return the live, readable ones of the rows that pass the filters, by ``memories.seq``."""
    predicate, bindings = conjunction(readable(snapshot.connection, read), matching(filters))
    rows = snapshot.rows(_RECALLED.format(predicate), {**bindings, "seqs": _json(seqs)})
    return {row[0]: RecallableRow._make(row) for row in rows}


def memories_by_seq(snapshot: Snapshot, read: ReadScope, filters: Filters, seqs: Sequence[int]) -> dict[int, Memory]:
    """Return the live, readable ones of the memories that pass the filters, by ``memories.seq``."""
    where, bindings = conjunction(("m.is_deleted = 0", {}), readable(snapshot.connection, read), matching(filters))
    rows = snapshot.rows(_MEMORIES.format(where), {**bindings, "seqs": _json(seqs)})
    return {row[-1]: to_memory(row) for row in rows}


def _json(seqs: Sequence[int]) -> str:
    return msgspec.json.encode(seqs).decode()
