"""The API document contains every route, and everything that it refers to."""

from __future__ import annotations

import asyncio
import re
import threading
import types
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec
import pytest

from signet_actors.gateway.http.openapi import DeclaredPath, for_openapi_30, openapi_document, operation_id
from signet_actors.gateway.http.route import HttpResponse
from signet_actors.gateway.routes import ROUTES, api_docs
from signet_actors.operations.registry import OPERATIONS
from tests.support.routes import plain_route

DOCUMENT = openapi_document(OPERATIONS)
OPEN_ROUTES = {
    "/page/{version}/{file}",
    "/api/auth/page-token",
    "/health",
    "/health/live",
    "/health/ready",
    "/",
    "/api/auth/whoami",
}


class Inner(msgspec.Struct):
    """A part of a body."""

    pair: tuple[int, str]
    kind: str = "x"


class Outer(msgspec.Struct):
    """A body with a nullable part."""

    inner: Inner | None = None
    count: int | None = None


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every mapping in ``value``."""
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from nodes(item)
    elif isinstance(value, list):
        for item in value:
            yield from nodes(item)


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def body_of(operation: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema and the example of the JSON object that is the body, or of each of its lines."""
    ((media_type, media),) = operation["requestBody"]["content"].items()
    if media_type == "application/json":
        return media["schema"], media["example"]
    assert (media_type, media["schema"]["type"]) == ("application/x-ndjson", "string")
    return media["x-signet-line"], msgspec.json.decode(media["example"])


def response_headers(path: str, method: str, status: str) -> set[str]:
    return set(DOCUMENT["paths"][path][method]["responses"][status]["headers"])


def test_every_route_is_in_the_document_once() -> None:
    assert sorted((method, path) for path, method, _ in operations()) == sorted(
        (route.operation.method, route.path) for route in ROUTES
    )


def test_no_two_routes_answer_the_same_request() -> None:
    shapes = [(route.operation.method, re.sub(r"\{\w+\}", "{}", route.path)) for route in ROUTES]
    assert len(shapes) == len(set(shapes))


def test_every_route_has_a_summary_and_documented_responses() -> None:
    for path, method, operation in operations():
        assert operation["summary"], f"{method} {path}"
        assert operation["tags"], f"{method} {path}"
        assert any(status.isdigit() for status in operation["responses"]), f"{method} {path}"
        assert {"4XX", "5XX"} <= set(operation["responses"]), f"{method} {path}"


def test_every_route_requires_a_permission_except_the_open_ones() -> None:
    open_routes = {route.path for route in ROUTES if route.operation.permission is None}
    assert {path for path in open_routes if not path.startswith(("/api/docs", "/api/openapi"))} <= OPEN_ROUTES


def test_operation_ids_are_unique() -> None:
    ids = [operation["operationId"] for _, _, operation in operations()]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name, re.IGNORECASE) for name in ids)


def test_path_parameters_are_declared() -> None:
    for path, method, operation in operations():
        declared = {entry["name"] for entry in operation["parameters"] if entry["in"] == "path"}
        assert declared == set(re.findall(r"\{(\w+)\}", path)), f"{method} {path}"


def test_parameters_are_declared_once() -> None:
    for path, method, operation in operations():
        names = [(entry["in"], entry["name"].lower()) for entry in operation["parameters"]]
        assert len(names) == len(set(names)), f"{method} {path}"


def test_every_reference_can_be_resolved() -> None:
    for document in (DOCUMENT, for_openapi_30(DOCUMENT)):
        for node in nodes(document):
            if "$ref" in node:
                prefix, _, name = node["$ref"].rpartition("/")
                section = prefix.removeprefix("#/components/")
                assert section in {"schemas", "headers"}
                assert name in document["components"][section]


