"""Replies of a searcher that take long and may be some seconds old, so that a loop of them does not stop the hooks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Final

from signet_actors.protocol.message import Answered
from signet_actors.runtime.clock import Clock

MAX_AGE_MS: Final = 5_000
MAX_KEPT: Final = 64


class KeptReplies:
    """Replies by what was asked, each kept for ``MAX_AGE_MS``; at most one is asked for at a time.

    One event loop only.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._asking = asyncio.Lock()
        self._kept: dict[Hashable, tuple[int, Answered]] = {}  # the oldest first

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[Answered]]) -> Answered:
        """Return the reply that is kept, else that of ``ask``. Raises what ``ask`` raises, which is not kept."""
        if (recent := self._recent(key)) is not None:
            return recent
        async with self._asking:
            if (recent := self._recent(key)) is not None:  # another request has asked meanwhile
                return recent
            reply = await ask()
            self._kept.pop(key, None)
            if len(self._kept) >= MAX_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = self._clock.monotonic_ns(), reply
            return reply

    def _recent(self, key: Hashable) -> Answered | None:
        asked_ns, reply = self._kept.get(key, (0, None))
        return reply if self._clock.monotonic_ns() - asked_ns < MAX_AGE_MS * 1_000_000 else None
