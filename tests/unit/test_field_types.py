"""Each field type is parsed leniently where clients differ, and invalid values are refused with the field's name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.errors import InvalidRequest
from signet_actors.operations.field_types import (
    ABSENT,
    Clamped,
    Cursor,
    FieldType,
    Flag,
    Given,
    Number,
    Tags,
    Text,
    parse_flag,
    parse_integer,
)
from signet_actors.operations.import_export import ImportedLine
from signet_actors.operations.registry import OPERATIONS


def read(kind: FieldType, value: object) -> Any:
    return kind.read(Given("n", value, default=None, in_query=False, now_ms=0, warnings=[]))


def read_query(kind: FieldType, text: str, *, default: int | None = None, warnings: list[str] | None = None) -> Any:
    told = [] if warnings is None else warnings
    return kind.read(Given("n", text, default=default, in_query=True, now_ms=0, warnings=told))


@pytest.mark.parametrize("value", [True, 1, 1.0, "1", "true", "TRUE", " True "])
def test_accepted_spellings_of_true(value: object) -> None:
    assert parse_flag(value) is True


@pytest.mark.parametrize("value", [False, 0, 0.0, "0", "false", "FALSE"])
def test_accepted_spellings_of_false(value: object) -> None:
    assert parse_flag(value) is False


@pytest.mark.parametrize("value", [None, 2, 0.5, "", "yes", "on", [], {}, "null"])
def test_other_values_are_not_booleans(value: object) -> None:
    assert parse_flag(value) is None


@pytest.mark.parametrize(
    ("text", "parsed"),
    [("12", 12), ("12abc", 12), (" 7 ", 7), ("+3", 3), ("-3", 1), ("abc", 10), ("", 10), ("1e3", 1), ("0x10", 1)],
)
def test_integers_are_parsed_like_parseint_and_clamped(text: str, parsed: int) -> None:
    assert parse_integer(text, 10, 1, 100) == parsed


@given(st.text())
def test_any_text_parses_to_an_integer_within_the_bounds(text: str) -> None:
    assert 1 <= parse_integer(text, 10, 1, 100) <= 100


@given(st.integers())
def test_an_integer_of_any_length_is_clamped_exactly(value: int) -> None:
    assert parse_integer(str(value), 0, -1000, 1000) == max(-1000, min(1000, value))


def test_five_thousand_digits_are_clamped_without_being_read() -> None:
    assert parse_integer("9" * 5000, 10, 1, 100) == 100
    assert parse_integer("0" * 5000 + "7", 10, 1, 100) == 7


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 10**400])
def test_numbers_beyond_63_bits_are_refused(value: float) -> None:
    with pytest.raises(InvalidRequest, match="must be a finite number"):
        read(Number(), value)


@pytest.mark.parametrize(
    ("text", "number"),
    [("0.5", 0.5), (".5", 0.5), (" 2. ", 2.0), ("-1", -1.0), ("1e2", 100.0), ("", ABSENT), (" ", ABSENT)],
)
def test_a_number_in_a_query_must_match_completely(text: str, number: object) -> None:
    assert read_query(Number(), text) == number


@pytest.mark.parametrize("text", ["x", ".5x", "0.5 0.6", "0x10", "nan", "inf", "--1", "1e", "٣"])
def test_an_invalid_number_in_a_query_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="n must be a number") as refused:
        read_query(Number(), text)
    assert refused.value.field == "n"


@pytest.mark.parametrize("text", ["yes", "maybe", "2", "truee", "y"])
def test_an_invalid_boolean_in_a_query_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="n must be a boolean") as refused:
        read_query(Flag(), text)
    assert refused.value.field == "n"


@pytest.mark.parametrize(("text", "flag"), [("1", True), ("TRUE", True), ("0", False), ("false", False), ("", ABSENT)])
def test_a_boolean_in_a_query_has_every_documented_spelling(text: str, flag: object) -> None:
    assert read_query(Flag(), text) is flag


def test_a_blank_flag_in_a_body_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="n must be a boolean"):
        read(Flag(), "")


@pytest.mark.parametrize(
    ("text", "number", "warnings"),
    [
        ("12abc", 12, []),
        ("500", 100, []),
        ("", ABSENT, []),
        ("abc", 10, ["n is not an integer; the default 10 was used"]),
        (".5", 10, ["n is not an integer; the default 10 was used"]),
    ],
)
def test_an_integer_in_a_query_is_parsed_leniently_and_a_default_causes_a_warning(
    text: str, number: object, warnings: list[str]
) -> None:
    told: list[str] = []
    assert read_query(Clamped(low=1, high=100), text, default=10, warnings=told) == number
    assert told == warnings


def test_a_query_number_beyond_a_double_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="finite"):
        read_query(Number(), "9e999")


def test_text_is_sanitized() -> None:
    assert read(Text(), " b\0c ") == "bc"
    assert read(Text(), "\0") is ABSENT


@pytest.mark.parametrize(("name", "limit"), [("tags", 101), ("long", 501)])
def test_tags_are_bounded(name: str, limit: int) -> None:
    tags = [f"t{n}" for n in range(limit)] if name == "tags" else ["x" * limit]
    with pytest.raises(InvalidRequest, match="tags must be at most"):
        read(Tags(), tags)


@pytest.mark.parametrize("tags", ["," * 4_000_000, "a," * 2_000_000, " " * 60_000, ["," * 60_000], ["a"] * 50_000])
def test_oversized_tags_are_refused_without_splitting(tags: object) -> None:
    with pytest.raises(InvalidRequest, match="tags must be at most"):
        read(Tags(), tags)


def test_a_hundred_tags_of_full_length_are_read_from_a_string_and_from_an_array() -> None:
    tags = tuple(f"{n:03}".ljust(500, "x") for n in range(100))
    assert read(Tags(), ",".join(tags)) == tags
    assert read(Tags(), list(tags)) == tags
    assert read(Tags(), "a,b," * 12_000) == ("a", "b")


@pytest.mark.parametrize(("text", "position"), [("7", 7), (" 7 ", 7), ("9" * 16, 100), ("", ABSENT)])
def test_a_cursor_is_an_integer_or_absent(text: str, position: object) -> None:
    assert read_query(Cursor(high=100), text) == position


@pytest.mark.parametrize("text", ["7x", "x", "-1", "1.5", "9" * 17])
def test_an_invalid_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="n must be an integer"):
        read_query(Cursor(high=100), text)


def declared_types(kind: Any) -> Iterator[FieldType]:
    """Yield the field types in an annotation."""
    yield from (each for each in getattr(kind, "__metadata__", ()) if isinstance(each, FieldType))
    for part in get_args(kind):
        yield from declared_types(part)


def test_a_text_is_judged_as_it_was_sent_as_its_schema_says() -> None:
    requests = {operation.request for operation in OPERATIONS} | {ImportedLine}
    hints = [hint for request in requests for hint in get_type_hints(request, include_extras=True).values()]
    kinds = {kind for hint in hints for kind in declared_types(hint) if "maxLength" in kind.schema}
    assert len(kinds) > 10
    for kind in kinds:
        for text in (" ", "\0", "\n"):
            too_long = text + "x" * kind.schema["maxLength"]
            with pytest.raises(InvalidRequest):
                read(kind, too_long)
