"""A searcher with two queries at once: a failure of the first does not affect the second."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
import structlog

from signet_actors.config.schema import Config
from signet_actors.errors import ActorExit, ErrorCode
from signet_actors.protocol.header import Header
from signet_actors.protocol.message import Failure
from signet_actors.protocol.searcher import GetStoreStats, SearcherQuery
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.messaging.mailbox import Incoming
from signet_actors.runtime.processes.child_context import ChildContext
from signet_actors.searcher.actor import Searcher
from signet_actors.store.errors import BROKEN_DISK, DAMAGED


class Loop:
    """Records the reports that no snapshot is held, and the replies."""

    def __init__(self) -> None:
        self.happened: list[str] = []
        self.answers: dict[str, Any] = {}

    def snapshot_ended(self) -> None:
        self.happened.append("no snapshot")

    def answer(self, _identity: bytes | None, asked: Header, body: msgspec.Struct, _frames: Sequence[bytes]) -> None:
        self.answers[asked.message_id] = body


def two_queries(loop: Loop) -> list[Incoming[SearcherQuery]]:
    return [
        Incoming(cast("Any", loop), None, Header(name, "gateway", "", 0, 0, 1, "b"), GetStoreStats(), [], 0, 0)
        for name in ("first", "second")
    ]


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def searcher(loop: Loop, tmp_path: Path) -> Searcher:
    boot = ChildContext("searcher-1", "searcher", 1, "b", 1, str(tmp_path), str(tmp_path), Config())
    return Searcher(boot, cast("Any", loop), SystemClock(), structlog.get_logger())


def test_a_query_is_not_ended_by_the_request_to_end_the_previous_one(
    searcher: Searcher, loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answered(incoming: Incoming[SearcherQuery], *_: Any) -> tuple[Any, list[bytes]]:
        loop.happened.append(incoming.header.message_id)
        return Failure(ErrorCode.NOT_FOUND, ""), []

    monkeypatch.setattr(searcher, "_in_snapshot", answered)
    searcher.handle(two_queries(loop))
    assert loop.happened == ["no snapshot", "first", "no snapshot", "second"]


def test_when_the_disk_fails_every_query_is_answered_as_retryable(
    searcher: Searcher, loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> tuple[Any, list[bytes]]:
        raise BROKEN_DISK[0]("disk I/O error")

    monkeypatch.setattr(searcher, "_in_snapshot", failing)
    with pytest.raises(ActorExit):
        searcher.handle(two_queries(loop))
    assert {name: answer.code for name, answer in loop.answers.items()} == {
        "first": ErrorCode.UNAVAILABLE,
        "second": ErrorCode.UNAVAILABLE,
    }


def test_damage_found_between_queries_is_reported_to_the_writer(
    searcher: Searcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[str] = []

    class Damaged:
        columns = SimpleNamespace(version=1)

        def catch_up(self, _step: object) -> bool:
            raise DAMAGED[0]("database disk image is malformed")

    def report(damage: str) -> None:
        reported.append(damage)
        searcher._reported = True

    monkeypatch.setattr(searcher, "reader", Damaged())
    monkeypatch.setattr(searcher, "_report_damage", report)
    assert searcher.tick() == 0.0  # at once, not only with the next query
    assert searcher.tick() is None
    assert reported == ["database disk image is malformed"]


def test_constant_queries_do_not_keep_a_searcher_from_following_commits(
    searcher: Searcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[object] = []

    class Following:
        columns = SimpleNamespace(version=1)

        def catch_up(self, step: object) -> bool:
            steps.append(step)
            return True

        def vector_legs(self) -> list[object]:
            return []

    clock = SimpleNamespace(now=10**12)
    clock.monotonic_ns = lambda: clock.now
    monkeypatch.setattr(searcher, "reader", Following())
    monkeypatch.setattr(searcher, "clock", clock)
    searcher.tick()
    for _ in range(1000):  # a query every two milliseconds
        clock.now += 2_000_000
        searcher._last_query_ns = clock.now
        searcher.tick()
    assert len(steps) >= 4
