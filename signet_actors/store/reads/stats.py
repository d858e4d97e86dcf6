"""Counts over the whole store, across all agents and scopes."""

from __future__ import annotations

from signet_actors.store.sqlite.snapshot import Snapshot

_TOMBSTONES = "SELECT count(*) FROM memories WHERE is_deleted = 1"
_EMBEDDINGS = "SELECT count(*) FROM embeddings"
_AGENTS = "SELECT count(*) FROM agents"
_SCHEMA_VERSION = "PRAGMA user_version"


def tombstone_count(snapshot: Snapshot) -> int:
    """Return the number of deleted memories whose rows are still stored."""
    return int(snapshot.value(_TOMBSTONES))


def embedding_count(snapshot: Snapshot) -> int:
    """Return the number of stored vectors, also of former contents."""
    return int(snapshot.value(_EMBEDDINGS))


def agent_count(snapshot: Snapshot) -> int:
    """Return the number of registered agents."""
    return int(snapshot.value(_AGENTS))


def schema_version(snapshot: Snapshot) -> int:
    """Return the number of the newest applied migration."""
    return int(snapshot.value(_SCHEMA_VERSION))
