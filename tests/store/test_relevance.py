"""Relevance: absolute, comparable between queries and encoders, and independent of what the caller may not read.

Source: docs/quality.md "Relevance"; docs/decisions.md 49.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.message import Principal
from signet_actors.protocol.searcher import Recall
from signet_actors.protocol.writer import ForgetMemory
from signet_actors.searcher.recall import recall
from tests.support.store_room import DIMENSIONS, MODEL, StoreRoom, raw


def relevances(answer: Any) -> dict[str, float]:
    return {row.id: row.relevance for row in answer.rows}


def fill(room: StoreRoom, rows: int, *, seed: int = 3, common: float = 0.0) -> None:
    """Store unrelated memories; ``common`` is how far all vectors lean in one direction."""
    source = np.random.default_rng(seed)
    for number in range(rows):
        vector = source.normal(size=DIMENSIONS)
        vector /= np.linalg.norm(vector)
        vector[-1] += common
        room.remember(f"remark {number} concerning item{number}", vector=vector.tolist())


class TestWords:
    def test_a_memory_with_more_of_the_informative_words_is_more_relevant(self, room: StoreRoom) -> None:
        both = room.remember("the staging database listens on port 5433").id
        one = room.remember("the staging room has a window").id
        found = relevances(room.recall("on which port is staging listening?"))
        assert found[both] > found[one]

    def test_a_word_that_no_memory_has_is_not_covered(self, room: StoreRoom) -> None:
        memory = room.remember("the staging database listens on port 5433").id
        plain = relevances(room.recall("staging port"))[memory]
        assert relevances(room.recall("staging port zeppelin"))[memory] < plain

    def test_a_word_with_a_typing_error_is_covered_in_part(self, room: StoreRoom) -> None:
        memory = room.remember("the staging database listens on port 5433").id
        right, wrong, unknown = (
            relevances(room.recall(f"staging {word}"))[memory] for word in ("database", "datebase", "zeppelin")
        )
        assert right > wrong > unknown

    def test_stop_words_and_words_of_asking_do_not_count(self, room: StoreRoom) -> None:
        memory = room.remember("the staging database listens on port 5433").id
        plain = relevances(room.recall("staging port"))[memory]
        assert relevances(room.recall("do you still remember, what was the staging port?"))[memory] == plain

    def test_a_rare_word_counts_more_than_a_frequent_one(self, room: StoreRoom) -> None:
        for number in range(40):
            room.remember(f"service note {number}")
        rare, frequent = room.remember("walrus note").id, room.remember("another service").id
        found = relevances(room.recall("walrus service", limit=100))
        assert found[rare] > found[frequent]

    def test_the_best_score_alone_does_not_make_a_memory_relevant(self, room: StoreRoom) -> None:
        for number in range(30):
            room.remember(f"remark {number} concerning item{number}")
        room.remember("the training score of the churn model is 0.83")
        (first, *_) = room.recall("latest score of the football world cup").rows
        assert (first.score, first.relevance < 0.5) == (1.0, True)

    def test_rows_that_the_caller_may_not_read_change_nothing(self, room: StoreRoom) -> None:
        memory = room.remember("the staging database listens on port 5433").id
        before = relevances(room.recall("staging port number"))
        for number in range(30):
            room.remember(f"staging number {number}", agent_id="other", visibility="private")
        assert relevances(room.recall("staging port number")) == before
        assert memory in before

    def test_other_filters_than_the_project_change_nothing(self, room: StoreRoom) -> None:
        memory = room.remember("the staging port is 5433", type="fact").id
        for number in range(10):
            room.remember(f"staging remark {number}", type="note")
        everything = relevances(room.recall("staging port"))[memory]
        assert relevances(room.recall("staging port", filters=Filters(type="fact"))) == {memory: everything}

    def test_a_forgotten_memory_no_longer_makes_its_words_known(self, room: StoreRoom) -> None:
        memory = room.remember("the staging port is 5433").id
        before = relevances(room.recall("staging oven"))
        other = room.remember("the oven of the kitchen").id
        assert relevances(room.recall("staging oven"))[memory] > before[memory]
        room.ask(ForgetMemory(other, "gone", Principal()))
        assert relevances(room.recall("staging oven")) == before


class TestVectors:
    def test_a_cosine_counts_by_what_unrelated_memories_have(self, tmp_path: Any) -> None:
        found = []
        for common in (0.0, 6.0):
            directory = tmp_path / str(common)
            directory.mkdir()
            room = StoreRoom(directory)
            try:
                fill(room, 64, common=common)
                query = [0.9, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4359]
                memory = room.remember("an automobile with seats and doors", vector=[1.0]).id
                found.append(relevances(room.recall("car", vector=query, limit=100))[memory])
            finally:
                room.close()
        isotropic, leaning = found
        assert isotropic > 2 * leaning

    @pytest.mark.parametrize(
        ("others", "filters"),
        [
            ({"agent_id": "other", "visibility": "private"}, Filters()),
            ({"project": "/elsewhere"}, Filters(project="/here")),
            ({"project": "/elsewhere"}, Filters(project="/here", or_no_project=True)),
            ({"project": "/elsewhere"}, Filters(no_project=True)),
        ],
    )
    def test_memories_that_cannot_be_found_change_nothing(
        self, room: StoreRoom, others: dict[str, str], filters: Filters
    ) -> None:
        project = None if filters.no_project else "/here"
        room.remember("the staging port is 5433", vector=[1.0, 0.2], project=project)
        asked = {"vector": [1.0], "limit": 100, "filters": filters}
        before = relevances(room.recall("staging port number", **asked))
        for number in range(40):
            room.remember(f"staging port {number}", vector=[1.0, 0.1 + number / 1000], **others)
        assert relevances(room.recall("staging port number", **asked)) == before
        assert len(before) == 1

    def test_a_small_store_expects_what_is_usual(self, room: StoreRoom) -> None:
        near, far = (
            room.remember("an automobile with seats and doors", vector=[1.0]).id,
            room.remember("an oven", vector=[0.0, 1.0]).id,
        )
        found = relevances(room.recall("car", vector=[1.0, 0.1]))
        assert found[near] > 0.5 > found[far]

    def test_a_memory_without_a_vector_is_judged_by_its_words(self, room: StoreRoom) -> None:
        room.remember("an oven", vector=[0.0, 1.0])
        memory = room.remember("the staging port is 5433").id
        with_vector = relevances(room.recall("staging port", vector=[1.0]))[memory]
        assert with_vector == relevances(room.recall("staging port"))[memory] > 0.5

    @pytest.mark.parametrize("rows", [3, 20, 80])
    def test_every_searcher_gives_the_same_answer(self, room: StoreRoom, rows: int) -> None:
        command = Recall(query="item1 item2", read=ReadScope(), limit=100, vector_model=MODEL)
        for round_ in range(3):
            fill(room, rows, seed=round_)
            with room.reader.open_snapshot() as view:
                followed = recall(room.reader, view, command, [raw([1.0])])
            fresh = room.open_reader()
            with fresh.open_snapshot() as view:
                assert recall(fresh, view, command, [raw([1.0])]).rows == followed.rows
            fresh.close()


class TestMinRelevance:
    def test_results_below_are_dropped_before_the_limit(self, room: StoreRoom) -> None:
        fill(room, 20)
        # The vector leg prefers the first row, the words the second one.
        room.remember("an oven", vector=[1.0])
        wanted = room.remember("the staging port is 5433", vector=[0.8, 0.6]).id
        everything = room.recall("staging port", vector=[1.0], limit=100, alpha=0.9)
        bar = relevances(everything)[wanted]
        passing = {row.id for row in everything.rows if row.relevance >= bar}
        assert 0 < len(passing) < len(everything.rows)
        kept = room.recall("staging port", vector=[1.0], limit=len(passing), alpha=0.9, min_relevance=bar)
        assert {row.id for row in kept.rows} == passing

    def test_the_relevance_that_is_shown_passes(self, room: StoreRoom) -> None:
        for number in range(12):
            room.remember(f"apple {'pear ' * (number % 3)} plum{number}")
        for row in room.recall("apple pear plum3 quince", limit=100).rows:
            kept = room.recall("apple pear plum3 quince", limit=100, min_relevance=row.relevance)
            assert row.id in relevances(kept)


CURRENT = [
    ("Releases go out on Thursday at 14:00", "when is the next release?"),
    ("Releases go out on Thursday at 14:00", "wann ist das n\u00e4chste Release?"),
    ("The retention of the logs is 30 days", "what's the current retention of the logs?"),
    ("Die Aufbewahrung der Logs ist 30 Tage", "wie ist die aktuelle Aufbewahrung der Logs?"),
    ("The price of a berth is 40 euros", "what is the newest price of a berth?"),
    ("Le prix du quai est de 40 euros", "quel est le prix actuel du quai ?"),
    ("El precio del muelle es de 40 euros", "\u00bfcu\u00e1l es el nuevo precio del muelle?"),
    ("Before a rollback the version is tagged", "if it goes wrong, how do I get back the version before a rollback?"),
    ("Bereitschaft: nachts Aylin anrufen", "wen kann ich nachts anrufen, wenn nichts mehr geht?"),
    ("The credentials of the database are in Vault", "where do the database credentials come from?"),
    ("Never log access tokens", "what must not be in the logs?"),
    ("Im Log darf kein Zugriffstoken stehen", "was darf im Log nicht stehen?"),
]
ABOUT_ANOTHER_THING = [
    ("Releases go out on Thursday at 14:00", "when is the next eclipse?"),
    ("Releases go out on Thursday at 14:00", "wann kommt der n\u00e4chste Zug?"),
    ("The retention of the logs is 30 days", "what's the current weather?"),
    ("The next berth is free on Monday", "when does the next bus come?"),
    ("The newest price is on the board", "what is the newest film of Wes Anderson?"),
    ("Nothing goes without the key of the yard", "which cheese goes on a pizza margherita?"),
    ("What comes first is decided by Aylin", "where do the elephants come from?"),
    ("Le nouveau quai est ouvert", "quel est le nouveau film d'Audiard ?"),
    ("Es geht nichts mehr ohne den Schl\u00fcssel", "wie geht ein Handstand?"),
    ("new", "what is the new colour of the ferry?"),
    ("What must be done first is on the board", "must I feed the sourdough every day?"),
]


@pytest.mark.parametrize(("content", "query"), CURRENT)
def test_a_memory_need_not_say_that_it_is_the_current_one_or_how_it_comes(
    room: StoreRoom, content: str, query: str
) -> None:
    fill(room, 40)
    memory = room.remember(content).id
    assert relevances(room.recall(query))[memory] > 0.5


@pytest.mark.parametrize(("content", "query"), ABOUT_ANOTHER_THING)
def test_words_that_ask_for_the_current_one_are_not_enough(room: StoreRoom, content: str, query: str) -> None:
    fill(room, 40)
    memory = room.remember(content).id
    assert relevances(room.recall(query)).get(memory, 0.0) < 0.5
