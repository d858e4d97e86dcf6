"""Forgotten memories whose rows are still stored."""

from __future__ import annotations

from typing import Final

from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, matching, readable_in_any_scope

_MOST: Final = 1000
_FORGOTTEN: Final = (
    "SELECT m.seq, m.content_version FROM memories m WHERE m.is_deleted = 1 AND {}"
    f" ORDER BY m.deleted_at DESC LIMIT {_MOST}"
)


def last_forgotten(snapshot: Snapshot, read: ReadScope, filters: Filters) -> list[tuple[int, int]]:
    """Return row number and version of the words of those that the agent could read, the last ones."""
    where, bindings = conjunction(readable_in_any_scope(snapshot, read.agent_id), matching(snapshot.dialect, filters))
    return [(seq, version) for seq, version in snapshot.rows(_FORGOTTEN.format(where), bindings)]
