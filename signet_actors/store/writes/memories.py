"""Statements about rows of ``memories`` with their tags and temporal edges, inside a write transaction.

Two memories can be duplicates only inside one ``Scope``: agent, visibility, project and scope.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from signet_actors.domain.dated_sections import SUMMARY_TYPE
from signet_actors.domain.memories import CHUNK, COMPACTION, DERIVED, INTERNAL_SOURCE_TYPES, REPLACED
from signet_actors.protocol.memories import ReadScope
from signet_actors.store.engine import Insert, Reads, WriteTransaction
from signet_actors.store.read_policy import readable_in_any_scope
from signet_actors.store.rows import decode_tags

Scope = tuple[str, str, str, str]
"""Agent, visibility, project and scope; the last two are empty if there is none."""

SAME_SCOPE: Final = (
    "m.agent_id = :agent_id AND m.visibility = :visibility"
    " AND coalesce(m.project, '') = :project AND coalesce(m.scope, '') = :scope"
)
"""The predicate of a ``Scope`` over the alias ``m``; its bindings are ``in_scope``."""


def in_scope(scope: Scope, **others: Any) -> dict[str, Any]:
    """Return the bindings of the scope, and others."""
    others["agent_id"], others["visibility"], others["project"], others["scope"] = scope
    return others


class StoredRow(NamedTuple):
    """The columns that a change depends on.

    ``update_count``: how often anything but its project was changed. Moves, deletions and recoveries raise the version
    only, so that 0 means that the memory is as it was made, also when its history was purged. ``content_version``: the
    version since which it is live in these words.
    """

    seq: int
    id: str
    content: str
    content_hash: str
    type: str
    type_source: str | None
    tags: str
    importance: float
    pinned: int
    who: str | None
    agent_id: str
    visibility: str
    project: str | None
    scope: str | None
    source_type: str | None
    source_id: str | None
    is_deleted: int
    updated_at: str
    deleted_at: str | None
    version: int
    content_version: int
    update_count: int
    updated_by: str | None
    embedding_seq: int | None

    @property
    def duplicate_scope(self) -> Scope:
        """The scope inside which another memory can be a duplicate of this one."""
        return self.scope_in(self.project)

    def scope_in(self, project: str | None) -> Scope:
        """Return the same for the memory in another project."""
        return self.agent_id, self.visibility, project or "", self.scope or ""


class FormerText(NamedTuple):
    """A row that another text may replace. ``text``: the source id, of all chunks of one text the same."""

    id: str
    text: str
    version: int
    pinned: int


class MemoryRow(NamedTuple):
    """A new row of ``memories``."""

    seq: int
    id: str
    type: str
    type_source: str | None
    content: str
    normalized_content: str
    content_hash: str
    content_sha256: bytes
    cjk: str | None
    confidence: float | None
    importance: float
    source_type: str | None
    source_id: str | None
    source_path: str | None
    runtime_path: str | None
    idempotency_key: str | None
    session_id: str | None
    tags: str
    who: str | None
    why: str | None
    project: str | None
    scope: str | None
    agent_id: str
    visibility: str
    pinned: int
    extraction_status: str
    extraction_model: str | None
    embedding_model: str | None
    embedding_seq: int | None
    created_at: str
    content_at: str | None
    updated_at: str
    updated_by: str
    access_count: int
    injected_count: int
    last_accessed: str | None


MEMORIES: Final = Insert("memories", MemoryRow._fields)
TAGS: Final = Insert("memory_tags", ("tag", "memory_seq"), "ON CONFLICT (tag, memory_seq) DO NOTHING")
EDGES: Final = Insert("temporal_edges", ("subject_type", "subject_id", "facet", "start_at", "end_at", "created_at"))

_COLUMNS: Final = ", ".join(f"m.{name}" for name in StoredRow._fields)
_SELECT: Final = f"SELECT {_COLUMNS} FROM memories m WHERE"
_BY_ID: Final = f"{_SELECT} m.id = :id LIMIT 1"
_LIVE_BY_HASH: Final = f"{_SELECT} {SAME_SCOPE} AND m.content_hash = :hash AND m.is_deleted = 0 LIMIT 1"
_OTHER_LIVE_BY_HASH: Final = (
    f"{_SELECT} {SAME_SCOPE} AND m.content_hash = :hash AND m.is_deleted = 0 AND m.seq <> :seq LIMIT 1"
)
_BY_IDEMPOTENCY_KEY: Final = f"{_SELECT} {SAME_SCOPE} AND m.idempotency_key = :key LIMIT 1"
_LIVE_BY_SOURCE: Final = (
    f"{_SELECT} m.source_id = :source_id AND coalesce(m.source_type, '') NOT IN {INTERNAL_SOURCE_TYPES}"
    f" AND {SAME_SCOPE} AND m.is_deleted = 0 LIMIT 1"
)
_FACTS_OF: Final = (
    f"{_SELECT} m.source_id = :id AND m.source_type = '{DERIVED}' AND m.agent_id = :agent AND m.pinned = 0"
    " AND m.update_count = 0 AND m.is_deleted = :deleted AND coalesce(m.deleted_at, '') >= :since ORDER BY m.seq"
)
SUPERSEDED: Final = "imported again with another text"
"""Why a memory was deleted that an import has replaced: nobody wanted to forget it."""
_FORGOTTEN: Final = (
    "coalesce((SELECT h.reason FROM memory_history h WHERE h.memory_id = m.id AND h.event = 'deleted'"
    f" ORDER BY h.seq DESC LIMIT 1), '') NOT IN {(SUPERSEDED, REPLACED)}"
)
_DELETED: Final = f"SELECT 1 FROM memories m WHERE {SAME_SCOPE} AND m.is_deleted = 1 AND {_FORGOTTEN} AND"
_IS_FORGOTTEN: Final = f"SELECT 1 FROM memories m WHERE m.id = :id AND m.is_deleted = 1 AND {_FORGOTTEN}"
# A range over the source ids that continue the first one: "A" is the character after "@", with which it ends. The limit
# keeps SQLite from reading a whole scope instead.
_FORMER: Final = (
    "SELECT {} FROM (SELECT o.{}, o.source_id FROM {} o WHERE o.source_id >= :first"
    f" AND o.source_id < :end LIMIT 1000) c CROSS JOIN memories m WHERE {{}} AND {SAME_SCOPE}"
    " AND m.source_path = :path AND c.source_id <> :source_id AND {}"
)


def _former(columns: str, condition: str) -> str:
    memory = f"m.seq = c.seq AND m.source_type NOT IN {INTERNAL_SOURCE_TYPES}"
    chunk = f"m.source_id = c.id AND m.source_type = '{CHUNK}'"
    parts = (("seq", "memories", memory), ("id", "chunk_groups", chunk))
    return " UNION ALL ".join(_FORMER.format(columns, *part, condition) for part in parts)


_FORMER_TEXTS: Final = _former("m.id, c.source_id, m.version, m.pinned", "m.is_deleted = 0")
_FORGOTTEN_TEXTS: Final = _former("m.content", f"m.is_deleted = 1 AND {_FORGOTTEN}")
_OF_COMPACTION: Final = (
    f"m.agent_id = :agent AND (m.source_id, m.source_type) IN (SELECT :key, '{COMPACTION}' UNION ALL"
    f" SELECT g.id, '{CHUNK}' FROM chunk_groups g WHERE g.source_id = :key AND g.agent_id = :agent"
    f" AND g.source_type = '{COMPACTION}')"
)
_SUMMARIES: Final = (
    f"SELECT m.id, m.source_id, m.version, m.pinned FROM memories m WHERE {_OF_COMPACTION} AND m.is_deleted = 0"
)
_LATER_SUMMARY: Final = (
    f"{_SELECT} {_OF_COMPACTION} AND (m.created_at >= :at OR m.idempotency_key IN (:request, :request_of_chunk))"
    " ORDER BY m.is_deleted, m.created_at DESC, m.seq LIMIT 1"
)
_SUMMARY_OF_END: Final = (
    "SELECT m.id FROM memories m WHERE m.source_id = :key AND m.agent_id = :agent AND m.source_type = 'session'"
    f" AND m.type = '{SUMMARY_TYPE}' AND m.is_deleted = 0"
)
_DELETED_BY_SOURCE: Final = f"{_DELETED} m.source_id = :source_id LIMIT 1"
_DELETED_BY_HASH: Final = f"{_DELETED} m.content_hash = :hash LIMIT 1"
_EXISTS: Final = "SELECT 1 FROM memories m WHERE m.id = :id"
_EXISTS_LIVE: Final = "SELECT 1 FROM memories m WHERE m.id = :id AND m.is_deleted = 0"
_ID_WAS_USED: Final = (
    "SELECT 1 FROM memories m WHERE m.id = :id"
    " UNION ALL SELECT 1 FROM memory_history h WHERE h.memory_id = :id"
    " UNION ALL SELECT 1 FROM memory_jobs j WHERE j.memory_id = :id AND j.status IN ('pending', 'leased') LIMIT 1"
)
_LIVE_SEQ_OF_CONTENT: Final = (
    "SELECT m.seq FROM memories m WHERE m.id = :id AND m.content_hash = :hash AND m.is_deleted = 0"
)
_SEQS: Final = "SELECT m.id, m.seq FROM ({}) i CROSS JOIN memories m WHERE m.id = i.value"
_CONTENT_BYTES: Final = "SELECT octet_length(m.content) FROM memories m WHERE m.id = :id"
_CURRENT_TEXT: Final = "SELECT m.content, m.tags, m.embedding_seq IS NOT NULL FROM memories m WHERE m.id = :id"
_KEY_OF: Final = "SELECT m.idempotency_key FROM memories m WHERE m.seq = :seq"
_IS_EMBEDDED: Final = "SELECT m.embedding_seq IS NOT NULL FROM memories m WHERE m.id = :id"

_SET_EMBEDDING: Final = "UPDATE memories SET embedding_seq = :embedding_seq, embedding_model = :model WHERE seq = :seq"
_CLEAR_EMBEDDING: Final = "UPDATE memories SET embedding_seq = NULL, embedding_model = NULL WHERE seq = :seq"
_SET_EXTRACTION_STATUS: Final = "UPDATE memories SET extraction_status = :status WHERE seq = :seq"
_SET_IDEMPOTENCY_KEY: Final = "UPDATE memories SET idempotency_key = :key WHERE seq = :seq"
_CLEAR_IDEMPOTENCY_KEY: Final = "UPDATE memories SET idempotency_key = NULL WHERE seq = :seq"
_CHANGED: Final = "version = version + 1, updated_at = :updated_at, updated_by = :updated_by WHERE seq = :seq"
_UPDATE: Final = f"UPDATE memories SET {{}}, update_count = update_count + 1, {_CHANGED}"
_MOVE: Final = f"UPDATE memories SET project = :project, {_CHANGED}"
_MARK_DELETED: Final = f"UPDATE memories SET is_deleted = 1, deleted_at = :updated_at, {_CHANGED}"
_MARK_LIVE: Final = f"UPDATE memories SET is_deleted = 0, deleted_at = NULL, content_version = version + 1, {_CHANGED}"
_DELETE: Final = "DELETE FROM memories WHERE seq = :seq"
_DELETE_TAGS: Final = "DELETE FROM memory_tags WHERE memory_seq = :seq AND tag IN ({})"
_DELETE_EDGES: Final = "DELETE FROM temporal_edges WHERE subject_type = 'memory' AND subject_id = :id"
_COUNT_RECALLS: Final = (
    "UPDATE memories SET access_count = access_count + :count, last_accessed = :last_accessed WHERE id = :id"
)
_COUNT_INJECTIONS: Final = "UPDATE memories SET injected_count = injected_count + :count WHERE id = :id"


def by_id(tx: WriteTransaction, memory_id: str) -> StoredRow | None:
    """Return the row, live or deleted, without a check of the read policy."""
    return _row(tx, _BY_ID, {"id": memory_id})


def readable_by_id(tx: WriteTransaction, memory_id: str, read: ReadScope) -> StoredRow | None:
    """Return the row, live or deleted, if the read policy allows it."""
    predicate, bindings = readable_in_any_scope(tx, read)
    return _row(tx, f"{_SELECT} m.id = :id AND {predicate} LIMIT 1", {"id": memory_id, **bindings})


def facts_of(tx: WriteTransaction, source: StoredRow, *, deleted: bool = False) -> list[StoredRow]:
    """Return what the pipeline has made of the memory and nobody has pinned or changed, in order.

    Of a deleted memory, what was deleted with it or later; of a live one, what is live, or all that is ``deleted``.
    """
    since, gone = source.deleted_at or "", int(deleted or source.is_deleted)
    names = {"id": source.id, "agent": source.agent_id, "deleted": gone, "since": since}
    return [StoredRow(*row) for row in tx.rows(_FACTS_OF, names)]


def live_by_hash(tx: WriteTransaction, scope: Scope, digest: str) -> StoredRow | None:
    return _row(tx, _LIVE_BY_HASH, in_scope(scope, hash=digest))


def other_live_by_hash(tx: WriteTransaction, scope: Scope, digest: str, seq: int) -> StoredRow | None:
    """Return the live row with this content in the scope that is not row ``seq``."""
    return _row(tx, _OTHER_LIVE_BY_HASH, in_scope(scope, hash=digest, seq=seq))


def by_idempotency_key(tx: WriteTransaction, scope: Scope, key: str) -> StoredRow | None:
    return _row(tx, _BY_IDEMPOTENCY_KEY, in_scope(scope, key=key))


def idempotency_key(tx: WriteTransaction, seq: int) -> str | None:
    """Return the idempotency key of the row; None if it has none."""
    key: str | None = tx.value(_KEY_OF, {"seq": seq})
    return key


def live_by_source(tx: WriteTransaction, scope: Scope, source_id: str) -> StoredRow | None:
    """Return the live row in the scope that came from this external source."""
    return _row(tx, _LIVE_BY_SOURCE, in_scope(scope, source_id=source_id))


def is_source_deleted(tx: WriteTransaction, scope: Scope, source_id: str) -> bool:
    """Return whether a memory of the scope from this external source is deleted, but still kept."""
    return tx.one(_DELETED_BY_SOURCE, in_scope(scope, source_id=source_id)) is not None


def with_former_text(tx: WriteTransaction, scope: Scope, first: str, source_id: str, path: str) -> list[FormerText]:
    """Return the live rows of the path whose source id begins with ``first``, an ``@`` at its end, but is another."""
    bindings = in_scope(scope, first=first, end=f"{first[:-1]}A", source_id=source_id, path=path)
    return [FormerText(*row) for row in tx.rows(_FORMER_TEXTS, bindings)]


def forgotten_texts(tx: WriteTransaction, scope: Scope, first: str, source_id: str, path: str) -> list[str]:
    """Return the texts of the deleted rows of that path and beginning that an import has not replaced."""
    bindings = in_scope(scope, first=first, end=f"{first[:-1]}A", source_id=source_id, path=path)
    return [content for (content,) in tx.rows(_FORGOTTEN_TEXTS, bindings)]


def summaries_of_compactions(tx: WriteTransaction, agent_id: str, session_key: str) -> list[FormerText]:
    """Return the live rows with summaries of the session's compactions."""
    return [FormerText(*row) for row in tx.rows(_SUMMARIES, {"agent": agent_id, "key": session_key})]


