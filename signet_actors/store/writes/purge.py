"""Statements that find or delete what retention deletes: tombstones, ended jobs, old changes."""

from __future__ import annotations

from typing import Final, NamedTuple

from signet_actors.store.engine import WriteTransaction


class Tombstone(NamedTuple):
    """A deleted memory without links and vectors; ``size`` is the length of its content in bytes."""

    seq: int
    id: str
    tags: str
    size: int


_EXPIRED: Final = "m.is_deleted = 1 AND m.deleted_at < :cutoff"
_HAS_MENTIONS: Final = "EXISTS (SELECT 1 FROM memory_entity_mentions x WHERE x.memory_id = m.id)"
_HAS_VECTORS: Final = "EXISTS (SELECT 1 FROM embeddings e WHERE e.source_type = 'memory' AND e.source_id = m.id)"
_LINKED: Final = f"SELECT m.id FROM memories m WHERE {_EXPIRED} AND {_HAS_MENTIONS} ORDER BY m.deleted_at LIMIT :limit"
_EMBEDDED: Final = (
    f"SELECT m.seq, m.id FROM memories m WHERE {_EXPIRED} AND {_HAS_VECTORS} ORDER BY m.deleted_at LIMIT :limit"
)
_TOMBSTONES: Final = (
    f"SELECT m.seq, m.id, m.tags, octet_length(m.content) FROM memories m WHERE {_EXPIRED}"
    f" AND NOT {_HAS_VECTORS} AND NOT {_HAS_MENTIONS} ORDER BY m.deleted_at LIMIT :limit"
)
_DELETE_COMPLETED: Final = (
    "DELETE FROM memory_jobs WHERE seq IN"
    " (SELECT j.seq FROM memory_jobs j WHERE j.status = 'completed' AND j.completed_at < :cutoff LIMIT :limit)"
)
_DELETE_DEAD: Final = (
    "DELETE FROM memory_jobs WHERE seq IN"
    " (SELECT j.seq FROM memory_jobs j WHERE j.status = 'dead' AND j.failed_at < :cutoff LIMIT :limit)"
)
_TRIM_CHANGES: Final = tuple(
    f"DELETE FROM {table} WHERE change IN (SELECT c.change FROM {table} c WHERE c.change <"
    f" (SELECT max(x.change) - :kept FROM {table} x) ORDER BY c.change LIMIT :limit)"
    for table in ("memory_changes", "graph_changes")
)


def expired_with_links(tx: WriteTransaction, cutoff: str, limit: int) -> list[str]:
    """Return the ids of memories deleted before the cutoff that are linked to entities, longest deleted first."""
    return [memory_id for (memory_id,) in tx.rows(_LINKED, {"cutoff": cutoff, "limit": limit})]


def expired_with_vectors(tx: WriteTransaction, cutoff: str, limit: int) -> list[tuple[int, str]]:
    """Return ``(seq, id)`` of memories deleted before the cutoff that have vectors, longest deleted first."""
    return [(seq, memory_id) for seq, memory_id in tx.rows(_EMBEDDED, {"cutoff": cutoff, "limit": limit})]


def expired_tombstones(tx: WriteTransaction, cutoff: str, limit: int) -> list[Tombstone]:
    """Return memories deleted before the cutoff that have neither links nor vectors, longest deleted first."""
    return [Tombstone(*row) for row in tx.rows(_TOMBSTONES, {"cutoff": cutoff, "limit": limit})]


def delete_completed_jobs(tx: WriteTransaction, cutoff: str, limit: int) -> int:
    """Delete jobs completed before the cutoff; return their number."""
    tx.execute(_DELETE_COMPLETED, {"cutoff": cutoff, "limit": limit})
    return tx.changes()


def delete_dead_jobs(tx: WriteTransaction, cutoff: str, limit: int) -> int:
    """Delete jobs dead since before the cutoff; return their number."""
    tx.execute(_DELETE_DEAD, {"cutoff": cutoff, "limit": limit})
    return tx.changes()


def trim_changes(tx: WriteTransaction, kept: int, limit: int) -> None:
    """Delete the oldest entries of the feeds of changes beyond the last ``kept`` of each."""
    for statement in _TRIM_CHANGES:
        tx.execute(statement, {"kept": kept, "limit": limit})
