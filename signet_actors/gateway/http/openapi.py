"""The API document, OpenAPI 3.1, generated from the declared operations, so that none can be missing.

Source: docs/architecture.md "Messages"; docs/decisions.md 40; docs/reliability.md R24.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Any, Final, NamedTuple, get_args

import msgspec

import signet_actors
from signet_actors.operations.field_types import CallerField
from signet_actors.operations.headers import JSON_LINES, TRACE_HEADER, WARNINGS_HEADER
from signet_actors.operations.memories import MemoryListReply, MemoryReply
from signet_actors.operations.memory_changes import DeleteReply, PatchReply, RecoverReply
from signet_actors.operations.operation import Operation
from signet_actors.operations.problem import Problem
from signet_actors.operations.recall import RecallReply
from signet_actors.operations.remember import RememberReply
from signet_actors.operations.request_reader import inner_structs, nullable_schemas, request_fields, request_schemas

WARNINGS: Mapping[str, Any] = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Parts of the request that had no effect: unknown fields and parameters, and features that are not "
    "available yet. Absent if there are none.",
}
REF = "#/components/schemas/{name}"

DESCRIPTION = """\
Long-term memory for AI coding agents, on this machine only. Three requests are enough to begin with:

```sh
curl -sS 127.0.0.1:3850/api/memory/remember -d '{"content": "The staging database listens on port 5433"}'
curl -sS 127.0.0.1:3850/api/memory/recall -d '{"query": "port of the staging database", "limit": 3}'
curl -sS '127.0.0.1:3850/api/memories?limit=3'
```

