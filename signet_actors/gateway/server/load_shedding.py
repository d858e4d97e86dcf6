"""Admission of requests by their heads. Health probes are always admitted.

Source: docs/reliability.md R13.
"""

from __future__ import annotations

from typing import Final

from signet_actors.gateway.server.admission import LARGE_BODY_BYTES, ConnectionLimits, Ticket
from signet_actors.gateway.server.fast_path import MAX_PLAIN_BYTES
from signet_actors.gateway.server.framing import Framing
from signet_actors.gateway.server.rejections import BUSY, TOO_MANY_CONNECTIONS, RequestRejected
from signet_actors.gateway.server.server_context import ServerContext

STATUS_PATHS: Final = frozenset({b"/metrics", b"/api/status"})
"""Paths that an operator requests to diagnose a problem such as an overload."""
_HEALTH: Final = b"/health"
_READ_IMMEDIATELY: Final = tuple(b"GET " + path for path in (_HEALTH, *sorted(STATUS_PATHS)))


def should_defer(server_context: ServerContext, limits: ConnectionLimits, data: bytes) -> bool:
    """Return True under overload if ``data``, the start of a request, is short and is not a health or status probe."""
    return (
        len(data) <= MAX_PLAIN_BYTES
        and not data.startswith(_READ_IMMEDIATELY)
        and (bool(server_context.read_scheduler.waiting) or server_context.admission.is_overloaded(limits))
    )


def admit(
    server_context: ServerContext,
    limits: ConnectionLimits,
    method: bytes,
    target: bytes,
    framing: Framing,
    *,
    is_served: bool,
) -> Ticket | None:
    """Return the request's ticket, or None if it must be answered with 503 after its short body was discarded.

    Health probes without a body are always admitted, also on connections beyond the limit: under overload, a client
    must still learn that the daemon is alive. Status probes are admitted too, but few at a time. ``is_served``: the
    connection is within the connection limit.

    Raises RequestRejected if the connection is beyond that limit, or if a body that is too long to be discarded must be
    shed.
    """
    admission = server_context.admission
    path = target.partition(b"?")[0]
    if not framing.declared and not framing.streamed:
        if path == _HEALTH or path.startswith(b"/health/"):
            return admission.admit_unconditionally()
        if path in STATUS_PATHS and method == b"GET" and (not is_served or admission.is_overloaded(limits)):
            probe = admission.admit_status_probe(path)
            if probe is not None:
                return probe
    if not is_served:
        server_context.rejections.connections += 1
        raise RequestRejected(TOO_MANY_CONNECTIONS)
    ticket = admission.admit(framing.declared, limits, is_write=server_context.is_write(method, path))
    if ticket is None and counts_received_bytes(framing):
        raise RequestRejected(BUSY)
    return ticket


def counts_received_bytes(framing: Framing) -> bool:
    """Return True if the body counts by the bytes received, because it is large or of undeclared length."""
    return framing.streamed or framing.declared > LARGE_BODY_BYTES
