"""Requests beyond a rate are refused, and remembering who asked costs bounded memory.

Source: architecture.txt "Rate limiting"; wire.md 1.1 "Rate limits", section 3 "Auth".
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import NamedTuple


class Allowance(NamedTuple):
    """``remaining`` requests fit into the window after this one; ``retry_after_ms`` is 0 if this one was allowed."""

    allowed: bool
    remaining: int
    retry_after_ms: int


class SlidingWindow:
    """In any ``window_ms`` at most ``limit`` requests of a key are allowed; a refused one does not count.

    Pure state: the caller gives the time (of a monotonic clock, in milliseconds). At most ``max_keys`` keys are
    remembered; beyond, the one that was asked for longest ago is forgotten, so that a caller who invents keys can
    shorten other callers' memory but never grow this process.
    """

    def __init__(self, limit: int, window_ms: int = 60_000, *, max_keys: int = 4096) -> None:
        if limit < 1 or window_ms < 1 or max_keys < 1:
            raise ValueError("limit, window_ms and max_keys must be at least 1")
        self.limit = limit
        self.window_ms = window_ms
        self.max_keys = max_keys
        self._asked: OrderedDict[str, deque[int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._asked)

    def take(self, key: str, now_ms: int) -> Allowance:
        """Count one request of ``key`` if it fits."""
        times = self._asked.get(key)
        if times is None:
            while len(self._asked) >= self.max_keys:
                self._asked.popitem(last=False)
            times = self._asked[key] = deque()
        else:
            self._asked.move_to_end(key)
        while times and times[0] <= now_ms - self.window_ms:
            times.popleft()
        if len(times) >= self.limit:
            return Allowance(allowed=False, remaining=0, retry_after_ms=max(1, times[0] + self.window_ms - now_ms))
        times.append(now_ms)
        return Allowance(allowed=True, remaining=self.limit - len(times), retry_after_ms=0)
