"""Streams of server-sent events: a handler returns one as the body of its response.

A stream makes its next event when the client has taken the ones before, so that nothing is queued: the connection
holds at most what the transport buffers, and the server aborts it if the client does not read for
``ConnectionLimits.write_ms``.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html; docs/compatibility.md "Logs and streams".
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from signet_actors.domain.permissions import Role
from signet_actors.errors import Busy
from signet_actors.gateway.auth.identity import Identity

MAX_STREAMS: Final = 16
"""Each holds a connection, and its events cost queries. A browser opens one for all its tabs."""
MAX_OF_TOKEN: Final = 4
"""Of these, for a token that is no administrator's."""
KEPT_STREAMS: Final = 4
"""Of these, so many are left to administrators and callers without a token."""
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

    of_callers: Counter[Identity] = field(default_factory=Counter)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def count(self) -> int:
        return self.of_callers.total()

    def check(self, caller: Identity) -> None:
        """Raise Busy if too many are open for another one of the caller."""
        if not _is_administrator(caller):
            others = sum(count for each, count in self.of_callers.items() if not _is_administrator(each))
            if self.of_callers[caller] >= MAX_OF_TOKEN or others >= MAX_STREAMS - KEPT_STREAMS:
                raise Busy(
                    f"{MAX_OF_TOKEN} streams of this token are open, or too many others", retry_after_ms=RETRY_MS
                )
        if self.count >= MAX_STREAMS:
            raise Busy(f"{MAX_STREAMS} streams are open", retry_after_ms=RETRY_MS)

    def open(
        self,
        caller: Identity,
        pieces: AsyncIterator[bytes],
        seconds: float,
        after_response: list[Callable[[bool], None]],
    ) -> EventStream:
        """Return a stream, which counts until its response is over. Raises Busy if too many are open."""
        self.check(caller)
        self.of_callers[caller] += 1
        after_response.append(partial(self._closed, caller))
        return EventStream(pieces, seconds, self.stopped)

    def _closed(self, caller: Identity, _is_sent: bool) -> None:
        self.of_callers -= Counter((caller,))


def _is_administrator(caller: Identity) -> bool:
    return caller.role is None or caller.role is Role.ADMIN


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
