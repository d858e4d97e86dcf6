"""There is one daemon and one writer, and no process is left when the supervisor is killed at any moment.

Source: docs/reliability.md R10, R15.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from signet_actors.runtime.messaging.sockets import socket_directory
from tests.chaos.seeds import FULL, SEED
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.log_tail import LogTail
from tests.support.open_files import family, one_writer_watched, open_files, writers_of

pytestmark = pytest.mark.system

TWO_SEARCHERS = "searcher:\n  processes: 2\n"


def test_only_the_writer_has_the_database_open_for_writing() -> None:
    with live_daemon(config=TWO_SEARCHERS) as daemon:
        daemon.api.remember("Written by one")
        assert daemon.api.recall("written")["meta"]["totalReturned"] == 1
        assert daemon.process is not None
        pids = family(daemon.process.pid)
        children = daemon.children()
        assert set(children.values()) <= set(pids)
        assert writers_of(daemon.database, pids) == [children["writer"]]
        readers = {pid for pid in pids if (str(daemon.database), False) in open_files(pid)}
        holder = {daemon.process.pid} if sys.platform == "linux" else set()  # for the lock on the file, not its content
        assert readers == holder | {children["searcher-1"], children["searcher-2"]}


def test_the_check_of_open_files_detects_a_second_writer() -> None:
    with live_daemon() as daemon, daemon.database.open("r+b"):

        def ours() -> int:
            return os.getpid()  # the daemon is a child of the tests, which have the file open too

        with one_writer_watched(daemon.database, ours) as watch:
            eventually(lambda: watch.looks >= 2, what="two looks")
        assert watch.violations


def test_a_supervisor_killed_at_any_moment_of_its_start_leaves_no_process() -> None:
    rng = random.Random(SEED)
    with live_daemon(config=TWO_SEARCHERS, started=False) as daemon:
        for _ in range(12 if FULL else 4):
            process = daemon.launch()
            time.sleep(rng.uniform(0.05, 1.6))  # without a wait: this moment is tested
            process.kill()
            process.wait(30)
            daemon.gone()
        daemon.start()
        daemon.api.remember("Written after all these deaths")
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


def test_a_second_daemon_exits_at_once_and_changes_no_socket_or_file(tmp_path: Path) -> None:
    with live_daemon(config=TWO_SEARCHERS) as daemon:
        sockets = socket_directory(Path(os.path.realpath(daemon.workspace)))

        def traces() -> dict[str, tuple[int, int]]:
            places = [*sockets.iterdir(), *(daemon.workspace / ".daemon" / name for name in ("pid", "address"))]
            return {str(path): (path.stat().st_ino, path.stat().st_ctime_ns) for path in places}

        before = traces()
        assert any(path.endswith("writer.sock") for path in before)
        second = LiveDaemon(tmp_path, environ={"SIGNET_WORKSPACE": str(daemon.workspace)})
        code, said = second.refused_start()
        assert code == 73
        assert daemon.process is not None
        assert f"pid {daemon.process.pid}" in said
        assert traces() == before
        assert set(daemon.children()) == {"writer", "searcher-1", "searcher-2", "retention", "gateway"}
        assert daemon.stop() == 0
        assert not sockets.exists()


def test_a_second_daemon_takes_over_as_soon_as_the_first_is_killed() -> None:
    with live_daemon(config=TWO_SEARCHERS) as daemon:
        for run in range(3):
            daemon.api.remember(f"Written in run {run}")
            former = family(daemon.process.pid) if daemon.process is not None else []
            daemon.kill_supervisor()
            daemon.start()  # at once: children of the killed supervisor may still be exiting
            assert daemon.process is not None
            strangers = set(daemon.processes()) & set(former)
            assert strangers == set(), "a process of the previous run is left"
        assert len(daemon.api.listed()) == 3


def test_children_of_a_stopped_supervisor_keep_serving_and_health_reports_it() -> None:
    with live_daemon(config=TWO_SEARCHERS) as daemon:
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGSTOP)
        try:
            eventually(lambda: daemon.api.get("/health/ready").status == 503, what="not ready")
            refusal = daemon.api.get("/health/ready").json
            assert "supervisor" in refusal["notUp"]
            assert daemon.api.get("/health").ok()["status"] == "degraded"
            daemon.api.remember("Written while nobody watched")
            assert daemon.api.recall("watched")["meta"]["totalReturned"] == 1
        finally:
            daemon.process.send_signal(signal.SIGCONT)
        daemon.wait_ready()
        tail = LogTail(daemon.workspace)
        tail.look()
        assert {child.incarnation for child in tail.incarnations.values()} == {1}, json.dumps(
            tail.events("child_exited")
        )
