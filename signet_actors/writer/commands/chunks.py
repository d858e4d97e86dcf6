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
from signet_actors.writer.commands import agents, idempotency_keys, memories
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
    held = session.tx.rows(
        "SELECT seq, id, is_deleted, content_hash, source_id, idempotency_key FROM memories m WHERE"
        # The keys that go on with a digit: `:` is the character after `9`.
        f" {memories.SAME_SCOPE} AND m.idempotency_key >= ? AND m.idempotency_key < ? ORDER BY seq",
        (*memories.same_scope(memory), f"{key}:chunk:0", f"{key}:chunk::"),
    )
    live = [row for row in held if not row[2]]
    if not live:
        for seq, memory_id, _, _, _, held_key in held:
            idempotency_keys.release(session, seq, memory_id, held_key, command.principal)
        return None
    if [row[3] for row in held] != [content_hash(text) for text in command.chunks]:
        raise Conflict("idempotency key was already used for different chunked content")
    if len(live) < len(held):
        raise Conflict(
            "some chunks of this import were forgotten; recover them, or import under another idempotency key"
        )
    return ChunksRemembered(ids=[row[1] for row in held], group_id=held[0][4] or "", deduped=True)
