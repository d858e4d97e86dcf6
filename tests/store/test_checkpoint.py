"""When the write-ahead log is checkpointed, and how readers that block it are handled."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from signet_actors.runtime.clock import SystemClock
from signet_actors.store.engine import ReadTimeout, SnapshotEnded
from signet_actors.store.sqlite.checkpoint import PAGE_BYTES, checkpoint
from signet_actors.store.sqlite.connect import open_reader, open_writer
from signet_actors.store.sqlite.reader import SqliteReader
from signet_actors.writer.wal_checkpointer import (
    END_SNAPSHOTS_BYTES,
    KILL_READERS_BYTES,
    PASSIVE_FRAMES,
    RESTART_BYTES,
    Plan,
    Pressure,
    plan_checkpoint,
)

SECOND = 1_000_000_000


def frames(size: int) -> int:
    return size // PAGE_BYTES + 1


@pytest.mark.parametrize(
    ("size", "mode", "pressure"),
    [
        (RESTART_BYTES, "restart", Pressure.NONE),
        (END_SNAPSHOTS_BYTES, "restart", Pressure.END_SNAPSHOTS),
        (KILL_READERS_BYTES, "restart", Pressure.KILL_READERS),
    ],
)
def test_a_longer_log_gets_a_stronger_checkpoint(size: int, mode: str, pressure: Pressure) -> None:
    plan = plan_checkpoint(frames(size), tried=0, resting=None)
    assert plan is not None
    assert (plan.mode, plan.pressure) == (mode, pressure)
    assert plan.busy_ms <= 250, "no commit waits for longer"
    assert plan.pause_ms > 0


def test_a_short_log_is_not_checkpointed_and_a_longer_one_every_thousand_pages() -> None:
    assert plan_checkpoint(PASSIVE_FRAMES, tried=0, resting=None) is None
    assert plan_checkpoint(PASSIVE_FRAMES + 1, tried=0, resting=None) == Plan("passive", 0)
    assert plan_checkpoint(PASSIVE_FRAMES + 1, tried=PASSIVE_FRAMES, resting=None) is None


def test_a_blocked_checkpoint_is_not_retried_at_once() -> None:
    plan = plan_checkpoint(frames(KILL_READERS_BYTES), tried=0, resting=Pressure.KILL_READERS)
    assert plan == Plan("passive", 0)
    assert plan_checkpoint(frames(RESTART_BYTES), tried=0, resting=Pressure.NONE) == Plan("passive", 0)


def test_a_log_that_reaches_the_next_level_is_checkpointed_at_once() -> None:
    plan = plan_checkpoint(frames(END_SNAPSHOTS_BYTES), tried=0, resting=Pressure.NONE)
    assert plan is not None
    assert plan.pressure is Pressure.END_SNAPSHOTS


ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i + t.x) FROM n, t"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "memories.db"
    connection = open_writer(path, busy=lambda _: False)
    connection.execute("CREATE TABLE t (x)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.close()
    return path


def test_a_revoked_snapshot_ends_during_a_statement_and_frees_the_log(store: Path) -> None:
    writer = open_writer(store, busy=lambda _: False)
    reader = open_reader(store)
    clock = SystemClock()
    asked: list[tuple[int, int]] = []

    def is_revoked() -> bool:
        if not asked:
            writer.execute("INSERT INTO t VALUES (2)")
            asked.append(checkpoint(writer, "restart"))
        return True

    with (
        pytest.raises(SnapshotEnded),
        SqliteReader(reader).snapshot(
            clock, deadline_ns=clock.monotonic_ns() + 60 * SECOND, is_revoked=is_revoked
        ) as view,
    ):
        view.rows(ENDLESS)
    assert asked == [(-1, -1)], "the snapshot was not in the way"
    assert checkpoint(writer, "restart")[0] >= 0
    with SqliteReader(reader).snapshot(clock, deadline_ns=clock.monotonic_ns() + SECOND) as view:
        assert view.value("SELECT count(*) FROM t") == 2
    reader.close()
    writer.close()


def test_a_timed_out_snapshot_is_distinguished_from_a_revoked_one(store: Path) -> None:
    reader = open_reader(store)
    clock = SystemClock()
    with pytest.raises(ReadTimeout), SqliteReader(reader).snapshot(clock, deadline_ns=clock.monotonic_ns()) as view:
        view.rows(ENDLESS)
    assert not reader.in_transaction
    assert isinstance(reader, apsw.Connection)
    reader.close()
