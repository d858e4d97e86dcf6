"""The endpoint of the Model Context Protocol: JSON-RPC, whose methods and results that protocol defines.

Source: Model Context Protocol, 2026-07-28 "Streamable HTTP"; docs/compatibility.md "MCP"; docs/decisions.md 40, 61.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import CallerField
from signet_actors.operations.operation import BY_ALL, Effect, Operation
from signet_actors.operations.problem import Problem

INVALID_JSON: Final = "Parse error: Invalid JSON"
INVALID_MESSAGE: Final = "Parse error: Invalid JSON-RPC message"

_ESCAPE: Final = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def without_lone_surrogates(raw: bytes) -> bytes:
    """Return the JSON text with U+FFFD for each half of a surrogate pair.

    A program that cuts a text in the middle of an emoji leaves one. JSON permits it, but no parser here does, so the
    message could not be answered.
    """
    if b"\\ud" not in raw and b"\\uD" not in raw:
        return raw
    return _ESCAPE.sub(lambda found: b"\\ufffd" if found[1] else found[0], raw)


class McpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON-RPC message, which the handler and the SDK read."""

    jsonrpc: Annotated[str, CallerField(), Meta(description="2.0")]
    method: Annotated[str, CallerField(), Meta(description="Such as tools/list or tools/call")]
    id: Annotated[int | str | None, CallerField(), Meta(description="Absent in a notification")] = None
    params: Annotated[dict[str, Any] | None, CallerField(), Meta(description="As the method says")] = None


class McpError(msgspec.Struct, frozen=True):
    """Code and text of a JSON-RPC error."""

    code: int
    message: str
    data: Any = UNSET


class McpReply(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON-RPC reply: ``result`` or ``error``."""

    jsonrpc: str = "2.0"
    id: int | str | None
    result: dict[str, Any] | UnsetType = UNSET
    error: McpError | UnsetType = UNSET


MCP: Final[Operation[McpRequest, McpReply]] = Operation(
    name="mcp.message",
    summary="Model Context Protocol",
    tag="MCP",
    method="POST",
    paths=("/mcp",),
    request=McpRequest,
    example={"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    replies={200: McpReply, 202: None, 400: McpReply | Problem, 404: McpReply, 406: McpReply},
    permission=Permission.RECALL,
    scoped_by=BY_ALL,
    effect=Effect.MAYBE_MEMORIES,
    performs=True,
    surfaces=("http",),
    description="Streamable HTTP without sessions; the reply is JSON. `Accept` must name application/json and "
    "text/event-stream. Each tool is an operation of this document, with its permission. In the query or a header: "
    "`harness` (`x-signet-harness`), the author in the history; `workspace` (`x-signet-workspace`), the project of "
    "memories stored without one; `channel`, without effect.",
)
OPERATIONS: Final = (MCP,)
