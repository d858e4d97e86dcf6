"""How long a batch may gather before it is worked on: a pure rule, told what came and what time it is.

Work whose cost is per batch (a commit) gets cheaper the more it holds, but only where several senders wait anyway. So
a batch lingers only while recent ones held more than one request: a sender that is alone never waits, and a crowd
that has gone costs one linger. It ends early once as many have come as recently did, because senders that wait
for their answers send no more.

Source: docs/performance.md "Write targets" (rows per commit grow with load; one client's p50).
"""

from __future__ import annotations

from typing import Final

POLL_INTERVAL_NS: Final = 200_000
"""Between two looks at the mailbox: a process that sleeps leaves its core to those that it waits for."""
NS_PER_REQUEST: Final = 500_000
"""A linger may take so long for each request that is expected: about what the request costs whoever sends it."""
LONGEST_NS: Final = 1_500_000


class Linger:
    """One mailbox's rule. ``limit`` requests are as many as are worth waiting for."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._last = 1
        self._before = 1

    @property
    def expected(self) -> int:
        """So many requests as the larger of the last two batches had."""
        return min(self._limit, max(self._last, self._before))

    def wait_ns(self, count: int, waited_ns: int) -> int:
        """How long to sleep before looking again, with ``count`` requests after ``waited_ns``; 0: work on them now."""
        expected = self.expected
        if expected <= 1 or count >= expected:
            return 0
        left = min(LONGEST_NS, expected * NS_PER_REQUEST) - waited_ns
        return max(0, min(POLL_INTERVAL_NS, left))

    def on_batch(self, count: int) -> None:
        """A batch of so many requests is worked on."""
        self._before, self._last = self._last, count
