"""The gateway's client of the bus with real actor processes."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
import pytest
import structlog

from signet_actors.config.schema import Config, SearcherConfig, WriterConfig
from signet_actors.errors import Busy, ErrorCode, OutcomeUnknown, SignetError, Unavailable
from signet_actors.protocol.writer import TouchMemories
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.messaging.async_client import RequestTracker
from signet_actors.runtime.messaging.envelope import MessageFactory, new_counters
from tests.support.bus_client_harness import bus_in, command, query, soon, with_harness
from tests.support.bus_harness import BusHarness, bus_harness


def test_a_request_is_answered_by_the_writer() -> None:
    async def test(room: BusHarness) -> None:
        room.start_ready("writer", "writer")
        async with bus_in(room) as bus:
            answers = await asyncio.gather(
                *(bus.ask_writer(command(f"n{number}"), trace_id="t") for number in range(200))
            )
            assert [str(answer.previous).split("@")[0] for answer in answers] == [f"n{n}" for n in range(200)]
            assert bus.writer_backlog == 0

    with_harness(test)


def test_large_messages_and_frames_arrive() -> None:
    async def test(room: BusHarness) -> None:
        room.start_ready("writer", "writer")
        async with bus_in(room) as bus:
            text = "x" * 3_000_000
            answer = await bus.ask_writer(command(text), trace_id="t", frames=[b"\0" * 100_000])
            assert answer.previous is not None
            assert answer.previous.startswith(text)

    with_harness(test)


def test_a_request_beyond_the_credits_is_busy_at_once() -> None:
    async def test(room: BusHarness) -> None:
        room.start_ready("writer", "writer")
        async with bus_in(room) as bus:
            asks = [asyncio.ensure_future(bus.ask_writer(command("sleep:1000"), trace_id="t")) for _ in range(4)]
            await asyncio.sleep(0)
            with pytest.raises(Busy) as refused:
                await bus.ask_writer(command("one too many"), trace_id="t")
            assert not any(ask.done() for ask in asks), "it waited for one of the others"
            assert refused.value.retry_after_ms
            await asyncio.gather(*asks)
            assert bus.counters["shed"] == 1
            await bus.ask_writer(command("now there is room"), trace_id="t")

    with_harness(test, Config(writer=WriterConfig(queue_limit=4)))


def test_without_a_writer_a_request_is_not_applied() -> None:
    async def test(room: BusHarness) -> None:
        async with bus_in(room) as bus:
            before = time.monotonic()
            with pytest.raises(Unavailable):
                await bus.ask_writer(command("x"), trace_id="t", timeout_ms=60_000)
            assert time.monotonic() - before < 30
            assert not bus.tell_writer(TouchMemories(ids=("a",)), trace_id="t")
            assert bus.counters["unroutable"] == 1

    with_harness(test)


def test_waiting_requests_are_sent_to_a_writer_that_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "signet_actors.runtime.messaging.requests.PEER_WAIT_MS", 30_000
    )  # an interpreter may start slowly here

    async def test(room: BusHarness) -> None:
        room.start("writer", "writer", order="boot_sleep:300")
        async with bus_in(room) as bus:
            answer = await bus.ask_writer(command("wait"), trace_id="t", timeout_ms=30_000)
            assert answer.previous is not None

    with_harness(test)


def test_a_request_without_a_reply_in_time_has_an_unknown_outcome() -> None:
    async def test(room: BusHarness) -> None:
        room.start_ready("writer", "writer")
        async with bus_in(room) as bus:
            with pytest.raises(OutcomeUnknown):
                await bus.ask_writer(command("sleep:2000"), trace_id="t", timeout_ms=100)
            await bus.ask_writer(command("x"), trace_id="t")
            assert bus.counters["late"] == 1

    with_harness(test)


def test_a_pending_request_is_resent_to_the_restarted_writer_with_the_same_id_and_answered_once() -> None:
    async def test(room: BusHarness) -> None:
        first = room.start_ready("writer", "writer")
        async with bus_in(room) as bus:
            ask = asyncio.ensure_future(bus.ask_writer(command("die_once"), trace_id="t"))
            await asyncio.to_thread(first.wait, 60)
            room.died("writer")
            second = room.start_ready("writer", "writer")
            room.announce_tree()
            answer = await ask
            assert answer.suspected_jump_since == str(second.pid)
            assert str(answer.previous).startswith("die_once@00112233aabbccdd.gateway.1.")
            assert bus.counters["resent"] == 1
            assert bus.counters["late"] == 0
            assert bus.writer_backlog == 0

    with_harness(test)


def test_an_unsent_request_is_not_queued_twice_when_the_peer_restarts() -> None:
    async def test() -> None:
        sent: list[list[bytes]] = []
        connected = True

        def send(parts: list[bytes]) -> bool:
            if connected:
                sent.append(parts)
            return connected

        with bus_harness() as room:
            asks = RequestTracker(
                asyncio.get_running_loop(),
                SystemClock(),
                MessageFactory(room.gateway_boot()),
                send,
                new_counters(),
                peer="writer",
                max_items=4,
                max_bytes=1000,
                resend=True,
            )
            asks.on_peer_up(1)
            future = asks.submit("t", 5000, b"body", [])
            connected = False
            asks.on_peer_up(2)
            asks.on_peer_up(3)
            connected = True
            await soon(lambda: len(sent) >= 2)
            after = asks.submit("t", 5000, b"after", [])
            await soon(lambda: sent[-1][1] == b"after")
            assert [parts[1] for parts in sent] == [b"body", b"body", b"after"]
            asks.close()
            outcomes = await asyncio.gather(future, after, return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [OutcomeUnknown, OutcomeUnknown]

    asyncio.run(test())


def test_messages_after_a_failing_one_are_read() -> None:
    async def test(room: BusHarness) -> None:
        async with bus_in(room) as bus:
            seen: list[int] = []

            def on_tree(_: Any) -> None:
                seen.append(len(seen))
                if len(seen) == 1:
                    raise RuntimeError("a fault of ours")

            bus.on_tree = on_tree
            with structlog.testing.capture_logs() as logged:
                for _ in range(3):
                    room.announce_tree()
                await soon(lambda: len(seen) >= 3)
            assert [line["event"] for line in logged if line["log_level"] == "error"] == ["message_failed"]

    with_harness(test)


def test_the_bus_client_measures_the_silence_of_the_supervisor() -> None:
    async def test(room: BusHarness) -> None:
        async with bus_in(room) as bus:
            await soon(lambda: bus.supervisor_silent_ms() > 300)

            def is_heard() -> bool:
                room.announce_tree()
                return bus.supervisor_silent_ms() < 300

            await soon(is_heard)

    with_harness(test)


def test_a_cancelled_request_keeps_its_credit_until_the_writer_replies() -> None:
    async def test(room: BusHarness) -> None:
        room.start_ready("writer", "writer")
        async with bus_in(room) as bus:
            ask = asyncio.ensure_future(bus.ask_writer(command("sleep:50"), trace_id="t"))
            await asyncio.sleep(0)
            ask.cancel()
            with pytest.raises(asyncio.CancelledError):
                await ask
            assert bus.writer_backlog == 1
            await soon(lambda: bus.writer_backlog == 0)
            await bus.ask_writer(command("x"), trace_id="t")

    with_harness(test)


def test_a_failure_reply_is_raised_as_an_exception_with_its_code() -> None:
    async def test(room: BusHarness) -> None:
        room.start_ready("writer", "writer")
        async with bus_in(room) as bus:
            with pytest.raises(SignetError) as refused:
                await bus.ask_writer(command("refuse"), trace_id="t")
            assert refused.value.code == ErrorCode.CONFLICT
            assert refused.value.detail == "told to refuse"

    with_harness(test)


def test_queries_are_spread_over_the_idle_searchers() -> None:
    async def test(room: BusHarness) -> None:
        room.start_ready("searcher-1", "searcher")
        room.start_ready("searcher-2", "searcher")
        async with bus_in(room) as bus:
            await soon(lambda: bus.searchers_known == 2)
            answers = await asyncio.gather(*(bus.ask_searcher(query("sleep:5"), trace_id="t") for _ in range(20)))
            names = [answer.words[0] for answer, _ in answers]
            assert {"searcher-1", "searcher-2"} == set(names)

    with_harness(test)


def test_the_query_of_a_killed_searcher_is_answered_by_another() -> None:
    async def test(room: BusHarness) -> None:
        room.start_ready("searcher-1", "searcher")
        async with bus_in(room) as bus:
            await soon(lambda: bus.searchers_known == 1)
            ask = asyncio.ensure_future(bus.ask_searcher(query("die_once"), trace_id="t", timeout_ms=8000))
            await asyncio.to_thread(room.processes["searcher-1"].wait, 60)
            room.start_ready("searcher-2", "searcher")
            room.died("searcher-1")
            answer, _ = await ask
            assert answer.words[0] == "searcher-2"
            assert answer.version == 2  # the attempt
            assert bus.counters["resent"] == 1

    with_harness(test)


def test_a_query_that_crashes_two_searchers_is_not_sent_again() -> None:
    async def test(room: BusHarness) -> None:
        room.start_ready("searcher-1", "searcher")
        room.start_ready("searcher-2", "searcher")
        room.start_ready("searcher-3", "searcher")
        async with bus_in(room) as bus:
            await soon(lambda: bus.searchers_known == 3)
            ask = asyncio.ensure_future(bus.ask_searcher(query("die"), trace_id="t", timeout_ms=8000))
            dead: set[str] = set()
            while len(dead) < 2:
                for name in sorted(set(room.processes) - dead):
                    if room.processes[name].poll() is not None:
                        dead.add(name)
                        room.died(name)
                await asyncio.sleep(0.005)
            with pytest.raises(Unavailable):
                await ask
            answer, _ = await bus.ask_searcher(query("x"), trace_id="t")
            assert answer.words[0] not in dead

    with_harness(test)


def test_with_no_searcher_a_query_is_unavailable_at_its_deadline() -> None:
    async def test(room: BusHarness) -> None:
        async with bus_in(room) as bus:
            before = time.monotonic()
            with pytest.raises(Unavailable, match="no searcher is running"):
                await bus.ask_searcher(query("x"), trace_id="t", timeout_ms=150)
            assert 0.1 < time.monotonic() - before < 5
            assert bus.search_backlog == 0

    with_harness(test)


def test_a_searcher_that_misses_a_deadline_gets_no_query_until_it_sends_a_message() -> None:
    async def test(room: BusHarness) -> None:
        room.start_ready("searcher-1", "searcher")
        async with bus_in(room) as bus:
            await soon(lambda: bus.searchers_known == 1)
            with pytest.raises(Unavailable, match="did not answer"):
                await bus.ask_searcher(query("sleep:3000"), trace_id="t", timeout_ms=100)
            with pytest.raises(Unavailable, match="no searcher was free"):
                await bus.ask_searcher(query("x"), trace_id="t", timeout_ms=20)
            answer, _ = await bus.ask_searcher(query("x"), trace_id="t", timeout_ms=20_000)
            assert answer.words[0] == "searcher-1"
            assert bus.counters["late"] == 1

    with_harness(test)


def test_more_queries_than_the_queue_holds_are_busy() -> None:
    async def test(room: BusHarness) -> None:
        async with bus_in(room) as bus:
            asks = [asyncio.ensure_future(bus.ask_searcher(query("x"), trace_id="t", timeout_ms=200)) for _ in range(5)]
            results = await asyncio.gather(*asks, return_exceptions=True)
            assert [type(result).__name__ for result in results].count("Busy") == 2
            assert [type(result).__name__ for result in results].count("Unavailable") == 3

    with_harness(test, Config(searcher=SearcherConfig(queue_limit=3)))


def test_searchers_register_with_a_restarted_gateway() -> None:
    async def test(room: BusHarness) -> None:
        room.start_ready("searcher-1", "searcher")
        for _ in range(2):
            async with bus_in(room) as bus:
                answer, _ = await bus.ask_searcher(query("x"), trace_id="t")
                assert answer.words[0] == "searcher-1"

    with_harness(test)


def test_a_searcher_of_another_boot_is_refused() -> None:
    async def test(room: BusHarness) -> None:
        async with bus_in(room) as bus:
            foreign = msgspec.structs.replace(room.gateway_boot(), name="searcher-9", boot_id="another")
            await asyncio.to_thread(_announce_idle, foreign)
            await soon(lambda: bus.counters["foreign"] == 1)
            assert bus.searchers_known == 0

    with_harness(test)


def _announce_idle(boot: Any) -> None:
    from signet_actors.protocol.control import Idle
    from signet_actors.runtime.messaging.envelope import MessageFactory
    from signet_actors.runtime.messaging.sockets import SEARCH_SOCKET, connect_dealer, new_context

    context = new_context()
    socket = connect_dealer(context, boot.socket_dir, SEARCH_SOCKET, boot.name, boot.bus_key)
    socket.send_multipart(MessageFactory(boot).tell(Idle()))
    context.destroy(linger=500)
