"""The protocol on standard input and output.

The opening of a conversation, in which a client gets to know the server, is answered from the declarations, within the
time that it takes to start. The SDK, which takes a second to import, serves the rest, beginning with the first message
that needs it.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from signet_actors.mcp.declared import declared_reply, is_of_latest
from signet_actors.operations.mcp import without_lone_surrogates

if TYPE_CHECKING:
    from signet_actors.mcp.server import Performed
    from signet_actors.operations.tools import ToolRequest

SDK: Final = "signet_actors.mcp.stdio_sdk"
INITIALIZED: Final = "notifications/initialized"


Send = Callable[["ToolRequest", Sequence[str]], "Performed"]
"""Performs a request, given the roots of the client: URIs of the directories that it shows. Raises SignetError."""


def serve(send: Send, *, at_once: int, asks_roots: bool) -> None:
    """Serve until standard input ends. ``send`` runs in at most ``at_once`` threads, with roots if ``asks_roots``."""
    lines = _lines()
    unanswered, handshake = _opening(lines)
    if unanswered is not None:
        joined = _joined(handshake, unanswered, lines)
        import_module(SDK).serve(joined, send, at_once, answered=len(handshake) > 0, asks_roots=asks_roots)


def _lines() -> Iterator[bytes]:
    while line := sys.stdin.buffer.readline():
        yield without_lone_surrogates(line)


def _joined(handshake: list[bytes], unanswered: bytes, lines: Iterator[bytes]) -> Iterator[bytes]:
    yield from handshake
    yield unanswered
    yield from lines


def _opening(lines: Iterator[bytes]) -> tuple[bytes | None, list[bytes]]:
    """Answer what is declared. Return the first other line, None for the end, and the messages of the handshake.

    The SDK is imported meanwhile, beginning after the first answer, which would wait for it otherwise.
    """
    handshake: list[bytes] = []
    importing = threading.Thread(target=import_module, args=(SDK,), daemon=True)
    for line in lines:
        message = _decoded(line)
        if handshake and message.get("method") == INITIALIZED and "id" not in message:
            handshake.append(line)
            continue
        reply = declared_reply(message) if _may_come_now(message, handshake) else None
        if reply is None:
            return line, handshake
        if message["method"] == "initialize":
            handshake.append(line)
        sys.stdout.buffer.write(json.dumps(reply, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        sys.stdout.buffer.flush()
        if importing.ident is None:
            importing.start()
    return None, handshake


def _decoded(line: bytes) -> dict[str, Any]:
    """Return the message; an empty object for what is none."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _may_come_now(message: dict[str, Any], handshake: list[bytes]) -> bool:
    """Return whether the message is a request in its turn: the handshake is the first, or is not made at all."""
    if (
        message.get("jsonrpc") != "2.0"
        or not isinstance(message.get("method"), str)
        or not isinstance(message.get("params", {}), dict)
        or isinstance(message.get("id"), bool)
        or not isinstance(message.get("id"), int | str)
    ):
        return False
    if message["method"] == "initialize" or is_of_latest(message):
        return not handshake
    return bool(handshake)
