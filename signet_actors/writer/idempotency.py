"""Exactly-once replies: the reply to a command is stored in the command's own transaction.

A retry, by a client with its ``Idempotency-Key`` or by the gateway after a writer restart, gets the stored reply and is
not executed again; the primary key decides between simultaneous duplicates.

Source: docs/decisions.md 3; docs/messaging.md rule 8.
Departs: some fields of a repeated reply are read from the row as it is now (``earlier_reply``).
"""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.errors import ErrorCode
from signet_actors.protocol.header import Header
from signet_actors.protocol.leases import JobsLeased
from signet_actors.protocol.message import Failure, Idempotency, KeyedRequest
from signet_actors.protocol.writer import ManyModified, Modified, Remembered, WriterCommand, WriterReply
from signet_actors.runtime.clock import Clock
from signet_actors.store.command_context import CommandContext
from signet_actors.store.engine import Reads
from signet_actors.store.writes import jobs as job_rows
from signet_actors.store.writes import memories as memory_rows
from signet_actors.store.writes import request_replies
from signet_actors.store.writes.request_replies import REPLIES, ReplyRow

_NS_A_MS: Final = 1_000_000
_STEADY_MS: Final = 1000
"""The wall clock may gain this much on the monotonic one between two looks, by being corrected slowly."""

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[WriterReply] = msgspec.msgpack.Decoder(WriterReply)
_tags: msgspec.json.Decoder[list[str]] = msgspec.json.Decoder(list[str])


def client_key(command: WriterCommand) -> Idempotency | None:
    return command.idempotency if isinstance(command, KeyedRequest) else None


def request_key(header: Header, idempotency: Idempotency | None) -> tuple[str, str | None]:
    """Return ``(key of the reply, digest of the body or None)``; a client's key has precedence over the message id."""
    if idempotency is None:
        return header.message_id, None
    return f"key:{idempotency.key}", idempotency.body_digest


def earlier_reply(reads: Reads, key: str, digest: str | None) -> WriterReply | None:
    """Return the stored reply, a conflict if the same key came with another body, or None.

    Departs: three fields are read from the row as it is now: content and tags of ``Remembered``, the subjects of
    ``JobsLeased``, and ``embedded``. A stored copy of the text would outlive the memory (docs/reliability.md R23), and
    a vector may follow its commit. Content is empty once the memory is erased, and a job of a forgotten memory is left
    out.
    """
    stored = request_replies.stored(reads, key)
    if stored is None:
        return None
    if stored.body_digest != digest:
        return Failure(
            code=ErrorCode.IDEMPOTENCY_CONFLICT,
            detail="this Idempotency-Key was already used with another body",
            field="Idempotency-Key",
        )
    try:
        reply = _decoder.decode(stored.reply)
    except msgspec.ValidationError:
        return Failure(ErrorCode.OUTCOME_UNKNOWN, "an earlier release applied this; its reply cannot be read")
    if isinstance(reply, Remembered):
        found = memory_rows.current_text(reads, reply.id)
        content, tags, embedded = ("", "[]", False) if found is None else found
        return msgspec.structs.replace(reply, content=content, tags=_tags.decode(tags), embedded=embedded)
    if isinstance(reply, Modified):
        return _as_embedded_now(reads, reply)
    if isinstance(reply, ManyModified):
        return ManyModified([_as_embedded_now(reads, outcome) for outcome in reply.results])
    if isinstance(reply, JobsLeased):
        return _with_subjects(reads, reply)
    return reply


def _as_embedded_now(reads: Reads, outcome: Modified) -> Modified:
    if not outcome.content_changed:
        return outcome
    return msgspec.structs.replace(outcome, embedded=memory_rows.is_embedded(reads, outcome.id))


def _with_subjects(reads: Reads, reply: JobsLeased) -> JobsLeased:
    subjects = job_rows.job_memories(reads, [job.memory_id for job in reply.jobs if job.memory_id is not None])
    jobs = [
        msgspec.structs.replace(job, subject=None if job.memory_id is None else subjects[job.memory_id])
        for job in reply.jobs
        if job.memory_id is None or job.memory_id in subjects
    ]
    return msgspec.structs.replace(reply, jobs=jobs)


def keep_reply(context: CommandContext, key: str, digest: str | None, reply: WriterReply) -> None:
    """Store the reply in the open transaction."""
    if isinstance(reply, Remembered):
        reply = msgspec.structs.replace(reply, content="", tags=[])
    elif isinstance(reply, JobsLeased):
        jobs = [msgspec.structs.replace(job, subject=None) for job in reply.jobs]
        reply = msgspec.structs.replace(reply, jobs=jobs)
    context.insert_buffer.add(
        REPLIES, ReplyRow(key, digest, _encoder.encode(reply), context.now_ms), reply_lookup_key(key)
    )


class ReplyExpiry:
    """Decide up to when stored replies have expired, although they are stored with the time of a clock that may jump.

    After the wall clock jumped ahead (or the machine slept) nothing expires for one retention time. By then every reply
    from before the jump is that old by the monotonic clock too. After a jump back, replies are only kept longer.

    Source: docs/reliability.md R16; docs/decisions.md 3.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_ms = clock.wall_ms() - clock.monotonic_ns() // _NS_A_MS
        self._hold_until_ms = 0

    def before_ms(self, retention_ms: int) -> int:
        """Return the wall time before which replies have expired; 0 while none has for certain."""
        wall_ms, monotonic_ms = self._clock.wall_ms(), self._clock.monotonic_ns() // _NS_A_MS
        ahead_ms = wall_ms - monotonic_ms
        if ahead_ms - self._ahead_ms > _STEADY_MS:
            self._hold_until_ms = monotonic_ms + retention_ms
        self._ahead_ms = ahead_ms
        return wall_ms - retention_ms if monotonic_ms >= self._hold_until_ms else 0


def reply_lookup_key(key: str) -> tuple[str, str]:
    """Return the lookup key of a stored reply; see ``CommandContext.tx_for``."""
    return ("reply", key)
