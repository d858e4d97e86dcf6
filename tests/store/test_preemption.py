"""A candidate search of the pipeline is preempted by a gateway query, and answered afterwards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import structlog
from msgspec import structs

from signet_actors.errors import ActorExit, ErrorCode, ExitCode
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.searcher import FindCandidates, Recall
from signet_actors.runtime.processes.child_context import ChildContext
from signet_actors.searcher import recall as recall_module
from signet_actors.searcher.actor import Searcher
from signet_actors.searcher.reader import Reader
from signet_actors.store.errors import BROKEN_DISK
from signet_actors.store.sqlite.reader import read_engine
from tests.support.store_room import MODEL, Asked, StoreRoom, raw

QUESTION = FindCandidates("which port does staging use", "default", "global")
RECALL = Recall(query="staging port", read=ReadScope())


class Loop:
    """Has queries come at the first look, or at each of them, and keeps the order of what was answered."""

    def __init__(self, room: StoreRoom, *, ceaseless: bool = False) -> None:
        self.ceaseless = ceaseless
        self.waiting = [room.asked(RECALL)]
        self.served: list[Asked] = []

    def has_pending_query(self) -> bool:
        return bool(self.waiting)

    def serve_pending(self, searcher: Searcher) -> None:
        batch = list(self.waiting)
        if not self.ceaseless:
            self.waiting.clear()
        self.served += batch
        searcher.handle(cast("Any", batch))

    def snapshot_ended(self) -> None:
        pass


def searcher_in(room: StoreRoom, loop: Loop) -> Searcher:
    boot = ChildContext("searcher-1", "searcher", 1, "b", 1, str(room.path.parent), str(room.path.parent), room.config)
    searcher = Searcher(boot, cast("Any", loop), room.clock, structlog.get_logger())
    searcher.reader = room.reader
    return searcher


def test_a_gateway_query_is_answered_before_a_preempted_candidate_search(room: StoreRoom) -> None:
    memory = room.remember("staging uses port 5433")
    loop = Loop(room)
    searcher = searcher_in(room, loop)
    question = room.asked(QUESTION)
    order: list[str] = []
    answer = question.reply

    def reply(body: Any, frames: Any = ()) -> None:
        order.append("question" if loop.served and loop.served[0].answered else "too early")
        answer(body, frames)

    question.reply = reply  # type: ignore[method-assign]
    searcher.handle(cast("Any", [question]))
    assert order == ["question"]
    assert [row.id for row in loop.served[0].answer.rows] == [memory.id]
    assert [candidate.id for candidate in question.answer.candidates] == [memory.id]
    assert searcher.counters()["preempted"] == 1


def test_a_candidate_search_is_preempted_only_once(room: StoreRoom) -> None:
    memory = room.remember("staging uses port 5433")
    loop = Loop(room, ceaseless=True)
    searcher = searcher_in(room, loop)
    question = room.asked(QUESTION)
    loop.waiting[0].reply = lambda *_: None  # type: ignore[assignment, method-assign]
    searcher.handle(cast("Any", [question]))
    assert [candidate.id for candidate in question.answer.candidates] == [memory.id]
    assert searcher.counters()["preempted"] == 1


def test_a_restarted_candidate_search_sees_commits_made_meanwhile(room: StoreRoom) -> None:
    loop = Loop(room)
    searcher = searcher_in(room, loop)
    committed: list[str] = []
    serve = loop.serve_pending

    def serve_and_commit(actor: Searcher) -> None:
        serve(actor)
        committed.append(room.remember("staging uses port 5433").id)

    loop.serve_pending = serve_and_commit  # type: ignore[method-assign]
    question = room.asked(QUESTION)
    searcher.handle(cast("Any", [question]))
    assert [candidate.id for candidate in question.answer.candidates] == committed


@pytest.mark.parametrize("vector", [None, [1.0, 0.5]], ids=["words", "words and vectors"])
def test_the_caches_are_correct_after_a_preemption_at_any_step(room: StoreRoom, vector: list[float] | None) -> None:
    for number in range(30):
        room.remember(f"note {number}: staging uses port {5000 + number}", vector=vector)
    expected = [row.id for row in room.recall("staging port 5003", vector=vector).rows]
    for step in range(1, 12):
        asked = structs.replace(QUESTION, vector_model=None if vector is None else MODEL)
        frames = [] if vector is None else [raw(vector)]
        looks = iter([*[False] * (step - 1), True])
        loop = Loop(room)
        loop.has_pending_query = lambda looks=looks: next(looks, False)  # type: ignore[method-assign, misc]
        searcher = searcher_in(room, loop)
        question = room.asked(asked, frames)
        searcher.handle(cast("Any", [question]))
        assert len(question.answer.candidates) == 5
        assert [row.id for row in room.recall("staging port 5003", vector=vector).rows] == expected


def test_a_disk_error_during_the_gateway_query_ends_the_process_and_both_queries_are_retryable(
    room: StoreRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.remember("staging uses port 5433")
    loop = Loop(room)
    searcher = searcher_in(room, loop)

    def broken(*_: Any) -> Any:
        raise BROKEN_DISK[0]("disk I/O error")

    monkeypatch.setattr(recall_module, "_other_spaces", broken)
    question = room.asked(QUESTION)
    with pytest.raises(ActorExit):
        searcher.handle(cast("Any", [question]))
    assert [asked.answer.code for asked in (loop.served[0], question)] == [ErrorCode.UNAVAILABLE] * 2


def test_a_preempted_search_past_its_deadline_is_not_restarted(room: StoreRoom) -> None:
    loop = Loop(room)
    searcher = searcher_in(room, loop)
    question = room.asked(QUESTION)
    question.header = structs.replace(question.header, deadline_ns=room.clock.monotonic_ns() + 1_000_000)
    serve = loop.serve_pending

    def serve_slowly(actor: Searcher) -> None:
        serve(actor)
        room.clock.advance(2)

    loop.serve_pending = serve_slowly  # type: ignore[method-assign]
    searcher.handle(cast("Any", [question]))
    assert question.answer.code == ErrorCode.UNAVAILABLE
    assert "deadline" in question.answer.detail


def test_the_exit_of_the_process_is_not_a_reply(room: StoreRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: Any) -> Any:
        raise ActorExit(ExitCode.GIVE_UP, "the supervisor is gone")

    monkeypatch.setattr(recall_module, "_other_spaces", gone)
    searcher = searcher_in(room, Loop(room))
    query = room.asked(RECALL)
    with pytest.raises(ActorExit):
        searcher.handle(cast("Any", [query]))
    assert query.answer.code == ErrorCode.UNAVAILABLE


def test_a_start_goes_on_when_its_snapshots_are_ended(room: StoreRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = room.remember("staging uses port 5433")
    monkeypatch.setattr("signet_actors.store.sqlite.reader._STEPS_BETWEEN_CHECKS", 1)
    ends = [True] * 3
    loop: Any = Loop(room)
    loop.heartbeat, loop.idle_trimmer = lambda: None, SimpleNamespace()
    searcher = searcher_in(room, loop)
    searcher.reader = Reader(
        read_engine(room.path),
        room.index_dir,
        room.clock,
        read_timeout_ms=5000,
        is_revoked=lambda: bool(ends) and ends.pop(),
    )
    searcher._caught_up = True  # what ends is the self-check
    searcher.start()
    assert ends == []
    asked = room.asked(RECALL)
    searcher.handle(cast("Any", [asked]))
    assert [row.id for row in asked.answer.rows] == [memory.id]
    searcher.drain()