A 2xx response to a write means that it is on disk. 4xx: refused, not applied. 503: certainly not applied, retry after
`Retry-After`. 504: outcome unknown, retry with the same `Idempotency-Key`. 507: the disk is full, not applied.
A request with fields or parameters that have no effect is served; the response lists them in `warnings`
(or in the header `x-signet-warnings` if the response is not a JSON object).
In local mode every caller of this machine may do everything. In the modes team and hybrid a token needs the permission
`x-signet-permission`, its limits must be among `x-signet-scoped-by`, and `x-signet-rate-limit` names its rate limit.
Every error has the body `{"error", "code", "field"?}`, or is a JSON-RPC error (only at `/mcp`); every response has the
header `x-signet-trace-id`.
"""

TOKEN: Final = {"type": "http", "scheme": "bearer", "description": "A token or an API key; not in local mode"}
FIRST_TAG: Final = "\u2605 Start here"
FIRST_OPERATIONS: Final = ("memories.remember", "memories.recall", "memories.list")
ALIAS_TAG: Final = "Aliases: other paths of the same operations"

AGENT_HEADERS: Final = (
    ("x-signet-agent-id", "Agent on whose behalf the caller acts; default: that of the session key, else `default`"),
    ("x-signet-session-key", "Session of the caller"),
)
AUTHOR_HEADER: Final = ("x-signet-actor", "Actor that the history records for a change")
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
LINES_EXTENSION: Final = "x-signet-line"
"""The schema of each line of a body of JSON Lines, for which OpenAPI 3.1 has no keyword."""
HEADERS: Final[Mapping[str, Mapping[str, Any]]] = {
    TRACE_HEADER: {
        "description": "Id of the request, under which the log has it",
        "required": True,
        "schema": {"type": "string"},
    },
    "Retry-After": {
        "description": "Seconds to wait before the request is sent again",
        "schema": {"type": "integer", "minimum": 1},
    },
    WARNINGS_HEADER: {
        "description": "Parts of the request that had no effect, as a JSON array of strings; absent if there are none",
        "schema": {"type": "string"},
    },
}
"""The headers of responses that several operations share."""
RETRIED: Final = ("429", "503", "4XX", "5XX")
"""Responses that may say when to try again."""
IDEMPOTENCY_HEADER: Final = ("Idempotency-Key", "A retry with the same key and body returns the first response")


class DeclaredPath(NamedTuple):
    """An operation at one of its paths."""

    operation: Operation[Any]
    path: str


def openapi_document(operations: Sequence[Operation[Any]]) -> dict[str, Any]:
    """Return the document for ``operations``, ready for JSON."""
    schemas = _Schemas(operations)
    routes = [DeclaredPath(operation, path) for operation in operations for path in operation.paths]
    memory_routes = [route for route in routes if route.path == MEMORY_PATH or route.path.startswith(MEMORY_PATH + "/")]
    paths: dict[str, dict[str, Any]] = {}
    tags = [operation.tag for operation in operations]
    for route in routes:
        paths.setdefault(route.path, {})[route.operation.method.lower()] = _operation(route, schemas, memory_routes)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Signet Actors", "version": signet_actors.__version__, "description": DESCRIPTION},
        "servers": [{"url": "/"}],
        "tags": [{"name": tag} for tag in dict.fromkeys([FIRST_TAG, *tags, ALIAS_TAG])],
        "paths": paths,
        "components": {"schemas": schemas.components, "headers": HEADERS, "securitySchemes": {"token": TOKEN}},
        "security": [{}, {"token": []}],
    }


def operation_id(route: DeclaredPath) -> str:
    """Return a unique, readable name such as ``get_api_memory_by_id``."""
    path = re.sub(r"\{(\w+)\}", r"by_\1", route.path)
    return f"{route.operation.method.lower()}_{re.sub(r'[^A-Za-z0-9]+', '_', path).strip('_')}".rstrip("_")


class _Schemas:
    """All body types of the table as JSON Schemas, each Struct once under ``components``."""

    def __init__(self, operations: Sequence[Operation[Any]]) -> None:
        requests = [operation.body for operation in operations if operation.body is not None]
        described = list(dict.fromkeys(inner for request in requests for inner in inner_structs(request)))
        replies = [Problem, *_reply_types(operations)]
        types = list(dict.fromkeys(kind for body in [*described, *replies] for kind in _alternatives(body)))
        schemas, components = msgspec.json.schema_components(types, ref_template=REF)
        self.components: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(components))  # tuples become arrays
        self._of = dict(zip(types, schemas, strict=True))
        for kind in described:
            self.components[kind.__name__]["properties"] = nullable_schemas(kind)
        for operation in operations:
            if operation.query_too and operation.body is not None:  # each field may be in the query instead
                schema = self.components[operation.body.__name__]
                schema["properties"] = nullable_schemas(operation.body, optional=True)
                schema.pop("required", None)
        for kind in dict.fromkeys(kind for body in replies for kind in _alternatives(body)):
            name = self._of[kind].get("$ref", "").rpartition("/")[2]
            if name and _is_struct(kind):
                self.components[name]["properties"].setdefault("warnings", WARNINGS)

    def of(self, body: Any) -> dict[str, Any]:
        """Return the schema of ``body``, usually a reference; for a union, one branch per alternative."""
        branches: list[dict[str, Any]] = [self._of[kind] for kind in _alternatives(body)]
        return branches[0] if len(branches) == 1 else {"anyOf": branches}


def _alternatives(body: Any) -> tuple[Any, ...]:
    """Return the members of a union; msgspec describes only unions that it could decode."""
    return get_args(body) if isinstance(body, UnionType) else (body,)


def _reply_types(operations: Sequence[Operation[Any]]) -> Iterator[Any]:
    for operation in operations:
        for body in operation.replies.values():
            if body is not None and body is not str and body is not bytes:
                yield body


def _operation(route: DeclaredPath, schemas: _Schemas, memory_routes: Sequence[DeclaredPath]) -> dict[str, Any]:
    operation = route.operation
    described: dict[str, Any] = {
        "operationId": operation_id(route),
        "summary": _summary(route),
        "tags": [_tag(route)],
        "parameters": [
            *_path_parameters(route),
            *(_query_parameters(operation) if operation.in_query else ()),
            *_header_parameters(operation),
        ],
        "responses": _responses(operation, schemas, memory_routes),
        "x-signet-permission": operation.permission.value if operation.permission else None,
    }
    if operation.scoped_by:
        described["x-signet-scoped-by"] = list(operation.scoped_by)
    if operation.description:
        described["description"] = operation.description
    if operation.owner_only:
        described["x-signet-owner"] = True
    if operation.owner_parts:
        described["x-signet-owner-parts"] = operation.owner_parts
    described["x-signet-served-by"] = operation.served_by
    if operation.rate:
        described["x-signet-rate-limit"] = operation.rate
    if operation.body is not None:
        described["requestBody"] = {
            "required": operation.method in {"POST", "PUT", "PATCH"}
            and any(field.required for field in msgspec.structs.fields(operation.body)),
            "content": _body_content(route, schemas.of(operation.body)),
        }
    return described


def _tag(route: DeclaredPath) -> str:
    """Return the section of the page: the first operations have one, and what has another path is in the last."""
    if route.path != route.operation.paths[0]:
        return ALIAS_TAG
    return FIRST_TAG if route.operation.name in FIRST_OPERATIONS else route.operation.tag


def _summary(route: DeclaredPath) -> str:
    operation = route.operation
    return operation.summary if route.path == operation.paths[0] else f"{operation.summary} (alias)"


def _path_names(path: str) -> list[str]:
    return re.findall(r"\{(\w+)\}", path)


def _path_parameters(route: DeclaredPath) -> list[dict[str, Any]]:
    example = route.operation.example
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}, "example": example[name]}
        for name in _path_names(route.path)
    ]


def _body_content(route: DeclaredPath, schema: dict[str, Any]) -> dict[str, Any]:
    names = _path_names(route.path)
    example = {name: value for name, value in route.operation.example.items() if name not in names}
    if route.operation.lines is None:
        return {"application/json": {"schema": schema, "example": example}}
    lines = {"type": "string", "description": "A JSON object in each line"}
    return {JSON_LINES: {"schema": lines, LINES_EXTENSION: schema, "example": msgspec.json.encode(example).decode()}}


def _query_parameters(operation: Operation[Any]) -> Iterator[dict[str, Any]]:
    """Yield the fields of the request that may be in the query. None is required that may be in the body instead."""
    request: type[msgspec.Struct] = operation.request
    schemas = request_schemas(request)
    for field in request_fields(request):
        if isinstance(field.type, CallerField) and not field.type.in_query:
            continue
        schema = dict(schemas[field.spellings[0]])
        description = schema.pop("description", None)
        parameter = {
            "name": field.spellings[0],
            "in": "query",
            "required": field.required and not operation.in_body,
            "schema": schema,
        }
        if description:
            parameter["description"] = description
        if not operation.in_body and field.spellings[0] in operation.example:
            parameter["example"] = operation.example[field.spellings[0]]
        yield parameter


def _header_parameters(operation: Operation[Any]) -> list[dict[str, Any]]:
    """Return the headers that say who makes the request, and the key of one that has an effect."""
    request: type[msgspec.Struct] = operation.request
    names: list[tuple[str, str]] = []
    if operation.has_effect or any(field.name == "agent_id" for field in request_fields(request)):
        names += AGENT_HEADERS
    if operation.has_effect:
        names.append(AUTHOR_HEADER)
    if operation.takes_key:
        names.append(IDEMPOTENCY_HEADER)
    return [
        {"name": name, "in": "header", "required": False, "description": text, "schema": {"type": "string"}}
        for name, text in names
    ]


def _links(body: Any, memory_routes: Sequence[DeclaredPath]) -> dict[str, Any]:
    """Return links from a response that contains a memory's id to every operation on a memory."""
    pointer = next((MEMORY_ID[kind] for kind in _alternatives(body) if kind in MEMORY_ID), None)
    if pointer is None:
        return {}
    return {
        operation_id(target): {
            "operationId": operation_id(target),
            "parameters": {"id": f"$response.body#{pointer}"},
            "description": _summary(target),
        }
        for target in memory_routes
    }


