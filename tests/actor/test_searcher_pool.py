from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from signet_actors.protocol.control import RESTARTING, ChildState, TreeChanged
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.messaging.searcher_pool import Query, SearcherPool

FAR_NS = 60_000_000_000


class Pool:
    """A pool whose searchers are a list of what they were given."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.given: list[tuple[str, str]] = []
        self.counters = dict.fromkeys(("shed", "late", "resent", "expired"), 0)
        self.pool = SearcherPool(loop, SystemClock(), self._send, self.counters, queue_limit=100, in_flight=2)

    def _send(self, identity: bytes, query: Query) -> bool:
        self.given.append((identity.decode(), query.message_id))
        return True

    def ask(self, *names: str) -> None:
        for name in names:
            deadline = SystemClock().monotonic_ns() + FAR_NS
            self.pool.submit(Query(name, "trace", deadline, b"", [], self.loop.create_future()))

    def answer(self, searcher: str, name: str) -> None:
        self.pool.on_reply(searcher.encode(), 1, name, (None, []))

    def end(self) -> None:
        for query in list(self.pool._pending.values()):
            query.future.cancel()
        self.pool.close()


def played(scene: Callable[[Pool], Any]) -> None:
    async def run() -> None:
        pool = Pool(asyncio.get_running_loop())
        try:
            scene(pool)
        finally:
            pool.end()

    asyncio.run(run())


def test_the_only_searcher_gets_its_next_query_before_it_replies() -> None:
    def scene(pool: Pool) -> None:
        pool.pool.on_idle(b"one", 1)
        pool.ask("a", "b", "c", "d")
        assert pool.given == [("one", "a"), ("one", "b")]
        pool.answer("one", "a")
        assert pool.given[2:] == [("one", "c")]
        assert pool.pool.waiting == 1

    played(scene)


def test_with_two_searchers_each_holds_one_query() -> None:
    def scene(pool: Pool) -> None:
        pool.pool.on_idle(b"one", 1)
        pool.pool.on_idle(b"two", 1)
        pool.ask("slow", "b", "c", "d")
        assert pool.given == [("one", "slow"), ("two", "b")]
        pool.answer("two", "b")
        pool.answer("two", "c")
        assert pool.given[2:] == [("two", "c"), ("two", "d")]

    played(scene)


def test_a_second_searcher_ends_the_prefetch_of_the_first() -> None:
    def scene(pool: Pool) -> None:
        pool.pool.on_idle(b"one", 1)
        pool.ask("slow")
        pool.pool.on_idle(b"two", 1)
        pool.ask("b", "c")
        assert pool.given == [("one", "slow"), ("two", "b")]
        pool.answer("one", "slow")
        assert pool.given[2:] == [("one", "c")]

    played(scene)


def test_the_queries_of_the_only_searcher_are_sent_to_its_next_incarnation() -> None:
    def scene(pool: Pool) -> None:
        pool.pool.on_idle(b"one", 1)
        pool.ask("a", "b", "c")
        pool.pool.tree_changed(TreeChanged([ChildState("one", "searcher", RESTARTING, 1, 0, None)]))
        assert pool.pool.waiting == 3
        pool.pool.on_idle(b"one", 2)
        assert sorted(pool.given[2:]) == [("one", "a"), ("one", "b")]
        assert pool.counters["resent"] == 2

    played(scene)
