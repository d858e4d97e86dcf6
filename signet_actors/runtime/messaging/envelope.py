"""The frames of a message: a header, a body, raw frames. Made by ``MessageFactory``, checked by each receiver.

Source: docs/architecture.md "Messages"; docs/messaging.md rules 8, 15 and 19.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar, cast

import msgspec

from signet_actors.errors import Busy, ErrorCode, NotFound, OutcomeUnknown, SignetError, StorageFull, Unavailable
from signet_actors.protocol.header import PROTOCOL_VERSION, Header
from signet_actors.protocol.message import Failure
from signet_actors.runtime.logging.throttle import LogThrottle
from signet_actors.runtime.processes.child_context import ChildContext

R = TypeVar("R")

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
"""One counter for every place where a message can be dropped. Source: docs/messaging.md rule 20."""

PING = b"\xa4ping"
"""The body of a probe, which checks that its receiver reads and answers, and the body of the answer."""

_TELL = "~"
encode_frame = msgspec.msgpack.Encoder().encode
"""Return a header or a body as a frame."""
decode_header = msgspec.msgpack.Decoder(Header).decode
"""Return the header in a frame; raises one of ``UNDECODABLE``."""


def new_counters() -> dict[str, int]:
    """Return all counters at zero, so that metrics show a zero instead of a missing value."""
    return dict.fromkeys(COUNTER_NAMES, 0)


def is_tell(header: Header) -> bool:
    return header.message_id.startswith(_TELL)


class MessageFactory:
    """Makes the headers and frames of this process's messages; ids are unique over all processes and incarnations."""

    def __init__(self, boot: ChildContext) -> None:
        self.boot_id = boot.boot_id
        self.name = boot.name
        self.incarnation = boot.incarnation
        self._prefix = f"{boot.boot_id}.{boot.name}.{boot.incarnation}."
        self._message_count = 0

    def next_id(self, *, tell: bool = False) -> str:
        """Return a new message id. A retry uses the same id, so the writer's reply cache may outlive this boot."""
        self._message_count += 1
        return f"{_TELL if tell else ''}{self._prefix}{self._message_count:x}"

    def header(self, message_id: str, trace_id: str, deadline_ns: int, attempt: int = 1) -> bytes:
        """Return an encoded header."""
        return encode_frame(
            Header(message_id, trace_id, self.name, self.incarnation, deadline_ns, attempt, self.boot_id)
        )

    def tell(self, body: msgspec.Struct, trace_id: str = "") -> list[bytes]:
        """Return the frames of a message that expects no reply."""
        return [self.header(self.next_id(tell=True), trace_id, 0), encode_frame(body)]

    def answer(self, asked: Header, body: msgspec.Struct, frames: Sequence[bytes] = ()) -> list[bytes]:
        return [self.header(asked.message_id, asked.trace_id, 0, asked.attempt), encode_frame(body), *frames]

    def is_foreign(self, header: Header) -> bool:
        """Return whether the header has another protocol version or comes from another run of the daemon."""
        return header.proto != PROTOCOL_VERSION or header.boot_id != self.boot_id


class MessageReader:
    """Checks and decodes the frames of replies and of the supervisor's messages, and counts those of no use."""

    def __init__(self, message_factory: MessageFactory, counters: dict[str, int], warnings: LogThrottle) -> None:
        self._message_factory = message_factory
        self._counters = counters
        self._warnings = warnings

    def read(
        self,
        parts: list[bytes],
        decode: Callable[[bytes], Any],
        peer: str,
        unreadable: ErrorCode = ErrorCode.OUTCOME_UNKNOWN,
    ) -> tuple[Header, Any] | None:
        """Return header and body; None for a foreign message and one without a readable header.

        A body that cannot be decoded becomes a Failure with the code ``unreadable``: the request may have been applied.
        """
        self._counters["received"] += 1
        header = None
        try:
            header = decode_header(parts[0])
            if self._message_factory.is_foreign(header):
                self._counters["foreign"] += 1
                self._warnings.warning("foreign_message_refused", sender=header.sender, proto=header.proto)
                return None
            return header, decode(parts[1])
        except (*UNDECODABLE, IndexError) as error:
            self._counters["decode_error"] += 1
            self._warnings.warning("reply_unreadable", peer=peer, error=type(error).__name__)
            if header is None:
                return None
            return header, Failure(unreadable, f"the reply of the {peer} could not be decoded")


def result_of(reply: Failure | R) -> R:
    """Return the reply. Raises the exception that corresponds to a ``Failure``."""
    if type(reply) is Failure:
        _raise(reply)
    return cast("R", reply)


def _raise(failure: Failure) -> NoReturn:
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
