"""The reasons of a recall in sentences. Source: docs/quality.md "Why is a memory there"."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from signet_actors.domain.ranking.explanation import ExplainedId, Explanation, LegScore, Move, Outcome
from signet_actors.domain.ranking.reasons import OUTCOMES, with_reasons, with_why

PLAIN = Explanation(
    legs=[],
    terms=[],
    missing_terms=[],
    similar_terms=[],
    base=0.8,
    moves=[],
    score=0.8,
    coverage=0.7,
    standing=None,
    relevance=0.9,
)


def because(**changes: Any) -> list[str]:
    return with_reasons(msgspec.structs.replace(PLAIN, **changes)).because


def test_the_words_that_a_memory_has_and_lacks_are_named() -> None:
    assert because(terms=["port", "heron"], missing_terms=["production"], similar_terms=["product"]) == [
        "It has 2 of 3 words that were asked for: port, heron.",
        "It lacks production.",
        "It has words that resemble a missing one: product.",
    ]
    assert because(terms=["port"]) == ["It has 1 of 1 word that was asked for: port."]
    assert because(missing_terms=["port"]) == ["It has none of the words that were asked for."]
    assert because(terms=["x" * 50]) == [f"It has 1 of 1 word that was asked for: {'x' * 40}…."]


@pytest.mark.parametrize(("standing", "said"), [(5.0, "close to"), (2.0, "related to"), (1.9, "far from")])
def test_how_near_the_meaning_is_is_told_as_the_relevance_counts_it(standing: float, said: str) -> None:
    meaning = LegScore("vector", None, 0.3)
    assert because(legs=[meaning], standing=standing) == [f"Its meaning is {said} what was asked."]
    assert because(legs=[meaning], standing=None) == []


def test_missing_words_that_count_for_nothing_are_said_to_tell_little() -> None:
    assert because(terms=["deploy"], missing_terms=["may"], coverage=0.9)[1] == "It lacks may, which tells little."
    assert because(terms=["deploy"], missing_terms=["prod"], coverage=0.89)[1] == "It lacks prod."


def test_a_hint_counts_only_if_the_search_found_the_memory_by_it() -> None:
    assert because(legs=[LegScore("hint", 2, 0.5)]) == ["It was stored with a hint of such a question."]
    assert because(legs=[LegScore("hint", None, 0.1)]) == []


def test_the_path_through_the_knowledge_graph_is_told() -> None:
    assert because(path=["Billing", "depends_on", "Postgres"]) == [
        "What was asked names what it is about: Billing > depends_on > Postgres."
    ]


def test_a_stage_is_a_reason_if_it_moved_the_score_enough_and_in_the_way_that_it_means() -> None:
    moves = [
        Move("subject", 0.15),
        Move("question", -0.1),
        Move("number", 0.005),
        Move("scale", -0.2),
        Move("new", 1.0),
    ]
    assert because(moves=moves) == ["It is about the subject of what was asked.", "It asks something itself."]
    assert because(moves=[Move("rerank", -0.1)]) == ["Its meaning put it lower."]


def test_what_was_said_beside_it_is_no_reason_for_a_memory_that_itself_does_not_fit() -> None:
    moves = [Move("neighbours", 0.15), Move("episode", 0.3), Move("exact_match", 0.1)]
    beside = ["What was said right before or after it fits, too."]
    beside.append("Other things that were said in the same conversation fit, too.")
    exact = "It has the exact name that was asked for."
    assert because(moves=moves, relevance=0.5) == [*beside, exact]
    assert because(moves=moves, relevance=0.49) == [exact]


@pytest.mark.parametrize(
    ("fate", "why"),
    [
        (ExplainedId("a", "not_found"), "there is no such memory, or this agent may not read it"),
        (ExplainedId("a", "filtered", filters=["type", "project"]), "it is left out by the filter type, project"),
        (ExplainedId("a", "not_a_candidate"), "others match better by words and by meaning"),
        (
            ExplainedId("a", "below_min_score", value=0.04, threshold=0.1),
            "its score of 0.040 before priors and context is below the minimum 0.1",
        ),
        (
            ExplainedId("a", "below_min_relevance", value=0.2, threshold=0.5),
            "its relevance 0.200 is below the minimum 0.5",
        ),
        (ExplainedId("a", "already_recalled"), "the session already had it"),
        (ExplainedId("a", "beyond_limit", rank=14, threshold=10.0), "it is at rank 14, beyond the limit of 10"),
        (ExplainedId("a", "returned", rank=2), "it is among the results, at rank 2"),
    ],
)
def test_each_outcome_is_told_in_words(fate: ExplainedId, why: str) -> None:
    assert with_why(fate).why == why


def test_every_outcome_has_words() -> None:
    assert set(OUTCOMES) == set(get_args(Outcome))
