"""Events of history that a reader may see, after one that it knows."""

from __future__ import annotations

from typing import Final

from signet_actors.features.changes.api import MAX_CHANGES, Change, Changes, FindChanges
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import readable

MAX_SCANNED: Final = 2000
"""Events that one query looks at, so that many changes of other agents hold no searcher."""
_FOUND: Final = (
    "SELECT h.memory_id, h.event FROM memory_history h JOIN memories m ON m.id = h.memory_id"
    " WHERE h.seq > :after AND h.seq <= :until AND {} ORDER BY h.seq LIMIT :limit"
)


def found(snapshot: Snapshot, asked: FindChanges) -> Changes:
    """Return the changes after ``asked.after``; what a hard delete removed from the store is not among them."""
    newest = snapshot.last_number("memory_history")
    if asked.after is None:
        return Changes(newest, more=False, changes=[])
    predicate, bindings = readable(snapshot, asked.read)
    until = min(newest, asked.after + MAX_SCANNED)
    rows = snapshot.rows(
        _FOUND.format(predicate),
        {"after": asked.after, "until": until, "limit": MAX_CHANGES + 1, **bindings},
    )
    return Changes(until, more=until < newest, changes=[Change(*row) for row in rows])


READS: Final = {FindChanges: found}
