"""Statements about ``request_replies``: the stored reply of each command. Source: docs/decisions.md 3."""

from __future__ import annotations

from typing import Final, NamedTuple

from signet_actors.store.access import Reads
from signet_actors.store.sqlite.transaction import WriteTransaction
from signet_actors.store.writes.inserts import Insert


class ReplyRow(NamedTuple):
    """A new reply."""

    request_id: str
    body_digest: str | None
    reply: bytes
    created_ms: int


class StoredReply(NamedTuple):
    """A reply as it was stored, and the digest of the body that it answered."""

    body_digest: str | None
    reply: bytes


REPLIES: Final = Insert("request_replies", ReplyRow._fields)

_STORED: Final = "SELECT body_digest, reply FROM request_replies WHERE request_id = ?"
_DELETE_BEFORE: Final = (
    "DELETE FROM request_replies WHERE request_id IN"
    " (SELECT request_id FROM request_replies WHERE created_ms < ? LIMIT ?)"
)


def stored(reads: Reads, key: str) -> StoredReply | None:
    """Return the reply that is stored under the key."""
    row = reads.one(_STORED, (key,))
    return None if row is None else StoredReply(*row)


def delete_before(tx: WriteTransaction, moment_ms: int, limit: int) -> int:
    """Delete replies that were stored before ``moment_ms``; return their number."""
    tx.execute(_DELETE_BEFORE, (moment_ms, limit))
    return tx.changes()
