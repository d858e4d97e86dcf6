"""An MCP server with the tools of ``operations/tools.py``, memories and digests of sessions as resources, and a prompt.

It holds no state of a client. A call of a tool becomes a request of an operation, which the gateway performs within its
process and ``signet mcp`` over HTTP. An error that a model can act on is a result with ``isError``.

Importing this module takes about a second and 38 MB, so callers import it when a client has come.
Source: docs/compatibility.md "MCP"; docs/decisions.md 61; Model Context Protocol, 2026-07-28 and 2025-11-25.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import mcp_types as types
from mcp.server import CacheHint, NotificationOptions, Server, ServerRequestContext
from mcp.server.caching import CacheableMethod
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError

import signet_actors
from signet_actors.domain.normalization import collapsed
from signet_actors.domain.session_inject import harmless
from signet_actors.domain.timestamps import local_time
from signet_actors.errors import CHUNK_EXISTS, ErrorCode, InvalidRequest, SignetError
from signet_actors.features.checkpoints.api import LIST_SESSION
from signet_actors.mcp.declared import CACHE_MS, INSTRUCTIONS, MEMORY_URI, NAME, PROMPT, SESSION_URI, TITLE, listed
from signet_actors.operations.memories import GET_MEMORY
from signet_actors.operations.operation import Operation, Tool
from signet_actors.operations.recall import RECALL
from signet_actors.operations.request_path import InvalidPathValue
from signet_actors.operations.tools import TOOLS, ToolRequest, for_model, tool_request

UNCHANGING: Final[tuple[CacheableMethod, ...]] = (
    *("server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"),
)
"""Methods whose results change only with another version of the daemon."""
MAX_REPLY_BYTES: Final = 1_000_000
"""A model cannot read more, and the gateway would do nothing else while it encodes an answer of 8 MB for it."""
LAST_CHECKPOINT: Final = Tool(
    name="session_digest",
    title="Digest of a session",
    description="",
    fields={"session_key": "", "limit": ""},
    renamed={"key": "session_key"},
)
"""How a resource reads the last checkpoint of a session. It is no tool that models are offered."""

ADVICE: Final[Mapping[str, str]] = {
    ErrorCode.NOT_FOUND: "the results of memory_search and memory_list have the ids that exist",
    ErrorCode.BUSY: "nothing was applied; try again in a moment",
    ErrorCode.UNAVAILABLE: "nothing was applied; try again in a moment",
    ErrorCode.NOT_APPLIED: "nothing was applied; try again in a moment",
    ErrorCode.RATE_LIMITED: "nothing was applied; try again in a minute",
    ErrorCode.OUTCOME_UNKNOWN: "it may have been applied: look with memory_search before you repeat it",
    ErrorCode.STORAGE_FULL: "nothing was applied; tell the user that the disk is full",
    ErrorCode.MUTATIONS_FROZEN: "nothing was applied; the user has switched changes off, searching still works",
}
"""What a model can do about an error, by its code."""
STATUS_ADVICE: Final[Mapping[str, str]] = {
    "already_deleted": "nothing is left to do",
    "pinned_requires_force": "only the user can forget it: signet forget ID --force",
    "duplicate_content_hash": "another memory says the same: forget one of the two",
}
"""The same by the ``status`` of a refused change, which takes precedence."""
DETAIL_ADVICE: Final[Mapping[str, str]] = {
    CHUNK_EXISTS: "nothing was stored, because a part of the text is a memory already: find it with"
    " memory_search; then change it with memory_modify, or forget it with whole and store the text again"
}
"""The same by the text of an error that has neither."""


class Performed(NamedTuple):
    """The reply to a request: its HTTP status and its body, a JSON object."""

    status: int
    body: bytes


Perform = Callable[[ToolRequest, ServerRequestContext[Any]], Awaitable[Performed]]
"""Performs a request for the client of the context. Raises SignetError."""


class MemoryServer(Server[Any]):
    """The SDK's server, which reports ``listChanged`` for tools to clients of the handshake specifications."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return the reply to ``initialize``."""
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


def make_server(perform: Perform) -> Server[Any]:
    """Return a server whose requests ``perform`` performs."""
    handlers = _Handlers(perform)
    return MemoryServer(
        NAME,
        version=signet_actors.__version__,
        title=TITLE,
        instructions=INSTRUCTIONS,
        cache_hints=dict.fromkeys(UNCHANGING, CacheHint(ttl_ms=CACHE_MS, scope="public")),
        get_tool_input_schema=handlers.schemas.get,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )


