"""Frames of a message: a header, a body, raw frames; made by the message_factory, checked by whoever receives them.

Source: docs/architecture.md "Messages"; docs/messaging.md rules 8, 15 and 19.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import msgspec

from signet_actors.errors import Busy, ErrorCode, NotFound, OutcomeUnknown, SignetError, StorageFull, Unavailable
from signet_actors.protocol.header import PROTOCOL_VERSION, Header
from signet_actors.protocol.message import Failure
from signet_actors.runtime.processes.child_context import ChildContext

UNDECODABLE = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError)
"""Everything that decoding hostile bytes can raise; UnicodeDecodeError is a ValueError."""

COUNTER_NAMES = (
    "sent",
    "received",
    "shed",
    "unroutable",
    "expired",
    "late",
    "duplicate",
    "decode_error",
    "foreign",
    "hb_missed",
    "reconnects",
    "resent",
)
"""One counter for every place where a message can vanish without a trace. Source: docs/messaging.md rule 20."""

PING = b"\xa4ping"
"""The body of a message that only asks whether its receiver reads and answers, and of the answer to it."""

_TELL = "~"
_encode = msgspec.msgpack.Encoder().encode
_decode_header = msgspec.msgpack.Decoder(Header).decode


def new_counters() -> dict[str, int]:
    """All counters at zero, so that a zero is seen and not missing."""
    return dict.fromkeys(COUNTER_NAMES, 0)


def is_tell(header: Header) -> bool:
    """True when nobody waits for an answer."""
    return header.message_id.startswith(_TELL)


class MessageFactory:
    """Makes the headers and frames of what this process says; ids are unique over all lives of all processes."""

    def __init__(self, boot: ChildContext) -> None:
        self.boot_id = boot.boot_id
        self.name = boot.name
        self.incarnation = boot.incarnation
        self._prefix = f"{boot.boot_id}.{boot.name}.{boot.incarnation}."
        self._message_count = 0

    def next_id(self, *, tell: bool = False) -> str:
        """A message id; a retry of the message repeats it, so the writer's reply cache may outlive this boot."""
        self._message_count += 1
        return f"{_TELL if tell else ''}{self._prefix}{self._message_count:x}"

    def header(self, message_id: str, trace_id: str, deadline_ns: int, attempt: int = 1) -> bytes:
        """An encoded header."""
        return _encode(
            Header(
                message_id,
                trace_id,
                self.name,
                self.incarnation,
                deadline_ns,
                attempt,
                self.boot_id,
            )
        )

    def tell(self, body: msgspec.Struct, trace_id: str = "", deadline_ns: int = 0) -> list[bytes]:
        """All frames of a message that nobody answers."""
        return [self.header(self.next_id(tell=True), trace_id, deadline_ns), _encode(body)]

    def answer(self, asked: Header, body: msgspec.Struct, frames: Sequence[bytes] = ()) -> list[bytes]:
        """All frames of the answer to ``asked``."""
        return [self.header(asked.message_id, asked.trace_id, 0, asked.attempt), _encode(body), *frames]

    def read_header(self, frame: bytes) -> Header:
        """The header in ``frame``; raises one of ``UNDECODABLE``."""
        return _decode_header(frame)

    def is_foreign(self, header: Header) -> bool:
        """True for another protocol version or another life of the daemon."""
        return header.proto != PROTOCOL_VERSION or header.boot_id != self.boot_id


def encode_body(body: msgspec.Struct) -> bytes:
    """The body frame."""
    return _encode(body)


def raise_failure(failure: Failure) -> NoReturn:
    """Raises the exception that a ``Failure`` stands for."""
    details: dict[str, Any] = {"field": failure.field, "retry_after_ms": failure.retry_after_ms}
    match failure.code:
        case ErrorCode.BUSY:
            raise Busy(failure.detail, **details)
        case ErrorCode.UNAVAILABLE | ErrorCode.NOT_APPLIED:
            raise Unavailable(failure.detail, code=failure.code, **details)
        case ErrorCode.OUTCOME_UNKNOWN:
            raise OutcomeUnknown(failure.detail, **details)
        case ErrorCode.STORAGE_FULL:
            raise StorageFull(failure.detail, **details)
        case ErrorCode.NOT_FOUND:
            raise NotFound(failure.detail, **details)
        case _:
            raise SignetError(failure.detail, code=failure.code, **details)
