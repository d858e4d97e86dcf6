"""A question of the pipeline steps back for a query that somebody waits for, and is answered all the same."""

from __future__ import annotations

from typing import Any, cast

import pytest
import structlog
from msgspec import structs

from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.searcher import FindCandidates, Recall
from signet_actors.runtime.boot import Boot
from signet_actors.searcher.actor import Searcher
from tests.support.store_room import MODEL, Asked, StoreRoom, raw

QUESTION = FindCandidates("which port does staging use", "default", "global")
RECALL = Recall(query="staging port", read=ReadScope())


class Loop:
    """Has queries come at the first look, or at each of them, and keeps the order of what was answered."""

    def __init__(self, room: StoreRoom, *, ceaseless: bool = False) -> None:
        self.ceaseless = ceaseless
        self.waiting = [room.asked(RECALL)]
        self.served: list[Asked] = []

    def queries_wait(self) -> bool:
        return bool(self.waiting)

    def work_off_queries(self, searcher: Searcher) -> None:
        batch = list(self.waiting)
        if not self.ceaseless:
            self.waiting.clear()
        self.served += batch
        searcher.handle(cast("Any", batch))

    def snapshot_ended(self) -> None:
        pass


def searcher_in(room: StoreRoom, loop: Loop) -> Searcher:
    boot = Boot("searcher-1", "searcher", 1, "b", 1, str(room.path.parent), str(room.path.parent), room.config)
    searcher = Searcher(boot, cast("Any", loop), room.clock, structlog.get_logger())
    searcher.reader = room.reader
    return searcher


def test_the_query_is_answered_first_and_the_question_after_it(room: StoreRoom) -> None:
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
    assert searcher.counters()["made_way"] == 1


def test_it_makes_way_once_however_many_keep_coming(room: StoreRoom) -> None:
    memory = room.remember("staging uses port 5433")
    loop = Loop(room, ceaseless=True)
    searcher = searcher_in(room, loop)
    question = room.asked(QUESTION)
    loop.waiting[0].reply = lambda *_: None  # type: ignore[assignment, method-assign]
    searcher.handle(cast("Any", [question]))
    assert [candidate.id for candidate in question.answer.candidates] == [memory.id]
    assert searcher.counters()["made_way"] == 1


def test_what_was_committed_while_it_had_stepped_back_is_among_its_candidates(room: StoreRoom) -> None:
    loop = Loop(room)
    searcher = searcher_in(room, loop)
    committed: list[str] = []
    serve = loop.work_off_queries

    def serve_and_commit(actor: Searcher) -> None:
        serve(actor)
        committed.append(room.remember("staging uses port 5433").id)

    loop.work_off_queries = serve_and_commit  # type: ignore[method-assign]
    question = room.asked(QUESTION)
    searcher.handle(cast("Any", [question]))
    assert [candidate.id for candidate in question.answer.candidates] == committed


@pytest.mark.parametrize("vector", [None, [1.0, 0.5]], ids=["words", "words and vectors"])
def test_whatever_step_it_left_the_caches_answer_the_next_query_rightly(
    room: StoreRoom, vector: list[float] | None
) -> None:
    for number in range(30):
        room.remember(f"note {number}: staging uses port {5000 + number}", vector=vector)
    expected = [row.id for row in room.recall("staging port 5003", vector=vector).rows]
    for step in range(1, 12):
        asked = structs.replace(QUESTION, vector_model=None if vector is None else MODEL)
        frames = [] if vector is None else [raw(vector)]
        looks = iter([*[False] * (step - 1), True])
        loop = Loop(room)
        loop.queries_wait = lambda looks=looks: next(looks, False)  # type: ignore[method-assign, misc]
        searcher = searcher_in(room, loop)
        question = room.asked(asked, frames)
        searcher.handle(cast("Any", [question]))
        assert len(question.answer.candidates) == 5
        assert [row.id for row in room.recall("staging port 5003", vector=vector).rows] == expected
