"""The lines of the log, and streams: of new lines, and of changes of memories.

Source: docs/compatibility.md "Logs and streams".
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from signet_actors.config.workspace import Workspace
from signet_actors.errors import SignetError
from signet_actors.features.changes import api as changes
from signet_actors.features.logs import api as logs
from signet_actors.gateway.http.event_streams import KEEP_ALIVE, event, writes_of
from signet_actors.gateway.http.route import Call, Handler, HttpResponse
from signet_actors.operations.operation import Operation
from signet_actors.runtime.logging.configuration import log_path
from signet_actors.runtime.logging.log_files import (
    LEVELS,
    LogFilter,
    LogFollower,
    log_entry,
    log_files,
    read_backwards,
    size_of,
)

MAX_READ_BYTES: Final = 16 * 1024 * 1024
MAX_PIECE_BYTES: Final = 64 * 1024
"""Bytes of lines of each file that are read before the client has taken what was read before."""
RESYNC: Final = event({"type": "resync"})


async def list_logs(call: Call[logs.ListLogsRequest]) -> HttpResponse:
    """Return the newest lines that match."""
    directory = Workspace(call.state.workspace).log_dir
    return HttpResponse(await asyncio.to_thread(_newest, directory, _filter(call.request), call.request.limit))


async def follow_logs(call: Call[logs.FollowLogsRequest]) -> HttpResponse:
    """Return a stream of new lines. Raises Busy."""
    call.state.streams.check(call.identity)
    follower = await asyncio.to_thread(LogFollower, Workspace(call.state.workspace).log_dir)
    return _stream(call, _new_lines(call, follower, _filter(call.request)), call.request.seconds)


async def follow_changes(call: Call[changes.ChangesRequest]) -> HttpResponse:
    """Return a stream of changes. Raises Busy, or a SignetError if no searcher can be asked."""
    call.state.streams.check(call.identity)
    found = await _changes(call, None)
    return _stream(call, _new_changes(call, found.seq), call.request.seconds)


def _stream(call: Call[Any], pieces: AsyncIterator[bytes], seconds: float) -> HttpResponse:
    """Return a stream of the pieces, which ends when the token of the caller is not valid any more. Raises Busy."""

    async def accepted() -> AsyncIterator[bytes]:
        async for piece in pieces:
            if not await call.state.authenticator.still_accepts(call.identity):
                return
            yield piece

    return HttpResponse(call.state.streams.open(call.identity, accepted(), seconds, call.after_response))


def _filter(request: logs.LogFields) -> LogFilter:
    level = 0 if request.level is None else LEVELS[request.level]
    return LogFilter(
        level, request.actor or request.category, request.trace, request.text, request.since, request.until
    )


def _newest(directory: Path, wanted: LogFilter, limit: int) -> logs.ListLogsReply:
    found: list[logs.LogRecord] = []
    files = log_files(directory)
    is_whole = sum(map(size_of, files)) <= MAX_READ_BYTES
    for line in read_backwards(files, {}, MAX_READ_BYTES):
        if wanted.matches(line):
            found.append(_record(line))
            if len(found) == limit:
                break
    return logs.ListLogsReply(found, len(found), is_whole or len(found) == limit)


def _record(line: bytes) -> logs.LogRecord:
    entry = log_entry(line)
    if entry is None:
        return logs.LogRecord("", "error", "", line.decode("utf-8", "replace"), {})
    first = {name: str(entry.pop(name, "")) for name in ("timestamp", "level", "actor", "event")}
    return logs.LogRecord(first["timestamp"], first["level"], first["actor"], first["event"], entry)


async def _new_lines(call: Call[Any], follower: LogFollower, wanted: LogFilter) -> AsyncIterator[bytes]:
    """Yield the new lines that match, as events. They are read when the client has taken those before."""
    directory, clock = Workspace(call.state.workspace).log_dir, call.state.clock
    async for written in writes_of(lambda: log_path(directory, clock.wall_ms())):
        if not written:
            yield KEEP_ALIVE
            continue
        while lines := await asyncio.to_thread(lambda: list(follower.new_lines(MAX_PIECE_BYTES))):
            found = b"".join(event(_record(line)) for line in lines if wanted.matches(line))
            if found:
                yield found


async def _new_changes(call: Call[Any], seq: int) -> AsyncIterator[bytes]:
    """Yield the changes after the one with the number ``seq``, as events."""
    log = Path(f"{Workspace(call.state.workspace).database}-wal")
    async for written in writes_of(lambda: log):
        if not written:
            yield KEEP_ALIVE
        more = written
        while more:
            try:
                found = await _changes(call, seq)
            except SignetError:
                break  # the next write, or the next stream of the client, finds them
            seq, more = found.seq, found.more
            shown = [
                event({"type": "change", "id": row.id, "event": row.event, "kind": "memory"}) for row in found.changes
            ]
            if shown:
                yield RESYNC if len(shown) > changes.MAX_CHANGES else b"".join(shown)


async def _changes(call: Call[Any], after: int | None) -> changes.Changes:
    return (await call.ask_searcher(changes.FindChanges(call.read, after))).read(changes.Changes)


HANDLERS: Final[dict[Operation[Any], Handler[Any]]] = {
    logs.LIST: list_logs,
    logs.FOLLOW: follow_logs,
    changes.FOLLOW: follow_changes,
}
