"""The first frame of every message. Source: docs/architecture.md "Messages"; docs/messaging.md rules 8 and 9."""

from __future__ import annotations

import msgspec

PROTOCOL_VERSION = 1


class Header(msgspec.Struct, frozen=True, array_like=True):
    """The sender, the request it belongs to, and the deadline.

    ``message_id``  id of the request; a reply and a retry repeat it (it is the idempotency key of the retry).
    ``trace_id``    constant from the HTTP request to the commit.
    ``sender``      process name, e.g. ``gateway`` or ``searcher-1``.
    ``incarnation`` incarnation of the sender; rises by one at each restart.
    ``deadline_ns`` CLOCK_MONOTONIC nanoseconds after which the request is dropped; 0 = no deadline.
    ``attempt``     1 when sent for the first time.
    ``boot_id``     id of the supervisor's run; a message of another run is refused.
    """

    message_id: str
    trace_id: str
    sender: str
    incarnation: int
    deadline_ns: int
    attempt: int
    boot_id: str
    proto: int = PROTOCOL_VERSION
