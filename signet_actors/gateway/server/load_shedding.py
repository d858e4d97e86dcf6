"""Which requests are let in, told from their heads: who asks how the daemon is always finds room.

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
"""What an operator looks at when something is wrong, as under a flood."""
_HEALTH: Final = b"/health"
_READ_IMMEDIATELY: Final = tuple(b"GET " + path for path in (_HEALTH, *sorted(STATUS_PATHS)))


def should_defer(server_context: ServerContext, limits: ConnectionLimits, data: bytes) -> bool:
    """Whether a crowd stands, and ``data``, the begin of a request, is like any of it: short, and of nobody who asks
    how the daemon is."""
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
    """What the request holds from now on, or None: it must be turned away, and is short enough to be read past.

    A question for the health, without a body, is let in wherever it comes from: who asks under a flood must hear that
    the daemon lives. So is an operator's, but few at once. ``is_served``: the connection is one of those that are
    served. Raises RequestRejected where there is no such place, or no room for a body that is not read past.
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
    """Whether the body holds what has arrived of it, not what was declared: it is large, or nothing was."""
    return framing.streamed or framing.declared > LARGE_BODY_BYTES
