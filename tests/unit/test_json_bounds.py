"""Values of a JSON text are counted outside strings, wherever the parts are cut in which it is read."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain import json_bounds
from signet_actors.domain.json_bounds import MAX_VALUES, has_too_many_values

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_VALUES = st.recursive(
    st.integers() | st.text(alphabet='a,[{"\\'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='a,"\\'), inner),
    max_leaves=30,
)


@given(_VALUES, st.integers(2, 40))
def test_the_count_does_not_depend_on_the_parts(value: Any, part: int) -> None:
    text = json.dumps(value)
    count = sum(_STRING.sub("", text).count(mark) for mark in ",[{")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_bounds, "_PART_BYTES", part)
        assert not has_too_many_values(text.encode(), count)
        assert count == 0 or has_too_many_values(text.encode(), count - 1)


def test_a_long_text_full_of_commas_and_brackets_is_one_value() -> None:
    assert not has_too_many_values(json.dumps({"content": '[{\\",' * 1_000_000}).encode())
    assert has_too_many_values(b"[" + b"[]," * MAX_VALUES + b"1]")
