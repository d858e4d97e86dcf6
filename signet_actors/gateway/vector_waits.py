"""The wait for a network provider's vector, after the memory is on disk and before its remember is answered.

The vector is made once, by the memory's ``embed`` job; here it is only waited for, at the extractor, which knows when
it is stored and when none is to be expected. Whatever goes wrong costs at most ``embedding.waitMs``, never the answer,
and only what the writer has committed is called embedded.

Nobody waits where a wait would be in vain or in somebody's way: beyond ``MOST_AT_ONCE``, while a crowd stands, while
the daemon leaves, while the extractor is away or takes no such job, and for a while after a wait that came to nothing:
the server is too slow, or an import's vectors are before ours.

Source: docs/decisions.md 23.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Final

from signet_actors.gateway.http.route import HttpRequest
from signet_actors.protocol.extractor import AwaitVectors, VectorsAwaited

MOST_AT_ONCE: Final = 8
"""Half of the least number of requests that are served beside each other (``flood_least``)."""
FIRST_PAUSE_MS: Final = 1_000
LONGEST_PAUSE_MS: Final = 60_000
RESERVE_MS: Final = 500
"""Of the request's own time limit, what is kept for answering it."""
_ANSWER_MS: Final = 1_000
"""So much later than it was told to the extractor may answer: nobody waits for that, but the place is taken."""
_NONE: Final[Collection[str]] = frozenset()


class VectorWaits:
    """Those of one gateway life."""

    def __init__(self) -> None:
        self._asked: set[asyncio.Task[VectorsAwaited]] = set()
        self._stopped = False
        self._pause_ms = 0
        self._not_before_ns = 0

    def __len__(self) -> int:
        """Questions that the extractor has not answered; a client that goes leaves one behind."""
        return len(self._asked)

    async def stored(self, call: HttpRequest, versions: Mapping[str, int]) -> Collection[str]:
        """Those of the memories, just committed without a vector at these versions, whose vectors are stored now."""
        patience_ms = self._patience_ms(call) if versions else 0
        if patience_ms <= 0:
            return _NONE
        state = call.state
        asked = asyncio.create_task(
            state.bus.ask_extractor(
                AwaitVectors(dict(versions), patience_ms),
                trace_id=call.trace_id,
                timeout_ms=patience_ms + _ANSWER_MS,
            )
        )
        self._asked.add(asked)
        asked.add_done_callback(self._ended)
        waiting: set[asyncio.Task[VectorsAwaited] | asyncio.Task[None]] = {asked}
        gone = None if call.until_gone is None else asyncio.create_task(call.until_gone())
        if gone is not None:
            waiting.add(gone)
        try:
            done, _ = await asyncio.wait(waiting, timeout=patience_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if gone is not None:
                gone.cancel()
        if asked.cancelled() or (done and asked not in done):
            return _NONE  # the daemon leaves, or the client has gone
        error = asked.exception() if asked in done else None
        if asked not in done or error is not None:
            if error is not None:
                state.log.info("vectors_not_awaited", reason=type(error).__name__, trace=call.trace_id)
            self._in_vain(state.clock.monotonic_ns())
            return _NONE
        said = asked.result()
        if said.stored:
            self._pause_ms = self._not_before_ns = 0
        elif said.late:
            self._in_vain(state.clock.monotonic_ns())
        return said.stored

    def stop(self) -> None:
        """Nobody waits any more."""
        self._stopped = True
        for asked in self._asked:
            asked.cancel()

    def _patience_ms(self, call: HttpRequest) -> int:
        """How long this request may wait; nothing where it must not."""
        state = call.state
        now_ns = state.clock.monotonic_ns()
        embedder = state.embedder
        if embedder is None or embedder.local or not state.config.memory.pipeline_v2.embedding_tracker.enabled:
            return 0
        if self._stopped or now_ns < self._not_before_ns or len(self._asked) >= MOST_AT_ONCE:
            return 0
        if not state.is_up("extractor") or (state.wire is not None and state.wire.admission.lately_crowded):
            return 0
        left_ms = state.config.gateway.request_timeout_ms - (now_ns - call.began_ns) // 1_000_000 - RESERVE_MS
        return min(state.config.embedding.wait_ms, left_ms)

    def _in_vain(self, now_ns: int) -> None:
        """Nobody begins to wait for a while, twice as long as the last time; those who wait together count once."""
        if now_ns >= self._not_before_ns:
            self._pause_ms = min(LONGEST_PAUSE_MS, max(FIRST_PAUSE_MS, 2 * self._pause_ms))
            self._not_before_ns = now_ns + self._pause_ms * 1_000_000

    def _ended(self, asked: asyncio.Task[VectorsAwaited]) -> None:
        self._asked.discard(asked)
        if not asked.cancelled():
            asked.exception()  # whoever still waits has it; else it is nobody's
