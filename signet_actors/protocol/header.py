"""The header that travels as the first frame of every message, beside the body.

Source: docs/architecture.md "Messages"; docs/messaging.md rules 8 and 9.
"""

from __future__ import annotations

import msgspec

PROTOCOL_VERSION = 1


class Header(msgspec.Struct, frozen=True, array_like=True):
    """Who says it, in answer to what, until when it is worth doing.

    ``message_id``  id of the request; a reply repeats it; a retry repeats it (idempotency key of the retry).
    ``trace_id``    constant from the HTTP request to the commit.
    ``sender``      process name, e.g. ``gateway`` or ``searcher-1``.
    ``incarnation`` which life of the sender speaks; rises by one at each restart.
    ``deadline_ns`` CLOCK_MONOTONIC nanoseconds after which the work is dropped; 0 = no deadline.
    ``attempt``     1 for the first sending.
    ``boot_id``     id of the supervisor's life; a message of another boot is refused.
    """

    message_id: str
    trace_id: str
    sender: str
    incarnation: int
    deadline_ns: int
    attempt: int
    boot_id: str
    proto: int = PROTOCOL_VERSION
