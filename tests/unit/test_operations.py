"""The operations are declared once, in one table, and the gateway serves each of them."""

from __future__ import annotations

from collections import Counter

import pytest

from signet_actors.errors import InvalidRequest
from signet_actors.gateway.http.openapi import openapi_document
from signet_actors.gateway.routes import ROUTES
from signet_actors.operations.field_types import CallerField, Given
from signet_actors.operations.operation import Effect, Operation
from signet_actors.operations.registry import OPERATIONS
from signet_actors.operations.request_reader import Items, inner_structs, read_request, request_fields
from signet_actors.operations.sessions import StrictFlag


def test_every_operation_of_http_is_served_once_at_each_of_its_paths() -> None:
    declared = Counter((operation.name, path) for operation in OPERATIONS for path in operation.paths)
    served = Counter((route.operation.name, route.path) for route in ROUTES if "http" in route.operation.surfaces)
    assert served == declared
    assert set(served.values()) == {1}
    assert {route.operation for route in ROUTES} == set(OPERATIONS)


def test_the_operations_are_in_the_order_of_the_api_document() -> None:
    assert list(dict.fromkeys(route.operation.name for route in ROUTES)) == [one.name for one in OPERATIONS]
    assert list(openapi_document(OPERATIONS)["paths"]) == list(
        dict.fromkeys(path for one in OPERATIONS for path in one.paths)
    )


def test_the_name_of_an_operation_is_a_subject_and_a_verb_and_unique() -> None:
    names = [operation.name for operation in OPERATIONS]
    assert len(names) == len(set(names))
    assert all(name.replace("_", "").replace(".", "", 1).isalpha() and name.count(".") == 1 for name in names)


OPEN = {
    "single memories and searches of them, which a token can limit": (
        "memories.facets",
        *("memories.list", "memories.most_used", "memories.find_by_prefix", "memories.get", "memories.history"),
        *("memories.patch", "memories.delete", "memories.recover", "memories.similar", "feedback.record"),
        *("embeddings.export", "runs.list", "runs.get", "pipeline.find_by_prefix", "changes.stream"),
        *("timeline.get", "timeline.export", "embeddings.projection"),
    ),
    "what memories say about entities, which are open like the memories": (
        *(f"entities.{verb}" for verb in ("list", "pinned", "health", "get", "aspects", "attributes", "dependencies")),
        *(f"entities.{verb}" for verb in ("pin", "unpin", "suppress", "unsuppress", "merge", "unmerge")),
        *(f"knowledge.{view}" for view in ("stats", "traversal_status", "expand", "entity", "aspects", "groups")),
        *(f"knowledge.{view}" for view in ("claims", "attributes", "tree", "neighbours", "hygiene", "communities")),
        *(f"knowledge.{view}" for view in ("impact", "path", "constellation")),
    ),
    "counts, states, settings without values of a person": (
        *("hooks.list_notifications", "hooks.list_skills", "hooks.synthesis_config", "pipeline.status"),
        *("diagnostics.get", "diagnostics.domain"),
        *("embeddings.status", "embeddings.health", "status.get", "status.features", "health.get", "health.live"),
        *("health.ready", "metrics.get", "harnesses.list", "auth.whoami"),
    ),
    "documents": ("page.index", "page.file", "api.document", "api.page", "api.file"),
    "only for a code that the owner was issued": ("auth.page_token",),
    "each request within it is checked": ("mcp.message",),
}
"""Operations whose whole reply any user of the machine may have, by the reason."""


def test_every_operation_says_what_another_user_of_the_machine_does_not_get() -> None:
    unsaid = {one.name for one in OPERATIONS if not one.owner_only and not one.owner_parts}
    how = "declare owner_only or owner_parts, or add the operation to OPEN below its reason"
    assert unsaid == {name for names in OPEN.values() for name in names}, how
    assert not [one.name for one in OPERATIONS if one.owner_only and one.owner_parts]


def test_what_has_an_effect_is_no_get() -> None:
    assert [one.name for one in OPERATIONS if one.effect is not Effect.NONE and one.method == "GET"] == []


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_each_field_of_a_request_can_be_parsed(operation: Operation) -> None:
    for kind in {*inner_structs(operation.request), *inner_structs(operation.lines or operation.request)}:
        assert [field.name for field in request_fields(kind)] == list(kind.__struct_fields__)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_value_of_a_wrong_type_is_refused_with_the_name_that_was_used(operation: Operation) -> None:
    for kind in inner_structs(operation.lines or operation.request):
        for field in request_fields(kind):
            # The gateway reads these for every operation, and a handler the items of an array and a flag that it
            # requires only of a known session.
            if not isinstance(field.type, CallerField | Items | StrictFlag):
                for name in field.spellings:
                    with pytest.raises(InvalidRequest) as refused:
                        field.type.read(Given(name, [{}], field.default, in_query=False, now_ms=0, warnings=[]))
                    assert refused.value.field == name


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_request_without_required_fields_may_be_empty(operation: Operation) -> None:
    if not any(field.required for field in request_fields(operation.request)):
        assert read_request(operation.request, body={}, now_ms=0, warnings=[]) == operation.request()
