"""Counts and durations of requests by route template, never by path.

The route table bounds the number of series, whatever clients send: requests without a route share one label, and so do
unknown methods.
"""

from __future__ import annotations

from typing import Final

from signet_actors.errors import ErrorCode
from signet_actors.runtime.histogram import Histogram

UNROUTED: Final = "none"
"""The route label of requests that were rejected before routing or found no route."""

OTHER_METHOD: Final = "other"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestMetrics:
    """Responses by template, method and status class; durations by template; errors by code."""

    __slots__ = ("durations", "errors", "responses")

    def __init__(self) -> None:
        self.responses: dict[tuple[str, str, int], tuple[int, int]] = {}
        """Number of responses, and the nanoseconds of all of them."""
        self.durations: dict[str, Histogram] = {}
        self.errors: dict[ErrorCode, int] = {}

    def observe(self, template: str | None, method: str, status: int, took_ns: int, code: ErrorCode | None) -> None:
        """Record one response, with ``code`` if it is an error."""
        route = template or UNROUTED
        key = (route, method if method in _METHODS else OTHER_METHOD, status // 100)
        count, sum_ns = self.responses.get(key, (0, 0))
        self.responses[key] = (count + 1, sum_ns + took_ns)
        histogram = self.durations.get(route)
        if histogram is None:
            histogram = self.durations[route] = Histogram()
        histogram.observe(took_ns)
        if code is not None:
            self.errors[code] = self.errors.get(code, 0) + 1