class _Handlers:
    """The handlers of the methods. None keeps anything between two requests."""

    def __init__(self, perform: Perform) -> None:
        self._perform = perform
        self._tools = types.ListToolsResult.model_validate(listed("tools/list"))
        self.schemas = {tool.name: tool.input_schema for tool in self._tools.tools}

    async def list_tools(
        self, _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return self._tools

    async def call_tool(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        found = TOOLS.get(params.name)
        if found is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:80]}")
        try:
            reply = await self._reply(*found, params.arguments or {}, context)
        except SignetError as error:
            return _text_result(f"{params.name} failed: {_explained(error, found[0])}", is_error=True)
        text = json.dumps(reply, ensure_ascii=False, separators=(",", ":"))
        return _text_result(text, is_error=False, structured_content=reply)

    async def list_resources(
        self, _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult.model_validate(listed("resources/list"))

    async def list_resource_templates(
        self, _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult.model_validate(listed("resources/templates/list"))

    async def read_resource(
        self, context: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        if uri.startswith(MEMORY_URI):
            text = await self._memory(unquote(uri.removeprefix(MEMORY_URI)), context)
        elif uri.startswith(SESSION_URI):
            text = await self._digest(unquote(uri.removeprefix(SESSION_URI)), context)
        else:
            raise MCPError(types.INVALID_PARAMS, "Resource not found")
        contents = types.TextResourceContents(uri=params.uri, mime_type="text/plain", text=text)
        return types.ReadResourceResult(contents=[contents])

    async def _memory(self, id_: str, context: ServerRequestContext[Any]) -> str:
        tool, operation = _tool_of(GET_MEMORY)
        try:
            memory = await self._reply(tool, operation, {"id": id_}, context)
        except SignetError as error:
            raise _as_protocol_error(error, tool) from error
        return str(memory["content"])

    async def _digest(self, session_key: str, context: ServerRequestContext[Any]) -> str:
        try:
            arguments = {"session_key": session_key, "limit": 1}
            found = await self._reply(LAST_CHECKPOINT, LIST_SESSION, arguments, context)
        except SignetError as error:
            raise _as_protocol_error(error, LAST_CHECKPOINT) from error
        if not found["checkpoints"]:
            raise MCPError(types.INVALID_PARAMS, "Resource not found: the session has no checkpoint")
        return str(found["checkpoints"][0]["digest"])

    async def list_prompts(
        self, _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult.model_validate(listed("prompts/list"))

    async def get_prompt(
        self, context: ServerRequestContext[Any], params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        if params.name != PROMPT:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name[:80]}")
        question = (params.arguments or {}).get("question", "")
        tool, operation = _tool_of(RECALL)
        try:
            found = await self._reply(tool, operation, {"query": question, "min_relevance": 0.5}, context)
        except SignetError as error:
            raise _as_protocol_error(error, tool) from error
        lines = [
            f"- {harmless(collapsed(row['content']))} ({local_time(row['created_at']).date()}, id {row['id']})"
            for row in found["results"]
        ]
        text = "\n".join(
            ["The memory has this about the question:", *lines] if lines else ["The memory has nothing about it."]
        )
        content = types.TextContent(type="text", text=f"{question}\n\n{text}")
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])

    async def _reply(
        self, tool: Tool, operation: Operation[Any], arguments: Mapping[str, Any], context: ServerRequestContext[Any]
    ) -> dict[str, Any]:
        """Return the reply to a call of the tool. Raises SignetError."""
        request = tool_request(tool, operation, arguments)
        performed = await self._perform(request, context)
        if len(performed.body) > MAX_REPLY_BYTES and not operation.has_effect:
            raise ReplyTooLarge(f"the reply has {len(performed.body) / 1e6:.1f} MB, and 1 MB is the limit")
        body: dict[str, Any] = json.loads(performed.body)
        if performed.status >= 400:
            raise Refused(body)
        if request.warnings:
            body["warnings"] = [*body.get("warnings", ()), *request.warnings]
        return for_model(tool, body)


class ReplyTooLarge(SignetError):
    """The reply is too large for a model."""

    code = ErrorCode.PAYLOAD_TOO_LARGE
    remedy = "Ask for less: lower `limit`, or find what you need with memory_search"


class Refused(SignetError):
    """The request was refused with the error body ``body``."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        code = body.get("code")
        super().__init__(
            str(body.get("error", "the daemon gave no reason")),
            code=ErrorCode(code) if code in set(ErrorCode) else ErrorCode.INTERNAL,
        )
        self.status = str(body.get("status", ""))


def _tool_of(operation: Operation[Any]) -> tuple[Tool, Operation[Any]]:
    assert operation.tool is not None
    return operation.tool, operation


def _text_result(text: str, *, is_error: bool, structured_content: Any = None) -> types.CallToolResult:
    content = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[content], is_error=is_error, structured_content=structured_content)


def _explained(error: SignetError, tool: Tool) -> str:
    """Return the text of the error with what a model can do about it."""
    code = ErrorCode.NOT_FOUND if isinstance(error, InvalidPathValue) else error.code
    advice = STATUS_ADVICE.get(getattr(error, "status", "")) or getattr(error, "remedy", "") or ADVICE.get(code)
    advice = DETAIL_ADVICE.get(error.detail, advice)
    if code is ErrorCode.NOT_FOUND and "id" not in tool.fields:
        advice = None  # it is about memories
    text = error.detail.rstrip(".")
    return f"{text}. {advice[0].upper()}{advice[1:].rstrip('.')}." if advice else text


def _as_protocol_error(error: SignetError, tool: Tool) -> MCPError:
    """Return the error for a method whose result cannot say that it failed."""
    callers = isinstance(error, InvalidRequest) or error.code in {ErrorCode.INVALID_REQUEST, ErrorCode.NOT_FOUND}
    return MCPError(types.INVALID_PARAMS if callers else types.INTERNAL_ERROR, _explained(error, tool))
