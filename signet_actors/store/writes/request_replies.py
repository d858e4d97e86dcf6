"""Statements about ``request_replies``: the stored reply of each command. Source: docs/decisions.md 3."""

from __future__ import annotations

from typing import Final, NamedTuple

from signet_actors.store.engine import Insert, Reads, WriteTransaction


class ReplyRow(NamedTuple):
    request_id: str
    body_digest: str | None
    reply: bytes
    created_ms: int


class StoredReply(NamedTuple):
    """A reply as it was stored, and the digest of the body that it answered."""

    body_digest: str | None
    reply: bytes


REPLIES: Final = Insert("request_replies", ReplyRow._fields)

_STORED: Final = "SELECT r.body_digest, r.reply FROM request_replies r WHERE r.request_id = :request_id"
_DELETE_BEFORE: Final = (
    "DELETE FROM request_replies WHERE request_id IN"
    " (SELECT r.request_id FROM request_replies r WHERE r.created_ms < :moment_ms LIMIT :limit)"
)


def stored(reads: Reads, key: str) -> StoredReply | None:
    """Return the reply that is stored under the key."""
    row = reads.one(_STORED, {"request_id": key})
    return None if row is None else StoredReply(*row)


def delete_before(tx: WriteTransaction, moment_ms: int, limit: int) -> int:
    """Delete replies that were stored before ``moment_ms``; return their number."""
    tx.execute(_DELETE_BEFORE, {"moment_ms": moment_ms, "limit": limit})
    return tx.changes()