def test_responses_with_a_memory_id_have_links_to_its_operations() -> None:
    by_id = {operation["operationId"]: (path, operation) for path, _, operation in operations()}
    linked = {}
    for path, method, operation in operations():
        for name, link in operation["responses"].get("200", {}).get("links", {}).items():
            target, described = by_id[link["operationId"]]
            declared = {entry["name"] for entry in described["parameters"]}
            assert set(link["parameters"]) <= declared, name
            linked.setdefault((method, path), set()).add(target)
    everything = {path for path, _, _ in operations() if path.startswith("/api/memory/{id}")}
    assert {"/api/memory/{id}", "/api/memory/{id}/history", "/api/memory/{id}/recover"} <= everything
    assert linked[("POST", "/api/memory/remember")] == everything
    without_id = {"/api/memory/{id}/history"}
    assert {path for _, path in linked} >= {"/api/memories", "/api/memory/recall", *everything} - without_id, (
        "a path below /api/memory/{id} whose replies have no id of a memory belongs into without_id"
    )


def test_every_operation_with_required_fields_has_an_example_of_them() -> None:
    for path, method, operation in operations():
        for parameter in operation["parameters"]:
            assert "example" in parameter or not parameter["required"], f"{method} {path} {parameter['name']}"
        if "requestBody" in operation:
            reference, example = body_of(operation)
            schema = DOCUMENT["components"]["schemas"][reference["$ref"].rpartition("/")[2]]
            assert set(schema.get("required", ())) <= set(example) <= set(schema["properties"]), path


def test_a_body_is_required_where_one_of_its_fields_is() -> None:
    required = {
        path: operation["requestBody"]["required"]
        for path, method, operation in operations()
        if "requestBody" in operation and method == "POST"
    }
    assert required["/api/memory/remember"] is True
    assert required["/api/repair/retention-sweep"] is False


def test_a_field_that_may_be_in_the_query_is_not_required_in_the_body() -> None:
    assert "required" not in DOCUMENT["components"]["schemas"]["DeleteRequest"]
    assert DOCUMENT["components"]["schemas"]["PatchRequest"]["required"] == ["reason"]


def test_a_flag_is_documented_in_every_accepted_form() -> None:
    (flag, null) = DOCUMENT["components"]["schemas"]["ForgetRequest"]["properties"]["force"]["anyOf"]
    assert flag["anyOf"] == [{"type": "boolean"}, {"enum": [0, 1, "0", "1", "true", "false"]}]
    assert (flag["default"], null) == (False, {"type": "null"})


def test_bodies_are_objects_with_described_fields() -> None:
    for path, method, operation in operations():
        if "requestBody" in operation:
            schema, _ = body_of(operation)
            named = [node["$ref"] for node in nodes(schema) if "$ref" in node]
            assert named, f"{method} {path}"


def test_a_response_that_is_not_json_is_documented_with_its_media_type() -> None:
    content = DOCUMENT["paths"]["/metrics"]["get"]["responses"]["200"]["content"]
    assert list(content) == ["text/plain; version=0.0.4; charset=utf-8"]
    assert list(DOCUMENT["paths"]["/api/docs"]["get"]["responses"]["200"]["content"]) == ["text/html"]


def test_a_body_of_json_lines_is_documented_with_the_schema_of_a_line() -> None:
    (media,) = DOCUMENT["paths"]["/api/memory/import"]["post"]["requestBody"]["content"].items()
    assert media[0] == "application/x-ndjson"
    assert media[1]["x-signet-line"] == {"$ref": "#/components/schemas/ImportedLine"}
    assert "\n" not in media[1]["example"]


def test_every_response_has_the_header_with_the_trace_id() -> None:
    for path, method, operation in operations():
        for status in operation["responses"]:
            assert "x-signet-trace-id" in response_headers(path, method.lower(), status), f"{method} {path} {status}"
    assert DOCUMENT["components"]["headers"]["x-signet-trace-id"]["required"] is True


