"""Crashes, hangs and conflicts: acknowledged writes remain, refused writes have no effect, and service returns.

Source: docs/reliability.md R1, R5, R10, R17, R19, R21, R22 and "Supervision policy" and "The writer's loop";
docs/decisions.md 44, 45.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import signal
import socket
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from signet_actors.runtime.messaging.requests import PEER_WAIT_MS
from tests.chaos.seeds import share
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, foreign_lock, live_daemon
from tests.support.load import UNKNOWN, load_on
from tests.support.log_tail import LogTail, seconds

pytestmark = pytest.mark.system

TWO_SEARCHERS = "searcher:\n  processes: 2\n"
TEXTS = {life: [f"number {n} for life {life}" for n in range(8)] for life in (2, 3, 4)}
CHILDREN = ("writer", "searcher-1", "searcher-2", "retention", "gateway")


@pytest.fixture
def fresh() -> Iterator[LiveDaemon]:
    """A daemon that the test may hurt; what it leaves on disk is sound."""
    with live_daemon(config=TWO_SEARCHERS) as daemon:
        yield daemon
        if daemon.processes():
            assert daemon.stop() == 0
        assert daemon.broken_invariants() == []
        assert daemon.faults() == []


def replaced(daemon: LiveDaemon, name: str, dead: int, *, incarnation: int = 2) -> None:
    """Wait until ``name`` runs in its next incarnation and all processes are healthy."""

    def renewed() -> bool:
        actor = daemon.actors()[name]
        return bool(actor["state"] == "up" and actor["incarnation"] == incarnation and actor["pid"] != dead)

    def answered() -> bool:
        try:
            return renewed()
        except (OSError, http.client.HTTPException, AssertionError):
            return False

    eventually(answered, within_s=60, what=f"{name} replaced")
    daemon.wait_ready()


def test_a_killed_child_is_restarted_and_no_acknowledged_write_is_lost(fresh: LiveDaemon) -> None:
    lives = dict.fromkeys(CHILDREN, 1)
    for name in CHILDREN:
        with load_on(fresh) as load:
            dead = fresh.kill(name)
            replaced(fresh, name, dead)
            load.progress()
            load.stop()
            load.check()
            lives[name] += 1
            now = {child: actor["incarnation"] for child, actor in fresh.actors().items()}
            assert now == lives, "others were restarted too"
            if name != "gateway":
                assert set(load.recalls) == {200}, f"recall suffered from the death of {name}"
                assert UNKNOWN not in load.statuses, name


def test_a_write_while_the_writer_is_down_waits_for_its_next_incarnation(fresh: LiveDaemon) -> None:
    """Also without an Idempotency-Key: nothing was sent to anybody, or it is sent again under the same id.

    It is refused, as not applied, only when the writer stayed away for longer than anybody is made to wait.
    """
    tail = LogTail(fresh.workspace)
    answered = []
    for life in (2, 3, 4):
        dead = fresh.kill("writer")
        with ThreadPoolExecutor(max_workers=8) as clients:
            asked = list(
                clients.map(lambda text: fresh.api.post("/api/memory/remember", {"content": text}), TEXTS[life])
            )
        replaced(fresh, "writer", dead, incarnation=life)
        (died,) = tail.events("child_exited", child="writer", child_incarnation=life - 1)
        (up,) = tail.events("child_up", child="writer", child_incarnation=life)
        away_s = seconds(up["timestamp"]) - seconds(died["timestamp"])
        statuses = {answer.status for answer in asked}
        assert statuses == {200} or (statuses <= {200, 503} and away_s > 0.9 * PEER_WAIT_MS / 1000), statuses
        answered += [answer.json for answer in asked if answer.status == 200]
    assert not any(answer["deduped"] for answer in answered), "one of them acted twice"
    stored = fresh.read("SELECT id FROM memories")
    assert sorted(row[0] for row in stored) == sorted(answer["id"] for answer in answered)


def test_all_children_killed_at_once_are_restarted_and_nothing_is_lost(fresh: LiveDaemon) -> None:
    with load_on(fresh) as load:
        pids = fresh.children()
        for pid in pids.values():
            os.kill(pid, signal.SIGKILL)
        for name, pid in pids.items():
            replaced(fresh, name, pid)
        load.progress()
        load.stop()
        load.check()


@pytest.mark.parametrize(
    ("point", "name"),
    share(
        [
            ("writer.mid_batch", "writer"),
            ("writer.before_commit", "writer"),
            ("writer.after_commit", "writer"),
            ("writer.after_first_reply", "writer"),
            ("searcher.before_reply", "searcher-1"),
            ("gateway.reply_received", "gateway"),
        ],
        1,
    ),
)
def test_repeated_kills_at_the_worst_moment_lose_and_duplicate_nothing(point: str, name: str) -> None:
    config = f"{TWO_SEARCHERS}supervision:\n  settledMs: 0\n"
    with live_daemon(config=config, environ={"SIGNET_SYNC_POINTS": f"{point}=kill@12"}) as daemon:
        with load_on(daemon) as load:
            eventually(lambda: lives(daemon, name) >= 4, within_s=60, what="several deaths")
            load.progress()
            load.stop()
            load.check()
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []
        assert daemon.faults() == []


def lives(daemon: LiveDaemon, name: str) -> int:
    """The newest incarnation of ``name`` that the log tells of."""
    told = [line.get("child_incarnation", 0) for line in daemon.log() if line.get("child") == name]
    return max(told, default=0)


@pytest.mark.parametrize("name", ["searcher-1", "writer"])
def test_a_child_that_hangs_is_replaced_and_nothing_is_lost(fresh: LiveDaemon, name: str) -> None:
    with load_on(fresh) as load:
        hung = fresh.kill(name, signal.SIGSTOP)
        replaced(fresh, name, hung)
        eventually(lambda: not Path(f"/proc/{hung}").exists(), what="the hung process is gone")
        load.progress()
        load.stop()
        load.check()
        assert "stopped sending heartbeats" in str(
            [line.get("cause") for line in fresh.log() if line["event"] == "child_exited"]
        )


def test_a_killed_supervisor_leaves_no_orphans_and_the_next_start_works_at_once(fresh: LiveDaemon) -> None:
    with load_on(fresh) as load:
        fresh.kill_supervisor()
        fresh.start()
        load.progress()
        load.stop()
        load.check()
    assert fresh.process is not None
    living = set(fresh.processes())
    family = {fresh.process.pid, *fresh.children().values()}
    strangers = {pid for pid in living - family if parent_of(pid) != fresh.process.pid}
    assert strangers == set(), f"orphans of the former life: {strangers}"


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except FileNotFoundError:
        return 0


# stopping


def test_a_request_in_flight_when_the_daemon_stops_is_answered(fresh: LiveDaemon) -> None:
    body = json.dumps({"content": "Said while the lights went out"}).encode()
    head = (
        "POST /api/memory/remember HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", fresh.port), timeout=30) as connection:
        connection.sendall(head.encode())
        assert connection.recv(1024).startswith(b"HTTP/1.1 100 ")
        assert fresh.process is not None
        fresh.process.send_signal(signal.SIGTERM)
        eventually(lambda: any(line["event"] == "stopping" for line in fresh.log()), what="stopping")
        connection.sendall(body)
        with http.client.HTTPResponse(connection) as response:
            response.begin()
            status = response.status
            answer = json.loads(response.read())
    assert fresh.stop() == 0
    assert status in {200, 503}
    fresh.start()
    stored = [row["id"] for row in fresh.api.listed()]
    assert stored == ([answer["id"]] if status == 200 else [])


# somebody else is in the way


def test_a_lock_of_another_program_delays_writes_and_loses_none(fresh: LiveDaemon) -> None:
    with load_on(fresh) as load:
        before = load.statuses[503]
        with foreign_lock(fresh.database):
            eventually(lambda: load.statuses[503] >= before + 8, within_s=60, what="writes refused")
            recalled = load.recalls[200]
            eventually(lambda: load.recalls[200] > recalled, what="recalls go on")
        load.progress()
        load.stop()
        load.check()
        assert set(load.statuses) == {200, 503}
        assert set(load.recalls) == {200}
    assert {actor["restarts"] for actor in fresh.actors().values()} == {0}


def test_a_writer_that_cannot_start_is_reported_while_recall_works(fresh: LiveDaemon) -> None:
    fresh.api.remember("Recalled while nothing can be written")
    with foreign_lock(fresh.database):
        fresh.kill("writer")

        def refused() -> bool:
            ready = fresh.api.get("/health/ready")
            return ready.status == 503 and "another program holds a lock" in ready.json["detail"]

        eventually(refused, what="not ready, and why")
        assert fresh.api.get("/health/live").status == 200
        ready = fresh.api.get("/health/ready").refused(503, ready=False, status="unhealthy")
        assert "writer" in ready["notUp"]
        assert fresh.api.get("/health").ok()["status"] == "unhealthy"
        assert fresh.api.recall("written")["meta"]["totalReturned"] == 1
        refusal = fresh.api.post("/api/memory/remember", {"content": "Not now"})
        assert refusal.status in {503, 504}
    fresh.wait_ready()
    assert fresh.api.get("/health/ready").ok()["ready"] is True
    assert fresh.actors()["writer"]["incarnation"] == 2


@pytest.mark.parametrize("kind", ["another program's", "no database at all"])
def test_a_foreign_database_is_refused_and_not_changed(kind: str) -> None:
    with live_daemon(started=False) as daemon:
        daemon.database.parent.mkdir(mode=0o700)
        if kind.startswith("another"):
            connection = sqlite3.connect(daemon.database)
            connection.execute("CREATE TABLE memories (id TEXT, content TEXT)")
            connection.execute("INSERT INTO memories VALUES ('1', 'precious')")
            connection.commit()
            connection.close()
        else:
            daemon.database.write_bytes(b"precious " * 100)
        before = hashlib.sha256(daemon.database.read_bytes()).hexdigest()
        code, said = daemon.refused_start()
        assert code == 78
        assert str(daemon.database) in said
        assert "SIGNET_WORKSPACE" in said
        assert hashlib.sha256(daemon.database.read_bytes()).hexdigest() == before
        assert [path.name for path in daemon.database.parent.iterdir()] == [daemon.database.name]


def test_a_database_of_a_newer_release_is_refused_and_not_changed() -> None:
    with live_daemon() as daemon:
        daemon.api.remember("Written by this release")
        assert daemon.stop() == 0
        daemon.edit("PRAGMA user_version = 999")
        before = hashlib.sha256(daemon.database.read_bytes()).hexdigest()
        code, said = daemon.refused_start()
        assert code == 78
        assert "999" in said
        assert hashlib.sha256(daemon.database.read_bytes()).hexdigest() == before


def test_a_port_in_use_is_refused_with_its_number() -> None:
    with live_daemon(started=False) as daemon, socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = daemon.refused_start(SIGNET_PORT=str(port))
        assert code == 78
        for part in (f"port {port}", "in use", f"process {os.getpid()}", "SIGNET_PORT"):
            assert part in said


def test_a_port_of_the_daemon_of_another_workspace_is_refused_with_the_workspace() -> None:
    with live_daemon() as other, live_daemon(started=False) as daemon:
        code, said = daemon.refused_start(SIGNET_PORT=str(other.port))
        assert code == 78
        assert f"the daemon of another workspace, {other.workspace} (" in said
        assert f"--workspace {other.workspace}" in said
        assert f"`SIGNET_PORT={other.port + 1} signet start`" in said


def test_every_problem_of_the_configuration_is_listed() -> None:
    config = (
        "gateway:\n  port: many\nredaction:\n  memories: 7\nagents:\n  roster:\n    - {name: a, read_policy: none}\n"
    )
    with live_daemon(config=config, started=False) as daemon:
        code, said = daemon.refused_start()
        assert code == 78
        for part in ("gateway.port", "redaction.memories", "read_policy"):
            assert part in said
        assert not daemon.database.exists()


@pytest.mark.parametrize(
    ("config", "word"),
    [
        ("auth:\n  mode: teams\n", "auth.mode"),
        ("gateway:\n  host: 0.0.0.0\n", "gateway.host"),
        ("a: [\n", "agent.yaml"),
    ],
)
def test_an_unsupported_configuration_is_refused(config: str, word: str) -> None:
    with live_daemon(config=config, started=False) as daemon:
        code, said = daemon.refused_start()
        assert code == 78
        assert word in said


def test_a_reload_with_a_broken_file_keeps_the_old_configuration(fresh: LiveDaemon) -> None:
    fresh.configure("redaction:\n  memories: 7\n")
    assert fresh.process is not None
    fresh.process.send_signal(signal.SIGHUP)
    eventually(lambda: any(line["event"] == "configuration_refused" for line in fresh.log()), what="refused")
    fresh.configure(TWO_SEARCHERS + "memory:\n  pipelineV2:\n    mutationsFrozen: true\n")
    fresh.process.send_signal(signal.SIGHUP)
    eventually(
        lambda: fresh.api.post("/api/memory/remember", {"content": "Frozen soon"}).status == 503,
        what="frozen by reload",
    )
    assert {actor["restarts"] for actor in fresh.actors().values()} == {0}
