"""Statements about groups of chunks: ``chunk_groups``, its entity, and the chunks in ``memories``."""

from __future__ import annotations

from typing import Final, NamedTuple

from signet_actors.domain.memories import CHUNK, INTERNAL_SOURCE_TYPES
from signet_actors.store.engine import Bindings, Insert, WriteTransaction
from signet_actors.store.writes.memories import SAME_SCOPE, Scope, StoredRow, in_scope


class Part(NamedTuple):
    """A chunk row of a group. ``group_id`` is its ``source_id``, ``key`` its idempotency key."""

    seq: int
    id: str
    content: str
    is_deleted: int
    group_id: str | None
    key: str | None


class GroupRow(NamedTuple):
    """A new row of ``chunk_groups``."""

    id: str
    agent_id: str
    visibility: str
    project: str | None
    scope: str | None
    content_hash: str
    source_type: str | None
    source_id: str | None
    created_at: str


class MentionRow(NamedTuple):
    """A new link from a memory to an entity."""

    memory_id: str
    entity_id: str
    created_at: str


MENTIONS: Final = Insert("memory_entity_mentions", MentionRow._fields)

_IN_SCOPE: Final = (
    "g.agent_id = :agent_id AND g.visibility = :visibility"
    " AND coalesce(g.project, '') = :project AND coalesce(g.scope, '') = :scope"
)
_BY_SOURCE: Final = (
    f"SELECT g.id FROM chunk_groups g WHERE g.source_id = :source_id AND {_IN_SCOPE}"
    f" AND coalesce(g.source_type, '') NOT IN {INTERNAL_SOURCE_TYPES} ORDER BY g.id"
)
_BY_HASH: Final = f"SELECT g.id FROM chunk_groups g WHERE g.content_hash = :hash AND {_IN_SCOPE} ORDER BY g.id"
_HASH: Final = "SELECT g.content_hash FROM chunk_groups g WHERE g.id = :id"
_PART: Final = "SELECT m.seq, m.id, m.content, m.is_deleted, m.source_id, m.idempotency_key FROM memories m WHERE"
# A range over the keys that continue with a digit: `:` is the character after `9`.
_PARTS_BY_KEY: Final = (
    f"{_PART} {SAME_SCOPE} AND m.idempotency_key >= :first AND m.idempotency_key < :end ORDER BY m.seq"
)
_PARTS: Final = f"{_PART} m.source_id = :group_id AND m.source_type = '{CHUNK}' AND {SAME_SCOPE} ORDER BY m.seq"
_OTHER_PARTS: Final = (
    f"SELECT m.id FROM memories m WHERE m.source_id = :group_id AND m.source_type = '{CHUNK}' AND {SAME_SCOPE}"
    " AND m.is_deleted = :deleted AND m.id <> :id ORDER BY m.seq"
)
_INSERT_ENTITY: Final = (
    "INSERT INTO entities (id, name, canonical_name, entity_type, agent_id, mentions, created_at, updated_at)"
    " VALUES (:id, :name, :name, :type, :agent_id, :mentions, :now, :now)"
)
_GROUPS: Final = Insert("chunk_groups", GroupRow._fields)


def groups_by_source(tx: WriteTransaction, scope: Scope, source_id: str) -> list[str]:
    """Return the ids of the groups in the scope that came from this source."""
    return [group_id for (group_id,) in tx.rows(_BY_SOURCE, in_scope(scope, source_id=source_id))]


def groups_by_hash(tx: WriteTransaction, scope: Scope, digest: str) -> list[str]:
    """Return the ids of the groups in the scope whose whole text has this hash."""
    return [group_id for (group_id,) in tx.rows(_BY_HASH, in_scope(scope, hash=digest))]


def hash_of(tx: WriteTransaction, group_id: str) -> str | None:
    """Return the hash of the group's whole text; None for a group of an earlier release, which had none."""
    digest: str | None = tx.value(_HASH, {"id": group_id})
    return digest


def parts(tx: WriteTransaction, scope: Scope, group_id: str) -> list[Part]:
    """Return the chunks of a group in the scope, live or deleted, in order of the text."""
    return _parts(tx, _PARTS, in_scope(scope, group_id=group_id))


def other_parts(tx: WriteTransaction, row: StoredRow, *, deleted: bool = False) -> list[str]:
    """Return the ids of the other live, or ``deleted``, parts of the long text that the row is a part of, in order."""
    if row.source_type != CHUNK or row.source_id is None:
        return []
    scope = in_scope(row.duplicate_scope, group_id=row.source_id, id=row.id, deleted=int(deleted))
    return [memory_id for (memory_id,) in tx.rows(_OTHER_PARTS, scope)]


def parts_by_key(tx: WriteTransaction, scope: Scope, key: str) -> list[Part]:
    """Return the chunks in the scope, live or deleted, that were stored under this idempotency key of their import."""
    return _parts(tx, _PARTS_BY_KEY, in_scope(scope, first=f"{key}:chunk:0", end=f"{key}:chunk::"))


def insert_group(tx: WriteTransaction, group: GroupRow, *, name: str, entity_type: str, chunks: int) -> None:
    """Insert the group, and the entity that its chunks are linked to."""
    entity = {"id": group.id, "name": name, "type": entity_type, "agent_id": group.agent_id, "mentions": chunks}
    tx.execute(_INSERT_ENTITY, {**entity, "now": group.created_at})
    tx.insert(_GROUPS, group)


def _parts(tx: WriteTransaction, sql: str, bindings: Bindings) -> list[Part]:
    return [Part(*row) for row in tx.rows(sql, bindings)]
