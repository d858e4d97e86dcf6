"""The memories that a batch forget would delete, and the deletions that it counts against its budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from signet_actors.domain.forget_budget import STORE_KEY
from signet_actors.domain.memories import DERIVED
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, matching, readable, readable_in_any_scope

_FILTERED = "memories m WHERE {}"
_SELECT = "SELECT m.id, {}, m.pinned, m.version FROM {} ORDER BY {} LIMIT :limit"
_MADE_OF = (
    "SELECT m.id FROM memories m WHERE m.source_id = :id AND m.source_type = :derived AND m.agent_id = :agent"
    " AND m.is_deleted = 0 ORDER BY m.seq"
)
_COUNT = "SELECT count(*) FROM (SELECT 1 FROM {} LIMIT :most) AS found"
_DELETIONS = "SELECT s.value FROM store_meta s WHERE s.key = :key"


class SelectedMemory(NamedTuple):
    """A memory that the conditions select. ``rank`` is below 0, None without an expression; ``pinned`` is 0 or 1."""

    id: str
    rank: float | None
    pinned: int
    version: int


def made_of(snapshot: Snapshot, memory_id: str, agent_id: str) -> list[str]:
    """Return the ids of the agent's live memories that the pipeline made of the memory."""
    return [row[0] for row in snapshot.rows(_MADE_OF, {"id": memory_id, "derived": DERIVED, "agent": agent_id})]


def selected(
    snapshot: Snapshot,
    read: ReadScope,
    filters: Filters,
    *,
    ids: Sequence[str],
    expression: str | None,
    limit: int,
    count_up_to: int,
) -> tuple[list[SelectedMemory], int]:
    """Return the best ``limit`` live memories that meet all conditions, and how many meet them.

    ``ids`` and ``expression`` (of the text index) are no conditions if empty or None. Best first, without an expression
    newest first. A memory given by its id may be in any scope, unless ``read`` names one. The count is exact up to
    ``count_up_to``; if ``limit`` is larger, it is the number of returned memories.
    """
    in_any_scope = ids and read.scope is None
    visible = readable_in_any_scope(snapshot, read) if in_any_scope else readable(snapshot, read)
    parts = [("m.is_deleted = 0", {}), visible, matching(snapshot.dialect, filters)]
    if ids:
        named = {f"id_{index}": memory_id for index, memory_id in enumerate(ids)}
        parts.append((f"m.id IN ({', '.join(f':{name}' for name in named)})", named))
    where, bindings = conjunction(*parts)
    rank, source, order = "NULL", _FILTERED.format(where), "m.created_at DESC, m.seq DESC"
    if expression is not None:
        bindings["match"] = expression
        search = snapshot.dialect.ranked_search
        rank, source, order = search.score, f"{search.source} AND {where}", search.order
    rows = snapshot.rows(_SELECT.format(rank, source, order), {**bindings, "limit": limit})
    count = len(rows)
    if count == limit <= count_up_to:  # the limit may have cut the result off
        count = int(snapshot.value(_COUNT.format(source), {**bindings, "most": count_up_to + 1}))
    return [SelectedMemory(*row) for row in rows], count


def recorded_deletions(snapshot: Snapshot) -> str | None:
    """Return the recorded deletions for ``forget_budget.parse_deletions``, None if there are none."""
    recorded: str | None = snapshot.value(_DELETIONS, {"key": STORE_KEY})
    return recorded