def later_summary(tx: WriteTransaction, agent_id: str, session_key: str, at: str, request: str) -> StoredRow | None:
    """Return a row, live or deleted, with the summary of a compaction of the session at this time or later.

    Or that was stored by the same request.
    """
    names = {"agent": agent_id, "key": session_key, "at": at, "request": request}
    return _row(tx, _LATER_SUMMARY, {**names, "request_of_chunk": f"{request}:chunk:0"})


def summaries_of_session(tx: WriteTransaction, agent_id: str, session_key: str) -> list[str]:
    """Return the ids of the live rows with what the pipeline and compactions have summarized of the session."""
    ended = tx.rows(_SUMMARY_OF_END, {"agent": agent_id, "key": session_key})
    return [*(row_id for (row_id,) in ended), *(row.id for row in summaries_of_compactions(tx, agent_id, session_key))]


def is_forgotten(tx: WriteTransaction, memory_id: str) -> bool:
    """Return whether the row is deleted, and not because another text has replaced it."""
    return tx.one(_IS_FORGOTTEN, {"id": memory_id}) is not None


def is_content_deleted(tx: WriteTransaction, scope: Scope, digest: str) -> bool:
    """Return whether a memory of the scope with this content is deleted, but still kept."""
    return tx.one(_DELETED_BY_HASH, in_scope(scope, hash=digest)) is not None


