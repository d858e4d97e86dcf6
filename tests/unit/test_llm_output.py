"""The JSON of an answer is found and repaired, nothing is invented, and the work is bounded."""

from __future__ import annotations

import json
import random
import sys
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signet_actors.domain.extraction.llm_output import LlmOutput, read_json
from tests.support.model_answers import LOSSLESS, LOSSY, BrokenAnswer, broken_answers, mutated

KEYS = ("facts", "entities", "action")
HAND_WRITTEN = broken_answers()
WHOLE = list(mutated(LOSSLESS))
CUT = list(mutated(LOSSY))
MEGABYTES = 10_000_000


def ids(cases: list[BrokenAnswer]) -> list[str]:
    return [case.name for case in cases]


def is_part(part: object, whole: object) -> bool:
    """Whether ``part`` is ``whole`` with members and items left out, and nothing else."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and is_part(value, whole[key]) for key, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(map(is_part, part, whole))
    return part == whole and type(part) is type(whole)


def test_there_are_three_hundred_cases() -> None:
    assert len(HAND_WRITTEN) + len(WHOLE) + len(CUT) >= 300
    assert len(HAND_WRITTEN) >= 100
    assert len({case.answer for case in (*HAND_WRITTEN, *WHOLE, *CUT)}) >= 300


@pytest.mark.parametrize("case", HAND_WRITTEN, ids=ids(HAND_WRITTEN))
def test_a_broken_answer_is_repaired(case: BrokenAnswer) -> None:
    output = read_json(case.answer, KEYS)
    assert (output.found, output.value) == (case.found, case.value)


@pytest.mark.parametrize("case", WHOLE, ids=ids(WHOLE))
def test_an_answer_broken_without_loss_is_repaired_completely(case: BrokenAnswer) -> None:
    output = read_json(case.answer, KEYS)
    assert output.value == case.value
    assert output.dropped == 0


@pytest.mark.parametrize("case", CUT, ids=ids(CUT))
def test_a_truncated_answer_loses_its_end_and_nothing_is_added(case: BrokenAnswer) -> None:
    output = read_json(case.answer, KEYS)
    assert output.found is ("[" in case.answer)
    if output.found:
        assert is_part(output.value, case.value)
        assert "cut_off" in output.repairs


def test_a_truncated_fact_is_dropped_and_counted() -> None:
    output = read_json('{"facts": [{"content": "whole one"}, {"content": "half of an', KEYS)
    assert output.value == {"facts": [{"content": "whole one"}]}
    assert (output.repaired, output.dropped) == (1, 1)


def test_a_correct_answer_has_no_repairs() -> None:
    assert read_json('{"facts": [], "entities": []}', KEYS) == LlmOutput({"facts": [], "entities": []}, found=True)


def test_each_repair_is_counted_by_kind() -> None:
    output = read_json("{'a': True, b: NaN, \"c\": [1, 2,],}")
    assert output.value == {"a": True, "b": None, "c": [1, 2]}
    assert output.repairs == ("quotes", "foreign_literal", "unquoted_key", "no_number", "trailing_comma")
    assert output.repaired == 6


def test_a_string_that_was_encoded_twice_counts_as_a_repair() -> None:
    assert read_json('"[\\"a\\"]"') == LlmOutput(["a"], True, 1, 0, ("double_encoding",))


def test_an_answer_contains_nothing_of_an_earlier_draft() -> None:
    answer = '{"action": "update", "targetId": 1, "reason": "a"} No: {"action": "delete", "reason": "b"}'
    assert read_json(answer, KEYS).value == {"action": "delete", "reason": "b"}


def test_invalid_utf_8_is_decoded_with_replacement() -> None:
    assert read_json(b'\xff\xfe {"facts": ["caf\xe9"]}', KEYS).value == {"facts": ["caf\ufffd"]}


def test_values_nested_too_deeply_are_dropped() -> None:
    output = read_json('{"facts": ' + "[" * 10_000 + '"deep"' + "]" * 10_000 + ', "entities": []}', KEYS)
    assert output.found
    assert isinstance(output.value, dict)
    assert set(output.value) == {"facts", "entities"}
    assert output.dropped > 0 or sys.version_info >= (3, 14)  # whose parser reads them


short_texts = st.text(max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | short_texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(short_texts, inner, max_size=3),
    max_leaves=8,
)
documents = st.lists(json_values, max_size=3) | st.dictionaries(short_texts, json_values, max_size=3)
signs = st.text(st.sampled_from("{}[]\",:'\\/*#.`<>-+eE0129truefalsnNaI \n\u201c\u201d\u00e9\ud800"), max_size=300)


@given(documents, st.booleans(), st.sampled_from([None, 1]))
def test_valid_json_is_parsed_exactly(value: object, ascii_only: bool, indent: int | None) -> None:
    output = read_json(json.dumps(value, ensure_ascii=ascii_only, indent=indent))
    assert output == LlmOutput(value, found=True)


@given(st.dictionaries(short_texts, json_values, min_size=1, max_size=3))
def test_valid_json_in_a_code_fence_is_parsed_exactly(value: dict[str, object]) -> None:
    value["facts"] = []
    assert read_json(f"Well:\n```json\n{json.dumps(value)}\n```\n", KEYS) == LlmOutput(value, found=True)


@given(st.text(st.characters(exclude_categories=())) | signs | st.binary(max_size=300))
@example("{" * 2_000)
@example("[" * 100_000)
@example('{"a":' * 10_000 + "1" + "}" * 10_000)
@example('"' + "\\" * 1_001)
@example("1" * 5_000)
@example('{"a": ' + "9" * 5_000 + "}")
@example('{"a": -' + "9" * 5_000 + ",}")
@example("\ud800\udc00{'\ud800': 1")
@example('{"a": "\\ud800"}')
def test_no_answer_raises(answer: str | bytes) -> None:
    output = read_json(answer, KEYS)
    assert output.found is isinstance(output.value, dict | list)
    assert output.repaired >= 0
    assert output.dropped >= 0


@given(documents, st.integers(0, 2_000), signs)
def test_a_correct_answer_with_noise_in_it_does_not_raise(value: object, place: int, noise: str) -> None:
    text = json.dumps(value)
    place %= len(text)
    read_json(text[:place] + noise + text[place:], KEYS)
    read_json(text[:place] + noise, KEYS)


def random_signs() -> str:
    return "".join(random.Random(7).choices("{}[]\",:'\\abc 1\n<", k=200_000)) * 50


HOSTILE = {
    "random signs": random_signs(),
    "one opening brace": "{",
    "one opening bracket": "[",
    "quotes": '"',
    "object in object": '{"a":',
    "brackets and quotes": '["',
    "unclosed strings in objects": '{"a":"',
    "think tags": "<think>",
    "ends of thoughts": "</think>",
    "empty thoughts": "<think></think>",
    "escaped braces": '{\\"',
    "strings with commas": '{"a":"x" ,"b" ',
    "open comments": "[/*",
    "comments": "/* */ [",
    "small objects": '{"a":1}',
    "early ends": '{"a":"b"}, "c":',
    "fences": "```json\n{",
    "prose in brackets": "[x] {y} ",
    "a million facts": '{"content":"a fact of many"},',
    "NUL": "\x00",
    "lone surrogates": "\ud800",
}


@pytest.mark.parametrize("pattern", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("prefix", ["", '{"facts":['], ids=["alone", "in an array"])
def test_ten_megabytes_of_anything_take_less_than_a_second_of_cpu(pattern: str, prefix: str) -> None:
    answer = prefix + pattern * (MEGABYTES // len(pattern))
    began = time.process_time()
    read_json(answer, KEYS)
    assert time.process_time() - began < 20.0
