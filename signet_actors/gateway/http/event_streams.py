"""Streams of server-sent events: a handler returns one as the body of its response.

A stream makes its next event when the client has taken the ones before, so that nothing is queued: the connection
holds at most what the transport buffers, and the server aborts it if the client does not read for
``ConnectionLimits.write_ms``.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html; docs/compatibility.md "Logs and streams".
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from signet_actors.errors import Busy

MAX_STREAMS: Final = 16
"""Each holds a connection, and its events cost queries. A browser opens one for all its tabs."""
POLL_S: Final = 0.25
KEEP_ALIVE_S: Final = 15.0
RETRY_MS: Final = 5000
KEEP_ALIVE: Final = b": keepalive\n\n"
FileState = tuple[int, int, int] | None


def event(data: Any) -> bytes:
    """Return an event whose data is JSON, on one line."""
    return b"data: " + msgspec.json.encode(data) + b"\n\n"


CONNECTED: Final = event({"type": "connected"})


@dataclass(eq=False)
class EventStream:
    """The pieces of a stream, for at most ``seconds``. ``stopped`` ends it before."""

    pieces: AsyncIterator[bytes]
    seconds: float
    stopped: asyncio.Event

    async def write(self, send: Callable[[bytes], Awaitable[None]], closed: Awaitable[None] | None) -> None:
        """Send the pieces until they end, the time is over, the daemon stops, or the client has disconnected."""
        tasks = [asyncio.ensure_future(one) for one in (self._send_all(send), self.stopped.wait(), closed) if one]
        try:
            await asyncio.wait(tasks, timeout=self.seconds or None, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        if isinstance(results[0], Exception):
            raise results[0]

    async def _send_all(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        await send(CONNECTED)
        if self.seconds:
            async for piece in self.pieces:
                await send(piece)


@dataclass
class EventStreams:
    """The open streams of this process."""

    count: int = 0
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    def open(
        self, pieces: AsyncIterator[bytes], seconds: float, after_response: list[Callable[[bool], None]]
    ) -> EventStream:
        """Return a stream, which counts until its response is over. Raises Busy if too many are open."""
        if self.count >= MAX_STREAMS:
            raise Busy(f"{MAX_STREAMS} streams are open", retry_after_ms=RETRY_MS)
        self.count += 1
        after_response.append(self._closed)
        return EventStream(pieces, seconds, self.stopped)

    def _closed(self, _is_sent: bool) -> None:
        self.count -= 1


def state_of(file: Path) -> FileState:
    """Return what changes when the file is written, None without the file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


async def writes_of(file: Callable[[], Path]) -> AsyncIterator[bool]:
    """Yield True after the file was written, and once at the beginning; False every ``KEEP_ALIVE_S`` without that.

    One ``stat`` every ``POLL_S``. The time of a file is coarse: after a write there is always a second True, because
    another write may have the same time.
    """
    known, again, waited = state_of(file()), True, 0.0
    while True:
        await asyncio.sleep(POLL_S)
        waited += POLL_S
        state = state_of(file())
        if state != known or again:
            known, again, waited = state, state != known, 0.0
            yield True
        elif waited >= KEEP_ALIVE_S:
            waited = 0.0
            yield False