def exists(tx: WriteTransaction, memory_id: str) -> bool:
    return tx.one(_EXISTS, {"id": memory_id}) is not None


def exists_live(tx: WriteTransaction, memory_id: str) -> bool:
    return tx.one(_EXISTS_LIVE, {"id": memory_id}) is not None


def id_was_used(tx: WriteTransaction, memory_id: str) -> bool:
    """Return whether a memory, a history event or an unfinished job has this id."""
    return tx.one(_ID_WAS_USED, {"id": memory_id}) is not None


def live_seq_of_content(tx: WriteTransaction, memory_id: str | None, content_hash: str | None) -> int | None:
    """Return the ``seq`` of the memory if it is live and still has this content."""
    seq: int | None = tx.value(_LIVE_SEQ_OF_CONTENT, {"id": memory_id, "hash": content_hash})
    return seq


def seqs_of(tx: WriteTransaction, memory_ids: Iterable[str]) -> dict[str, int]:
    """Return the ``seq`` of each of the memories that is stored, by id."""
    return dict(tx.rows(_SEQS.format(tx.dialect.members("ids")), {"ids": tx.dialect.listed(sorted(memory_ids))}))


def content_bytes(tx: WriteTransaction, memory_id: str) -> int:
    """Return the length of the memory's content in bytes; 0 if there is no such memory."""
    return tx.value(_CONTENT_BYTES, {"id": memory_id}) or 0


