"""What all connections of this process share: the bounds, what is held within them, and what was refused."""

from __future__ import annotations

from collections.abc import Callable

from signet_actors.gateway.admission import Admission, WireLimits
from signet_actors.gateway.places import Places
from signet_actors.gateway.turns import Readings, Turns
from signet_actors.gateway.wire_answers import BusyAnswer, RefusedCounts


def _reads_only(_method: bytes, _path: bytes) -> bool:
    return False


class Wire:
    """One for each server. ``limits`` may be replaced while serving (a reload); ``changes`` says of a request line
    whether it asks for a change, which decides what it waits for."""

    def __init__(
        self,
        limits: WireLimits,
        new_trace_id: Callable[[], str],
        changes: Callable[[bytes, bytes], bool] = _reads_only,
    ) -> None:
        self.limits = limits
        self.new_trace_id = new_trace_id
        self.changes = changes
        self.refused = RefusedCounts()
        self.admission = Admission()
        self.places = Places()
        self.turns = Turns()
        self.readings = Readings()
        self.busy_answer = BusyAnswer()
