"""The measures of the benchmarks: percentiles, hits and samples."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import msgspec
import pytest

from bench.daemon import pss_of, ticks_of
from bench.figures import percentile, spread
from bench.locomo import (
    Conversation,
    Question,
    Score,
    Store,
    Turn,
    evidence_recall,
    ndcg,
    read_conversations,
    summary,
)
from bench.report import RECALL_CLIENTS, Line, _recall_floor, lines_of
from bench.sampling import Sampler, short
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


def test_a_spread_does_not_depend_on_the_order_of_the_latencies() -> None:
    assert spread([3.0, 1.0, 2.0]) == spread([1.0, 2.0, 3.0])
    assert spread([]).count == 0


def test_cpu_ticks_are_parsed_after_a_name_with_brackets_and_spaces() -> None:
    after_name = "S 1 1 1 0 -1 4194560 100 0 0 0 41 17 0 0 20 0 1 0 999 0 0"
    assert ticks_of(f"4242 (python (x) y) {after_name}") == 58


def test_pss_is_read_without_its_parts() -> None:
    assert pss_of("5581-7ffd rollup\nRss:  900 kB\nPss:  512 kB\nPss_Anon:  400 kB\n") == 512 * 1024


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


def test_a_malformed_conversation_is_refused_with_a_reason() -> None:
    for document in (b"", b"{}", b"[{}]", msgspec.json.encode([talk(qa=[{"question": "?"}])])):
        with pytest.raises(ValueError, match="not a LoCoMo file"):
            read_conversations(document)


def test_labels_with_several_turns_are_split() -> None:
    assert Question("?", 1, ["D8:6; D9:17", "D1:3"]).labels() == {"D8:6", "D9:17", "D1:3"}
    assert Question("?", 1, ["D", "D:11:26"]).labels() == set()


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


def test_ndcg_is_one_when_equal_turns_are_one_memory() -> None:
    assert ndcg(["a"], [frozenset({"a"}), frozenset({"a"})], 10) == 1


def test_a_summary_without_questions_is_zero() -> None:
    assert summary([]).recall_at_10 == 0
    assert summary([Score(4, 1.0, 1.0, 1.0, 3), Score(4, 0.0, 0.0, 0.0, 0)]).no_hit == 50


def test_a_conversation_without_turns_has_no_result() -> None:
    moment = datetime(2024, 5, 8, tzinfo=UTC)
    assert list(Conversation(0, [(moment, [])], []).bodies()) == []
    assert Turn("Ada", "D1:1", "Hello").content() == "Ada: Hello"


def test_the_same_seed_makes_the_same_texts_and_no_memory_twice() -> None:
    first, second = Texts(3), Texts(3)
    memories = [first.memory() for _ in range(300)]
    assert memories == [second.memory() for _ in range(300)]
    assert len({memory.content for memory in memories}) == 300
    assert first.questions(memories, 20) == second.questions(memories, 20)


def test_every_second_question_has_a_filter_that_its_memory_passes() -> None:
    texts = Texts(5)
    memories = [texts.memory() for _ in range(50)]
    for memory in memories:
        asked = texts.question(memory, filtered=True)
        body = asked.body
        assert body.get("type", memory.type) == memory.type
        assert body.get("tags") is None or body["tags"] in memory.tags
        assert body.get("since", memory.created_at) <= memory.created_at
        assert len(body) == 3
    assert [asked.filtered for asked in texts.questions(memories, 4)] == [False, True, False, True]


def test_words_are_distributed_as_in_a_language() -> None:
    texts = Texts(11)
    counts: dict[str, int] = {}
    for _ in range(2000):
        for word in texts.memory().telling:
            counts[word] = counts.get(word, 0) + 1
    ordered = sorted(counts.values(), reverse=True)
    assert ordered[0] > 20 * ordered[len(ordered) // 2]
    assert len(ordered) > 5000


def test_a_target_is_met_at_its_bound() -> None:
    assert Line("a", 2.0, "ms", limit=2.0).met is True
    assert Line("a", 2.1, "ms", limit=2.0).met is False
    assert Line("a", 1500.0, "/s", least=1500.0).met is True
    assert Line("a", 1.0, "ms").met is None


def test_figures_become_lines_with_targets_and_floors() -> None:
    took = spread([1.0, 2.0, 3.0])
    phase = {
        "latency_ms": took,
        "per_s": 450.0,
        "by_kind_ms": {"filtered": took},
        "refused": 0,
        "health_ms": took,
        "cpu_ms_per_recall": {"gateway": 1.0, "retention": 0.0, "load generator": 5.0},
        "identifiers": 4,
        "identifiers first": 3,
    }
    floor = msgspec.defstruct("Floor", [("rows_per_commit", int), ("rows_per_s", float), ("commit_ms", object)])
    found = {
        "floors": {
            "write": [floor(1, 4000.0, took)],
            "health_ms": took,
            "1000": {"keyword_ms": took, "vector_ms": took},
        },
        "imports": {"1000": {"memories": 1000, "per_s": 4999.0, "latency_ms": took}},
        "writes": {
            "1": {"latency_ms": took, "per_s": 400.0, "rows_per_commit": 1.0, "cpu_ms_per_remember": {"writer": 0.7}}
        },
        "sizes": {
            "1000": {
                **{f"{clients} clients": phase for clients in RECALL_CLIENTS},
                "idle_cpu_percent": 0.5,
                "pss_bytes": {"sum": 2e8},
            }
        },
        "mixed": {"clients": 32, "per_s": 1.0, "recall_ms": took, "remember_ms": took, "health_ms": took},
        "ready_s": {"0": 1.5, "1000": 2.5},
    }
    lines = {line.figure: line for line in lines_of(found)}
    assert lines["import to 1,000 memories"].met is False
    assert lines["remember, 1 client, p50"].met is True
    assert lines["recall at 1,000, 8 clients"].met is False
    assert lines["identifiers first at 1,000"].measured == 75
    assert lines["ready, 1,000 memories"].met is False
    assert lines["recall at 1,000, p50"].floor == 6
    assert lines["recall at 1,000, filtered, p95"].measured == 3
    assert lines["remember, 1 client, CPU of writer"].measured == 0.7
    assert lines["remember, 1 client, p99"].floor == 3
    assert not any("load generator" in name or "retention" in name for name in lines)

    unfloored = {line.figure: line for line in lines_of({**found, "floors": {}})}
    assert unfloored.keys() == lines.keys()
    assert all(line.floor is None for line in unfloored.values())


def test_a_size_without_a_keyword_floor_has_no_floor() -> None:
    took = spread([1.0])
    assert _recall_floor({"health_ms": took, "9": {"keyword_ms": took, "vector_ms": took}}, 9) == (3, 3)
    assert _recall_floor({"health_ms": took, "9": {"keyword_ms": None, "vector_ms": took}}, 9) is None
    assert _recall_floor({}, 9) is None


def test_a_sample_counts_a_function_once_however_often_it_calls_itself() -> None:
    sampler = Sampler()

    def deeper(depth: int) -> None:
        if depth:
            deeper(depth - 1)
        else:
            import inspect

            sampler._sample(0, inspect.currentframe())

    deeper(5)
    profile = sampler.profile("test")
    name = next(name for name in profile.itself if name.endswith("deeper"))
    assert profile.samples == 1
    assert profile.below[name] == 1


def test_file_names_are_shortened_to_their_package() -> None:
    assert short("/x/.venv/lib/python3.11/site-packages/starlette/routing.py") == "starlette/routing.py"
    assert short("/x/main/signet_actors/gateway/app.py") == "gateway/app.py"
    assert short("<string>") == "<string>"
