"""List, get, history, jobs, authors, and the legacy keyword search.

Source: memory-api.txt; docs/compatibility.md "Reading memories"; docs/decisions.md 8, 35.
"""

from __future__ import annotations

from signet_actors.domain.fts_limits import check_fts_limits
from signet_actors.domain.memories import CRITICAL_MIN_IMPORTANCE
from signet_actors.domain.ranking.fusion import keyword_score
from signet_actors.errors import InvalidRequest
from signet_actors.protocol.memories import HistoryEvent, Job, ReadScope
from signet_actors.protocol.searcher import (
    AuthorsListed,
    GetHistory,
    GetJob,
    GetMemory,
    HistoryFound,
    JobFound,
    LegacySearch,
    LegacySearched,
    ListAuthors,
    ListMemories,
    MemoryFound,
    MemoryListed,
)
from signet_actors.searcher.queries.pipeline import FACT_FORGOTTEN, REASON_FORGOTTEN
from signet_actors.searcher.reader import Reader
from signet_actors.store.errors import QueryRefused
from signet_actors.store.fts_tokens import stem
from signet_actors.store.read_policy import conjunction, matching, readable, readable_in_any_scope
from signet_actors.store.rows import MEMORY_COLUMNS, to_memory
from signet_actors.store.snapshot import Snapshot

# The fact and the reason of a proposal may quote a memory other than the one whose history they are part of.
_METADATA = (
    "CASE WHEN h.job_id IS NULL THEN h.metadata ELSE coalesce("
    f"(SELECT CASE WHEN {FACT_FORGOTTEN} THEN json_remove(h.metadata, '$.factContent', '$.decisionReason')"
    f" WHEN {REASON_FORGOTTEN} THEN json_remove(h.metadata, '$.decisionReason') ELSE h.metadata END"
    " FROM memory_proposals p WHERE p.job_id = h.job_id AND p.history_id = h.id), h.metadata) END"
)
_REASON = (
    "CASE WHEN h.job_id IS NOT NULL AND EXISTS (SELECT 1 FROM memory_proposals p"
    f" WHERE p.job_id = h.job_id AND p.history_id = h.id AND ({FACT_FORGOTTEN} OR {REASON_FORGOTTEN}))"
    " THEN nullif(h.reason, h.metadata ->> '$.decisionReason') ELSE h.reason END"
)
_COLUMNS = {"metadata": _METADATA, "reason": _REASON}
_HISTORY = ", ".join(_COLUMNS.get(name, f"h.{name}") for name in HistoryEvent.__struct_fields__)
_JOB = ", ".join(f"j.{name}" for name in Job.__struct_fields__)


def list_memories(reader: Reader, snapshot: Snapshot, query: ListMemories) -> MemoryListed:
    """Return a page of memories, newest or most used first, with counts over all memories that the caller may read."""
    state = "m.is_deleted = 1" if query.deleted else "m.is_deleted = 0"
    where, bindings = conjunction((state, {}), readable(snapshot.connection, query.read), matching(query.filters))
    order = "m.deleted_at DESC, m.seq DESC" if query.deleted else "m.created_at DESC, m.seq DESC"
    if query.most_used:
        order = f"m.access_count DESC, {order}"
    rows = snapshot.rows(
        f"SELECT {MEMORY_COLUMNS} FROM memories m WHERE {where} ORDER BY {order} LIMIT :limit OFFSET :offset",
        {**bindings, "limit": query.limit, "offset": query.offset},
    )
    memories = [to_memory(row) for row in rows]
    reader.sync(snapshot)
    everything = reader.allowed_rows(snapshot, query.read, ListMemories(query.read).filters)
    size = len(everything)
    if query.deleted:
        matching_rows = snapshot.value(f"SELECT count(*) FROM memories m WHERE {where}", bindings)
    else:
        matching_rows = int(reader.allowed_rows(snapshot, query.read, query.filters).sum())
    return MemoryListed(
        memories=memories,
        total=int(everything.sum()),
        with_embeddings=int((everything & (reader.columns.embedding_seq[:size] > 0)).sum()),
        critical=int((everything & (reader.columns.importance[:size] >= CRITICAL_MIN_IMPORTANCE)).sum()),
        matching=matching_rows,
    )


