"""The loop of a synchronous actor, run as a real process with the test as its supervisor."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
import zmq

from signet_actors.config.schema import Config, SupervisionConfig
from signet_actors.errors import ErrorCode, OutcomeUnknown, SignetError, Unavailable
from signet_actors.protocol.control import Heartbeat, Ready, Reload, Starting
from signet_actors.protocol.message import Failure
from signet_actors.runtime.messaging.envelope import encode_frame
from signet_actors.runtime.processes.child_context import encode_context
from tests.support.bus_client_harness import bus_in, command, query, soon, with_harness
from tests.support.bus_harness import REPOSITORY, BusHarness, bus_harness, child_environment, eventually, log_lines

BEATING = Config(supervision=SupervisionConfig(heartbeat_ms=50))


def test_an_actor_reports_starting_then_ready_then_heartbeats() -> None:
    with bus_harness(BEATING) as room:
        room.start_ready("writer", "writer", order="boot_sleep:100")
        eventually(lambda: room.heard("writer", Heartbeat))
        kinds = [type(said) for said in room.said["writer"]]
        assert kinds[0] is Starting
        assert kinds.index(Ready) < kinds.index(Heartbeat) or Heartbeat in kinds[kinds.index(Ready) :]
        counters = room.counters("writer")
        assert counters["handled"] == 0
        assert {"sent", "received", "shed", "unroutable", "late", "decode_error", "foreign"} <= set(counters)


def test_messages_that_arrive_during_work_become_one_batch() -> None:
    async def test(room: BusHarness) -> None:
        room.start_ready("writer", "writer")
        async with bus_in(room) as bus:
            first = asyncio.ensure_future(bus.ask_writer(command("sleep:500"), trace_id="t"))
            await asyncio.sleep(0)
            await asyncio.gather(first, *(bus.ask_writer(command("x"), trace_id="t") for _ in range(50)))
            await soon(lambda: room.counters("writer").get("handled") == 51)
            # Some may have come before the first was begun; what came with it and what waited are two batches of 51.
            assert room.counters("writer")["largest_batch"] >= 26

    with_harness(test, BEATING)


def test_an_exception_answers_the_batch_and_ends_the_process_without_quoting_it() -> None:
    async def test(room: BusHarness) -> None:
        writer = room.start_ready("writer", "writer")
        async with bus_in(room) as bus:
            with pytest.raises(SignetError) as failed:
                await bus.ask_writer(command("crash"), trace_id="t", timeout_ms=500)
            assert failed.value.code in {ErrorCode.INTERNAL, ErrorCode.OUTCOME_UNKNOWN}
            assert await asyncio.to_thread(writer.wait, 10) not in {0, 78}
            words = room.exit_notice("writer")
            assert words is not None
            assert "RuntimeError" in words.detail
            crash = next(line for line in log_lines(room.workspace) if line["event"] == "crashed")
            assert crash["error"] == "RuntimeError"
            assert any("obey" in frame for frame in crash["stack"])
            assert "told to crash" not in json.dumps({**crash, "stack": []})

    with_harness(test)


def test_the_last_replies_of_a_crashing_actor_are_sent() -> None:
    with bus_harness() as room:
        room.start_ready("writer", "writer")
        client = room.context.socket(zmq.DEALER)  # keeps messages received from a peer that exited, unlike ours
        client.connect(f"ipc://{room.socket_dir}/writer.sock")
        for name in ("crash", "behind it in the batch"):
            client.send_multipart([room.message_factory.header(name, "t", 0), encode_frame(command(name))])
        assert client.poll(10_000)
        _, body = client.recv_multipart()
        failure = msgspec.msgpack.decode(body, type=Failure)
        assert failure.code == ErrorCode.INTERNAL
        assert "told" not in failure.detail
        client.close(linger=0)


def test_an_exiting_actor_reports_why_and_answers_every_request() -> None:
    async def test(room: BusHarness) -> None:
        writer = room.start_ready("writer", "writer")
        async with bus_in(room) as bus:
            with pytest.raises(OutcomeUnknown):
                await bus.ask_writer(command("leave:74"), trace_id="t")
            assert await asyncio.to_thread(writer.wait, 10) == 74
            words = room.exit_notice("writer")
            assert words is not None
            assert (words.code, words.detail) == (74, "told to leave")

    with_harness(test)


def test_an_actor_binds_its_mailbox_after_its_self_check() -> None:
    async def test(room: BusHarness) -> None:
        room.start("writer", "writer", order="boot_hang")
        async with bus_in(room) as bus:
            with pytest.raises(Unavailable):
                await bus.ask_writer(command("x"), trace_id="t", timeout_ms=200)

    with_harness(test)


def test_long_work_sends_heartbeats_and_stuck_work_does_not() -> None:
    async def test(room: BusHarness) -> None:
        room.start_ready("writer", "writer")
        async with bus_in(room) as bus:
            for text, least, silent_ms in (("busy:2000", 5, 0), ("sleep:2000", 0, 2000)):
                room.listen()
                room.said["writer"].clear()
                began = time.monotonic()
                await bus.ask_writer(command(text), trace_id="t")
                room.listen()
                beats = [said for said in room.said["writer"] if isinstance(said, Heartbeat)]
                periods = ((time.monotonic() - began) * 1000 - silent_ms) / BEATING.supervision.heartbeat_ms
                assert least <= len(beats) <= 2 * periods + 9

    with_harness(test, BEATING)


def test_drain_finishes_the_work_and_exits_zero() -> None:
    with bus_harness() as room:
        room.start_ready("writer", "writer")
        assert room.drain("writer") == 0
        assert (room.workspace / "drained").read_text(encoding="utf-8") == "writer\n"


def test_an_actor_receives_a_reload_and_ignores_invalid_messages() -> None:
    with bus_harness(BEATING) as room:
        room.start_ready("writer", "writer")
        room.send("writer", Reload("{nonsense"))
        room.send("writer", Reload('{"logging": {"level": "debug"}}'))
        eventually((room.workspace / "reloaded-writer").exists)
        eventually(lambda: room.counters("writer").get("decode_error") == 1)
        assert room.drain("writer") == 0


def test_the_log_level_of_an_actor_follows_a_reload() -> None:
    with bus_harness(BEATING) as room:
        room.start_ready("writer", "writer")
        room.send("writer", Reload('{"logging": {"level": "error"}}'))
        eventually((room.workspace / "reloaded-writer").exists)
        assert room.drain("writer") == 0
        events = [line["event"] for line in log_lines(room.workspace)]
        assert "ready" in events
        assert "draining" not in events


def test_an_actor_ignores_signals_to_the_process_group() -> None:
    with bus_harness(BEATING) as room:
        writer = room.start_ready("writer", "writer")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            writer.send_signal(number)
        room.said["writer"].clear()
        eventually(lambda: room.heard("writer", Heartbeat))
        assert room.drain("writer") == 0


def test_an_actor_exits_with_its_supervisor() -> None:
    with bus_harness() as room:
        script = (
            "import subprocess, sys, os\n"
            "boot = sys.stdin.buffer.read().replace(b'\"supervisor_pid\":0', b'\"supervisor_pid\":%d' % os.getpid())\n"
            "child = subprocess.Popen([sys.executable, '-m', 'tests.support.echo_actor'], stdin=subprocess.PIPE)\n"
            "child.stdin.write(boot); child.stdin.close()\n"
            "print(child.pid, flush=True)\n"
            "child.wait()\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=child_environment(),
            cwd=REPOSITORY,
        ) as parent:
            assert parent.stdin is not None
            assert parent.stdout is not None
            parent.stdin.write(encode_context(room.boot("writer", "writer", parent=0)))
            parent.stdin.close()
            child = int(parent.stdout.readline())
            eventually(lambda: room.heard("writer", Ready))
            parent.kill()
        eventually(lambda: not _runs(child))


def test_a_child_whose_supervisor_has_exited_exits_at_once() -> None:
    with bus_harness() as room:
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.echo_actor"],
            input=encode_context(room.boot("writer", "writer", parent=1 if os.getpid() != 1 else 2)),
            env=child_environment(),
            cwd=REPOSITORY,
            timeout=60,
            check=False,
        )
        assert done.returncode == 75


def test_a_child_started_by_hand_prints_what_to_do() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.echo_actor"],
        input=b"hello",
        env=child_environment(),
        cwd=REPOSITORY,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert done.returncode == 78
    assert b"start data" in done.stderr


def test_a_gateway_query_waits_for_at_most_one_pipeline_query() -> None:
    async def test(room: BusHarness) -> None:
        room.start_ready("searcher-1", "searcher")
        pipeline = room.context.socket(zmq.DEALER)
        pipeline.connect(f"ipc://{room.socket_dir}/searcher-1.sock")
        async with bus_in(room) as bus:
            await soon(lambda: bus.searchers_known == 1)
            for number in range(8):
                pipeline.send_multipart(
                    [room.message_factory.header(f"p{number}", "t", 0), encode_frame(query("sleep:1000"))]
                )
            assert await asyncio.to_thread(pipeline.poll, 30_000)  # the others have come meanwhile
            await bus.ask_searcher(query("a query that waits"), trace_id="t", timeout_ms=30_000)
            answered = 0
            while pipeline.poll(0):
                pipeline.recv_multipart()
                answered += 1
            assert answered <= 3, "the query stood behind what the pipeline asks"
            for _ in range(8 - answered):
                assert await asyncio.to_thread(pipeline.poll, 30_000), "a question of the pipeline was lost"
                pipeline.recv_multipart()
        pipeline.close(linger=0)

    with_harness(test)


def test_an_expired_query_is_not_executed() -> None:
    async def test(room: BusHarness) -> None:
        searcher = room.start_ready("searcher-1", "searcher")
        async with bus_in(room) as bus:
            await soon(lambda: bus.searchers_known == 1)
            searcher.send_signal(signal.SIGSTOP)
            with pytest.raises(Unavailable):
                await bus.ask_searcher(query("too late"), trace_id="t", timeout_ms=100)
            searcher.send_signal(signal.SIGCONT)
            answer, _ = await bus.ask_searcher(query("in time"), trace_id="t")
            assert answer.scope_key == "in time"
            await soon(lambda: room.counters("searcher-1").get("handled") == 1)
            assert room.counters("searcher-1")["expired"] == 1

    with_harness(test, BEATING)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_an_idle_actor_uses_almost_no_cpu_time() -> None:
    with bus_harness() as room:
        writer = room.start_ready("writer", "writer")
        assert any(_ticks_meanwhile(writer.pid) <= 4 for _ in range(10)), "in no window of time is it idle"


def _ticks_meanwhile(pid: int) -> int:
    before = _ticks(pid)
    time.sleep(1.5)  # the thing measured, not a synchronisation
    return _ticks(pid) - before


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