def current_text(reads: Reads, memory_id: str) -> tuple[str, str, bool] | None:
    """Return content, tags (JSON) and whether there is a vector; None if there is no such memory."""
    row = reads.one(_CURRENT_TEXT, {"id": memory_id})
    return None if row is None else (row[0], row[1], bool(row[2]))


def is_embedded(reads: Reads, memory_id: str) -> bool:
    """Return whether the memory exists and has a vector."""
    return bool(reads.value(_IS_EMBEDDED, {"id": memory_id}))


def update(tx: WriteTransaction, seq: int, columns: Mapping[str, Any], *, updated_at: str, updated_by: str) -> None:
    """Set the columns of a row, raise its version and count the change; also its text index, which may take long."""
    assignments = ", ".join(f"{column} = :{column}" for column in columns)
    tx.execute_long(
        _UPDATE.format(assignments), {**columns, "updated_at": updated_at, "updated_by": updated_by, "seq": seq}
    )


def move(tx: WriteTransaction, seq: int, project: str | None, *, updated_at: str, updated_by: str) -> None:
    """Give the row another project and raise its version; what it says was not changed."""
    tx.execute_long(_MOVE, {"project": project, "updated_at": updated_at, "updated_by": updated_by, "seq": seq})


def mark_deleted(tx: WriteTransaction, seq: int, *, deleted_at: str, updated_by: str) -> None:
    """Soft-delete the row, which also leaves the text index."""
    tx.execute_long(_MARK_DELETED, {"updated_at": deleted_at, "updated_by": updated_by, "seq": seq})


