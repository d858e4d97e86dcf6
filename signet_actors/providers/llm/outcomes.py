"""Statistics of how the last calls to a provider ended.

Source: architecture.txt "Provider tracker"; docs/compatibility.md "Diagnostics and pipeline status".
"""

from __future__ import annotations

from collections import Counter, deque
from enum import Enum
from typing import Final

from signet_actors.domain.providers import OutcomeCounts

RING_ENTRIES: Final = 100


class CallOutcome(Enum):
    """How one call ended."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"


class CallOutcomes:
    """A ring of the last outcomes with running totals."""

    def __init__(self, capacity: int = RING_ENTRIES) -> None:
        self._entries: deque[CallOutcome] = deque(maxlen=capacity)
        self._totals: Counter[CallOutcome] = Counter()

    def record(self, outcome: CallOutcome) -> None:
        """Add an outcome; if the ring is full, drop the oldest."""
        if len(self._entries) == self._entries.maxlen:
            self._totals[self._entries[0]] -= 1
        self._entries.append(outcome)
        self._totals[outcome] += 1

    @property
    def counts(self) -> OutcomeCounts:
        return OutcomeCounts(
            total=len(self._entries),
            successes=self._totals[CallOutcome.SUCCESS],
            failures=self._totals[CallOutcome.FAILURE],
            timeouts=self._totals[CallOutcome.TIMEOUT],
        )
