"""An upgrade longer than the start timeout is not killed while it makes progress, and is repeated after a hang."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon

pytestmark = [pytest.mark.system, pytest.mark.slow]

GOLDEN = Path(__file__).parents[1] / "golden"
START_TIMEOUT_MS = 5_000
CONFIG = f"""
supervision: {{startTimeoutMs: {START_TIMEOUT_MS}, heartbeatMs: 200}}
memory: {{pipelineV2: {{enabled: false, embeddingTracker: {{enabled: false}}}}}}
"""


@pytest.fixture
def daemon() -> Iterator[LiveDaemon]:
    """One that is not started yet, on a store of the oldest release."""
    with live_daemon(config=CONFIG, started=False) as daemon:
        daemon.database.parent.mkdir(mode=0o700)
        shutil.copyfile(GOLDEN / "schema-1.sqlite", daemon.database)
        daemon.database.chmod(0o600)
        yield daemon


def backups(daemon: LiveDaemon) -> list[Path]:
    return sorted((daemon.database.parent / "backups").iterdir())


def lives_of_the_writer(daemon: LiveDaemon) -> int:
    return sum(line.get("event") == "spawned" and line.get("child") == "writer" for line in daemon.log())


def memories(daemon: LiveDaemon) -> int:
    return int(daemon.read("SELECT count(*) FROM memories")[0][0])


@contextlib.contextmanager
def service_manager(address: Path) -> Iterator[list[str]]:
    """Receive the notifications of the daemon to systemd; the list is complete when the block has ended."""
    heard: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(address))

        def listen() -> None:
            while (said := receiver.recv(4096).decode()) != "over":
                heard.append(said)

        listener = threading.Thread(target=listen)  # no other thread empties its queue, which is short
        listener.start()
        try:
            yield heard
        finally:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.sendto(b"over", str(address))
            listener.join()


def test_a_slow_upgrade_is_not_killed_while_it_makes_progress(daemon: LiveDaemon) -> None:
    every, notify = START_TIMEOUT_MS // 60, daemon.root / "notify"  # the statements are more than a hundred
    with service_manager(notify) as heard:
        daemon.start(SIGNET_SYNC_POINTS=f"writer.mid_migration=sleep:{every}@*", NOTIFY_SOCKET=str(notify))
        eventually(lambda: "READY=1" in heard, within_s=120, what="the service manager hears that it is ready")
    before_ready = heard[: heard.index("READY=1")]
    assert before_ready.count(f"EXTEND_TIMEOUT_USEC={2 * START_TIMEOUT_MS * 1000}") > 2
    upgrades = [line["detail"] for line in daemon.log() if line.get("event") == "starting"]
    upgrades = [detail for detail in upgrades if detail.startswith("applying")]
    assert upgrades == list(dict.fromkeys(upgrades)), "nothing was applied a second time"
    assert daemon.read("SELECT sum(duration_ms) FROM schema_migrations_audit")[0][0] > START_TIMEOUT_MS
    assert lives_of_the_writer(daemon) == 1
    assert memories(daemon) == len(json.loads((GOLDEN / "schema-1.json").read_text()))
    assert len(backups(daemon)) == 1


def test_a_hung_upgrade_is_killed_and_repeated_without_another_backup(daemon: LiveDaemon) -> None:
    daemon.start(SIGNET_SYNC_POINTS="writer.mid_migration=sleep:600000@5/1")
    (died,) = (line for line in daemon.log() if line.get("event") == "child_exited" and line.get("child") == "writer")
    assert "not ready in time" in died["cause"]
    assert lives_of_the_writer(daemon) == 2
    assert memories(daemon) == len(json.loads((GOLDEN / "schema-1.json").read_text()))
    assert len(backups(daemon)) == 1
