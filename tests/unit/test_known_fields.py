"""Fields of a request without effect, by the Struct that its route declares."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from signet_actors.gateway.routes import ROUTES
from signet_actors.operations.request_fields import CallerFields, not_yet
from signet_actors.operations.request_reader import MAX_WARNINGS, known_fields, object_warnings


class Inner(msgspec.Struct):
    start: str | None = None
    mode: Annotated[str | None, not_yet("timeline is not available yet", "timeline")] = None


class Outer(msgspec.Struct):
    content: str
    importance_min: float | None = None
    source_id: str | None = msgspec.field(default=None, name="sourceId")
    expand: Annotated[bool, not_yet("is not available yet")] = False
    time: Inner | None = None
    patches: list[Inner] | None = None


def warnings(**body: Any) -> list[str]:
    return object_warnings(known_fields(Outer, CallerFields), body)


@pytest.mark.parametrize(
    "name",
    [
        "content",
        "importance_min",
        "importanceMin",
        "sourceId",
        "source_id",
        "agentId",
        "agent_id",
        "session_key",
        "scope",
    ],
)
def test_a_declared_field_is_known_in_both_spellings(name: str) -> None:
    assert warnings(**{name: "x"}) == []


def test_an_unknown_field_is_reported_with_a_suggestion() -> None:
    assert warnings(contents="x") == ["unknown field: contents (did you mean content?)"]
    assert warnings(zzz=1) == ["unknown field: zzz"]


def test_a_field_of_an_inner_object_is_reported_with_its_path() -> None:
    assert warnings(time={"strat": 1}) == ["unknown field: time.strat (did you mean start?)"]
    assert warnings(patches=[{"start": "x"}, {"other": 1}, 5]) == ["unknown field: patches[1].other"]


@pytest.mark.parametrize(("value", "told"), [(True, True), ("x", True), ({}, True), (False, False), (None, False)])
def test_a_field_without_a_feature_causes_a_warning(value: Any, told: bool) -> None:
    assert warnings(expand=value) == (["expand is not available yet"] if told else [])


def test_an_unsupported_value_causes_a_warning() -> None:
    assert warnings(time={"mode": "timeline"}) == ["time.mode timeline is not available yet"]
    assert warnings(time={"mode": "filter"}) == []


def test_warnings_are_bounded_in_number_and_length() -> None:
    told = warnings(**{f"{'n' * 10_000}{number}": 1 for number in range(100)})
    assert len(told) == MAX_WARNINGS + 1
    assert told[-1] == "and more"
    assert max(map(len, told)) < 200


def test_every_declared_body_can_be_checked() -> None:
    for route in ROUTES:
        body = route.operation.body
        if body is not None:
            names = [field.encode_name for field in msgspec.structs.fields(body)]
            known = known_fields(body, CallerFields)
            assert set(names) <= known.names, route.path
