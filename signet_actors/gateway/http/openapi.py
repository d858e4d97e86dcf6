"""The API document, OpenAPI 3.1, generated from the route table, so that no route can be missing.

Source: docs/architecture.md "Messages"; docs/decisions.md 40; docs/reliability.md R24.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Any, get_args

import msgspec

import signet_actors
from signet_actors.gateway.http.route import Parameter, Route
from signet_actors.operations.memories import MemoryListReply, MemoryReply
from signet_actors.operations.memory_changes import DeleteReply, PatchReply, RecoverReply
from signet_actors.operations.problem import Problem
from signet_actors.operations.recall import RecallReply
from signet_actors.operations.remember import RememberReply
from signet_actors.operations.request_reader import inner_structs, nullable_schemas

WARNINGS: Mapping[str, Any] = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Parts of the request that had no effect: unknown fields and parameters, and features that are not "
    "available yet. Absent if there are none.",
}
REF = "#/components/schemas/{name}"

DESCRIPTION = """\
Long-term memory for AI coding agents, on this machine only.

A 2xx response to a write means that it is on disk. 4xx: refused, not applied. 503: certainly not applied, retry after
`Retry-After`. 504: outcome unknown, retry with the same `Idempotency-Key`. 507: the disk is full, not applied.
A request with fields or parameters that have no effect is served; the response lists them in `warnings`
(or in the header `x-signet-warnings` if the response is not a JSON object).
Every error has the body `{"error", "code", "field"?}`; every response has the header `x-signet-trace-id`.
"""

AGENT_HEADERS: tuple[tuple[str, str], ...] = (
    ("x-signet-agent-id", "Agent whose memories are read or written; default `default`"),
    ("x-signet-actor", "Actor that the history records for a change"),
)
MEMORY_ID: Mapping[type, str] = {
    RememberReply: "/id",
    MemoryReply: "/id",
    PatchReply: "/id",
    DeleteReply: "/id",
    RecoverReply: "/id",
    MemoryListReply: "/memories/0/id",
    RecallReply: "/results/0/id",
}
"""JSON pointers to a memory's id in responses. The document links from there to the operations on a memory."""
MEMORY_PATH = "/api/memory/{id}"
IDEMPOTENCY_HEADER = ("Idempotency-Key", "A retry with the same key and body returns the first response")


def openapi_document(routes: Sequence[Route]) -> dict[str, Any]:
    """Return the document for ``routes``, ready for JSON."""
    schemas = _Schemas(routes)
    memory_routes = [route for route in routes if route.path == MEMORY_PATH or route.path.startswith(MEMORY_PATH + "/")]
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas, memory_routes)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Signet Actors", "version": signet_actors.__version__, "description": DESCRIPTION},
        "servers": [{"url": "/"}],
        "tags": [{"name": tag} for tag in dict.fromkeys(route.tag for route in routes)],
        "paths": paths,
        "components": {"schemas": schemas.components},
    }


def operation_id(route: Route) -> str:
    """Return a unique, readable name such as ``get_api_memory_by_id``."""
    path = re.sub(r"\{(\w+)\}", r"by_\1", route.path)
    return f"{route.method.lower()}_{re.sub(r'[^A-Za-z0-9]+', '_', path).strip('_')}".rstrip("_")


class _Schemas:
    """All body types of the table as JSON Schemas, each Struct once under ``components``."""

    def __init__(self, routes: Sequence[Route]) -> None:
        requests = [route.request for route in routes if route.request is not None and route.body is not None]
        described = list(dict.fromkeys(inner for request in requests for inner in inner_structs(request)))
        bodies = [Problem, *_body_types(routes), *described]
        types = list(dict.fromkeys(kind for body in bodies for kind in _alternatives(body)))
        schemas, self.components = msgspec.json.schema_components(types, ref_template=REF)
        self._of = dict(zip(types, schemas, strict=True))
        for kind in described:
            self.components[kind.__name__]["properties"] = nullable_schemas(kind)
        for kind in dict.fromkeys(kind for body in [Problem, *_reply_types(routes)] for kind in _alternatives(body)):
            name = self._of[kind].get("$ref", "").rpartition("/")[2]
            if name and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
                self.components[name]["properties"].setdefault("warnings", WARNINGS)

    def of(self, body: Any) -> dict[str, Any]:
        """Return the schema of ``body``, usually a reference; for a union, one branch per alternative."""
        branches: list[dict[str, Any]] = [self._of[kind] for kind in _alternatives(body)]
        return branches[0] if len(branches) == 1 else {"anyOf": branches}


def _alternatives(body: Any) -> tuple[Any, ...]:
    """Return the members of a union. msgspec describes only unions that it could decode, so they are described one by
    one.
    """
    return get_args(body) if isinstance(body, UnionType) else (body,)


def _body_types(routes: Sequence[Route]) -> Iterator[Any]:
    yield from (route.body for route in routes if route.body is not None)
    yield from _reply_types(routes)


