"""Statements about ``memory_history``: the events of each change, and the removal of the texts that they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from signet_actors.store.engine import Insert, WriteTransaction

KEY: Final = "idempotencyKey"
"""Metadata key of the event that took the idempotency key from a deleted memory."""


class HistoryRow(NamedTuple):
    id: str
    memory_id: str
    event: str
    old_content: str | None
    new_content: str | None
    changed_by: str
    actor_type: str
    reason: str | None
    metadata: str | None
    session_id: str | None
    request_id: str | None
    job_id: str | None
    created_at: str


HISTORY: Final = Insert("memory_history", HistoryRow._fields)

_REASON: Final = "decisionReason"
_FACT: Final = "factContent"
"""Where an event's metadata may repeat the text of a memory; the reason may quote any memory that the model saw."""
_WITHOUT_REASON: Final = f"reason = nullif(reason, metadata ->> '{_REASON}')"
"""Clears the reason if it is the model's (it equals the decision's reason); a person's reason for a change of another
memory stays."""
_BYTES: Final = "coalesce(octet_length(h.old_content), 0) + coalesce(octet_length(h.new_content), 0)"
_HAS_CONTENT: Final = "(h.old_content IS NOT NULL OR h.new_content IS NOT NULL)"

_WITH_CONTENT: Final = (
    f"SELECT h.seq, {_BYTES} FROM memory_history h WHERE h.memory_id = :memory_id AND {_HAS_CONTENT} LIMIT :limit"
)
_CREATED_BEFORE: Final = f"SELECT h.seq, {_BYTES} FROM memory_history h WHERE h.created_at < :moment LIMIT :limit"
_ERASE_EVENTS: Final = "UPDATE memory_history SET old_content = NULL, new_content = NULL WHERE seq IN ({})"
_DELETE_EVENTS: Final = "DELETE FROM memory_history WHERE seq IN ({})"
_ERASE_OWN: Final = (
    "UPDATE memory_history SET old_content = NULL, new_content = NULL, reason = NULL, metadata = {}"
    " WHERE memory_id = :id"
)
_ERASE_OF_PROPOSALS_ABOUT: Final = (
    f"UPDATE memory_history SET {_WITHOUT_REASON}, metadata = {{}}"
    " WHERE seq IN (SELECT h.seq FROM memory_proposals p JOIN memory_history h"
    " ON h.job_id = p.job_id AND h.id = p.history_id"
    " WHERE p.memory_id = :id OR p.target_id = :id OR p.result_memory_id = :id)"
)
_ERASE_REASONS_OF_SHOWN: Final = (
    f"UPDATE memory_history SET {_WITHOUT_REASON}, metadata = {{}}"
    " WHERE seq IN (SELECT h.seq FROM shown_memories s JOIN memory_proposals p ON p.seq = s.proposal_seq"
    " JOIN memory_history h ON h.job_id = p.job_id AND h.id = p.history_id WHERE s.memory_seq = :seq)"
)
_RELEASED_KEY: Final = (
    f"SELECT h.metadata ->> '{KEY}' FROM memories m JOIN memory_history h ON h.memory_id = m.id"
    " WHERE m.seq = :seq AND m.idempotency_key IS NULL AND h.event = 'none' AND h.reason = :reason"
    " ORDER BY h.seq DESC LIMIT 1"
)
_TIMES_OF: Final = (
    "SELECT h.created_at FROM memory_history h WHERE h.memory_id = :memory_id AND h.reason = :reason"
    " ORDER BY h.seq DESC LIMIT :limit"
)
_NOTED_AFTER: Final = (
    "SELECT 1 FROM memory_history h WHERE h.memory_id = :memory_id AND h.seq > :since AND h.event = 'none'"
    " AND h.reason = :reason"
)
_UPDATES_AFTER: Final = (
    "SELECT h.metadata FROM memory_history h WHERE h.memory_id = :memory_id AND h.seq > :since AND h.event = 'updated'"
    " AND h.metadata IS NOT NULL"
)
_FORMER_CONTENT: Final = "SELECT h.old_content, h.seq FROM memory_history h WHERE h.job_id = :job_id AND h.id = :id"


def with_content(tx: WriteTransaction, memory_id: str, limit: int) -> list[tuple[int, int]]:
    """Return ``(seq, bytes of content)`` of the memory's events that still have content."""
    return [(seq, size) for seq, size in tx.rows(_WITH_CONTENT, {"memory_id": memory_id, "limit": limit})]


def created_before(tx: WriteTransaction, moment: str, limit: int) -> list[tuple[int, int]]:
    """Return ``(seq, bytes of content)`` of events that were recorded before ``moment``."""
    return [(seq, size) for seq, size in tx.rows(_CREATED_BEFORE, {"moment": moment, "limit": limit})]


def erase_events(tx: WriteTransaction, seqs: Sequence[int]) -> None:
    """Remove the content of these events, which stay."""
    tx.execute(_ERASE_EVENTS.format(tx.dialect.members("seqs")), {"seqs": tx.dialect.listed(seqs)})


def delete_events(tx: WriteTransaction, seqs: Sequence[int]) -> None:
    tx.execute(_DELETE_EVENTS.format(tx.dialect.members("seqs")), {"seqs": tx.dialect.listed(seqs)})


def erase_content(tx: WriteTransaction, memory_id: str, memory_seq: int) -> None:
    """Remove the content of an erased memory from its events, which stay, and their reasons, which may quote it."""
    without = tx.dialect.without_keys
    tx.execute(_ERASE_OWN.format(without("metadata", _FACT, _REASON, KEY)), {"id": memory_id})
    # What a model said about it may be in the history of another memory: the proposal's source or target.
    tx.execute(_ERASE_OF_PROPOSALS_ABOUT.format(without("metadata", _FACT, _REASON)), {"id": memory_id})
    tx.execute(_ERASE_REASONS_OF_SHOWN.format(without("metadata", _REASON)), {"seq": memory_seq})


def released_key(tx: WriteTransaction, memory_seq: int, reason: str) -> str | None:
    """Return the idempotency key that an event with this reason took from the row; None if the row has a key again."""
    key: str | None = tx.value(_RELEASED_KEY, {"seq": memory_seq, "reason": reason})
    return key


def times_of(tx: WriteTransaction, memory_id: str, reason: str, limit: int) -> list[str]:
    """Return when the memory's last events with this reason were recorded, newest first."""
    return [moment for (moment,) in tx.rows(_TIMES_OF, {"memory_id": memory_id, "reason": reason, "limit": limit})]


def was_noted_after(tx: WriteTransaction, memory_id: str, reason: str, since: int) -> bool:
    """Return whether an event without a change, with this reason, follows event ``since`` of the memory."""
    return tx.one(_NOTED_AFTER, {"memory_id": memory_id, "since": since, "reason": reason}) is not None


def moves_after(tx: WriteTransaction, memory_id: str, since: int) -> int:
    """Return how many changes of the memory after event ``since`` gave it another project and nothing else."""
    rows = tx.rows(_UPDATES_AFTER, {"memory_id": memory_id, "since": since})
    changes = [msgspec.json.decode(metadata) for (metadata,) in rows]
    return sum(list(each.get("after", ())) == ["project"] and not each.get("contentChanged") for each in changes)


def former_content(tx: WriteTransaction, job_id: str, event_id: str) -> tuple[str | None, int] | None:
    """Return the content before the job's event and the event's ``seq``; None if the event was deleted."""
    found = tx.one(_FORMER_CONTENT, {"job_id": job_id, "id": event_id})
    return None if found is None else (found[0], found[1])
