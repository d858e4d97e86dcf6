"""What of a model's answer about the aspects of an entity's facts is used."""

from __future__ import annotations

import msgspec
import pytest

from signet_actors.domain.graph.classification import (
    ASPECT_SUGGESTIONS,
    MAX_ASPECT_CHARS,
    Assignment,
    Classified,
    parse_classification,
    suggested_aspects,
)
from signet_actors.domain.graph.names import ENTITY_TYPES


def entry(i: object, aspect: object = "Usage", kind: object = "attribute", **more: object) -> dict[str, object]:
    return {"i": i, "aspect": aspect, "kind": kind, "new": False, **more}


def parse(value: object, count: int = 3, *, asks_type: bool = False) -> Classified | None:
    return parse_classification(msgspec.json.encode(value), count, asks_type=asks_type)


def test_the_documented_array_and_the_object_with_it_say_the_same() -> None:
    facts = [entry(1), entry(3, " Coding   Style ", "constraint")]
    expected = (Assignment(1, "Usage", "attribute"), Assignment(3, "Coding Style", "constraint"))
    for value in (facts, {"facts": facts}, {"facts": facts, "type": "tool"}):
        assert parse(value) == Classified(expected)


@pytest.mark.parametrize(
    "wrong",
    [
        entry(0),
        entry(4),
        entry(True),
        entry("1"),
        entry(1, kind="rule"),
        entry(1, kind=None),
        entry(1, aspect="  "),
        entry(1, aspect=None),
        entry(1, aspect="a" * (MAX_ASPECT_CHARS + 1)),
        "1",
        None,
    ],
)
def test_an_entry_that_is_not_exactly_of_the_form_is_ignored_and_others_are_used(wrong: object) -> None:
    assert parse([wrong, entry(2)]) == Classified((Assignment(2, "Usage", "attribute"),))
    assert parse([wrong]) is None


def test_the_first_entry_about_a_fact_counts() -> None:
    assert parse([entry(1, "first"), entry(1, "second")]) == Classified((Assignment(1, "first", "attribute"),))


@pytest.mark.parametrize(("said", "known"), [("tool", "tool"), (" Person ", "person"), ("deity", None), (7, None)])
def test_a_type_is_taken_only_if_asked_for_and_known(said: object, known: str | None) -> None:
    for value in ({"type": said, "facts": [entry(1)]}, [entry(1, type=said)]):
        asked, unasked = parse(value, asks_type=True), parse(value)
        assert asked is not None
        assert unasked is not None
        assert (asked.entity_type, unasked.entity_type) == (known, None)


@pytest.mark.parametrize("answer", ["", "no idea", "{}", "[]", '{"facts": {"i": 1}}', '{"facts": []}', "null", "7"])
def test_an_answer_without_any_usable_entry_is_unusable(answer: str) -> None:
    assert parse_classification(answer, 3, asks_type=True) is None


def test_every_type_has_suggestions_and_an_unknown_one_those_of_unknown() -> None:
    assert set(ASPECT_SUGGESTIONS) == set(ENTITY_TYPES)
    assert suggested_aspects("extracted") == suggested_aspects("unknown")
