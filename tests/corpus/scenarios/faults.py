"""Responses of a daemon with a full disk, a database locked by another program, or processes that do not respond."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

from tests.corpus.exchange import Scenario, get, post
from tests.support.live_daemon import WITHOUT_PIPELINE, LiveDaemon, foreign_lock, live_daemon
from tests.support.small_disk import fill, small_disk

REMEMBER = "/api/memory/remember"
DISK_BYTES = 48 << 20


@contextlib.contextmanager
def on_a_small_disk() -> Iterator[LiveDaemon]:
    """Run a daemon whose workspace is on its own small disk."""
    with live_daemon(started=False) as daemon, small_disk(daemon.workspace, DISK_BYTES):
        daemon.configure(f"writer:\n  ballastBytes: 1048576\n{WITHOUT_PIPELINE}")
        daemon.start()
        try:
            yield daemon
        finally:
            daemon.close()


@contextlib.contextmanager
def full(daemon: LiveDaemon) -> Iterator[object]:
    """Fill the daemon's disk and wait until the writer has noticed."""
    filler = daemon.workspace / "filler"
    fill(filler)
    text = "words that need room on the disk " * 12
    statuses = [0, 0, 0]
    for number in range(2000):
        fill(filler)
        statuses = [*statuses[1:], daemon.api.post(REMEMBER, {"content": f"note {number} {text}"}).status]
        if statuses == [507, 507, 507]:
            break
    assert statuses == [507, 507, 507]
    yield daemon
    filler.unlink()


@contextlib.contextmanager
def locked(daemon: LiveDaemon) -> Iterator[object]:
    """Hold the database lock in another program."""
    with foreign_lock(daemon.database):
        yield daemon


def stopped(name: str):  # type: ignore[no-untyped-def]
    """Return a context in which the child ``name`` is stopped."""

    @contextlib.contextmanager
    def around(daemon: LiveDaemon) -> Iterator[object]:
        pid = daemon.kill(name, signal.SIGSTOP)
        try:
            yield daemon
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    return around


SLOW_WATCH = "supervision:\n  heartbeatMs: 5000\n  liveness: 10\n"
SCENARIOS = (
    Scenario(
        "disk-full",
        (
            post("remember on a full disk", REMEMBER, {"content": "words that need room " * 20}),
            get("list on a full disk", "/api/memories?limit=1", view=lambda body: len(body["memories"])),
            get("ready on a full disk", "/health/ready"),
            get("health on a full disk", "/health", view=lambda body: body["status"]),
        ),
        daemon=on_a_small_disk,
        around=full,
    ),
    Scenario(
        "database-locked",
        (
            post("remember behind a lock", REMEMBER, {"content": "x"}),
            get("list behind a lock", "/api/memories"),
        ),
        config=f"writer:\n  busyTimeoutMs: 300\n{WITHOUT_PIPELINE}",
        around=locked,
    ),
    Scenario(
        "writer-stopped",
        (
            post("remember while the writer stands still", REMEMBER, {"content": "x"}),
            get("list while the writer stands still", "/api/memories"),
        ),
        config=f"gateway:\n  requestTimeoutMs: 1500\n{SLOW_WATCH}{WITHOUT_PIPELINE}",
        around=stopped("writer"),
    ),
    Scenario(
        "searcher-stopped",
        (get("list while the searcher stands still", "/api/memories"),),
        config=f"gateway:\n  requestTimeoutMs: 1500\nsearcher:\n  processes: 1\n{SLOW_WATCH}{WITHOUT_PIPELINE}",
        around=stopped("searcher-1"),
    ),
)