def get_memory(snapshot: Snapshot, query: GetMemory) -> MemoryFound:
    """Return the memory; None if it is missing, not readable, or deleted and deleted ones are not requested."""
    state = "1" if query.include_deleted else "m.is_deleted = 0"
    policy = readable_in_any_scope(snapshot.connection, query.read.agent_id)
    where, bindings = conjunction(("m.id = :id", {"id": query.id}), (state, {}), policy)
    row = snapshot.one(f"SELECT {MEMORY_COLUMNS} FROM memories m WHERE {where}", bindings)
    return MemoryFound(memory=None if row is None else to_memory(row))


def get_history(snapshot: Snapshot, query: GetHistory) -> HistoryFound:
    """Return the history of a memory, oldest first; None if the memory is missing or not readable.

    Facts and reasons that may quote a forgotten memory are left out.
    """
    if not _is_readable(snapshot, query.memory_id, query.read):
        return HistoryFound(events=None)
    rows = snapshot.rows(
        f"SELECT {_HISTORY} FROM memory_history h WHERE h.memory_id = ? ORDER BY h.seq LIMIT ?",
        (query.memory_id, query.limit),
    )
    return HistoryFound(events=[HistoryEvent(*row) for row in rows])


def get_job(snapshot: Snapshot, query: GetJob) -> JobFound:
    """Return the job; None if it is missing or belongs to a memory that the caller may not read."""
    row = snapshot.one(f"SELECT {_JOB} FROM memory_jobs j WHERE j.id = ?", (query.id,))
    if row is None:
        return JobFound(job=None)
    job = Job(*row)
    if job.memory_id is not None and not _is_readable(snapshot, job.memory_id, query.read):
        return JobFound(job=None)
    return JobFound(job=job)


def list_authors(snapshot: Snapshot, query: ListAuthors) -> AuthorsListed:
    """Return the distinct authors of live readable memories, sorted."""
    where, bindings = conjunction(("m.is_deleted = 0", {}), readable(snapshot.connection, query.read))
    rows = snapshot.rows(
        f"SELECT DISTINCT m.who FROM memories m WHERE {where} AND m.who IS NOT NULL ORDER BY m.who", bindings
    )
    return AuthorsListed(values=[who for (who,) in rows])


def legacy_search(snapshot: Snapshot, query: LegacySearch) -> LegacySearched:
    """Run the caller's FTS5 expression, best first; without one, return the newest memories that pass the filters.

    Raises ``InvalidRequest`` if the text is not a valid FTS5 expression, or too expensive a one.
    """
    where, bindings = conjunction(
        ("m.is_deleted = 0", {}), readable(snapshot.connection, query.read), matching(query.filters)
    )
    if query.query is None:
        rows = snapshot.rows(
            f"SELECT {MEMORY_COLUMNS} FROM memories m WHERE {where}"
            " ORDER BY m.created_at DESC, m.seq DESC LIMIT :limit",
            {**bindings, "limit": query.limit},
        )
        return LegacySearched(rows=[(to_memory(row), None) for row in rows])
    check_fts_limits(query.query, lambda text: stem(snapshot.connection, text))
    snapshot.check_often()
    try:
        found = snapshot.rows(
            f"SELECT {MEMORY_COLUMNS}, bm25(memories_fts) FROM memories_fts"
            " JOIN memories m ON m.seq = memories_fts.rowid"
            f" WHERE memories_fts MATCH :match AND {where} ORDER BY memories_fts.rank LIMIT :limit",
            {**bindings, "match": query.query, "limit": query.limit},
        )
    except QueryRefused as error:
        raise InvalidRequest(f"q is not a valid FTS5 expression: {error}", field="q") from error
    return LegacySearched(rows=[(to_memory(row), float(keyword_score(row[-1]))) for row in found])


def _is_readable(snapshot: Snapshot, memory_id: str, read: ReadScope) -> bool:
    predicate, bindings = readable_in_any_scope(snapshot.connection, read.agent_id)
    return (
        snapshot.one(f"SELECT 1 FROM memories m WHERE m.id = :id AND {predicate}", {"id": memory_id, **bindings})
        is not None
    )
