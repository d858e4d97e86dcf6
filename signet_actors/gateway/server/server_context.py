"""What all connections of this process share: the bounds, what is held within them, and what was refused."""

from __future__ import annotations

from collections.abc import Callable

from signet_actors.gateway.server.admission import Admission, ConnectionLimits
from signet_actors.gateway.server.connection_limiter import ConnectionLimiter
from signet_actors.gateway.server.rejections import PrebuiltBusyResponse, RejectionCounts
from signet_actors.gateway.server.scheduler import HandlerScheduler, ReadScheduler


def _reads_only(_method: bytes, _path: bytes) -> bool:
    return False


class ServerContext:
    """One for each server. ``limits`` may be replaced while serving (a reload); ``changes`` says of a request line
    whether it asks for a change, which decides what it waits for."""

    def __init__(
        self,
        limits: ConnectionLimits,
        new_trace_id: Callable[[], str],
        is_write: Callable[[bytes, bytes], bool] = _reads_only,
    ) -> None:
        self.limits = limits
        self.new_trace_id = new_trace_id
        self.is_write = is_write
        self.rejections = RejectionCounts()
        self.admission = Admission()
        self.connections = ConnectionLimiter()
        self.handler_scheduler = HandlerScheduler()
        self.read_scheduler = ReadScheduler()
        self.busy_response = PrebuiltBusyResponse()
