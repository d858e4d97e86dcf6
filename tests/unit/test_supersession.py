"""Which sibling attributes of an entity a later one replaces: the worked examples, and what must not happen."""

from __future__ import annotations

import pytest

from signet_actors.domain.graph.supersession import (
    ANTONYMS,
    MAX_COMPARED,
    Claim,
    Conflict,
    Words,
    conflict,
    superseded,
)

MONDAY, TUESDAY, FRIDAY = "2026-11-02T09:00:00.000Z", "2026-11-03T08:00:00.000Z", "2026-11-06T09:00:00.000Z"


def found(older: str, newer: str, entity: str = "", *, later: str = MONDAY) -> Conflict | None:
    return conflict(Words.of(older, MONDAY), Words.of(newer, later), frozenset(entity.split()))


@pytest.mark.parametrize(
    ("older", "newer", "entity", "method"),
    [
        ("lives in denver", "lives in boulder", "amari", "value"),
        ("are together", "are apart", "amari", "antonym"),
        ("amari is single now", "is dating nicholai", "amari", "antonym"),
        ("uses postgresql for the database", "the database has three replicas", "project", None),
        ("user prefers emacs", "user prefers vim", "user", "value"),
        ("project uses postgres", "project uses postgres with replicas", "project", None),
        ("does not like spicy food", "likes spicy food", "amari", "negation"),
        ("service doesn't retry requests", "service does retry requests", "service", "negation"),
        ("the flag is enabled in production", "the flag is disabled in production", "app", "antonym"),
    ],
)
def test_the_worked_examples_are_judged_as_documented(older: str, newer: str, entity: str, method: str | None) -> None:
    said = found(older, newer, entity)
    assert (None if said is None else said.method) == method


@pytest.mark.parametrize(
    ("method", "confidence", "older", "newer"),
    [
        ("negation", 0.85, "retries failed uploads", "never retries failed uploads"),
        ("antonym", 0.80, "nightly builds are enabled", "nightly builds are disabled"),
        ("value", 0.75, "listens on port 8080 and runs on linux", "runs on freebsd"),
        ("temporal", 0.70, "deploys every release by hand", "every release deploys from main now"),
    ],
)
def test_each_sign_has_its_confidence(method: str, confidence: float, older: str, newer: str) -> None:
    assert found(older, newer, later=FRIDAY) == Conflict(method, confidence)


def test_there_are_twenty_eight_pairs_of_antonyms_and_each_is_seen_from_both_sides() -> None:
    assert len(ANTONYMS) == len({frozenset(pair) for pair in ANTONYMS}) == 28
    for left, right in ANTONYMS:
        for one, other in ((left, right), (right, left)):
            assert found(f"is {one}", f"is {other}", "amari") is not None, (one, other)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("dark mode is enabled", "telemetry is disabled"),
        ("Redis is fast", "Redis is written in C"),
        ("Redis is fast", "Redis is not clustered"),
        ("the team of Redis has a logo", "the team of Redis was founded in 2010"),
        ("Redis uses sockets at night", "Redis uses sockets every day"),
        ("both enabled and disabled plugins load slowly", "disabled plugins load slowly"),
    ],
)
def test_facts_that_only_share_the_entity_do_not_replace_each_other(older: str, newer: str) -> None:
    assert found(older, newer, "redis", later=FRIDAY) is None


def test_a_marker_of_time_counts_only_after_more_than_a_day() -> None:
    older, newer = "deploys every release by hand", "every release deploys from main now"
    assert found(older, newer, later=TUESDAY) is None
    assert found(older, newer, later="2026-11-03T09:00:00.001Z") == Conflict("temporal", 0.70)
    assert found(newer, older, later=FRIDAY) is None, "the marker stands in the older text"


def test_the_newest_of_several_claims_stays_and_names_what_it_replaced() -> None:
    claims = [
        Claim(str(day), f"lives in {city}", f"2026-11-0{day}") for day, city in enumerate(("rome", "oslo", "bonn"))
    ]
    replaced = superseded(claims, "amari")
    assert {old: new.by for old, new in replaced.items()} == {"0": "1", "1": "2"}
    assert superseded(claims[:1] + claims[2:], "amari")["0"].by == "2", "without the middle one, the last replaces both"


def test_a_protected_claim_is_never_replaced_and_replaces_others() -> None:
    claims = [Claim("old", "lives in rome", MONDAY), Claim("pinned", "lives in oslo", TUESDAY, is_protected=True)]
    claims.append(Claim("new", "lives in bonn", FRIDAY))
    assert {old: new.by for old, new in superseded(claims, "amari").items()} == {"old": "pinned"}


def test_only_the_last_active_siblings_are_compared() -> None:
    claims = [Claim("first", "lives in rome", MONDAY)]
    claims += [Claim(f"other-{number}", f"note{number} item{number}", MONDAY) for number in range(MAX_COMPARED)]
    last = Claim("last", "lives in oslo", FRIDAY)
    assert superseded([*claims, last], "amari") == {}
    assert superseded([*claims[:-1], last], "amari").keys() == {"first"}
