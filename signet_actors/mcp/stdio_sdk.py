"""The part of the protocol on standard input and output that the SDK serves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import anyio
import mcp_types as types
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from anyio.to_thread import run_sync
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from signet_actors.mcp.declared import HANDSHAKE_VERSIONS
from signet_actors.mcp.server import Performed, make_server
from signet_actors.operations.mcp import INVALID_JSON, INVALID_MESSAGE
from signet_actors.operations.tools import ToolRequest

if TYPE_CHECKING:
    from signet_actors.mcp.stdio import Send

ROOTS_WAIT_S: Final = 1.0
"""A client that takes longer to say its roots has none, until it has answered."""
ROOTS_CHANGED: Final = "notifications/roots/list_changed"


def serve(lines: Iterator[bytes], send: Send, at_once: int, *, answered: bool, asks_roots: bool) -> None:
    """Serve until ``lines`` end. ``answered``: the first is a request that has its answer already."""
    anyio.run(_serve, lines, send, at_once, answered, asks_roots)


async def _serve(lines: Iterator[bytes], send: Send, at_once: int, answered: bool, asks_roots: bool) -> None:
    limiter = anyio.CapacityLimiter(at_once)
    roots = _Roots()

    async def perform(request: ToolRequest, context: Any) -> Performed:
        shown = await roots.of(context.session, outgoing) if asks_roots else ()
        # A cancelled call is not waited for: its request may still take effect, as after any lost connection.
        return await run_sync(send, request, shown, limiter=limiter, abandon_on_cancel=True)

    server = make_server(perform)
    sending, messages = anyio.create_memory_object_stream[SessionMessage | Exception]()
    answering, answers = anyio.create_memory_object_stream[SessionMessage]()
    text: Any = _texts(lines)
    async with stdio_server(stdin=text) as (incoming, outgoing), anyio.create_task_group() as tasks:
        tasks.start_soon(_pass_messages, incoming, sending, outgoing, roots)
        tasks.start_soon(_pass_answers, answers, outgoing, answered)
        await server.run(messages, answering, server.create_initialization_options())


class _Roots:
    """The roots of the client, which the first call asks for, and the first one after each change.

    The SDK would refuse all of an answer for one root that is no file, so the answer is read here.
    """

    def __init__(self) -> None:
        self._uris: Sequence[str] = ()
        self._asked = 0
        self._is_asked = False
        self._deadline = 0.0
        self._answered = anyio.Event()

    @property
    def _id(self) -> str:
        return f"roots-{self._asked}"

    async def of(self, session: Any, outgoing: Any) -> Sequence[str]:
        """Return the URIs of the roots; none if the client has none or does not answer in time."""
        capabilities = session.client_capabilities
        if capabilities is None or capabilities.roots is None or session.protocol_version not in HANDSHAKE_VERSIONS:
            return ()
        if not self._is_asked:
            self._is_asked = True
            self._deadline = anyio.current_time() + ROOTS_WAIT_S
            self._asked += 1
            self._uris = ()
            if self._answered.is_set():
                self._answered = anyio.Event()
            await outgoing.send(SessionMessage(types.JSONRPCRequest(jsonrpc="2.0", id=self._id, method="roots/list")))
        with anyio.CancelScope(deadline=self._deadline):
            await self._answered.wait()
        return self._uris

    def read(self, message: Any) -> bool:
        """Note what the message says about the roots; return True if it is the answer, which is not the SDK's."""
        if isinstance(message, types.JSONRPCNotification):
            if message.method == ROOTS_CHANGED:
                self._is_asked = False
            return False
        if not isinstance(message, types.JSONRPCResponse | types.JSONRPCError) or message.id != self._id:
            return False
        rows = message.result.get("roots") if isinstance(message, types.JSONRPCResponse) else None
        uris = [row.get("uri") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        self._uris = [uri for uri in uris if isinstance(uri, str)]
        self._answered.set()
        return True


async def _texts(lines: Iterator[bytes]) -> AsyncIterator[str]:
    while line := await run_sync(next, lines, b""):
        yield line.decode(errors="replace")


async def _pass_messages(
    incoming: Any, messages: ObjectSendStream[SessionMessage | Exception], outgoing: Any, roots: _Roots
) -> None:
    """Pass on what was read, and answer each line that is no message, which the SDK would drop."""
    async with messages:
        async for item in incoming:
            if isinstance(item, Exception):
                await outgoing.send(SessionMessage(_parse_error(item)))
            elif not roots.read(item.message):
                await messages.send(item)


async def _pass_answers(answers: ObjectReceiveStream[SessionMessage], outgoing: Any, answered: bool) -> None:
    """Pass on what is to be written, but for the answer to a request that has been answered."""
    async with answers, outgoing:
        async for answer in answers:
            if not answered:
                await outgoing.send(answer)
            answered = False


def _parse_error(error: Exception) -> types.JSONRPCError:
    """Return the answer to a line that the SDK could not read."""
    faults = error.errors() if isinstance(error, ValidationError) else []
    text = INVALID_JSON if any(fault["type"] == "json_invalid" for fault in faults) else INVALID_MESSAGE
    return types.JSONRPCError(jsonrpc="2.0", id=None, error=types.ErrorData(code=types.PARSE_ERROR, message=text))
