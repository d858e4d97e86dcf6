"""A ``BusClient`` in the test's own event loop, connected to real actor processes."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import structlog

from signet_actors.config.schema import Config
from signet_actors.protocol.leases import AdvanceHighWaterMark
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.searcher import GetCommonWords
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.messaging.bus_client import BusClient
from tests.support.bus_harness import HANGS_S, BusHarness, bus_harness


@asynccontextmanager
async def bus_in(room: BusHarness) -> AsyncIterator[BusClient]:
    """A bus client that has received the tree."""
    room.listen()
    room.said["gateway"] = []
    bus = BusClient(room.gateway_boot(), SystemClock(), structlog.get_logger(), random.Random(1))
    await bus.start()
    bus.ready()
    try:
        await soon(lambda: room.has_spoken("gateway"))
        room.announce_tree()
        await soon(lambda: len(bus.tree.children) == len(room.states))
        yield bus
    finally:
        await bus.close()


async def soon(check: Callable[[], Any], *, within_s: float = HANGS_S) -> None:
    deadline = time.monotonic() + within_s
    while not check():
        assert time.monotonic() < deadline, "did not happen in time"
        await asyncio.sleep(0.002)


def with_harness(test: Callable[[BusHarness], Coroutine[Any, Any, None]], config: Config | None = None) -> None:
    with bus_harness(config) as room:
        asyncio.run(test(room))


def command(text: str) -> AdvanceHighWaterMark:
    return AdvanceHighWaterMark(now=text)


def query(text: str) -> GetCommonWords:
    return GetCommonWords(read=ReadScope(), projects=Filters(project=text))
