"""The measures of the benchmarks: percentiles, hits and samples."""

from __future__ import annotations

import math

import msgspec
import pytest

from bench.figures import percentile
from bench.locomo import (
    Question,
    Store,
    evidence_recall,
    ndcg,
    read_conversations,
)
from bench.report import Line
from bench.texts import Texts


def talk(**more: object) -> dict[str, object]:
    """One conversation in LoCoMo's form."""
    return {
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_2_date_time": "9:05 am on 2 June, 2024",
            "session_2": [{"speaker": "Ben", "dia_id": "D2:1", "text": "The boat is blue."}],
            "session_1_date_time": "1:56 pm on 8 May, 2024",
            "session_1": [
                {"speaker": "Ada", "dia_id": "D1:1", "text": "I bought a boat."},
                {"speaker": "Ben", "dia_id": "D1:2", "text": "Look!", "blip_caption": "a photo of a boat"},
            ],
        },
        "qa": [
            {"question": "What did Ada buy?", "answer": "a boat", "evidence": ["D1:1"], "category": 4},
            {"question": "Which colour?", "evidence": ["D2:1; D1:2"], "category": 1},
            {"question": "And then?", "evidence": [], "category": 3},
        ],
        **more,
    }


def test_a_percentile_is_the_value_that_this_share_does_not_exceed() -> None:
    values = [float(number) for number in range(1, 101)]
    assert (percentile(values, 0.5), percentile(values, 0.95), percentile(values, 0.99)) == (50, 95, 99)
    assert percentile([7.0], 0.99) == 7
    assert percentile([], 0.5) == 0


def test_a_conversation_is_read_in_the_order_of_its_sessions() -> None:
    (conversation,) = read_conversations(msgspec.json.encode([talk()]))
    bodies = list(conversation.bodies())
    assert [label for label, _ in bodies] == ["D1:1", "D1:2", "D2:1"]
    assert bodies[1][1] == {
        "content": "Ben: Look! [shares a photo of a boat]",
        "agentId": "conversation-0",
        "visibility": "private",
        "sourceId": "0:D1:2",
        "createdAt": "2024-05-08T13:56:01.000Z",
    }


def test_any_chunk_of_a_turn_counts_as_the_turn_and_equal_turns_share_a_memory() -> None:
    store = Store()
    store.learn(0, "D1:1", {"id": "a"})
    store.learn(0, "D1:2", {"chunked": True, "ids": ["b", "c"]})
    store.learn(0, "D1:3", {"id": "a", "deduped": True})
    evidence = store.evidence(0, Question("?", 1, ["D1:1", "D1:2", "D9:9"]))
    assert evidence == [frozenset({"a"}), frozenset({"b", "c"})]
    assert (store.size, store.chunked, store.deduped) == (3, 1, 1)
    assert evidence_recall(["x", "c"], evidence, 10) == 0.5
    assert evidence_recall(["x", "c", "b", "a"], evidence, 10) == 1.0
    assert evidence_recall(["x", "c", "b", "a"], evidence, 3) == 0.5


def test_ndcg_is_one_for_the_best_order_and_counts_a_turn_once() -> None:
    evidence = [frozenset({"a"}), frozenset({"b", "c"})]
    assert ndcg(["b", "a", "c"], evidence, 10) == 1
    assert ndcg(["x", "y"], evidence, 10) == 0
    alone = ndcg(["b", "c", "x"], evidence, 10)
    assert alone == pytest.approx(1 / (1 + 1 / math.log2(3)))


def test_the_same_seed_makes_the_same_texts_and_no_memory_twice() -> None:
    first, second = Texts(3), Texts(3)
    memories = [first.memory() for _ in range(300)]
    assert memories == [second.memory() for _ in range(300)]
    assert len({memory.content for memory in memories}) == 300
    assert first.questions(memories, 20) == second.questions(memories, 20)


def test_a_target_is_met_at_its_bound() -> None:
    assert Line("a", 2.0, "ms", limit=2.0).met is True
    assert Line("a", 2.1, "ms", limit=2.0).met is False
    assert Line("a", 1500.0, "/s", least=1500.0).met is True
    assert Line("a", 1.0, "ms").met is None
