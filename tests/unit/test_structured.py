"""Reading ``structured`` of a remember: its forms, its bounds, and the path of what is wrong.

Source: docs/decisions.md 67.
"""

from __future__ import annotations

from typing import Any

import pytest

from signet_actors.errors import InvalidRequest
from signet_actors.operations.remember import RememberRequest
from signet_actors.operations.request_reader import read_request
from signet_actors.operations.structured import NOT_AN_OBJECT, StatedAttribute, StatedEntity, read_structured


def read(value: Any) -> Any:
    request = read_request(RememberRequest, body={"content": "x", "structured": value}, now_ms=0, warnings=[])
    return request.structured


@pytest.mark.parametrize("value", ["text", None, [], {}, 3, {"other": []}])
def test_what_is_no_object_with_arrays_is_refused(value: Any) -> None:
    with pytest.raises(InvalidRequest, match=NOT_AN_OBJECT):
        read(value)


@pytest.mark.parametrize("name", ["entities", "aspects", "hints"])
@pytest.mark.parametrize("value", ["text", None, {}, 3])
def test_each_part_must_be_an_array(name: str, value: Any) -> None:
    with pytest.raises(InvalidRequest, match=rf"structured\.{name} must be an array") as refused:
        read({name: value})
    assert refused.value.field == f"structured.{name}"


def test_triples_and_names_in_both_spellings() -> None:
    triple = {"source": "Signet", "relationship": "uses", "target": "ZeroMQ", "confidence": 0.5}
    found = read({"entities": [{**triple, "sourceType": "project"}, {**triple, "source_type": "project"},
                               {"name": "Ada", "type": "person"}]})  # fmt: skip
    stated = StatedEntity(name="Signet", type="project", relationship="uses", target="ZeroMQ", confidence=0.5)
    assert found.entities == (stated, stated, StatedEntity(name="Ada", type="person"))


def test_attributes_as_texts_and_as_objects_in_both_spellings() -> None:
    rule = {"kind": "constraint", "groupKey": "g", "claim_key": "c", "importance": 1, "confidence": 0}
    first = {"entityName": "Signet", "name": "Store", "attributes": ["one", {"value": "two", **rule}]}
    second = {"entity": "Signet", "aspect": "Store", "attributes": [{"content": "two", **rule}]}
    found = read({"aspects": [first, second]})
    two = StatedAttribute(
        content="two", kind="constraint", group_key="g", claim_key="c", importance=1.0, confidence=0.0
    )
    assert [aspect.attributes for aspect in found.aspects] == [(StatedAttribute(content="one"), two), (two,)]
    assert {(aspect.entity, aspect.name) for aspect in found.aspects} == {("Signet", "Store")}


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"entities": ["Ada"]}, "structured.entities[0]"),
        ({"entities": [{}]}, "structured.entities[0].name"),
        ({"entities": [{"name": "A"}]}, "structured.entities[0].name"),
        ({"entities": [{"name": 3}]}, "structured.entities[0].name"),
        ({"entities": [{"source": "Ada", "target": "Bob"}]}, "structured.entities[0].relationship"),
        ({"entities": [{"source": "Ada", "relationship": "knows"}]}, "structured.entities[0].target"),
        (
            {"entities": [{"name": "Ada"}, {"source": "Ada", "relationship": "knows", "target": "B"}]},
            "structured.entities[1].target",
        ),
        (
            {"entities": [{"source": "Ada", "relationship": "knows", "target": "Bob", "confidence": 1.1}]},
            "structured.entities[0].confidence",
        ),
        ({"aspects": [{"aspect": "a"}]}, "structured.aspects[0].entity"),
        ({"aspects": [{"entity": "Ada"}]}, "structured.aspects[0].aspect"),
        ({"aspects": [{"entity": "Ada", "aspect": "a", "attributes": "x"}]}, "structured.aspects[0].attributes"),
        (
            {"aspects": [{"entity": "Ada", "aspect": "a", "attributes": [{}]}]},
            "structured.aspects[0].attributes[0].content",
        ),
        (
            {"aspects": [{"entity": "Ada", "aspect": "a", "attributes": ["x", {"content": "y", "kind": "rule"}]}]},
            "structured.aspects[0].attributes[1].kind",
        ),
        (
            {"aspects": [{"entity": "Ada", "aspect": "a", "attributes": [{"content": "y", "importance": True}]}]},
            "structured.aspects[0].attributes[0].importance",
        ),
        ({"hints": ["", "x"]}, "structured.hints[0]"),
        ({"hints": ["x" * 501]}, "structured.hints[0]"),
        ({"hints": ["x"] * 21}, "structured.hints"),
        ({"entities": [{"name": "Ada"}] * 51}, "structured.entities"),
        ({"aspects": [{"entity": "Ada", "aspect": "a", "attributes": []}] * 51}, "structured.aspects"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_its_path(value: Any, path: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read(value)
    assert refused.value.field == path
    assert refused.value.detail.startswith(path)


def test_at_most_200_attributes_in_all_aspects() -> None:
    aspect = {"entity": "Ada", "aspect": "a", "attributes": ["x"] * 100}
    assert len(read_structured({"aspects": [aspect, aspect]}).aspects) == 2
    with pytest.raises(InvalidRequest, match="at most 200 attributes"):
        read_structured({"aspects": [aspect, aspect, {**aspect, "attributes": ["x"]}]})
