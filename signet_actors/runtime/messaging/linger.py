"""Decide how long a batch may wait for more messages: a pure rule over counts and times.

Work with a cost per batch (a commit) gets cheaper with more messages in it, but only when several senders wait. So a
batch lingers only while recent batches held more than one request: a single sender never waits, and after a burst at
most one batch lingers in vain. Lingering ends early when as many requests have arrived as recently, because senders
that wait for their replies send no more.

Source: docs/performance.md "Write targets" (rows per commit grow with load; one client's p50).
"""

from __future__ import annotations

from typing import Final

POLL_INTERVAL_NS: Final = 200_000
"""Time between two checks of the mailbox; a sleeping process leaves its core to the senders."""
NS_PER_REQUEST: Final = 500_000
"""Maximum linger per expected request: about what a request costs its sender."""
LONGEST_NS: Final = 1_500_000


class Linger:
    """The rule for one mailbox. More than ``limit`` requests are not worth waiting for."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._last = 1
        self._before = 1

    @property
    def expected(self) -> int:
        """The number of requests to wait for: the larger of the last two batches."""
        return min(self._limit, max(self._last, self._before))

    def wait_ns(self, count: int, waited_ns: int) -> int:
        """Return how long to sleep before checking again; 0 = handle the ``count`` requests that have arrived now."""
        expected = self.expected
        if expected <= 1 or count >= expected:
            return 0
        left = min(LONGEST_NS, expected * NS_PER_REQUEST) - waited_ns
        return max(0, min(POLL_INTERVAL_NS, left))

    def on_batch(self, count: int) -> None:
        """Record the size of a batch that is handled now."""
        self._before, self._last = self._last, count
