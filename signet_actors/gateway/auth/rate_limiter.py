"""Rate limits: a maximum count within a window of time that ends now.

Source: docs/compatibility.md "Authentication".
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Final

from signet_actors.config.schema import RateLimit

_MAX_KEYS: Final = 4096


class RateLimiter:
    """The times of the last operations by key (``actor:operation``), of the keys used last. One event loop only."""

    def __init__(self) -> None:
        self._times: OrderedDict[str, deque[int]] = OrderedDict()

    def take(self, key: str, limit: RateLimit, now_ms: int) -> int:
        """Count the operation and return 0; at the limit, return the milliseconds until one is possible again."""
        times = self._times.setdefault(key, deque())
        while times and not 0 <= now_ms - times[0] < limit.window_ms:
            times.popleft()
        if len(times) >= limit.max_count:
            return times[0] + limit.window_ms - now_ms if times else limit.window_ms
        times.append(now_ms)
        self._times.move_to_end(key)
        if len(self._times) > _MAX_KEYS:
            self._times.popitem(last=False)
        return 0
