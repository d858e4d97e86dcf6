"""Rate limits: a maximum count in each fixed window of time.

Source: docs/compatibility.md "Authentication".
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from signet_actors.config.schema import RateLimit

_MAX_KEYS: Final = 4096


class RateLimiter:
    """One window per key (``actor:operation``), for the most recently used keys. One event loop only."""

    def __init__(self) -> None:
        self._windows: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def take(self, key: str, limit: RateLimit, now_ms: int) -> int:
        """Count the operation and return 0; at the limit, return the milliseconds until the window ends."""
        began_ms, count = self._windows.get(key, (now_ms, 0))
        if not 0 <= now_ms - began_ms < limit.window_ms:
            began_ms, count = now_ms, 0
        if count >= limit.max_count:
            return began_ms + limit.window_ms - now_ms
        self._windows[key] = began_ms, count + 1
        self._windows.move_to_end(key)
        if len(self._windows) > _MAX_KEYS:
            self._windows.popitem(last=False)
        return 0
