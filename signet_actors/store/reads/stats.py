"""Counts over the whole store, across all agents and scopes."""

from __future__ import annotations

from signet_actors.domain.graph.names import CHUNK_GROUP
from signet_actors.store.engine import Reads

_TOMBSTONES = "SELECT count(*) FROM memories WHERE is_deleted = 1"
_EMBEDDINGS = "SELECT count(*) FROM embeddings"
_ENTITIES = (
    f"SELECT count(*) FROM entities e WHERE e.entity_type <> '{CHUNK_GROUP}' AND e.merged_into IS NULL"
    " AND (e.mentions > 0 OR e.pinned = 1)"
)
_AGENTS = "SELECT count(*) FROM agents"
_SESSIONS = "SELECT count(*) FROM session_transcripts"
_LIVE_MEMORIES = "SELECT count(*) FROM memories WHERE is_deleted = 0"
_LIVE_IDS = "SELECT id FROM memories WHERE is_deleted = 0"
_LAST_MEMORY = "SELECT coalesce(max(seq), 0) FROM memories"


def tombstone_count(view: Reads) -> int:
    """Return the number of deleted memories whose rows are still stored."""
    return int(view.value(_TOMBSTONES))


def embedding_count(view: Reads) -> int:
    """Return the number of stored vectors, also of former contents."""
    return int(view.value(_EMBEDDINGS))


def entity_count(view: Reads) -> int:
    """Return the number of entities of the knowledge graph that live memories mention or that are pinned."""
    return int(view.value(_ENTITIES))


def agent_count(view: Reads) -> int:
    return int(view.value(_AGENTS))


def session_count(view: Reads) -> int:
    return int(view.value(_SESSIONS))


def live_memories(view: Reads) -> int:
    return int(view.value(_LIVE_MEMORIES))


def live_ids(view: Reads) -> set[str]:
    return {memory_id for (memory_id,) in view.rows(_LIVE_IDS)}


def last_memory_seq(view: Reads) -> int:
    """Return the highest ``seq`` of a stored memory, 0 if there is none."""
    return int(view.value(_LAST_MEMORY))
