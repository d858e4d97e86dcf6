"""Bounded wait for a network provider's vector, after the commit and before the response to a remember.

The memory's ``embed`` job makes the vector. This module asks the extractor to reply when it is stored, or will not be.
A failure costs at most ``embedding.waitMs``, and never the response. DESIGN.md lists the cases in which a request does
not wait.

Source: docs/decisions.md 23.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, Final

from signet_actors.gateway.http.route import Call
from signet_actors.protocol.extractor import AwaitVectors, VectorsAwaited
from signet_actors.providers.minilm.encoder import Encoder

RESERVE_MS: Final = 500
"""The part of the request's time limit that is reserved for the response."""
_ANSWER_MS: Final = 1_000
"""Extra time for the extractor's reply. No request waits for it, but the slot stays taken."""
_NONE: Final[Collection[str]] = frozenset()


async def wait_stored(call: Call[Any], versions: Mapping[str, int]) -> Collection[str]:
    """Return the ids of the memories, committed at these versions without a vector, whose vectors are stored by now."""
    wait_ms = _wait_ms(call) if versions else 0
    if wait_ms <= 0:
        return _NONE
    state, waits = call.state, call.state.vector_waits
    reply = asyncio.create_task(
        state.bus.ask_extractor(
            AwaitVectors(dict(versions), wait_ms),
            trace_id=call.trace_id,
            timeout_ms=wait_ms + _ANSWER_MS,
        )
    )
    waits.add(reply)
    waiting: set[asyncio.Task[VectorsAwaited] | asyncio.Task[None]] = {reply}
    disconnected = None if call.wait_disconnected is None else asyncio.create_task(call.wait_disconnected())
    if disconnected is not None:
        waiting.add(disconnected)
    try:
        done, _ = await asyncio.wait(waiting, timeout=wait_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if disconnected is not None:
            disconnected.cancel()
    if reply.cancelled() or (done and reply not in done):
        return _NONE  # the daemon is draining, or the client has disconnected
    error = reply.exception() if reply in done else None
    if reply not in done or error is not None:
        if error is not None:
            state.log.info("vector_wait_failed", reason=type(error).__name__, trace=call.trace_id)
        waits.on_failure(state.clock.monotonic_ns())
        return _NONE
    result = reply.result()
    if result.stored:
        waits.on_success()
    elif result.late:
        waits.on_failure(state.clock.monotonic_ns())
    return result.stored


def _wait_ms(call: Call[Any]) -> int:
    """Return how long this request may wait; 0 or less if it must not."""
    state = call.state
    embedder = state.embedder
    if embedder is None or embedder.local or isinstance(embedder, Encoder):
        return 0
    if not state.config.memory.pipeline_v2.embedding_tracker.enabled:
        return 0
    now_ns = state.clock.monotonic_ns()
    if not state.vector_waits.is_open(now_ns) or not state.is_up("extractor"):
        return 0
    if state.server_context is not None and state.server_context.admission.recently_overloaded:
        return 0
    left_ms = state.config.gateway.request_timeout_ms - (now_ns - call.began_ns) // 1_000_000 - RESERVE_MS
    return min(state.config.embedding.wait_ms, left_ms)
