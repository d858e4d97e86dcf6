"""State that all connections of this process share: limits, what is held within them, and counts of rejections."""

from __future__ import annotations

from collections.abc import Callable

from signet_actors.gateway.server.admission import Admission, ConnectionLimits
from signet_actors.gateway.server.connection_limiter import ConnectionLimiter
from signet_actors.gateway.server.rejections import PrebuiltBusyResponse, RejectionCounts
from signet_actors.gateway.server.scheduler import HandlerScheduler, ReadScheduler


def _reads_only(_method: bytes, _path: bytes) -> bool:
    return False


class ServerContext:
    """Shared state of one server.

    A reload replaces ``limits`` while the server runs. ``is_write`` takes the method and path of a request and returns
    True if it changes something, which selects its bulkhead.
    """

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
