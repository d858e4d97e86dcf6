"""The number of values of a JSON body is bounded before any of them is created.

Source: docs/security.md A12.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.json_bounds import MAX_VALUES
from signet_actors.errors import InvalidRequest
from signet_actors.gateway.http.request_texts import TooManyValues, decode_json


@pytest.mark.parametrize(
    "unit", [b"[]", b"{}", b"0", b'""', b'"a"', b"[[]]", b"null", b'{"a":1}', b'"\\""', b'"\\\\"', b'"[,{"']
)
def test_more_values_than_the_limit_are_refused(unit: bytes) -> None:
    with pytest.raises(TooManyValues, match="at most 50000 values"):
        decode_json(b'{"query":"x","tags":[' + b",".join([unit] * (MAX_VALUES + 1)) + b"]}")


def test_more_names_than_the_limit_are_refused() -> None:
    with pytest.raises(TooManyValues):
        decode_json(b"{" + b",".join(b'"k%x":0' % n for n in range(MAX_VALUES + 1)) + b"}")


@pytest.mark.parametrize("bracket", [b"[", b'{"a":'])
def test_deep_nesting_is_refused(bracket: bytes) -> None:
    for depth in (5_000, 500_000):
        with pytest.raises(InvalidRequest):
            decode_json(bracket * depth)


@pytest.mark.parametrize("part", ["a,", "[{", '",[', '\\",', "\\\\,", '\\\\",{', "\\", 'é,"[', "\n\t,"])
def test_a_long_text_may_contain_any_number_of_commas_and_brackets(part: str) -> None:
    body = {"content": part * 200_000, "tags": ["a", "b"]}
    assert decode_json(json.dumps(body).encode()) == body
    assert decode_json(json.dumps(body, ensure_ascii=False).encode()) == body


def test_the_largest_batch_of_patches_is_decoded() -> None:
    patch = {"id": "x" * 36, "content": 'a, [b], {c}, "d"\\' * 1000, "tags": ["t"] * 100, "reason": "r"}
    body = {"reason": "r", "patches": [patch] * 200}
    assert decode_json(json.dumps(body).encode()) == body


@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_a_body_with_a_long_text_is_decoded_completely(value: Any) -> None:
    body = {"text": ",[{" * 20_000, "value": value}
    raw = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    assert decode_json(raw) == json.loads(raw)
