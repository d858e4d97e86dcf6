"""Start the MCP server that is installed as the harness would, and have it search for a memory that was just stored.

Source: Model Context Protocol, 2025-11-25, "Lifecycle", "Tools".
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from signet_actors.cli.harnesses.server_entry import server_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from signet_actors.cli.harnesses.check import Canary

LIMIT_S: Final = 30.0
PROTOCOL: Final = "2025-11-25"


@dataclass(frozen=True)
class ServerRun:
    """One run of the server: how many tools it offers, and how long the handshake took. ``problem``: what failed."""

    ms: float = 0
    tools: int = 0
    problem: str = ""


class _NoReply(Exception):
    """The server ended, or said something else."""


def run_server(entry: Mapping[str, Any], canary: Canary | None, environ: Mapping[str, str]) -> ServerRun:
    """Run the server of this entry, and search for the canary if there is one."""
    words = server_words(entry)
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(environ)
        )
    except OSError as error:
        return ServerRun(problem=f"{words[0]} cannot be started: {error.strerror}")
    timer = threading.Timer(LIMIT_S, process.kill)
    timer.start()
    try:
        opening = {
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": "signet-check", "version": "1"},
        }
        _ask(process, 1, "initialize", opening)
        ms = (time.monotonic() - started) * 1000
        _tell(process, {"method": "notifications/initialized"})
        tools = len(_ask(process, 2, "tools/list", {})["tools"])
        if canary is not None:
            found = _ask(process, 3, "tools/call", {"name": "memory_search", "arguments": {"query": canary.prompt}})
            if canary.word not in json.dumps(found):
                said = f" ({found['content'][0]['text']})" if found.get("isError") else ""
                return ServerRun(ms, tools, f"memory_search did not find a memory that was stored just before{said}")
        return ServerRun(ms, tools)
    except (_NoReply, OSError, KeyError, TypeError, ValueError) as error:
        return ServerRun(problem=_what_failed(process, error))
    finally:
        timer.cancel()
        _end(process)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def _ask(process: subprocess.Popen[bytes], number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request. Raises _NoReply, and others if the reply has another form."""
    _tell(process, {"id": number, "method": method, "params": params})
    assert process.stdout is not None
    for line in process.stdout:
        reply = json.loads(line)
        if reply.get("id") == number:
            if "error" in reply:
                raise _NoReply(f"{method} was refused: {reply['error'].get('message')}")
            result: dict[str, Any] = reply["result"]
            return result
    raise _NoReply("it ended without an answer")


def _tell(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


def _what_failed(process: subprocess.Popen[bytes], error: Exception) -> str:
    if not isinstance(error, _NoReply | OSError):
        return "its answer is not what the harness reads"
    _end(process)
    assert process.stderr is not None
    said = " ".join(process.stderr.read().decode(errors="replace").split())[-300:]
    reason = str(error) if isinstance(error, _NoReply) else "it ended without an answer"
    return f"{reason}{f' ({said})' if said else ''}"


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
