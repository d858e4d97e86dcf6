"""Rules of the views of the knowledge graph: names that are alike, what fits, outlines, and walks."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.features.entities.api import Attribute
from signet_actors.features.entities.rules import below, containing, similarity_key
from signet_actors.features.knowledge.api import Step, TreeRequest
from signet_actors.features.knowledge.rules import TokenBudget, answering, claims, groups, walk


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("PostgreSQL", "postgre-sql", True),
        ("Signet Actor", "signet actors", True),
        ("the shop", "Shop", True),
        ("Shop", "Shops", True),
        ("class", "clas", False),
        ("gas", "ga", False),
        ("Shop", "Till", False),
    ],
)
def test_names_are_alike_that_differ_in_signs_or_a_plural(one: str, other: str, alike: bool) -> None:
    assert (similarity_key(one) == similarity_key(other)) is alike


def test_a_search_for_a_part_of_a_name_has_no_patterns() -> None:
    assert containing(" 50%_of  IT! ") == "%50!%!_of it!!%"


@given(st.dictionaries(st.integers(0, 30), st.integers(0, 30), max_size=30))
def test_what_is_below_a_top_is_all_whose_parents_lead_there(parent: dict[int, int]) -> None:
    tree = {str(child): str(min(child, of)) for child, of in parent.items() if child != of}
    found = below(tree.items(), "0")

    def leads(name: str) -> bool:
        seen: set[str] = set()
        while name in tree and name not in seen and name != "0":
            seen.add(name)
            name = tree[name]
        return name == "0"

    assert found == {"0", *(name for name in tree if leads(name))}


@given(st.lists(st.text(max_size=30)), st.integers(1, 10))
def test_texts_fit_in_order_until_one_does_not(texts: list[str], tokens: int) -> None:
    budget = TokenBudget(tokens)
    shown = budget.fitting(texts, str)
    assert shown == texts[: len(shown)]
    assert sum(map(len, shown)) <= 4 * tokens
    if len(shown) < len(texts):
        assert sum(map(len, [*shown, texts[len(shown)]])) > 4 * tokens


def test_what_has_the_words_of_the_question_comes_first() -> None:
    texts = ["it is red", "the port is 5433", "the port of staging is 5434"]
    assert answering(texts, "staging port", str) == texts[::-1]
    assert answering(texts, None, str) == texts


def said(
    number: int, content: str, *, claim: str | None = None, group: str | None = None, status: str = "active"
) -> Attribute:
    at = f"2026-01-{number:02}T00:00:00.000Z"
    place = (f"a{number}", "e", "default", "s", "database", "m", "m", "attribute", content, content, 1.0, 0.5)
    return Attribute(*place, status, None, None, group, claim, "structured", at, at, at)


def test_a_claim_shows_what_is_said_now_and_how_often_it_was_replaced() -> None:
    found = claims(
        [
            said(1, "5433", claim="port", status="superseded"),
            said(2, "5434", claim="port"),
            said(3, "is red"),
            said(4, "was blue", status="superseded"),
            said(5, "gone", claim="colour", status="superseded"),
        ]
    )
    assert [(each.claim_key, each.preview, each.attribute_count, each.superseded_count) for each in found] == [
        ("port", "5434", 1, 1),
        (None, "is red", 1, 0),
    ]
    (long,) = claims([said(1, "x" * 1000)])
    assert (len(long.preview), long.preview[-1]) == (240, "…")


def test_an_outline_has_at_most_as_much_as_is_asked_for() -> None:
    many = [said(number, str(number), group=f"g{number % 3}") for number in range(1, 13)]
    (first,) = groups(many, TreeRequest(entity="e", max_groups=1, max_claims=2))
    assert (first.group_key, first.attribute_count, first.claim_count) == ("g1", 4, 0)
    assert isinstance(first.claims, list)
    assert [each.preview for each in first.claims] == ["1", "4"]


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=40), st.integers(1, 5), st.integers(1, 12))
def test_a_walk_reaches_each_entity_once_by_a_shortest_way(pairs: list[tuple[int, int]], depth: int, most: int) -> None:
    edges = {(str(source), str(target)) for source, target in pairs}

    def following(at: list[str], level: int) -> Iterable[Step]:
        return [
            Step(target, target, "tool", level, source, "uses", "outgoing", 1.0)
            for source in at
            for start, target in sorted(edges)
            if start == source
        ]

    found = list(walk("0", following, depth, most))
    distance, level = {"0": 0}, ["0"]
    for steps in range(1, depth + 1):
        level = [target for at in level for start, target in sorted(edges) if start == at and target not in distance]
        distance |= dict.fromkeys(level, steps)
    del distance["0"]
    assert len(found) == min(most, len(distance))
    assert {step.id: step.depth for step in found}.items() <= distance.items()
