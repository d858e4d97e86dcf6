"""What was asked of the edge and how it was answered, counted by route template, never by path.

The number of series is bounded by the route table, whatever clients send: a request without a route is one label, a
method that no route knows another.
"""

from __future__ import annotations

from typing import Final

from signet_actors.errors import ErrorCode
from signet_actors.runtime.histogram import Histogram

UNROUTED: Final = "none"
"""The route label of what was refused before routing, or found no route."""

OTHER_METHOD: Final = "other"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestMetrics:
    """``answered``: requests by template, method and hundreds of the status; ``took``: their durations by template;
    ``refused``: error answers by code."""

    __slots__ = ("durations", "errors", "responses")

    def __init__(self) -> None:
        self.responses: dict[tuple[str, str, int], int] = {}
        self.durations: dict[str, Histogram] = {}
        self.errors: dict[ErrorCode, int] = {}

    def observe(self, template: str | None, method: str, status: int, took_ns: int, code: ErrorCode | None) -> None:
        """One more request has been answered, with ``code`` if it was refused."""
        route = template or UNROUTED
        key = (route, method if method in _METHODS else OTHER_METHOD, status // 100)
        self.responses[key] = self.responses.get(key, 0) + 1
        histogram = self.durations.get(route)
        if histogram is None:
            histogram = self.durations[route] = Histogram()
        histogram.observe(took_ns)
        if code is not None:
            self.errors[code] = self.errors.get(code, 0) + 1