def mark_live(tx: WriteTransaction, seq: int, *, updated_at: str, updated_by: str) -> None:
    """Undo a soft delete; the row enters the text index again."""
    tx.execute_long(_MARK_LIVE, {"updated_at": updated_at, "updated_by": updated_by, "seq": seq})


def delete(tx: WriteTransaction, seq: int) -> None:
    tx.execute_long(_DELETE, {"seq": seq})


def set_embedding(tx: WriteTransaction, seq: int, embedding_seq: int | None, model: str) -> None:
    """Set the vector by which the memory is searched."""
    tx.execute(_SET_EMBEDDING, {"embedding_seq": embedding_seq, "model": model, "seq": seq})


def clear_embedding(tx: WriteTransaction, seq: int) -> None:
    tx.execute(_CLEAR_EMBEDDING, {"seq": seq})


def set_extraction_status(tx: WriteTransaction, seq: int, status: str) -> None:
    """Record how far the extraction of facts from the memory is."""
    tx.execute(_SET_EXTRACTION_STATUS, {"status": status, "seq": seq})


def set_idempotency_key(tx: WriteTransaction, seq: int, key: str) -> None:
    """Give the row the key, which no other row of its scope may have."""
    tx.execute(_SET_IDEMPOTENCY_KEY, {"key": key, "seq": seq})


def clear_idempotency_key(tx: WriteTransaction, seq: int) -> None:
    tx.execute(_CLEAR_IDEMPOTENCY_KEY, {"seq": seq})


def delete_tags(tx: WriteTransaction, seq: int, tags: str) -> None:
    """Delete the rows of these tags (a JSON array) of a memory."""
    bindings = {"seq": seq, "tags": tx.dialect.listed(decode_tags(tags))}
    tx.execute(_DELETE_TAGS.format(tx.dialect.members("tags")), bindings)


def add_tags(tx: WriteTransaction, seq: int, tags: Iterable[str]) -> None:
    """Insert a row for each tag of a memory that has none."""
    tx.insert(TAGS, [value for tag in tags for value in (tag, seq)])


def delete_temporal_edges(tx: WriteTransaction, memory_id: str) -> None:
    tx.execute(_DELETE_EDGES, {"id": memory_id})


def count_recalls(tx: WriteTransaction, memory_id: str, count: int, *, last_accessed: str) -> None:
    """Add to the number of times that the memory was recalled."""
    tx.execute(_COUNT_RECALLS, {"count": count, "last_accessed": last_accessed, "id": memory_id})


def count_injections(tx: WriteTransaction, memory_id: str, count: int) -> None:
    """Add to the number of times that the memory was injected into a prompt."""
    tx.execute(_COUNT_INJECTIONS, {"count": count, "id": memory_id})


def _row(tx: WriteTransaction, sql: str, bindings: Any) -> StoredRow | None:
    row = tx.one(sql, bindings)
    return None if row is None else StoredRow(*row)