def _reply_types(routes: Sequence[Route]) -> Iterator[Any]:
    for route in routes:
        for body in route.replies.values():
            if body is not None and body is not str and body is not bytes:
                yield body


def _operation(route: Route, schemas: _Schemas, memory_routes: Sequence[Route]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": operation_id(route),
        "summary": route.summary,
        "tags": [route.tag],
        "parameters": [*_path_parameters(route.path), *map(_query_parameter, route.query), *_header_parameters(route)],
        "responses": _responses(route, schemas, memory_routes),
        "x-signet-permission": route.permission.value if route.permission else None,
    }
    if route.description:
        operation["description"] = route.description
    if route.owner:
        operation["x-signet-owner"] = True
    if route.limit:
        operation["x-signet-rate-limit"] = route.limit
    if route.body is not None:
        operation["requestBody"] = {
            "required": route.method in {"POST", "PUT", "PATCH"}
            and any(field.required for field in msgspec.structs.fields(route.body)),
            "content": {"application/json": {"schema": schemas.of(route.body)}},
        }
    return operation


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", path)
    ]


def _query_parameter(parameter: Parameter) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "schema": {key: value for key, value in parameter.schema.items() if key != "description"}
        or {"type": parameter.kind},
    }
    description = parameter.schema.get("description", parameter.description)
    if description:
        described["description"] = description
    return described


def _header_parameters(route: Route) -> list[dict[str, Any]]:
    names = AGENT_HEADERS if route.permission is not None and route.path.startswith(("/api/mem", "/memory")) else ()
    if route.mutates:
        names = (*names, IDEMPOTENCY_HEADER)
    return [
        {"name": name, "in": "header", "required": False, "description": text, "schema": {"type": "string"}}
        for name, text in names
    ]


def _links(body: Any, memory_routes: Sequence[Route]) -> dict[str, Any]:
    """Return links from a response that contains a memory's id to every operation on a memory."""
    pointer = next((MEMORY_ID[kind] for kind in _alternatives(body) if kind in MEMORY_ID), None)
    if pointer is None:
        return {}
    return {
        operation_id(target): {
            "operationId": operation_id(target),
            "parameters": {"id": f"$response.body#{pointer}"},
            "description": target.summary,
        }
        for target in memory_routes
    }


def _responses(route: Route, schemas: _Schemas, memory_routes: Sequence[Route]) -> Mapping[str, Any]:
    responses: dict[str, Any] = {}
    for status, body in sorted(route.replies.items()):
        response: dict[str, Any] = {"description": _described(status)}
        if body is str or body is bytes:
            kinds = route.media_types or (("text/html",) if body is str else ("application/octet-stream",))
            response["content"] = {kind: {} for kind in kinds}
        elif body is not None:
            response["content"] = {"application/json": {"schema": schemas.of(body)}}
        links = _links(body, memory_routes)
        if links:
            response["links"] = links
        responses[str(status)] = response
    error = {"application/json": {"schema": schemas.of(Problem)}}
    responses["4XX"] = {"description": "Refused, not applied", "content": error}
    responses["5XX"] = {
        "description": "503: not applied, retry later. 504: outcome unknown. 507: disk full. "
        "500: internal error, see the log",
        "content": error,
    }
    return responses


def _described(status: int) -> str:
    if status < 300:
        return "Done"
    return {
        400: "Invalid request",
        404: "Not found",
        409: "Conflicts with the current state",
        503: "Temporarily not available",
    }.get(status, "Refused")


def for_openapi_30(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document in OpenAPI 3.0, for readers that do not support 3.1 (such as the bundled page)."""
    older: dict[str, Any] = _to_openapi_30({**document, "openapi": "3.0.3"})
    return older


def _to_openapi_30(node: Any) -> Any:
    if isinstance(node, list):
        return [_to_openapi_30(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: _to_openapi_30(item) for key, item in node.items()}
    if "const" in node:
        node["enum"] = [node.pop("const")]
    if "prefixItems" in node:
        node["items"] = {"anyOf": node.pop("prefixItems")}
    if node.get("items") is False:
        node["items"] = {}
    if "exclusiveMinimum" in node and not isinstance(node["exclusiveMinimum"], bool):
        node["minimum"], node["exclusiveMinimum"] = node["exclusiveMinimum"], True
    if node.get("type") == "null":
        return {"nullable": True, "enum": [None]}
    return _with_nullable(node)


def _with_nullable(node: dict[str, Any]) -> dict[str, Any]:
    """Turn a ``null`` branch into ``nullable``, and wrap a reference with siblings, since 3.0 ignores siblings."""
    null = {"nullable": True, "enum": [None]}
    if null in node.get("anyOf", ()):
        branches = [branch for branch in node.pop("anyOf") if branch != null]
        node = {**node, **branches[0]} if len(branches) == 1 else {**node, "anyOf": branches}
        node["nullable"] = True
    if None in node.get("enum", ()):
        node["nullable"] = True
    if "$ref" in node and len(node) > 1:
        node = {**node, "allOf": [{"$ref": node.pop("$ref")}]}
        node.pop("$ref", None)
    return node
