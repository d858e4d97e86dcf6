"""What memories do not say any more: forgotten ones whose rows are still stored, and texts before an edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from signet_actors.domain.dated_sections import SUMMARY_TYPE
from signet_actors.domain.memories import REPLACED
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, matching, readable_in_any_scope

_MOST: Final = 1000
_FORGOTTEN: Final = (
    "SELECT m.seq, m.content_version FROM memories m WHERE m.is_deleted = 1 AND {}"
    f" AND (m.type <> '{SUMMARY_TYPE}' OR coalesce((SELECT h.reason FROM memory_history h WHERE h.memory_id = m.id"
    f" AND h.event = 'deleted' ORDER BY h.seq DESC LIMIT 1), '') <> '{REPLACED}')"
    f" ORDER BY m.deleted_at DESC LIMIT {_MOST}"
)
_FORMER: Final = (
    "SELECT h.seq, m.id, m.seq, m.content_version, m.is_deleted FROM memories m CROSS JOIN memory_history h"
    " WHERE h.memory_id = m.id AND m.content_at IS NOT NULL"
    " AND h.event = 'updated' AND h.old_content <> h.new_content AND {}"
    f" ORDER BY m.content_at DESC, h.seq DESC LIMIT {_MOST}"
)
_FORMER_BEGINNINGS: Final = (
    "SELECT h.seq, substr(h.old_content, 1, :chars) FROM ({}) i CROSS JOIN memory_history h WHERE h.seq = i.value"
)


class Edit(NamedTuple):
    """An event that changed the words of a memory, and the memory as it is now. ``version``: of its words."""

    event: int
    memory_id: str
    seq: int
    version: int
    is_forgotten: int


def last_forgotten(snapshot: Snapshot, read: ReadScope, filters: Filters) -> list[tuple[int, int]]:
    """Return row number and version of the words of those that the agent could read, the last ones.

    Left out are summaries of compactions that a later one replaced: what they say is not wrong.
    """
    where, bindings = conjunction(readable_in_any_scope(snapshot, read), matching(snapshot.dialect, filters))
    return [(seq, version) for seq, version in snapshot.rows(_FORGOTTEN.format(where), bindings)]


def former_texts(snapshot: Snapshot, read: ReadScope, filters: Filters) -> list[Edit]:
    """Return the events that changed the words of memories that the agent can or could read, the last ones."""
    where, bindings = conjunction(readable_in_any_scope(snapshot, read), matching(snapshot.dialect, filters))
    return [Edit(*row) for row in snapshot.rows(_FORMER.format(where), bindings)]


def former_beginnings(snapshot: Snapshot, events: Sequence[int], chars: int) -> dict[int, str]:
    """Return the first characters of the words before each of these events."""
    dialect = snapshot.dialect
    bindings = {"events": dialect.listed(events), "chars": chars}
    return dict(snapshot.rows(_FORMER_BEGINNINGS.format(dialect.members("events")), bindings))
