"""The write-ahead log stays bounded with slow readers while the writer is busy.

``SIGNET_LOG_SECONDS`` seconds (3 unless set; 300 in a full run), and until the readers were in the way.

Source: docs/reliability.md R14.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from signet_actors.config.schema import Config, WriterConfig
from signet_actors.protocol.control import WalPressure
from signet_actors.runtime.clock import SystemClock
from signet_actors.store.engine import ReadTimeout
from signet_actors.store.sqlite.connect import open_reader
from signet_actors.store.sqlite.reader import SqliteReader
from tests.chaos.seeds import FULL
from tests.support.bus_harness import HANGS_S
from tests.support.power_cut import fast_directory, unsound
from tests.support.store_room import Asked, remembering
from tests.support.writer_script import ScriptedWriter

SECONDS = float(os.environ.get("SIGNET_LOG_SECONDS", "300" if FULL else "3"))
LIMIT_BYTES, IN_THE_WAY_BYTES = 64 << 20, 8 << 20
READERS = 4


@pytest.fixture
def directory() -> Iterator[Path]:
    with fast_directory() as directory:
        yield directory


class SlowReaders:
    """Four connections that hold snapshots for 0.1 s to 1.5 s, so that one is always held.

    ``end_snapshots`` receives the supervisor's request: each holder ends its snapshot some milliseconds later.
    """

    def __init__(self, path: Path, read_timeout_ms: int) -> None:
        self.path = path
        self.timeout_ns = read_timeout_ms * 1_000_000
        self.stopping = threading.Event()
        self.asked = [threading.Event() for _ in range(READERS)]
        self.snapshots = 0
        self.ended = 0
        self.problems: list[str] = []
        self._threads = [threading.Thread(target=self._read, args=(seed,)) for seed in range(READERS)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()

    def end_snapshots(self, _pressure: WalPressure) -> None:
        for asked in self.asked:
            asked.set()

    def _read(self, seed: int) -> None:
        rng = random.Random(seed)
        clock = SystemClock()
        connection = open_reader(self.path)
        try:
            while not self.stopping.is_set():
                try:
                    with SqliteReader(connection).snapshot(
                        clock, deadline_ns=clock.monotonic_ns() + self.timeout_ns
                    ) as view:
                        before = view.value("SELECT count(*) FROM memories")
                        if self.asked[seed].wait(rng.uniform(0.1, 1.5)):
                            time.sleep(rng.uniform(0.0, 0.02))
                            self.asked[seed].clear()
                            self.ended += 1
                        if view.value("SELECT count(*) FROM memories") != before:
                            self.problems.append("a snapshot moved under its reader")
                        self.snapshots += 1
                except ReadTimeout:
                    continue
        finally:
            connection.close()


@pytest.mark.slow
@pytest.mark.timeout(60 + 3 * SECONDS)
def test_the_log_stays_bounded_while_readers_always_hold_a_snapshot(directory: Path) -> None:
    config = Config(writer=WriterConfig(ballast_bytes=0))
    scripted = ScriptedWriter(directory / "w", config=config, clock=SystemClock())  # type: ignore[arg-type]
    scripted.start()
    wal = scripted.path.with_name("memories.db-wal")
    largest = commits = 0
    longest_s = 0.0
    text = " ".join(f"word{number}" for number in range(150))
    try:
        with SlowReaders(scripted.path, config.searcher.read_timeout_ms) as readers:
            begun = time.monotonic()
            scripted.bus.on_told = readers.end_snapshots
            while time.monotonic() - begun < (SECONDS if largest > IN_THE_WAY_BYTES and readers.ended else HANGS_S):
                batch = [
                    Asked(command, f"message-{commits}-{number}", frames)
                    for number in range(64)
                    for command, frames in [remembering(f"{commits} {number} {text}", vector=[number, commits, 1.0])]
                ]
                turn = time.monotonic()
                scripted.writer.handle(batch)  # type: ignore[arg-type]
                longest_s = max(longest_s, time.monotonic() - turn)
                assert not [item for item in batch if _refused(item)]
                commits += 1
                largest = max(largest, wal.stat().st_size)
            assert readers.snapshots > READERS
            assert readers.ended, "no reader was ever asked to end its snapshot"
            assert readers.problems == []
        print(f"{commits} commits of 64, log at most {largest >> 20} MB, longest turn {longest_s * 1000:.0f} ms")
        assert largest <= LIMIT_BYTES
        assert largest > IN_THE_WAY_BYTES, "the readers were not in the way"
        assert unsound(scripted.connection, scripted.path) == []
    finally:
        scripted.abandon()


def _refused(item: Any) -> bool:
    return not hasattr(item.answer, "id")
