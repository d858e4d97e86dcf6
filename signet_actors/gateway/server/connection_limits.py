"""The limits of the HTTP server, as configured. A reload replaces them while the server runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of one connection, and of all connections together.

    The ``*_ms`` fields of one connection are total deadlines, not per read. ``header_bytes`` covers the request line
    and the headers together. ``write_ms`` is how long a client may leave a full send buffer unread.

    ``connections`` and ``max_*`` apply to all connections together. ``max_in_flight`` bounds the requests with a
    complete body whose handler has not ended: so many writes, and as many reads. ``max_total_body_bytes`` counts the
    bytes of their bodies: as received for large bodies and for bodies of undeclared length, else as declared.
    ``max_large_bodies`` counts requests whose complete body is larger than ``load_shedding.LARGE_BODY_BYTES``.
    """

    header_bytes: int = 16 * 1024
    header_ms: int = 10_000
    body_bytes: int = 1024 * 1024
    body_ms: int = 10_000
    write_ms: int = 15_000
    keep_alive_ms: int = 15_000
    connections: int = 256
    max_in_flight: int = 128
    max_total_body_bytes: int = 32 * 1024 * 1024
    max_large_bodies: int = 2
