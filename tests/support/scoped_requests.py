"""Requests that are made from the declarations, for tests of what a token may see: a new operation is among them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import Flag, Names
from signet_actors.operations.operation import Operation
from signet_actors.operations.registry import OPERATIONS
from signet_actors.operations.request_path import PARAMETER
from signet_actors.operations.request_reader import RequestField, request_fields
from tests.support.tenants import AGENTS, PROJECTS, QUERY, USERS

_NAMES_ID = re.compile(r"(^|_)(id|ids|key|run|prefix|token|feedback|patches|file)$")
_SEARCHES = {"query", "q", "prompt", "user_prompt", "user_message", "content"}
_WORDS = re.compile("([A-Z])")
_SESSION_HEADERS = ("x-signet-session-key", "x-signet-session-id")


class Sent(NamedTuple):
    """A request, without what differs between callers."""

    name: str
    method: str
    target: str
    body: Any = None
    headers: Mapping[str, str] = {}


def fields_of(operation: Operation) -> list[RequestField]:
    return list(request_fields(operation.request))


def snake(name: str) -> str:
    return _WORDS.sub(r"_\1", name).lower()


def sent(operation: Operation, path: str, **given: Any) -> Sent:
    """Return a request with these fields. Those in ``_query`` and ``_headers`` stand there whatever the method is."""
    query, headers = dict(given.pop("_query", {})), dict(given.pop("_headers", {}))
    given = {**operation.example, **given}
    parameters = {name: str(given.pop(name, operation.example.get(name, "x"))) for name in PARAMETER.findall(path)}
    target = PARAMETER.sub(lambda found: quote(parameters[found[1]], safe=""), path)
    body: Any = None
    if operation.in_body:
        body = given
        headers.setdefault("Content-Type", "application/json")
    else:
        query |= {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}
    if query:
        target += "?" + urlencode(query)
    headers["Accept"] = "application/json, text/event-stream"
    return Sent(operation.name, operation.method, target, body, headers)


def told(operation: Operation, path: str) -> Iterator[Sent]:
    """Yield requests that ask for as much as the operation tells, as every agent, in every project, for every user."""
    fields = {field.spellings[0]: field for field in fields_of(operation)}
    searched = {name: QUERY for name in fields if snake(name) in _SEARCHES and name in operation.example}
    most = {name: 1000 for name in fields if name == "limit"}
    flags: dict[str, Any] = {name: True for name, field in fields.items() if isinstance(field.type, Flag)}
    wide = {**searched, **most}
    yield sent(operation, path)
    for more in ({}, flags, *({name: True} for name in flags)):
        yield sent(operation, path, **wide, **more)
    for name, values in (("project", PROJECTS[:2]), ("who", USERS), ("cwd", PROJECTS[:2])):
        for value in values if name in fields else ():
            yield sent(operation, path, **wide, **{name: value})
    for agent in AGENTS[:2]:
        yield sent(operation, path, **wide, agentId=agent)
        yield sent(operation, path, **wide, _query={"agent_id": agent})
        yield sent(operation, path, **wide, _headers={"x-signet-agent-id": agent})
        yield sent(operation, path, **wide, _headers={"x-signet-session-key": f"agent:{agent}:s"})
        yield sent(operation, path, **wide, _headers={"x-signet-session-id": f"session:agent:{agent}:s"})
        yield sent(operation, path, **wide, sessionKey=f"session: agent:{agent}:s")


def naming(operation: Operation, path: str, value: str, kind: str) -> Iterator[Sent]:
    """Yield requests that name ``value`` in each parameter that can hold an id."""
    for name in PARAMETER.findall(path):
        yield sent(operation, path, **{name: value})
    for field in fields_of(operation):
        if not _NAMES_ID.search(snake(field.name)) or field.name in {"agent_id", "harness_agent_id"}:
            continue
        name, example = field.spellings[0], operation.example.get(field.spellings[0])
        if not operation.in_body or example is None or isinstance(example, str | int):
            yield sent(operation, path, **{name: value})
        elif isinstance(example, dict):
            yield sent(operation, path, **{name: {value: 0.9}})
        else:
            yield sent(operation, path, **{name: [{**example[0], "id": value}]})
        if isinstance(field.type, Names):
            yield sent(operation, path, **{name: [value]})
        yield sent(operation, path, _query={field.spellings[-1]: value})
    for header in _SESSION_HEADERS if kind == "session" else ():
        yield sent(operation, path, _headers={header: value})


def as_tool_call(operation: Operation, request: Sent) -> Sent | None:
    """Return the request as a call of a tool over MCP, None if it has no tool."""
    if operation.tool is None:
        return None
    query = dict(parse_qsl(urlsplit(request.target).query))
    arguments = {snake(name): value for name, value in {**query, **(request.body or {})}.items()}
    call = {"name": operation.tool.name, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    return Sent(operation.name, "POST", "/mcp", body, request.headers)


def every() -> Iterator[tuple[Operation, str]]:
    """Yield what a token with a scope can ask for; health is the same for all, and an administrator has no scope."""
    for operation in OPERATIONS:
        if not operation.public and operation.permission is not Permission.ADMIN:
            yield from ((operation, path) for path in operation.paths)
