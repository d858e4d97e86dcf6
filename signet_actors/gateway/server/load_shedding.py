"""Which requests are let in, told from their heads: who asks how the daemon is always finds room.

Source: docs/reliability.md R13.
"""

from __future__ import annotations

from typing import Final

from signet_actors.gateway.server.admission import LARGE_BODY_BYTES, Ticket, WireLimits
from signet_actors.gateway.server.fast_path import MOST_BYTES
from signet_actors.gateway.server.framing import Framing
from signet_actors.gateway.server.rejections import BUSY, NO_PLACE, Refused
from signet_actors.gateway.server.server_context import ServerContext

GLANCES: Final = frozenset({b"/metrics", b"/api/status"})
"""What an operator looks at when something is wrong, as under a flood."""
_HEALTH: Final = b"/health"
_READ_AT_ONCE: Final = tuple(b"GET " + path for path in (_HEALTH, *sorted(GLANCES)))


def should_defer(wire: ServerContext, limits: WireLimits, data: bytes) -> bool:
    """Whether a crowd stands, and ``data``, the begin of a request, is like any of it: short, and of nobody who asks
    how the daemon is."""
    return (
        len(data) <= MOST_BYTES
        and not data.startswith(_READ_AT_ONCE)
        and (bool(wire.readings.waiting) or wire.admission.is_crowded(limits))
    )


def admit_on_arrival(
    wire: ServerContext, limits: WireLimits, method: bytes, target: bytes, framing: Framing, *, placed: bool
) -> Ticket | None:
    """What the request holds from now on, or None: it must be turned away, and is short enough to be read past.

    A question for the health, without a body, is let in wherever it comes from: who asks under a flood must hear that
    the daemon lives. So is an operator's, but few at once. ``placed``: the connection is one of those that are served.
    Raises Refused where there is no such place, or no room for a body that is not read past.
    """
    admission = wire.admission
    path = target.partition(b"?")[0]
    if not framing.declared and not framing.streamed:
        if path == _HEALTH or path.startswith(b"/health/"):
            return admission.admit_on_arrival()
        if path in GLANCES and method == b"GET" and (not placed or admission.is_crowded(limits)):
            glance = admission.glance(path)
            if glance is not None:
                return glance
    if not placed:
        wire.refused.connections += 1
        raise Refused(NO_PLACE)
    admitted = admission.admit(framing.declared, limits, changes=wire.changes(method, path))
    if admitted is None and counts_as_it_arrives(framing):
        raise Refused(BUSY)
    return admitted


def counts_as_it_arrives(framing: Framing) -> bool:
    """Whether the body holds what has arrived of it, not what was declared: it is large, or nothing was."""
    return framing.streamed or framing.declared > LARGE_BODY_BYTES
