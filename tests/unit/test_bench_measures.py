"""The measures of the benchmarks: percentiles, hits and samples."""

from __future__ import annotations

from collections import Counter

from bench.ablation import WEIGHTS, variants
from bench.figures import percentile
from bench.generality import facts_of, short
from bench.locomo import Store
from bench.made_talks import ENGLISH, GERMAN, SESSIONS, made_conversations
from bench.report import Line
from bench.texts import Texts
from signet_actors.domain.evaluation.locomo import question_set
from signet_actors.domain.evaluation.question_set import Question, QuestionSet, StoredText
from signet_actors.domain.ranking import context


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


def test_generated_conversations_are_the_same_for_a_seed_and_their_labels_name_turns() -> None:
    for language in (ENGLISH, GERMAN):
        talks = made_conversations(language, 2, 5)
        assert talks == made_conversations(language, 2, 5)
        asked = question_set(talks)
        assert len(asked.questions) == sum(len(talk.questions) for talk in talks)
        assert len({memory.key for memory in asked.memories}) == len(asked.memories)


def test_a_fact_is_dated_after_its_turn_and_answers_the_questions_about_it() -> None:
    (talk,) = made_conversations(ENGLISH, 1, 5)
    turns = [memory.line["createdAt"] for memory in talk.memories()]
    facts = facts_of(talk)
    assert len(facts.memories) == 3 * SESSIONS
    assert facts.memories[0].line["createdAt"] > turns[0]
    assert facts.questions[0].evidence == (facts.memories[0].key,)
    assert len(facts.questions) == len(talk.questions)


def test_a_short_store_has_few_rows_and_the_questions_that_it_answers_alone() -> None:
    memories = [StoredText(str(number), {"content": f"{number}", "agentId": "a"}) for number in range(200)]
    questions = [Question("one", "", ("5", "80")), Question("two", "", ("5", "95")), Question("gone", "", ("999",))]
    found = short(QuestionSet(memories, questions))
    sizes = Counter(memory.agent for memory in found.memories)
    assert sizes == {"a-0": 90, "a-1": 90, "a-2": 20}
    assert [(question.text, question.agent) for question in found.questions] == [("one", "a-0")]


def test_an_ablation_has_a_row_without_and_only_with_each_stage() -> None:
    names = [variant.name for variant in variants()]
    assert names[0] == "default"
    for stage in ("search.context", "search.priors", "search.date_boost", "neighbours", "subject"):
        assert {f"without {stage}", f"only {stage}"} <= set(names)
    for weight in WEIGHTS:
        assert isinstance(getattr(context, weight), float)
