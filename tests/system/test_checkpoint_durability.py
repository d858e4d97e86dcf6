"""A checkpoint that a hook answered is there after any kill, each one once, and no hook waits for the writer."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    """A daemon that each test may kill or stop, and leaves running; a session has its own project."""
    with live_daemon(patient=True) as started:
        yield started
        assert started.faults() == []


@pytest.fixture(scope="module")
def with_real_limits() -> Iterator[LiveDaemon]:
    with live_daemon() as started:
        yield started
        assert started.faults() == []


def hook(daemon: LiveDaemon, name: str, key: str, **fields: Any) -> Any:
    body = {"harness": "claude-code", "project": f"/home/ada/{key}", "sessionKey": key, **fields}
    return daemon.api.post(f"/api/hooks/{name}", body).ok()


def stored(daemon: LiveDaemon, key: str) -> list[tuple[Any, ...]]:
    sql = 'SELECT id, "trigger", prompt_count FROM session_checkpoints WHERE session_key = ? ORDER BY seq'
    return daemon.read(sql, key)


def test_an_answered_checkpoint_survives_a_kill_of_the_whole_daemon(daemon: LiveDaemon) -> None:
    hook(daemon, "user-prompt-submit", "shed", userPrompt="paint the shed green")
    answer = hook(daemon, "pre-compaction", "shed", sessionContext="the door is left")
    daemon.kill_supervisor()
    daemon.gone()
    daemon.start()
    assert stored(daemon, "shed") == [(answer["checkpointId"], "pre_compaction", 1)]
    after = hook(daemon, "session-start", "shed", source="compact")["inject"]
    assert "paint the shed green" in after
    assert "the door is left" in after


def test_a_session_that_was_cut_off_by_a_kill_is_recovered_by_the_next_one(daemon: LiveDaemon) -> None:
    for number in range(10):
        hook(daemon, "user-prompt-submit", "cut", userPrompt=f"paint board {number}")
    eventually(lambda: stored(daemon, "cut"), what="the periodic checkpoint")
    daemon.kill("gateway")
    daemon.wait_ready()
    assert "paint board 9" in hook(daemon, "session-start", "next", project="/home/ada/cut")["inject"]


def test_an_orderly_stop_stores_what_no_checkpoint_holds_yet(daemon: LiveDaemon) -> None:
    hook(daemon, "user-prompt-submit", "stopped", userPrompt="paint the shed green")
    assert daemon.stop() == 0
    assert [row[1:] for row in stored(daemon, "stopped")] == [("periodic", 1)]
    assert daemon.broken_invariants() == []
    daemon.start()


def test_no_hook_waits_for_a_stopped_writer_and_the_checkpoint_is_stored_once(with_real_limits: LiveDaemon) -> None:
    daemon = with_real_limits
    keys: list[str] = []

    def are_answered() -> bool:
        """Whether no hook of a session is skipped while the writer is stopped; on a busy machine one may be late."""
        keys.append(f"s-{len(keys)}")
        stopped = daemon.kill("writer", signal.SIGSTOP)
        try:
            prompted = hook(daemon, "user-prompt-submit", keys[-1], userPrompt="paint the shed green")
            answer = hook(daemon, "pre-compaction", keys[-1])
        finally:
            with contextlib.suppress(ProcessLookupError):  # the supervisor replaces a process that is silent
                os.kill(stopped, signal.SIGCONT)
        daemon.wait_ready()
        if "skipped" in prompted or "skipped" in answer:
            return False
        assert answer["guidelines"]
        return "checkpointId" not in answer

    eventually(are_answered)
    eventually(lambda: stored(daemon, keys[-1]), what="the checkpoint is stored")
    assert [row[1:] for row in stored(daemon, keys[-1])] == [("pre_compaction", 1)]


def test_a_report_of_a_turn_is_answered_while_the_writer_is_stopped_and_stored_later(
    with_real_limits: LiveDaemon,
) -> None:
    daemon = with_real_limits
    talk = "User: paint the shed green\nAssistant: " + "I painted one board after the other. " * 20
    stopped = daemon.kill("writer", signal.SIGSTOP)
    try:
        answer = hook(daemon, "session-checkpoint-extract", "turns", transcript=talk)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(stopped, signal.SIGCONT)
    assert (answer["stored"], answer["skipped"]) == (False, True)
    daemon.wait_ready()

    def is_accepted() -> bool:
        again = hook(daemon, "session-checkpoint-extract", "turns", transcript=talk)
        return again["stored"] or again["reason"] == "busy"

    eventually(is_accepted)
    eventually(lambda: stored(daemon, "turns"), what="the checkpoint is stored")
    turns = (
        "SELECT count(*) FROM session_turns JOIN session_transcripts t ON t.seq = transcript_seq WHERE session_key = ?"
    )
    assert daemon.read(turns, "turns") == [(2,)]


@pytest.mark.parametrize("victim", ["writer", "searcher-1"])
def test_each_checkpoint_is_stored_once_when_a_process_is_killed_meanwhile(daemon: LiveDaemon, victim: str) -> None:
    daemon.kill(victim)
    keys = [f"{victim}-{number}" for number in range(5)]
    for key in keys:
        hook(daemon, "user-prompt-submit", key, userPrompt="paint the shed green")
        hook(daemon, "pre-compaction", key)
    daemon.wait_ready()
    for key in keys:
        eventually(lambda key=key: stored(daemon, key), what="the checkpoint is stored")
    assert [[row[1:] for row in stored(daemon, key)] for key in keys] == [[("pre_compaction", 1)]] * 5
