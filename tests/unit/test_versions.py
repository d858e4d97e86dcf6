"""Versions of a fact, near ties, and questions about the past."""

from __future__ import annotations

import numpy as np
import pytest

from signet_actors.domain.ranking.newest_first import near_groups, newest_first
from signet_actors.domain.temporal.past import asks_for_past
from signet_actors.domain.versions import Dated, are_versions, newest_versions
from tests.system.fact_versions import DIFFERENT, PARALLEL, SEVERAL, SHORT_FACTS, SHORT_OTHERS, VERSIONS


def test_texts_that_differ_in_one_value_are_versions() -> None:
    pairs = [
        (one, other) for versions in VERSIONS for one in versions.texts for other in versions.texts if one != other
    ]
    assert [pair for pair in pairs if not are_versions(*pair)] == []


def test_facts_of_few_words_are_versions_if_what_stands_behind_is_differs() -> None:
    assert [pair for pair in SHORT_FACTS if not are_versions(*pair) or not are_versions(*reversed(pair))] == []


def test_facts_of_few_words_that_a_thing_has_beside_each_other_are_no_versions() -> None:
    assert [pair for pair in SHORT_OTHERS if are_versions(*pair) or are_versions(*reversed(pair))] == []


def test_texts_about_different_things_are_no_versions() -> None:
    pairs = [*(texts for _, texts in SEVERAL), *((facts.answer, facts.newer) for facts in DIFFERENT)]
    pairs += [
        ("The shelf in room 12 has a lamp", "The shelf in room 14 has a lamp"),
        ("Deploys go out on Monday", "Backups go out on Tuesday"),
        ("Ann owns the ferry", "Bob owns the ferry"),
        ("Port 5433 is used by the staging database", "Port 5434 is used by the staging database"),
    ]
    assert [pair for pair in pairs if are_versions(*pair)] == []


def test_facts_about_two_things_are_no_versions_whatever_their_values() -> None:
    assert [pair for _, pair in PARALLEL if are_versions(*pair) or are_versions(*reversed(pair))] == []


def test_a_version_that_is_asked_for_by_its_value_and_one_of_another_project_are_kept() -> None:
    old, new = VERSIONS[0].texts
    assert newest_versions([Dated(old, 1), Dated(new, 9)], asked=("port", "5433")) == [0, 1]
    assert newest_versions([Dated(old, 1), Dated(new, 9)], asked=("port", "database")) == [1]
    assert newest_versions([Dated(old, 1, "/p"), Dated(new, 9)]) == [0, 1]
    assert newest_versions([Dated(old, 1, "/p"), Dated(new, 9, "/p")]) == [1]


def test_of_versions_the_newest_takes_the_best_place() -> None:
    old, new = VERSIONS[0].texts
    former, other, latest = Dated(old, 1), Dated("Something else", 5), Dated(new, 9)
    assert newest_versions([former, other, latest]) == [2, 1]
    assert newest_versions([latest, other, former]) == [0, 1]
    assert newest_versions([]) == []


def order(scores: list[float], covered: list[int], times: list[int]) -> list[int]:
    """The rows in the order of their scores after near ties were exchanged."""
    found = np.array(scores)
    for tied in near_groups(scores, covered):
        found = newest_first(found, tied, np.array(times)[tied])
    return np.argsort(-found, kind="stable").tolist()


@pytest.mark.parametrize(
    ("scores", "covered", "times", "expected"),
    [
        ([1.0, 0.99, 0.98], [3, 3, 3], [1, 2, 3], [2, 1, 0]),
        ([1.0, 0.96], [3, 3], [1, 2], [0, 1]),
        ([1.0, 0.99], [3, 1], [1, 2], [0, 1]),
        ([1.0, 0.99, 0.98], [3, 1, 3], [1, 2, 3], [2, 1, 0]),
        ([1.0, 0.99], [3, 3], [5, 5], [0, 1]),
        ([1.0, 0.98, 0.96, 0.94, 0.92], [3] * 5, [1, 2, 3, 4, 5], [1, 0, 3, 2, 4]),
        ([0.0, 0.0], [3, 3], [1, 2], [0, 1]),
        ([1.0, 0.99], [0, 0], [1, 2], [0, 1]),
        ([1.0], [3], [1], [0]),
    ],
)
def test_near_ties_that_cover_the_same_words_are_ordered_by_time(
    scores: list[float], covered: list[int], times: list[int], expected: list[int]
) -> None:
    assert order(scores, covered, times) == expected


@pytest.mark.parametrize(
    "query",
    [
        "what was the port originally?",
        "which port did we use before?",
        "which port did we use before the move?",
        "who used to own the ferry?",
        "the previous port",
        "our old port",
        "which port had it at first?",
        "wie hieß der Server früher?",
        "welcher Port war vorher eingestellt?",
        "ursprünglicher Port der Datenbank",
        "quel était le port avant la migration?",
        "le port du serveur autrefois",
        "¿qué puerto usaba antes?",
        "el puerto original era anteriormente",
    ],
)
def test_a_question_about_the_past_is_recognised(query: str) -> None:
    assert asks_for_past(query)


@pytest.mark.parametrize(
    "query",
    [
        "which port has the staging database?",
        "what do I run before the deploy?",
        "how old is the server?",
        "was muss ich vor dem Deploy tun?",
        "que faire avant le déploiement?",
        "¿qué hago antes de desplegar?",
        "who was on call?",
        "what did we decide about the port?",
        "",
    ],
)
def test_another_question_is_not_about_the_past(query: str) -> None:
    assert not asks_for_past(query)
