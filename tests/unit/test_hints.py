"""Hints are few, short and unique for any answer of the model."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.extraction.facts import UNPARSEABLE
from signet_actors.domain.extraction.hints import MAX_HINT_CHARS, MIN_HINT_CHARS, Hints, parse_hints
from signet_actors.domain.extraction.summary_card import MAX_SUMMARY_CHARS, parse_summary, summary_id
from signet_actors.domain.normalization import content_hash
from tests.support.model_answers import LOSSLESS

MEMORY = "The homelab uses Traefik as its proxy"
QUESTIONS = ["which proxy runs at home", "what handles TLS"]


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps(QUESTIONS),
        json.dumps({"hints": QUESTIONS}),
        json.dumps({"questions": QUESTIONS}),
        json.dumps([{"question": text} for text in QUESTIONS]),
        f"<think>hm</think>\n```json\n{json.dumps(QUESTIONS)}\n```",
    ],
)
def test_hints_are_accepted_in_each_shape(answer: str) -> None:
    assert parse_hints(answer, MEMORY, 5) == Hints(tuple(QUESTIONS))


BROKEN = {name: answer for name, change in LOSSLESS.items() if (answer := change(json.dumps(QUESTIONS))) is not None}


@pytest.mark.parametrize("name", sorted(set(BROKEN) - {"draft first", "last bracket missing"}))
def test_broken_hints_are_repaired(name: str) -> None:
    assert parse_hints(BROKEN[name], MEMORY, 5).hints == tuple(QUESTIONS)


def test_a_repeated_hint_and_the_memorys_own_text_are_dropped() -> None:
    result = parse_hints(json.dumps([*QUESTIONS, "Which proxy  runs at home?", MEMORY + "."]), MEMORY, 5)
    assert (result.hints, result.dropped) == (tuple(QUESTIONS), 2)


def test_no_more_than_the_maximum_is_kept() -> None:
    result = parse_hints(json.dumps([f"question number {i}" for i in range(30)]), MEMORY, 3)
    assert result.hints == ("question number 0", "question number 1", "question number 2")
    assert (result.dropped, result.warnings) == (27, ("Too many hints: kept 3 of 30",))


@pytest.mark.parametrize(
    "item", ["x" * (MIN_HINT_CHARS - 1), "x" * (MAX_HINT_CHARS + 1), "", 7, None, [QUESTIONS[0]], {"a": "b"}]
)
def test_an_invalid_hint_is_dropped_with_a_warning(item: object) -> None:
    result = parse_hints(json.dumps([item, *QUESTIONS]), MEMORY, 5)
    assert (result.hints, result.dropped, len(result.warnings)) == (tuple(QUESTIONS), 1, 1)


def test_an_answer_without_json_is_distinguished() -> None:
    assert parse_hints("I cannot think of any.", MEMORY, 5) == Hints(warnings=(UNPARSEABLE,), parsed=False)
    assert parse_hints('{"other": 1}', MEMORY, 5).warnings == ("Not an array: hints",)


@given(
    st.text(st.characters(exclude_categories=())) | st.binary() | st.lists(st.text()).map(json.dumps),
    st.integers(1, 20),
)
def test_the_limits_hold_for_any_answer(answer: str | bytes, max_count: int) -> None:
    result = parse_hints(answer, MEMORY, max_count)
    assert len(result.hints) <= max_count
    assert all(MIN_HINT_CHARS <= len(hint) <= MAX_HINT_CHARS for hint in result.hints)
    assert len(set(map(content_hash, result.hints))) == len(result.hints)


def test_a_summary_card_has_an_id_of_twelve_hex_digits_that_follows_from_its_content() -> None:
    assert summary_id("port", ["a", "b"]) == summary_id("port", ["a", "b"])
    assert len({summary_id("port", ["a", "b"]), summary_id("port", ["b", "a"]), summary_id("ports", ["a", "b"])}) == 3
    prefix, digits = summary_id("\ud800", []).split(":")
    assert prefix == "summary"
    assert len(digits) == 12
    int(digits, 16)


@pytest.mark.parametrize(
    ("answer", "summary"),
    [
        ('{"summary": " The port is  3850. "}', "The port is 3850."),
        ('<think>x</think>```json\n{"summary": "The port is 3850.",}\n```', "The port is 3850."),
        ('{"summary": ""}', None),
        ('{"summary": ["x"]}', None),
        ("The port is 3850.", None),
    ],
)
def test_a_summary_is_parsed_or_there_is_none(answer: str, summary: str | None) -> None:
    assert parse_summary(answer) == summary


def test_a_summary_is_cut_to_its_length() -> None:
    assert len(parse_summary(json.dumps({"summary": "word " * 5_000})) or "") <= MAX_SUMMARY_CHARS
