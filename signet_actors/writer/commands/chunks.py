"""Oversized content stored as chunks, all or none.

A chunk row has ``source_type`` ``chunk`` and the group's id as ``source_id``; with an idempotency key its own key is
``<key>:chunk:<i>``. A chunk keeps no extraction job of its own beyond the usual one.

Source: wire.md 1.2 "Oversized"; memory-pipeline.txt guardrails.
"""

from __future__ import annotations

import msgspec

from signet_actors.domain.normalization import content_hash
from signet_actors.errors import Conflict
from signet_actors.protocol.writer import ChunksRemembered, NewMemory, RememberChunks
from signet_actors.writer.commands import agents, memories
from signet_actors.writer.session import Session


def remember(session: Session, command: RememberChunks) -> ChunksRemembered:
    """Every chunk is a row of one group, or the group of an earlier identical import is returned.

    Raises ``Conflict`` with the documented texts; the caller's savepoint then undoes what was inserted.
    """
    memory = command.memory
    key = memory.idempotency_key
    if key is not None:
        replay = _replay(session, command, key)
        if replay is not None:
            return replay
    agents.register(session, memory.agent_id)
    group_id = session.new_id()
    ids: list[str] = []
    for index, text in enumerate(command.chunks):
        part = msgspec.structs.replace(
            memory,
            content=text,
            source_type="chunk",
            source_id=group_id,
            idempotency_key=None if key is None else f"{key}:chunk:{index}",
            vector=command.vectors[index] if command.vectors else None,
        )
        digest = content_hash(text)
        if memories.live_by_hash(session, part, digest) is not None:
            raise Conflict("chunk content already exists")
        ids.append(memories.insert(session, part, command.principal, digest).id)
    return ChunksRemembered(ids=ids, group_id=group_id, deduped=False)


def refuse_chunked_key(session: Session, key: str, memory: NewMemory) -> None:
    """A key that names a chunked import cannot name a small memory; raises ``Conflict``."""
    row = memories.by_idempotency_key(session, memory, f"{key}:chunk:0")
    if row is not None and not row.is_deleted:
        raise Conflict("idempotency key was already used for chunked content")


def _replay(session: Session, command: RememberChunks, key: str) -> ChunksRemembered | None:
    memory = command.memory
    small = memories.by_idempotency_key(session, memory, key)
    if small is not None and not small.is_deleted:
        raise Conflict("idempotency key was already used for non-chunk content")
    rows = []
    for index in range(len(command.chunks) + 1):
        row = memories.by_idempotency_key(session, memory, f"{key}:chunk:{index}")
        if row is not None and row.is_deleted:
            memories.release_key(session, row)
            row = None
        if row is None:
            break
        rows.append(row)
    if not rows:
        return None
    if [row.content_hash for row in rows] != [content_hash(text) for text in command.chunks]:
        raise Conflict("idempotency key was already used for different chunked content")
    (group_id,) = session.tx.one("SELECT source_id FROM memories WHERE seq = ?", (rows[0].seq,)) or (None,)
    return ChunksRemembered(ids=[row.id for row in rows], group_id=group_id or "", deduped=True)
