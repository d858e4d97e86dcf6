"""The write-ahead log stays bounded while a stuck reader does not end its snapshot.

Source: docs/reliability.md R14.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from signet_actors.cli.main import cli
from tests.support.bus_harness import eventually
from tests.support.live_daemon import Answer, LiveDaemon, live_daemon
from tests.support.load import load_on

pytestmark = pytest.mark.system

LOG_BOUND_BYTES = 64 << 20
STUCK_IN_A_SNAPSHOT = {"SIGNET_SYNC_POINTS": "searcher.fts_done=sleep:120000@2/1"}
LONG_TIMEOUTS = """\
gateway: {requestTimeoutMs: 120000}
searcher: {processes: 2, readTimeoutMs: 60000}
supervision: {heartbeatMs: 20000}
"""
"""Only the limit of the log may end the stuck reader, no deadline and no missing heartbeat; those who ask it wait."""


@pytest.fixture
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon(config=LONG_TIMEOUTS, environ=STUCK_IN_A_SNAPSHOT) as daemon:
        yield daemon
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []


def grow(daemon: LiveDaemon, stopping: threading.Event) -> None:
    """Let the log grow by imports until stopped: fast enough on a slow disk that no reader times out before."""
    while not stopping.is_set():
        lines = [json.dumps({"content": f"imported {secrets.token_hex(400)}"}) for _ in range(250)]
        daemon.api.request("POST", "/api/memory/import", "\n".join(lines).encode(), timeout=60)


@pytest.mark.timeout(240)
def test_a_reader_that_keeps_its_snapshot_is_killed_before_the_log_is_too_long(daemon: LiveDaemon) -> None:
    log = daemon.database.with_name("memories.db-wal")
    daemon.api.remember("The first memory is asked for by everybody")
    answers: list[Answer] = []

    def ask() -> None:
        answers.append(daemon.api.request("POST", "/api/memory/recall", {"query": "first memory"}, timeout=120))

    readers = [threading.Thread(target=ask) for _ in range(6)]  # enough that a searcher gets its second question
    for reader in readers:
        reader.start()
    largest = 0
    long_enough = threading.Event()
    growing = threading.Thread(target=grow, args=(daemon, long_enough))
    with load_on(daemon, writers=4, readers=0, pause_s=0) as load:
        growing.start()

        def killed() -> bool:
            nonlocal largest
            largest = max(largest, log.stat().st_size)
            return any(line["event"] == "reader_killed" for line in daemon.log())

        try:
            eventually(killed, within_s=150, what="the stuck reader is killed")
        finally:
            long_enough.set()
            growing.join(60)
        for reader in readers:
            reader.join(60)
        load.progress()
        load.stop()
        load.check()
    assert largest > 40 << 20, "the log was never long: the reader was not in the way"
    assert max(largest, log.stat().st_size) <= LOG_BOUND_BYTES
    assert [answer.status for answer in answers] == [200] * len(readers), "its question went to another searcher"
    assert daemon.actors()["writer"]["restarts"] == 0


@pytest.mark.timeout(240)
def test_a_log_that_another_program_lets_grow_is_named_until_that_program_has_ended() -> None:
    with live_daemon() as daemon:
        daemon.api.remember("The first memory is read by a database browser")
        browser = sqlite3.connect(daemon.database, isolation_level=None)
        try:
            browser.execute("BEGIN")
            browser.execute("SELECT count(*) FROM memories").fetchone()
            long_enough = threading.Event()
            growing = threading.Thread(target=grow, args=(daemon, long_enough))
            growing.start()
            try:
                eventually(lambda: daemon.health()["status"] == "degraded", within_s=150, what="it is named")
            finally:
                long_enough.set()
                growing.join(60)
            assert daemon.database.with_name("memories.db-wal").stat().st_size > 48 << 20
            assert "another program has an open read transaction" in daemon.health()["detail"]
            assert daemon.api.get("/health/ready").ok()["ready"] is True
            told = CliRunner().invoke(cli, ["--workspace", str(daemon.workspace), "doctor", "--json"]).stdout
            assert "degraded: another program has an open read transaction" in told
            daemon.api.remember("Nothing is refused meanwhile")
        finally:
            browser.close()
        eventually(lambda: daemon.health()["status"] == "healthy", within_s=90, what="without a further write")
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []
