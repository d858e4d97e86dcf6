"""The tools that models are offered: the schema of each, and the request of an operation that a call becomes.

A call of a tool is a request like any other, so everything that holds for the operation holds for the tool. Arguments
have the names of the request Struct. What a tool does not offer is not passed on, and named in the warnings.

Source: docs/compatibility.md "MCP"; docs/decisions.md 40, 54, 61.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import PurePath
from typing import Any, Final, NamedTuple

import msgspec

from signet_actors.domain.temporal.phrases import limit_of
from signet_actors.errors import InvalidRequest
from signet_actors.operations import request_reader
from signet_actors.operations.field_types import parse_integer
from signet_actors.operations.operation import Operation, Tool
from signet_actors.operations.registry import OPERATIONS
from signet_actors.operations.remember import REMEMBER
from signet_actors.operations.request_path import PARAMETER, fill_path

MAX_PATH_CHARS: Final = 500
_LIMITS: Final = {"since": False, "until": True}
"""The arguments that name a time, and whether it is the end of the days that it names."""

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")


class ToolRequest(NamedTuple):
    """The request of ``operation`` that a call of its tool becomes.

    ``path``: the parameters of the path. ``body`` is None if the operation has none; then ``query`` has the fields.
    """

    operation: Operation[Any]
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Any] | None
    warnings: list[str]


TOOLS: Final[Mapping[str, tuple[Tool, Operation[Any]]]] = {
    operation.tool.name: (operation.tool, operation) for operation in OPERATIONS if operation.tool is not None
}


def input_schema(tool: Tool, operation: Operation[Any]) -> dict[str, Any]:
    """Return the JSON Schema of the tool's arguments."""
    documented = request_reader.request_schemas(operation.request)
    arguments = _path_arguments(tool, operation).values()
    schemas: dict[str, Mapping[str, Any]] = {name: {"type": "string"} for name in arguments}
    required = {*schemas, *tool.required}
    for field in _offered_fields(tool, operation):
        schemas[field.name] = documented[field.spellings[0]]
        if field.required:
            required.add(field.name)
    return {
        "type": "object",
        "properties": {name: _for_models(schemas[name], text) for name, text in tool.fields.items()},
        "required": [name for name in tool.fields if name in required],
    }


def _for_models(schema: Mapping[str, Any], description: str) -> dict[str, Any]:
    """Return the schema with one type, since some model servers refuse a choice of types."""
    branches = sorted(schema.get("anyOf", ()), key=lambda branch: branch.get("type") not in {"array", "boolean"})
    one = {**branches[0], **{name: value for name, value in schema.items() if name != "anyOf"}} if branches else schema
    one = {name: value for name, value in one.items() if name != "format"}  # of times, which may be words, too
    one = {"type": "string", **one} if "enum" in one else one
    return {**one, "description": description} if description else one


def tool_request(tool: Tool, operation: Operation[Any], arguments: Mapping[str, Any]) -> ToolRequest:
    """Return the request for a call of the tool. Raises InvalidRequest."""
    in_path = _path_arguments(tool, operation)
    path = {parameter: _path_value(name, arguments.get(name)) for parameter, name in in_path.items()}
    fill_path(operation.paths[0], path)  # refuses what cannot be an id
    offered = _offered_fields(tool, operation)
    known = {*in_path.values(), *(name for field in offered for name in field.spellings)}
    unknown = [name for name in arguments if name not in known]
    warnings = [
        f"unknown argument: {request_reader.shortened(name)}" for name in unknown[: request_reader.MAX_WARNINGS]
    ]
    if len(unknown) > request_reader.MAX_WARNINGS:
        warnings.append(request_reader.AND_MORE)
    fields = {
        name: value
        for name, value in arguments.items()
        if name in known and name not in in_path.values() and value is not None
    }
    if operation.in_body:
        return ToolRequest(operation, path, {}, {**tool.sends, **fields}, warnings)
    query = {name: _query_value(name, value) for name, value in fields.items()}
    query |= {name: str(most) for name, most in tool.most.items() if _exceeds(query.get(name, ""), most)}
    return ToolRequest(operation, path, query, None, warnings)


def with_origin(request: ToolRequest, *, harness: str | None, project: str | None) -> ToolRequest:
    """Return the request with the origin of a memory that it stores, as far as the model names none.

    The content is stored as it is: a model has fields for what the prefixes of a text say.

    ``project``: the directory in which the model works. In every request, its last part means the whole: a model says
    "shop" or "." for ``/home/you/shop``. A blank project says that there is none, so the memory holds everywhere; None
    says nothing.
    """
    fields = request.query if request.body is None else request.body
    name, given = PurePath(project or "").name, fields.get("project")
    if name and isinstance(given, str):
        if given.rstrip("/") == name:
            fields = {**fields, "project": project}
        elif given in (".", "..") or given.startswith(("./", "../")):
            fields = {**fields, "project": f"{project}/{given}"}
    if request.operation is REMEMBER:
        origin = {name: value for name, value in (("who", harness or None), ("project", project)) if value is not None}
        fields = {**origin, **{name: value for name, value in fields.items() if value is not None}, "prefixes": False}
    return request._replace(query=fields) if request.body is None else request._replace(body=fields)


def with_times(request: ToolRequest, now: datetime) -> ToolRequest:
    """Return the request with the moments that its dates and phrases mean in the time zone of ``now``."""
    fields = request.query if request.body is None else request.body
    named = {
        name: moment
        for name, end in _LIMITS.items()
        if isinstance(text := fields.get(name), str)
        and len(text) <= MAX_PATH_CHARS
        and (moment := limit_of(text, now, end=end)) is not None
    }
    fields = {**fields, **named}
    return request._replace(query=fields) if request.body is None else request._replace(body=fields)


def for_model(tool: Tool, reply: dict[str, Any]) -> dict[str, Any]:
    """Return what a model reads of the reply to a call."""
    if not tool.shown:
        return reply
    told = {
        name: [_telling(row, members) for row in reply[name]] if members else reply[name]
        for name, members in (*tool.shown.items(), ("warnings", ()))
        if reply.get(name) is not None
    }
    return _telling(told, (*told,))


def _telling(row: Mapping[str, Any], members: tuple[str, ...]) -> dict[str, Any]:
    """Return these members of the row as far as they say something. A number with a fraction does if it is 0, too."""
    return {name: row[name] for name in members if row.get(name) or isinstance(row.get(name), list | float)}


def _path_arguments(tool: Tool, operation: Operation[Any]) -> dict[str, str]:
    return {name: tool.renamed.get(name, name) for name in PARAMETER.findall(operation.paths[0])}


def _offered_fields(tool: Tool, operation: Operation[Any]) -> list[request_reader.RequestField]:
    request: type[msgspec.Struct] = operation.request
    return [field for field in request_reader.request_fields(request) if field.name in tool.fields]


def _path_value(name: str, value: Any) -> str:
    """Return the value as a parameter of a path, which holds at least one character, and no control characters."""
    if value is None or value == "":
        raise InvalidRequest(f"{name} is required", field=name)
    if not isinstance(value, str):
        raise InvalidRequest(f"{name} must be a string", field=name)
    if len(value) > MAX_PATH_CHARS or _CONTROL.search(value):
        raise InvalidRequest(
            f"{name} must be at most {MAX_PATH_CHARS} characters without control characters", field=name
        )
    return value


def _exceeds(text: str, most: int) -> bool:
    """Return True if the operation would read the text as a number above ``most``."""
    return parse_integer(text, 0, 0, most + 1) > most


def _query_value(name: str, value: Any) -> str:
    """Return the value as it stands in a query."""
    match value:
        case bool():
            return "true" if value else "false"
        case str() | int() | float():
            return str(value)
        case list() if all(isinstance(item, str) for item in value):
            return ",".join(value)
        case _:
            raise InvalidRequest(f"{name} must be a string, a number, a boolean or a list of strings", field=name)
