"""After disk errors in the writer the responses are truthful and service returns.

Source: docs/reliability.md R3 and "Supervision policy"; docs/decisions.md 44.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tests.chaos.seeds import share
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.load import load_on

pytestmark = pytest.mark.system


@pytest.mark.parametrize(
    "point", share(["writer.after_begin", "writer.mid_batch", "writer.before_commit", "writer.after_commit"], 2)
)
def test_repeated_io_errors_lose_nothing_and_the_writer_restarts(point: str) -> None:
    config = "searcher:\n  processes: 2\nsupervision:\n  settledMs: 0\n"
    with live_daemon(config=config, environ={"SIGNET_SYNC_POINTS": f"{point}=raise:EIO@12"}) as daemon:
        with load_on(daemon) as load:
            # Which commits meet the error is left to chance: some hold what was recalled, for which no client waits.
            eventually(
                lambda: len(ends(daemon)) >= 3 and load.statuses[504],
                within_s=60,
                what="several writers have ended, one of them while a client waited",
            )
            load.progress()
            load.stop()
            load.check()
            assert set(load.statuses) <= {200, 503, 504}
            assert set(load.recalls) == {200}, "recall suffered from an error that is none of its business"
        left = [line for line in daemon.log() if line.get("event") == "exiting" and line["actor"] == "writer"]
        assert {line["code"] for line in left} == {74}
        assert all("the disk failed: [Errno 5]" in line["cause"] for line in ends(daemon)), ends(daemon)
        print(f"{point}: {len(left)} lives ended, the next was ready after {away_s(daemon)} s")
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []
        assert daemon.faults() == []


def ends(daemon: LiveDaemon) -> list[dict[str, Any]]:
    """The log's line about each writer that left."""
    return [line for line in daemon.log() if line.get("event") == "child_exited" and line.get("child") == "writer"]


def away_s(daemon: LiveDaemon) -> list[float]:
    """How long each time passed until the next writer was ready."""
    ready = [line["timestamp"] for line in daemon.log() if line.get("event") == "ready" and line["actor"] == "writer"]
    away = []
    for died in (line["timestamp"] for line in ends(daemon)):
        back = min((moment for moment in ready if moment > died), default=None)
        if back is not None:
            away.append((datetime.fromisoformat(back) - datetime.fromisoformat(died)).total_seconds())
    return away
