"""The tokens and keys that are valid, as the database has them: a copy that is at most a second old while it is asked.

Every change goes through this process and is in the copy before it is answered. The copy is read anew once a second
while requests come, for a change that a process before this one has begun.

Source: docs/compatibility.md "Authentication"; docs/guides/team.md "Tokens".
"""

from __future__ import annotations

import asyncio
import hmac
from typing import Final

from signet_actors.domain.tokens import secret_digest
from signet_actors.errors import SignetError, Unavailable
from signet_actors.features.auth_tokens.api import FindLiveTokens, Kind, LiveTokens, StoredToken
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.bus_client import BusClient

FRESH_NS: Final = 1_000_000_000
_NOBODY: Final = secret_digest("")


class TokenRegistry:
    """The valid rows by id. One event loop only."""

    def __init__(self, bus: BusClient, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._rows: dict[str, StoredToken] | None = None
        self._read_ns = 0
        self._reading: asyncio.Task[None] | None = None

    async def find(self, token_id: str, kind: Kind) -> StoredToken | None:
        """Return the valid token or key with this id. Raises Unavailable if they could not be read yet."""
        while self._rows is None:
            try:
                await asyncio.shield(self._begin())
            except SignetError as error:
                raise Unavailable("It is not known yet which tokens are valid", retry_after_ms=1000) from error
        if self._clock.monotonic_ns() - self._read_ns > FRESH_NS:
            self._read_ns = self._clock.monotonic_ns()
            self._begin().add_done_callback(lambda task: task.cancelled() or task.exception())
        row = self._rows.get(token_id)
        return row if row is not None and row.kind == kind else None

    def add(self, row: StoredToken) -> None:
        """Accept what is on disk now."""
        self._drop_reading()
        if self._rows is not None:
            self._rows[row.id] = row

    def drop(self, token_id: str) -> None:
        """Accept the token no more. If it was not revoked after all, the next reading brings it back."""
        self._drop_reading()
        if self._rows is not None:
            self._rows.pop(token_id, None)

    def _begin(self) -> asyncio.Task[None]:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        return self._reading

    def _drop_reading(self) -> None:
        """Ignore what is being read: it may be older than the change."""
        self._reading = None

    async def _read(self) -> None:
        reading = asyncio.current_task()
        answered, _ = await self._bus.ask_searcher(FindLiveTokens(), trace_id="tokens")
        rows = answered.read(LiveTokens).rows
        if self._reading is reading:
            self._rows = {row.id: row for row in rows}
            self._read_ns = self._clock.monotonic_ns()


def proves(row: StoredToken | None, secret: str) -> bool:
    """Return whether ``secret`` is that of the key; it takes as long if there is no such key."""
    expected = _NOBODY if row is None or row.secret_hash is None else row.secret_hash
    return hmac.compare_digest(secret_digest(secret), expected) and row is not None
