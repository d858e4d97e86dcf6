"""An asynchronous actor, which handles each message in a task, with another actor and real searcher processes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import structlog

from signet_actors.errors import Busy, Conflict, ErrorCode, SignetError, Unavailable
from signet_actors.protocol.control import Ready
from signet_actors.protocol.leases import AdvanceHighWaterMark, HighWaterMark
from signet_actors.protocol.writer import WriterCommand, WriterReply
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.messaging.mailbox import Incoming
from signet_actors.runtime.processes.async_actor import AsyncActor, AsyncRef
from tests.support.bus_client_harness import command, query, soon, with_harness
from tests.support.bus_harness import BusHarness

Handler = Callable[[AdvanceHighWaterMark], Awaitable[None]]


@asynccontextmanager
async def actor_in(room: BusHarness, name: str) -> AsyncIterator[AsyncActor]:
    room.said[name] = []
    boot = msgspec.structs.replace(room.gateway_boot(), name=name, role=name)
    actor = AsyncActor(boot, SystemClock(), structlog.get_logger(), random.Random(1))
    await actor.start()
    try:
        actor.ready()
        await soon(lambda: room.heard(name, Ready))
        yield actor
    finally:
        await actor.close()


@asynccontextmanager
async def pair_in(
    room: BusHarness, work: Handler, *, max_unanswered: int = 512
) -> AsyncIterator[tuple[AsyncActor, AsyncRef]]:
    """An actor that does ``work`` for each message and then echoes it, and a ref to it in another actor."""

    async def handler(incoming: Incoming[WriterCommand]) -> HighWaterMark:
        assert isinstance(incoming.body, AdvanceHighWaterMark)
        await work(incoming.body)
        return HighWaterMark(previous=incoming.body.now, suspected_jump_since=None)

    decoder: msgspec.msgpack.Decoder[WriterCommand] = msgspec.msgpack.Decoder(WriterCommand)
    async with actor_in(room, "extractor") as served, actor_in(room, "decider") as asking:
        served.open_mailbox("extractor", decoder, handler, max_unanswered=max_unanswered)
        replies: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(WriterReply)
        yield served, asking.connect("extractor", replies, max_items=1000, resend=False)


async def nothing(_body: AdvanceHighWaterMark) -> None:
    await asyncio.sleep(0)


async def ask(ref: AsyncRef, text: str, *, timeout_ms: int = 10_000) -> str | None:
    return (await ref.ask(command(text), timeout_ms=timeout_ms)).previous


def test_every_message_is_a_task_and_gets_its_own_answer() -> None:
    async def test(room: BusHarness) -> None:
        gate = asyncio.Event()

        async def work(body: AdvanceHighWaterMark) -> None:
            if body.now == "slow":
                await gate.wait()

        async with pair_in(room, work) as (_, ref):
            slow = asyncio.ensure_future(ask(ref, "slow"))
            answers = await asyncio.gather(*(ask(ref, f"n{number}") for number in range(400)))
            assert answers == [f"n{number}" for number in range(400)]
            assert not slow.done()
            gate.set()
            assert await slow == "slow"

    with_harness(test)


def test_messages_beyond_the_limit_are_refused_until_others_are_answered() -> None:
    async def test(room: BusHarness) -> None:
        gate = asyncio.Event()

        async def work(_body: AdvanceHighWaterMark) -> None:
            await gate.wait()

        async with pair_in(room, work, max_unanswered=3) as (served, ref):
            held = [asyncio.ensure_future(ask(ref, f"held {number}")) for number in range(3)]
            await soon(lambda: served.counters["received"] == 3)
            with pytest.raises(Busy) as refused:
                await ask(ref, "one too many")
            assert refused.value.retry_after_ms
            assert served.counters["shed"] == 1
            gate.set()
            await asyncio.gather(*held)
            assert await ask(ref, "now there is room") == "now there is room"

    with_harness(test)


def test_a_refusal_is_answered_with_its_error_code() -> None:
    async def test(room: BusHarness) -> None:
        async def work(_body: AdvanceHighWaterMark) -> None:
            raise Conflict("not like this")

        async with pair_in(room, work) as (served, ref):
            with pytest.raises(SignetError, match="not like this") as refused:
                await ask(ref, "x")
            assert refused.value.code is ErrorCode.CONFLICT
            assert served.crashed is not None
            assert not served.crashed.done()

    with_harness(test)


def test_a_bug_is_answered_and_ends_the_process() -> None:
    async def test(room: BusHarness) -> None:
        async def work(_body: AdvanceHighWaterMark) -> None:
            raise ZeroDivisionError

        async with pair_in(room, work) as (served, ref):
            with pytest.raises(SignetError) as refused:
                await ask(ref, "x")
            assert refused.value.code is ErrorCode.INTERNAL
            assert served.crashed is not None
            assert isinstance(await asyncio.wait_for(served.crashed, 5), ZeroDivisionError)

    with_harness(test)


def test_requests_that_wait_when_the_actor_exits_are_answered() -> None:
    async def test(room: BusHarness) -> None:
        async def work(_body: AdvanceHighWaterMark) -> None:
            await asyncio.Event().wait()

        async with pair_in(room, work) as (served, ref):
            waiting = asyncio.ensure_future(ask(ref, "x"))
            await soon(lambda: served.counters["received"] == 1)
            await served.close()
            with pytest.raises(Unavailable):
                await waiting

    with_harness(test)


def test_an_undecodable_message_is_refused_and_the_next_one_served() -> None:
    async def test(room: BusHarness) -> None:
        async with pair_in(room, nothing) as (served, ref):
            with pytest.raises(SignetError) as refused:
                await ref.ask(query("a searcher's question"), timeout_ms=5000)
            assert refused.value.code is ErrorCode.INVALID_REQUEST
            assert served.counters["decode_error"] == 1
            assert await ask(ref, "next") == "next"

    with_harness(test)


def test_a_query_goes_to_a_searcher_that_is_up() -> None:
    async def test(room: BusHarness) -> None:
        room.start_ready("searcher-1", "searcher")
        room.start_ready("searcher-2", "searcher")
        async with actor_in(room, "decider") as actor:
            with pytest.raises(Unavailable):
                await actor.ask_searcher(query("nobody is known yet"), timeout_ms=5000)
            room.announce_tree()
            await soon(lambda: actor.tree.children)
            slow, quick = await asyncio.gather(
                actor.ask_searcher(query("sleep:200"), timeout_ms=5000),
                actor.ask_searcher(query("quick"), timeout_ms=5000),
            )
            assert slow.words[0] != quick.words[0]
            room.kill(slow.words[0])
            await soon(lambda: [child.state for child in actor.tree.children].count("up") == 1)
            for _ in range(4):
                answer = await actor.ask_searcher(query("again"), timeout_ms=5000)
                assert answer.words[0] == quick.words[0]

    with_harness(test)
