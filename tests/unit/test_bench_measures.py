"""The measures of the benchmarks: percentiles, hits and samples."""

from __future__ import annotations

from bench.figures import percentile
from bench.locomo import Store
from bench.report import Line
from bench.texts import Texts
from signet_actors.domain.evaluation.question_set import Question


def test_a_percentile_is_the_value_that_this_share_does_not_exceed() -> None:
    values = [float(number) for number in range(1, 101)]
    assert (percentile(values, 0.5), percentile(values, 0.95), percentile(values, 0.99)) == (50, 95, 99)
    assert percentile([7.0], 0.99) == 7
    assert percentile([], 0.5) == 0


def test_any_chunk_of_a_turn_counts_as_the_turn_and_equal_turns_share_a_memory() -> None:
    store = Store()
    store.learn("0:D1:1", {"id": "a"})
    store.learn("0:D1:2", {"chunked": True, "ids": ["b", "c"]})
    store.learn("0:D1:3", {"id": "a", "deduped": True})
    evidence = store.evidence(Question("?", "", ("0:D1:1", "0:D1:2", "0:D9:9")))
    assert evidence == [frozenset({"a"}), frozenset({"b", "c"})]
    assert (store.size, store.chunked, store.deduped) == (3, 1, 1)


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
