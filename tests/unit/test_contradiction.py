"""Contradicting texts are recognised, and a model's answer counts only if it is clear."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.extraction.contradiction import (
    ANTONYMS,
    NEGATIONS,
    SemanticAnswer,
    contradiction_tokens,
    needs_semantic_check,
    parse_semantic,
    syntactic_contradiction,
)

anything = st.text(st.characters(exclude_categories=()), max_size=200)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("User prefer dark mode editor", "User does not prefer dark mode editor"),
        ("The new flag is enabled in production", "The new flag is disabled in production"),
        ("Always run tests before push", "Never run tests before push"),
        ("turn on the cache for builds", "turn off the cache for builds"),
        ("build runs without cache in CI", "build runs with cache in CI"),
        ("no new deps", "add new deps"),
        ("does not like spicy food", "likes spicy food"),
        ("value is true", "value is false"),
        ("service doesn't retry requests", "service does retry requests"),
        ("service doesn\u2019t retry requests", "service does retry requests"),
        ("The proxy accepts: accept old clients", "The proxy rejects: reject old clients"),
        ("The firewall will allow port 22", "The firewall will deny port 22"),
    ],
)
def test_a_negation_or_an_antonym_on_one_side_is_a_contradiction(one: str, other: str) -> None:
    assert syntactic_contradiction(one, other)
    assert syntactic_contradiction(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The project uses PostgreSQL", "The project migrated to MongoDB"),
        ("the sky is blue", "pizza is delicious"),
        ("the flags enabled and disabled exist here", "both enabled and disabled are flags here"),
        ("The cache is enabled and may be disabled", "The cache is enabled"),
        ("Tests never run on push here", "Tests do not run on push here"),
        ("The cache is enabled", "Tea is not served"),
        ("a b c not", "a b c"),
        ("", ""),
    ],
)
def test_texts_about_other_subjects_or_with_the_same_meaning_do_not_contradict(one: str, other: str) -> None:
    assert not syntactic_contradiction(one, other)
    assert not syntactic_contradiction(other, one)


def test_the_documented_words_are_recognised() -> None:
    documented = "not no never cannot cant doesnt dont isnt wasnt wont without"
    assert set(documented.split()) <= NEGATIONS
    assert {"/".join(pair) for pair in ANTONYMS} == {
        "enabled/disabled",
        "allow/deny",
        "accept/reject",
        "always/never",
        "on/off",
        "true/false",
    }


@pytest.mark.parametrize("pair", ANTONYMS, ids="/".join)
def test_each_pair_contradicts(pair: tuple[str, str]) -> None:
    assert syntactic_contradiction(f"the main gate is {pair[0]}", f"the main gate is {pair[1]}")


@pytest.mark.parametrize("word", sorted(NEGATIONS))
def test_each_negation_contradicts(word: str) -> None:
    assert syntactic_contradiction(f"the main gate {word} opens", "the main gate opens")


def test_words_have_at_least_two_characters_and_no_punctuation() -> None:
    assert contradiction_tokens("A Don't-do, it's x_y: CAF\u00c9 9 42!") == {"dont", "do", "its", "caf\u00e9", "42"}


@given(anything, anything)
def test_the_check_is_symmetric_and_never_raises(one: str, other: str) -> None:
    assert syntactic_contradiction(one, other) is syntactic_contradiction(other, one)
    assert not syntactic_contradiction(one, one)


@pytest.mark.parametrize(
    ("action", "one", "other", "enabled", "asked"),
    [
        ("update", "The shop stores orders in PostgreSQL", "The shop moved orders to MongoDB", True, True),
        ("update", "The shop stores orders in PostgreSQL", "The shop moved orders to MongoDB", False, False),
        ("delete", "The shop stores orders in PostgreSQL", "The shop moved orders to MongoDB", True, False),
        ("add", "The shop stores orders in PostgreSQL", "The shop moved orders to MongoDB", True, False),
        ("update", "The shop is large", "The shop closed", True, False),
        ("update", "The shop orders are kept", "The shop orders are not kept", True, False),
    ],
)
def test_a_model_is_asked_only_if_the_words_do_not_decide(
    action: str, one: str, other: str, enabled: bool, asked: bool
) -> None:
    assert needs_semantic_check(action, one, other, enabled=enabled) is asked


@pytest.mark.parametrize(
    ("members", "contradicts"),
    [
        ({"contradicts": True, "confidence": 0.7}, True),
        ({"contradicts": True, "confidence": 0.69}, False),
        ({"contradicts": "True", "confidence": "90%"}, True),
        ({"contradicts": False, "confidence": 1}, False),
        ({"contradicts": "false", "confidence": 1}, False),
        ({"contradicts": True}, False),
        ({"contradicts": True, "confidence": True}, False),
    ],
)
def test_the_models_answer_counts_if_it_is_confident(members: dict[str, object], contradicts: bool) -> None:
    answer = parse_semantic(f"<think>hm</think>```json\n{json.dumps({**members, 'reasoning': ' Because. '})}\n```")
    assert (answer.contradicts, answer.parsed, answer.reasoning) == (contradicts, True, "Because.")


@pytest.mark.parametrize(
    "answer", ["", "yes", "[true]", "{}", '{"contradicts": 1}', '{"contradicts": null}', '{"contradicts": ["x"]}']
)
def test_an_unclear_answer_means_no_contradiction(answer: str) -> None:
    assert parse_semantic(answer) == SemanticAnswer(parsed=False)


@given(anything | st.binary())
def test_no_answer_raises(answer: str | bytes) -> None:
    assert not parse_semantic(answer).contradicts