def test_the_responses_that_ask_for_a_retry_say_when() -> None:
    retried = {
        status
        for path, method, operation in operations()
        for status in operation["responses"]
        if "Retry-After" in response_headers(path, method.lower(), status)
    }
    assert retried == {"429", "503", "4XX", "5XX"}
    assert "Retry-After" in response_headers("/api/pipeline/requeue", "post", "429")
    assert "Retry-After" in response_headers("/api/memory/remember", "post", "503")


def test_a_response_without_a_field_for_warnings_has_them_in_a_header() -> None:
    assert "x-signet-warnings" in response_headers("/api/memory/export", "get", "200")
    assert "x-signet-warnings" in response_headers("/api/features", "get", "200")
    assert "x-signet-warnings" not in response_headers("/api/memory/remember", "post", "200")


def test_a_header_of_one_operation_is_documented_there() -> None:
    assert "x-signet-next-cursor" in response_headers("/api/memory/export", "get", "200")
    assert "x-signet-next-cursor" not in response_headers("/api/memories", "get", "200")


def test_the_document_can_be_encoded_as_json() -> None:
    assert msgspec.json.decode(msgspec.json.encode(DOCUMENT)) == DOCUMENT


@pytest.mark.parametrize(
    ("handler", "name"), [(api_docs.openapi, "_openapi_31_document"), (api_docs.docs_file, "_openapi_30_document")]
)
def test_a_document_is_built_beside_the_event_loop(
    handler: Callable[[Any], Awaitable[HttpResponse]], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway whose event loop stands still for ``supervision.heartbeatMs`` times ``liveness`` is replaced."""
    builders = []
    monkeypatch.setattr(api_docs, name, lambda: builders.append(threading.get_ident()) or b"{}")
    call = types.SimpleNamespace(path={"file": api_docs.OPENAPI_30_FILE})

    async def handle() -> HttpResponse:
        return await handler(call)

    assert asyncio.run(handle()).body == b"{}"
    assert threading.get_ident() not in builders
    assert len(builders) == 1


def test_the_3_0_document_uses_only_3_0_features() -> None:
    older = for_openapi_30(DOCUMENT)
    assert older["openapi"].startswith("3.0.")
    for node in nodes(older["components"]["schemas"]):
        assert node.get("type") != "null"
        assert node.get("required") != []  # OpenAPI 3.0.3, "Schema Object": JSON Schema Validation 00, 5.15
        assert not isinstance(node.get("type"), list)
        assert not {"const", "prefixItems"} & set(node) or "properties" not in node
        if "$ref" in node:
            assert set(node) == {"$ref"}


def test_a_nullable_reference_and_a_tuple_are_rewritten_for_3_0() -> None:
    async def handler(_: Any) -> HttpResponse:
        return HttpResponse({})

    route = plain_route("GET", "/x", handler, replies={200: Outer})
    assert operation_id(DeclaredPath(route.operation, route.path)) == "get_x"
    schemas = for_openapi_30(openapi_document([route.operation]))["components"]["schemas"]
    assert schemas["Outer"]["properties"]["inner"] == {
        "allOf": [{"$ref": "#/components/schemas/Inner"}],
        "nullable": True,
        "default": None,
    }
    assert schemas["Outer"]["properties"]["count"] == {"type": "integer", "nullable": True, "default": None}
    assert schemas["Inner"]["properties"]["pair"]["items"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}


def test_the_page_begins_with_the_three_first_operations_and_ends_with_the_aliases() -> None:
    document = openapi_document(OPERATIONS)
    sections = [tag["name"] for tag in document["tags"]]
    first = {
        path
        for path, methods in document["paths"].items()
        for operation in methods.values()
        if operation["tags"] == sections[:1]
    }
    assert first == {"/api/memory/remember", "/api/memory/recall", "/api/memories"}
    aliases = {path for operation in OPERATIONS for path in operation.paths[1:]}
    assert aliases
    for path in aliases:
        assert any(operation["tags"] == sections[-1:] for operation in document["paths"][path].values())
