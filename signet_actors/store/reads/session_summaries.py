"""Summaries of sessions that a caller may read, with the memories that hold them.

Source: docs/compatibility.md "Summaries of sessions"; docs/decisions.md 35.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from signet_actors.domain.memories import DERIVED
from signet_actors.operations.session_summaries import LinkedMemoryBody
from signet_actors.protocol.memories import Memory, ReadScope
from signet_actors.protocol.session_summaries import ListSummaries, StoredSummary
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, in_project, readable_in_any_scope
from signet_actors.store.reads.contents import contents_that_fit
from signet_actors.store.rows import MEMORY_COLUMNS, SHORTENED_COLUMNS, to_memory

_MAX_LINKED: Final = 25
_BESIDE: Final = "s.session_key, s.harness, s.earliest_at, s.latest_at, s.note"
_FROM: Final = "FROM session_summaries s CROSS JOIN memories m ON m.id = s.memory_id WHERE {}"
_PAGE: Final = f"SELECT {{}}, {_BESIDE} {_FROM} ORDER BY s.latest_at DESC, m.seq DESC LIMIT :limit OFFSET :offset"
_COUNT: Final = f"SELECT count(*) {_FROM}"
_ONE: Final = f"SELECT {MEMORY_COLUMNS}, {_BESIDE} {_FROM} LIMIT 1"
_LINKED: Final = (
    f"SELECT m.seq, m.id, m.type, m.created_at FROM memories m WHERE {{}} ORDER BY m.seq DESC LIMIT {_MAX_LINKED}"
)
_LIVE: Final[tuple[str, dict[str, Any]]] = ("m.is_deleted = 0", {})


def page(snapshot: Snapshot, query: ListSummaries) -> tuple[list[StoredSummary], int]:
    """Return a page of the summaries, the latest session first, and the number of all."""
    project = ("1 = 1", {}) if query.project is None else in_project(query.project)
    where, bindings = conjunction(_LIVE, project, readable_in_any_scope(snapshot, query.read.agent_id))
    sql = _PAGE.format(MEMORY_COLUMNS if query.chars is None else SHORTENED_COLUMNS, where)
    rows = snapshot.rows(sql, {**bindings, "limit": query.limit, "offset": query.offset, "chars": query.chars})
    return [_summary(row) for row in rows], int(snapshot.value(_COUNT.format(where), bindings))


def by_id(snapshot: Snapshot, memory_id: str, read: ReadScope) -> StoredSummary | None:
    """Return the summary that the memory holds, None if there is none that the caller may read."""
    where, bindings = conjunction(
        ("s.memory_id = :id", {"id": memory_id}), _LIVE, readable_in_any_scope(snapshot, read.agent_id)
    )
    row = snapshot.one(_ONE.format(where), bindings)
    return None if row is None else _summary(row)


def derived(snapshot: Snapshot, memory_id: str, read: ReadScope) -> list[LinkedMemoryBody]:
    """Return memories that the pipeline made from the memory, the newest first; see ``LinkedMemoryBody``."""
    where, bindings = conjunction(
        ("m.source_id = :id AND m.source_type = :derived", {"id": memory_id, "derived": DERIVED}),
        _LIVE,
        readable_in_any_scope(snapshot, read.agent_id),
    )
    rows = snapshot.rows(_LINKED.format(where), bindings)
    texts = contents_that_fit(snapshot, [row[0] for row in rows])
    return [LinkedMemoryBody(memory_id, texts.get(seq), *rest) for seq, memory_id, *rest in rows]


def _summary(row: Sequence[Any]) -> StoredSummary:
    return StoredSummary(to_memory(row), *row[len(Memory.__struct_fields__) :])
