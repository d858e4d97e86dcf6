"""A reply that takes long is kept for some seconds, and one is asked for at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

import pytest

from signet_actors.errors import Unavailable
from signet_actors.gateway.status.kept_replies import MAX_AGE_MS, MAX_KEPT, KeptReplies
from signet_actors.protocol.message import Answered
from tests.support.store_room import SetClock


class Room:
    """Kept replies, and the keys that were asked for, as many at a time as ``most``."""

    def __init__(self) -> None:
        self.clock = SetClock()
        self.replies = KeptReplies(self.clock)
        self.asked: list[Hashable] = []
        self.most = 0
        self.fails = False
        self._running = 0

    async def get(self, key: Hashable) -> Answered:
        async def ask() -> Answered:
            self.asked.append(key)
            self._running += 1
            self.most = max(self.most, self._running)
            await asyncio.sleep(0.001)
            self._running -= 1
            if self.fails:
                raise Unavailable("no searcher")
            return Answered(f"{key} {len(self.asked)}".encode())

        return await self.replies.get(key, ask)


def test_a_reply_is_shared_and_kept_for_some_seconds() -> None:
    async def run() -> None:
        room = Room()
        together = await asyncio.gather(*(room.get("a") for _ in range(5)))
        assert (room.asked, {reply.body for reply in together}) == (["a"], {b"a 1"})
        room.clock.advance(MAX_AGE_MS - 1)
        assert (await room.get("a")).body == b"a 1"
        room.clock.advance(1)
        assert (await room.get("a")).body == b"a 2"

    asyncio.run(run())


def test_one_is_asked_for_at_a_time_and_not_too_many_are_kept() -> None:
    async def run() -> None:
        room = Room()
        keys = range(MAX_KEPT + 1)
        await asyncio.gather(*(room.get(key) for key in keys))
        assert (room.asked, room.most) == ([*keys], 1)
        await room.get(MAX_KEPT)
        assert len(room.asked) == MAX_KEPT + 1, "the newest is kept"
        await room.get(0)
        assert len(room.asked) == MAX_KEPT + 2, "the oldest was not"

    asyncio.run(run())


def test_a_failure_is_not_kept() -> None:
    async def run() -> None:
        room = Room()
        room.fails = True
        with pytest.raises(Unavailable):
            await room.get("a")
        room.fails = False
        assert (await room.get("a")).body == b"a 2"

    asyncio.run(run())
