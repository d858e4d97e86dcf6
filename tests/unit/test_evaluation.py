"""Question sets, measures and confidence intervals of an evaluation."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from signet_actors.domain.evaluation.bootstrap import differences, estimates
from signet_actors.domain.evaluation.locomo import question_set, read_conversations
from signet_actors.domain.evaluation.measures import evidence_recall, hit_at_1, measure_names, ndcg, scores
from signet_actors.domain.evaluation.own_questions import own_questions
from signet_actors.domain.evaluation.question_set import StoredText, evenly_chosen, read_question_lines

TALK = {
    "conversation": {
        "speaker_a": "Ada",
        "speaker_b": "Ben",
        "session_10_date_time": "9:05 am on 2 June, 2024",
        "session_10": [{"speaker": "Ben", "dia_id": "D10:1", "text": "The boat is blue."}],
        "session_2_date_time": "1:56 pm on 8 May, 2024",
        "session_2": [
            {"speaker": "Ada", "dia_id": "D2:1", "text": "I bought a boat."},
            {"speaker": "Ben", "dia_id": "D2:2", "text": "Look!", "blip_caption": "a photo of a boat"},
        ],
    },
    "qa": [
        {"question": "What did Ada buy?", "answer": "a boat", "evidence": ["D2:1"], "category": 4},
        {"question": "Which colour?", "evidence": ["D10:1; D2:2", "D9:9"], "category": 1},
        {"question": "And then?", "evidence": [], "category": 3},
    ],
    "observation": {
        "session_2_observation": {"Ben": [["Ben saw it.", ["D2:2"]]], "Ada": [["Ada has a boat.", "D2:1"]]}
    },
}


def lines(*objects: object) -> bytes:
    return "\n".join(json.dumps(one) for one in objects).encode()


# Question sets


def test_turns_of_locomo_become_memories_in_the_order_of_their_sessions() -> None:
    found = question_set(read_conversations(json.dumps([TALK]).encode()))
    assert [memory.key for memory in found.memories] == ["0:D2:1", "0:D2:2", "0:D10:1"]
    assert found.memories[1].line == {
        "content": "Ben: Look! [shares a photo of a boat]",
        "agentId": "conversation-0",
        "visibility": "private",
        "sourceId": "0:D2:2",
        "createdAt": "2024-05-08T13:56:01.000Z",
    }


def test_questions_without_a_known_turn_are_left_out_and_unknown_turns_do_not_count() -> None:
    found = question_set(read_conversations(json.dumps([TALK]).encode()))
    assert [(one.category, one.evidence, one.agent) for one in found.questions] == [
        ("single-hop", ("0:D2:1",), "conversation-0"),
        ("multi-hop", ("0:D10:1", "0:D2:2"), "conversation-0"),
    ]


def test_observations_have_the_order_of_the_turns_that_they_are_about() -> None:
    (conversation,) = read_conversations(json.dumps([TALK]).encode())
    assert conversation.sessions[0].observations == [("Ada has a boat.", ["D2:1"]), ("Ben saw it.", ["D2:2"])]


@pytest.mark.parametrize("document", [b"", b"{}", b"[1]", b'[{"qa": []}]', b'[{"conversation": {}, "qa": 3}]'])
def test_a_file_that_is_not_locomo_is_refused(document: bytes) -> None:
    with pytest.raises(ValueError, match="not a LoCoMo file"):
        read_conversations(document)


def test_lines_with_content_are_memories_and_lines_with_a_question_are_questions() -> None:
    found = read_question_lines(
        lines(
            {"format": "signet-memories", "version": 1},
            {"id": "a", "content": "the boat is blue", "project": "boats"},
            {"question": "which colour?", "ids": "a", "category": "colours"},
            {"question": "what is blue?", "ids": ["a", "a"], "agentId": "bob", "scope": "s"},
        )
        + b"\n\n"
    )
    assert [(memory.key, memory.line["project"]) for memory in found.memories] == [("a", "boats")]
    assert [(one.text, one.category, one.evidence) for one in found.questions] == [
        ("which colour?", "colours", ("a",)),
        ("what is blue?", "", ("a",)),
    ]
    assert (found.questions[1].agent, found.questions[1].scope) == ("bob", "s")


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (b"no json", "line 1 is not JSON"),
        (b"[]", "line 1 is not a JSON object"),
        (lines({"question": "a?", "ids": ["x"]}, {"text": "b"}), 'line 2 has neither "question" nor "content"'),
        (lines({"question": " ", "ids": ["x"]}), "line 1: the question is empty"),
        (lines({"question": "a?"}), 'line 1: "ids" must list'),
        (lines({"question": "a?", "ids": []}), 'line 1: "ids" must list'),
        (lines({"question": "a?", "ids": ["x"], "category": 4}), "line 1: category, agentId and scope must be text"),
        (lines({"content": "x"}), 'line 1: a memory needs an "id"'),
        (lines({"content": "", "id": "a"}), "line 1: the content is empty"),
        (lines({"content": "x", "id": "a"}, {"content": "y", "id": "a"}), 'line 2: the id "a" is given twice'),
        (lines({"content": "x", "id": "a"}), "it has no questions"),
        (lines({"content": "x", "id": "a"}, {"question": "a?", "ids": ["b"]}), 'no memory of the file has the id "b"'),
        (b"", "it has no questions"),
    ],
)
def test_a_wrong_line_is_named_with_its_number(document: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_question_lines(document)


def test_memories_that_the_store_keeps_as_one_have_the_same_identity() -> None:
    one = StoredText("a", {"content": "The boat  is blue."})
    assert one.identity() == StoredText("b", {"content": "the boat is blue", "visibility": "global"}).identity()
    assert one.identity() != StoredText("c", {"content": "the boat is blue", "agentId": "bob"}).identity()
    assert one.identity() != StoredText("d", {"content": "the boat is red"}).identity()


def test_items_are_chosen_at_even_distances() -> None:
    assert evenly_chosen(range(10), 4) == [0, 2, 5, 7]
    assert list(evenly_chosen(range(3), 4)) == [0, 1, 2]


# Questions from memories


def test_own_questions_are_the_same_for_the_same_store_and_leave_out_the_rarest_word() -> None:
    memories = [
        StoredText("a", {"content": "The gateway retries uploads after timeouts with jitter", "type": "fact"}),
        StoredText("b", {"content": "uploads timeouts gateway retries jitter"}),
        StoredText("c", {"content": "and the"}),
    ]
    found = own_questions(memories, "bob", 10)
    assert found == own_questions(memories, "bob", 10)
    assert [question.evidence for question in found.questions] == [("a",), ("b",)]
    for question in found.questions:
        words = question.text.split()
        assert len(words) == 4
        assert set(words) <= {"gateway", "retries", "uploads", "timeouts", "jitter"}
        assert question.agent == "bob"
    assert "gateway" not in found.questions[0].text  # the first of the rarest, by name
    assert found.questions[0].category == "fact"
    assert len(own_questions(memories, None, 1).questions) == 1


def test_an_own_question_of_a_scoped_memory_asks_in_its_scope() -> None:
    found = own_questions([StoredText("a", {"content": "red blue green", "scope": "s"})], None, 5)
    assert [question.scope for question in found.questions] == ["s"]


# Measures


EVIDENCE = [frozenset({"a"}), frozenset({"b", "c"})]


def test_evidence_recall_is_the_share_of_memories_with_a_row_among_the_first_k() -> None:
    assert evidence_recall(["x", "c"], EVIDENCE, 10) == 0.5
    assert evidence_recall(["x", "c", "b", "a"], EVIDENCE, 10) == 1.0
    assert evidence_recall(["x", "c", "b", "a"], EVIDENCE, 3) == 0.5


def test_ndcg_is_one_for_the_best_order_and_counts_a_memory_once() -> None:
    assert ndcg(["b", "a", "c"], EVIDENCE) == 1
    assert ndcg(["x", "y"], EVIDENCE) == 0
    assert ndcg(["b", "c", "x"], EVIDENCE) == pytest.approx(1 / (1 + 1 / math.log2(3)))


def test_the_first_result_is_a_hit_if_it_is_evidence() -> None:
    assert (hit_at_1(["c"], EVIDENCE), hit_at_1(["x", "a"], EVIDENCE), hit_at_1([], EVIDENCE)) == (1, 0, 0)


def test_measures_follow_the_number_of_results() -> None:
    assert measure_names(50) == ("hit@1", "R@10", "R@50", "nDCG@10")
    assert measure_names(5) == ("hit@1", "R@5", "nDCG@5")
    found = [*"wxyzuvstrq", "a"]
    assert scores(found, EVIDENCE, 50) == (0, 0, 0.5, 0)
    assert scores(["a"], EVIDENCE, 5) == (1, 0.5, pytest.approx(1 / (1 + 1 / math.log2(3))))


# Confidence intervals


def test_the_interval_of_a_mean_is_the_one_of_the_normal_distribution_for_many_questions() -> None:
    values = np.random.default_rng(1).normal(0.5, 0.1, 2000)
    (found,) = estimates(values[:, None].tolist())
    half = 1.96 * values.std() / math.sqrt(len(values))
    assert found.mean == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - half, abs=half / 10)
    assert found.high == pytest.approx(values.mean() + half, abs=half / 10)


def test_equal_scores_have_an_interval_without_width_and_the_same_scores_the_same_interval() -> None:
    assert estimates([[0.5, 1.0]] * 7) == [pytest.approx((0.5, 0.5, 0.5)), pytest.approx((1.0, 1.0, 1.0))]
    scattered = [[float(at % 3)] for at in range(50)]
    assert estimates(scattered) == estimates(scattered)
    assert estimates([]) == []


def test_a_paired_difference_is_significant_where_the_means_alone_overlap() -> None:
    before = [[at / 100] for at in range(100)]
    after = [[at / 100 + 0.02] for at in range(100)]
    (one,), (other,) = estimates(before), estimates(after)
    assert other.low < one.high, "the intervals of the means overlap"
    (found,) = differences(before, after)
    assert found.mean == pytest.approx(0.02)
    assert found.is_significant
    (none,) = differences(before, before)
    assert not none.is_significant
