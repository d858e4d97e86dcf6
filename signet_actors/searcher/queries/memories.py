"""List, get, history, jobs, authors, and the legacy keyword search.

Source: memory-api.txt; docs/compatibility.md "Reading memories"; docs/decisions.md 8, 35.
"""

from __future__ import annotations

from signet_actors.domain.fts_limits import check_fts_limits
from signet_actors.domain.memories import CHUNK, CRITICAL_MIN_IMPORTANCE
from signet_actors.domain.ranking.fusion import keyword_score
from signet_actors.errors import InvalidRequest
from signet_actors.protocol import searcher as messages
from signet_actors.protocol.memories import Filters
from signet_actors.searcher.reader import Reader
from signet_actors.store.engine import Snapshot
from signet_actors.store.errors import QueryRefused
from signet_actors.store.reads import history, jobs
from signet_actors.store.reads import memories as stored


def list_memories(reader: Reader, snapshot: Snapshot, query: messages.ListMemories) -> messages.MemoryListed:
    """Return a page of memories, newest or most used first, with counts over all memories that the caller may read."""
    page = stored.Page(query.limit, query.offset, most_used=query.most_used, chars=query.chars)
    complete = True
    reader.sync(snapshot)
    everything = reader.allowed_rows(snapshot, query.read, Filters())
    size = len(everything)
    if query.words:
        memories, matching, complete = stored.deleted_with_words(snapshot, query.read, query.filters, page, query.words)
    elif query.deleted:
        memories = stored.deleted_page(snapshot, query.read, query.filters, page)
        in_any_scope = reader.rows_in_any_scope(snapshot, query.read, query.filters, deleted=True)
        matching = int((in_any_scope & reader.columns.with_texts("scope", (query.read.scope or "",), size)).sum())
    else:
        memories = stored.live_page(snapshot, query.read, query.filters, page)
        matching = int(reader.allowed_rows(snapshot, query.read, query.filters).sum())
    return messages.MemoryListed(
        memories=memories,
        total=int(everything.sum()),
        with_embeddings=int((everything & (reader.columns.embedding_seq[:size] > 0)).sum()),
        critical=int((everything & (reader.columns.importance[:size] >= CRITICAL_MIN_IMPORTANCE)).sum()),
        matching=matching,
        complete=complete,
    )


def get_memory(snapshot: Snapshot, query: messages.GetMemory) -> messages.MemoryFound:
    """Return the memory; None if it is missing, not readable, or deleted and deleted ones are not requested."""
    memory = stored.readable_by_id(snapshot, query.id, query.read, include_deleted=query.include_deleted)
    if memory is None or not query.with_parts or memory.source_type != CHUNK or memory.source_id is None:
        return messages.MemoryFound(memory=memory)
    return messages.MemoryFound(memory=memory, parts=stored.readable_parts(snapshot, memory.source_id, query.read))


def find_by_prefix(snapshot: Snapshot, query: messages.FindByPrefix) -> messages.FoundByPrefix:
    """Return the memories whose ids begin with the prefix."""
    found = stored.readable_by_prefix(snapshot, query.prefix, query.read, query.limit, deleted=query.deleted)
    return messages.FoundByPrefix(memories=found)


def resolve_ids(snapshot: Snapshot, query: messages.ResolveIds) -> messages.IdsResolved:
    return messages.IdsResolved([_meant(snapshot, beginning, query) for beginning in query.beginnings])


def _meant(snapshot: Snapshot, beginning: str, query: messages.ResolveIds) -> list[str]:
    if stored.is_readable(snapshot, beginning, query.read):
        return [beginning]
    for deleted in (query.deleted_first, not query.deleted_first):
        found = stored.readable_ids(snapshot, beginning, query.read, query.limit, deleted=deleted)
        if found:
            return found
    return []


def get_history(snapshot: Snapshot, query: messages.GetHistory) -> messages.HistoryFound:
    """Return the history of a memory, oldest first; None if the memory is missing or not readable.

    Facts and reasons that may quote a forgotten memory are left out.
    """
    if not stored.is_readable(snapshot, query.memory_id, query.read):
        return messages.HistoryFound(events=None)
    return messages.HistoryFound(events=history.of_memory(snapshot, query.memory_id, query.limit))


def get_job(snapshot: Snapshot, query: messages.GetJob) -> messages.JobFound:
    """Return the job; None if it is missing, about a memory that the caller may not read, or another's session."""
    job, agent_id = jobs.by_id(snapshot, query.id) or (None, None)
    if job is None or agent_id not in {None, query.read.agent_id}:
        return messages.JobFound(job=None)
    if job.memory_id is not None and not stored.is_readable(snapshot, job.memory_id, query.read):
        return messages.JobFound(job=None)
    return messages.JobFound(job=job)


def list_authors(snapshot: Snapshot, query: messages.ListAuthors) -> messages.AuthorsListed:
    """Return the distinct authors of live readable memories, sorted."""
    return messages.AuthorsListed(values=stored.authors(snapshot, query.read))


def legacy_search(snapshot: Snapshot, query: messages.LegacySearch) -> messages.LegacySearched:
    """Run the caller's FTS5 expression, best first; without one, return the newest memories that pass the filters.

    Raises ``InvalidRequest`` if the text is not a valid FTS5 expression, or too expensive a one.
    """
    if query.query is None:
        newest = stored.newest(snapshot, query.read, query.filters, query.limit)
        return messages.LegacySearched(rows=[(memory, None) for memory in newest])
    check_fts_limits(query.query, snapshot.stem)
    try:
        found = stored.ranked_by_expression(snapshot, query.read, query.filters, query.query, query.limit)
    except QueryRefused as error:
        raise InvalidRequest(f"q is not a valid FTS5 expression: {error}", field="q") from error
    return messages.LegacySearched(rows=[(memory, float(keyword_score(rank))) for memory, rank in found])
