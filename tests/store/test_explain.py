"""Explanations: how a score came about, why a named memory is absent, and nothing about what is hidden.

Source: docs/compatibility.md "Recall"; docs/quality.md "Why is a memory there"; docs/decisions.md 35.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.message import Principal
from signet_actors.protocol.pipeline import StoreHints
from signet_actors.protocol.searcher import TimeFilter
from signet_actors.protocol.writer import ForgetMemory
from tests.support.pipeline_harness import PipelineHarness, configured
from tests.support.store_room import StoreRoom, kept_sound

MISSING = "00000000-0000-7000-8000-000000000000"
DAY = (1_767_225_600_000, 1_767_312_000_000)  # 2026-01-01


def chat(room: StoreRoom) -> None:
    """Two conversations whose rows are alike, and facts an hour apart."""
    for talk, direction in enumerate(([1.0], [0.0, 1.0])):
        room.clock.advance(3_600_000)
        for number in range(12):
            room.clock.advance(1000)
            content = (
                f"{'Ann' if number % 2 else 'Bob'}: topic{talk} remark {number} of 2024{'' if number % 4 else '?'}"
            )
            room.remember(content, vector=[value + 0.02 * number for value in direction])
    for number in range(8):
        room.clock.advance(3_600_000)
        room.remember(f"KA-{number} topic0 fact {number}", vector=[0.1 * number, 1.0, 0.3])


def explained(room: StoreRoom, query: str, memory_id: str, **fields: Any) -> Any:
    return room.recall(query, explain_id=memory_id, **fields).explained


def stages(row: Any) -> set[str]:
    return {move.stage for move in row.explanation.moves}


class TestResults:
    @pytest.mark.parametrize(
        ("query", "fields", "expected"),
        [
            ("what did Ann remark on topic0?", {"vector": [1.0, 0.2]}, {"subject", "neighbours", "episode"}),
            ("when did Ann mention topic0", {"vector": [1.0, 0.2]}, {"time", "question", "answer", "compensation"}),
            ("how many topic0 remarks", {"vector": [1.0, 0.2]}, {"number", "scale"}),
            ("is topic0 of KA-6 done", {"vector": [0.2, 1.0]}, {"exact_match"}),
            ("topic1 remark", {"vector": [0.2, 1.0], "near_ms": DAY}, set()),
            ("topic0 remark", {"vector": [0.2, 1.0], "rerank_top": 5}, {"rerank"}),
            ("topic0 remark", {"vector": [0.2, 1.0], "fusion": "rrf"}, set()),
            ("topic0 remark", {}, set()),
            ("automobile", {"vector": [1.0, 0.1]}, set()),
        ],
    )
    def test_the_base_score_and_all_moves_add_up_to_the_score(
        self, room: StoreRoom, query: str, fields: dict[str, Any], expected: set[str]
    ) -> None:
        chat(room)
        plain = room.recall(query, limit=100, **fields)
        found = room.recall(query, limit=100, explain=True, **fields)
        assert found.rows
        for row, bare in zip(found.rows, plain.rows, strict=True):
            assert msgspec.structs.replace(row, explanation=None) == bare
            why = row.explanation
            assert why.base + sum(move.points for move in why.moves) == pytest.approx(why.score, abs=1e-5)
            assert min(1.0, why.score) == pytest.approx(row.score, abs=1e-5)
            assert why.relevance == row.relevance
            assert 0 <= why.coverage <= 1
        assert expected <= set().union(*map(stages, found.rows))

    def test_a_date_moves_the_rows_near_it(self, room: StoreRoom) -> None:
        chat(room)
        (first, *_) = room.recall("topic0 remark", near_ms=DAY, explain=True).rows
        assert "date" in stages(first)

    def test_nothing_is_explained_unless_asked(self, room: StoreRoom) -> None:
        chat(room)
        found = room.recall("topic0 remark", vector=[1.0])
        assert found.explained is None
        assert {row.explanation for row in found.rows} == {None}

    def test_the_legs_are_named_with_rank_and_score(self, room: StoreRoom) -> None:
        words = room.remember("the staging port is 5433", vector=[0.0, 1.0]).id
        meaning = room.remember("an automobile", vector=[1.0]).id
        bare = room.remember("another port without a vector").id
        found = {row.id: row.explanation for row in room.recall("staging port", vector=[0.8, 0.6], explain=True).rows}
        legs = {key: {leg.leg: (leg.rank, leg.score > 0) for leg in why.legs} for key, why in found.items()}
        assert legs[words] == {"keyword": (1, True), "vector": (2, True)}
        assert legs[meaning] == {"vector": (1, True)}
        assert legs[bare] == {"keyword": (2, True)}
        (cosine,) = [leg.score for leg in found[meaning].legs]
        assert cosine == pytest.approx(0.8, abs=1e-5)
        assert (found[bare].standing, found[meaning].coverage) == (None, 0.0)

    def test_the_terms_are_those_of_the_query_by_their_stems(self, room: StoreRoom) -> None:
        memory = room.remember("it listens in staging, see KA-61").id
        why = {row.id: row.explanation for row in room.recall("what is listening on KA-61 zeppelin", explain=True).rows}
        assert (why[memory].terms, why[memory].missing_terms) == (["ka-61", "listening"], ["zeppelin"])

    def test_a_word_with_a_typing_error_names_what_it_was_taken_for(self, room: StoreRoom) -> None:
        room.remember("the staging database")
        (row,) = room.recall("datebase", explain=True).rows
        why = row.explanation
        assert (why.terms, why.missing_terms, why.similar_terms) == ([], ["datebase"], ["database"])
        assert [(leg.leg, leg.rank) for leg in why.legs] == [("keyword", 1)]

    def test_a_row_beyond_the_leg_s_pool_has_a_score_but_no_rank(self, room: StoreRoom) -> None:
        room.remember("plain", vector=[1.0])
        word = room.remember("staging port", vector=[0.5, 1.0]).id
        (row,) = [
            row
            for row in room.recall("staging port", vector=[1.0], limit=1, pool=1, alpha=0.1, explain=True).rows
            if row.id == word
        ]
        assert [(leg.leg, leg.rank) for leg in row.explanation.legs] == [("keyword", 1), ("vector", None)]


def test_a_match_by_a_hint_is_explained(tmp_path: Any) -> None:
    with kept_sound(PipelineHarness(tmp_path, config=configured(hints=True))) as room:
        memory = room.remember("It is 5433.").id
        job = room.take("prospective_index")
        room.ask(StoreHints(job.id, job.lease_id, ("which port does staging use?",)))
        (row,) = room.recall("staging port", hints=True, explain=True).rows
        assert row.id == memory
        assert [(leg.leg, leg.rank, leg.score) for leg in row.explanation.legs] == [("hint", 1, 1.0)]


class TestNamed:
    def test_a_result_is_named_with_its_rank(self, room: StoreRoom) -> None:
        chat(room)
        found = room.recall("topic0 remark", vector=[1.0], limit=5)
        for rank, row in enumerate(found.rows, start=1):
            fate = explained(room, "topic0 remark", row.id, vector=[1.0], limit=5)
            assert (fate.id, fate.outcome, fate.rank) == (row.id, "returned", rank)
            assert fate.explanation.score == pytest.approx(row.score, abs=1e-5)

    def test_a_memory_beyond_the_limit_is_named_with_its_rank(self, room: StoreRoom) -> None:
        chat(room)
        everything = room.recall("topic0 remark", vector=[1.0], limit=100).rows
        fate = explained(room, "topic0 remark", everything[7].id, vector=[1.0], limit=3)
        assert (fate.outcome, fate.rank, fate.threshold) == ("beyond_limit", 8, 3.0)

    def test_a_weak_memory_is_below_min_score(self, room: StoreRoom) -> None:
        room.remember("apple pear", vector=[1.0])
        weak = room.remember("pear", vector=[0.0, 1.0]).id
        fate = explained(room, "apple pear", weak, vector=[1.0], min_score=0.8)
        assert (fate.outcome, fate.threshold, fate.value < 0.8) == ("below_min_score", 0.8, True)

    def test_an_irrelevant_memory_is_below_min_relevance(self, room: StoreRoom) -> None:
        room.remember("apple pear", vector=[1.0])
        weak = room.remember("pear", vector=[0.0, 1.0]).id
        fate = explained(room, "apple pear quince", weak, vector=[1.0], min_relevance=0.9)
        assert (fate.outcome, fate.threshold, fate.value < 0.9) == ("below_min_relevance", 0.9, True)
        assert fate.value == fate.explanation.relevance

    def test_a_memory_that_no_leg_prefers_is_no_candidate(self, room: StoreRoom) -> None:
        room.remember("plain", vector=[1.0])
        other = room.remember("oven", vector=[0.0, 1.0]).id
        fate = explained(room, "staging", other, vector=[1.0], limit=1, pool=1)
        assert (fate.outcome, fate.rank) == ("not_a_candidate", None)
        assert [(leg.leg, leg.rank) for leg in fate.explanation.legs] == [("vector", None)]

    @pytest.mark.parametrize(
        ("filters", "expected"),
        [
            ({"type": "note"}, ["type"]),
            ({"tags": ("b",)}, ["tags"]),
            ({"who": "cody"}, ["who"]),
            ({"pinned": True}, ["pinned"]),
            ({"importance_min": 0.9}, ["importance_min"]),
            ({"since": "2030-01-01T00:00:00.000Z"}, ["since"]),
            ({"until": "2020-01-01T00:00:00.000Z"}, ["until"]),
            ({"project": "elsewhere"}, ["project"]),
            ({"source_type": "mail"}, ["source_type"]),
            ({"type": "note", "who": "ann", "tags": ("a", "b"), "project": "elsewhere"}, ["type", "project"]),
        ],
    )
    def test_a_filtered_memory_names_the_filters_that_exclude_it(
        self, room: StoreRoom, filters: dict[str, Any], expected: list[str]
    ) -> None:
        memory = room.remember("the port", type="fact", tags=("a",), who="ann", project="here").id
        fate = explained(room, "port", memory, filters=Filters(**filters))
        assert (fate.outcome, fate.filters, fate.explanation) == ("filtered", expected, None)

    def test_a_memory_of_another_scope_that_the_caller_may_read_by_id_is_filtered(self, room: StoreRoom) -> None:
        memory = room.remember("the port", scope="attic").id
        assert explained(room, "port", memory).filters == ["scope"]
        assert explained(room, "port", memory, read=ReadScope(scope="attic")).outcome == "returned"


class TestTimeWindow:
    def test_a_memory_outside_the_window_is_filtered_or_ranked_after_it(self, room: StoreRoom) -> None:
        outside = [room.remember(f"the port {'of staging ' * number}{number}").id for number in range(3)]
        room.clock.advance(100_000)
        inside = room.remember("another port of the house by the sea").id
        window = TimeFilter(room.clock.wall_ms() - 90_000, room.clock.wall_ms() + 1, ("captured",))
        fate = explained(room, "port staging", outside[2], within=window)
        assert (fate.outcome, fate.filters) == ("filtered", ["time"])
        filling = msgspec.structs.replace(window, fill=True)
        found = room.recall("port staging", within=filling, explain=True).rows
        assert [row.id == inside for row in found] == [True, False, False, False]
        for rank, row in enumerate(found, start=1):
            why = row.explanation
            assert why.base + sum(move.points for move in why.moves) == pytest.approx(row.score, abs=1e-5)
            fate = explained(room, "port staging", row.id, within=filling)
            assert (fate.outcome, fate.rank) == ("returned", rank)
        fate = explained(room, "port staging", found[-1].id, within=filling, limit=2)
        assert (fate.outcome, fate.rank, fate.threshold) == ("beyond_limit", 4, 2.0)


class TestSecrecy:
    def test_a_hidden_memory_looks_like_one_that_does_not_exist(self, room: StoreRoom) -> None:
        private = room.remember("the port", agent_id="other", visibility="private").id
        scoped = room.remember("the port in the attic", agent_id="other", visibility="private", scope="attic").id
        archived = room.remember("the old port", visibility="archived").id
        forgotten = room.remember("the former port").id
        room.ask(ForgetMemory(forgotten, "gone", Principal()))
        room.remember("my own port")
        nothing = msgspec.structs.replace(explained(room, "port", MISSING), id="")
        assert nothing.outcome == "not_found"
        for memory in (private, scoped, archived, forgotten):
            for filters in (Filters(), Filters(type="note"), Filters(project="p")):
                for read in (ReadScope(), ReadScope(scope="attic"), ReadScope("third")):
                    fate = explained(room, "port", memory, read=read, filters=filters)
                    assert msgspec.structs.replace(fate, id="") == nothing

    def test_hidden_rows_do_not_change_what_a_result_s_explanation_says(self, room: StoreRoom) -> None:
        for number in range(20):
            room.remember(f"staging port {number}" if number < 3 else f"oven {number}")
        before = room.recall("staging port", explain=True)
        for number in range(40):
            room.remember(f"staging oven {number} of the house", agent_id="other", visibility="private")
        after = room.recall("staging port", explain=True)
        for first, second in zip(before.rows, after.rows, strict=True):
            assert first.explanation.legs == second.explanation.legs
            assert first.explanation.coverage == second.explanation.coverage
            assert first.explanation.relevance == second.explanation.relevance
