"""Tests for the gateway's reports of accesses to the writer."""

from __future__ import annotations

import asyncio
from typing import cast

from signet_actors.gateway.access_counts import INTERVAL_S, MAX_WAITING, AccessCounts
from signet_actors.protocol.writer import TouchMemories
from signet_actors.runtime.messaging.bus_client import BusClient
from tests.support.memory_api import RecordingBus


def counts_of(bus: RecordingBus) -> AccessCounts:
    return AccessCounts(cast("BusClient", bus))


def test_the_first_access_is_reported_at_once_and_the_next_ones_together() -> None:
    async def scenario() -> None:
        counts.add(("a",), trace_id="t")
        assert bus.told == [TouchMemories(ids=("a",))]
        counts.add(("a", "b"), trace_id="t")
        counts.add(("c",), "injected", trace_id="t")
        counts.add(("a",), trace_id="t")
        assert bus.told == [TouchMemories(ids=("a",))]
        await asyncio.sleep(2 * INTERVAL_S)
        assert bus.told[1:] == [TouchMemories(ids=("a", "b", "a")), TouchMemories(ids=("c",), kind="injected")]

    bus = RecordingBus()
    counts = counts_of(bus)
    asyncio.run(scenario())


def test_many_accesses_do_not_wait() -> None:
    async def scenario() -> None:
        counts.add(("a",), trace_id="t")
        ids = tuple(f"id-{number}" for number in range(MAX_WAITING + 1))
        counts.add(ids, trace_id="t")
        assert bus.told == [TouchMemories(ids=("a",)), TouchMemories(ids=ids)]

    bus = RecordingBus()
    counts = counts_of(bus)
    asyncio.run(scenario())


def test_a_stop_reports_what_waits() -> None:
    async def scenario() -> None:
        counts.add(("a",), trace_id="t")
        counts.add(("b",), trace_id="t")
        counts.stop()
        assert bus.told == [TouchMemories(ids=("a",)), TouchMemories(ids=("b",))]

    bus = RecordingBus()
    counts = counts_of(bus)
    asyncio.run(scenario())