def _responses(
    operation: Operation[Any], schemas: _Schemas, memory_routes: Sequence[DeclaredPath]
) -> Mapping[str, Any]:
    responses: dict[str, Any] = {}
    for status, body in sorted(operation.replies.items()):
        response: dict[str, Any] = {"description": _described(status)}
        if body is str or body is bytes:
            kinds = operation.media_types or (("text/html",) if body is str else ("application/octet-stream",))
            response["content"] = {kind: {} for kind in kinds}
        elif body is not None:
            response["content"] = {"application/json": {"schema": schemas.of(body)}}
        response["headers"] = _response_headers(operation, str(status), body)
        links = _links(body, memory_routes)
        if links:
            response["links"] = links
        responses[str(status)] = response
    error = {"application/json": {"schema": schemas.of(Problem)}}
    responses["4XX"] = {
        "description": "Refused, not applied",
        "content": error,
        "headers": _response_headers(operation, "4XX", Problem),
    }
    responses["5XX"] = {
        "description": "503: not applied, retry later. 504: outcome unknown. 507: disk full. "
        "500: internal error, see the log",
        "content": error,
        "headers": _response_headers(operation, "5XX", Problem),
    }
    return responses


def _response_headers(operation: Operation[Any], status: str, body: Any) -> dict[str, Any]:
    """Return the headers of a response. Warnings are in one if the body is not an object with a field for them."""
    shared = [TRACE_HEADER]
    if status in RETRIED:
        shared.append("Retry-After")
    if body is not None and not any(_is_struct(kind) for kind in _alternatives(body)):
        shared.append(WARNINGS_HEADER)
    own = operation.reply_headers if status.startswith("2") else {}
    return {
        **{name: {"$ref": f"#/components/headers/{name}"} for name in shared},
        **{name: {"description": text, "schema": {"type": "string"}} for name, text in own.items()},
    }


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


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
    if node.get("required") == []:
        del node["required"]
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
