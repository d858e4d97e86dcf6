"""Text on its way into the store: secrets cut out, white space collapsed, embedded where that costs microseconds.

Short texts are worked on inline; a long one goes to a thread, so that no request holds up the event loop.

Source: decisions.md 23 and 26; house.md section 2 "remember".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import numpy as np

from signet_actors.domain.normalization import storage_content
from signet_actors.errors import SignetError
from signet_actors.protocol.writer import Vector
from signet_actors.providers.embedding import Embedder, Vectors

if TYPE_CHECKING:
    from signet_actors.gateway.state import GatewayState

INLINE_CHARS: Final = 2048
"""Up to here, redaction and embedding together take some two milliseconds."""

T = TypeVar("T")


class StoredText(NamedTuple):
    """``content`` is in storage form and may be empty; ``redacted`` when a secret was cut out of it."""

    content: str
    redacted: bool


async def stored_text(state: GatewayState, raw: str) -> StoredText:
    """``raw`` as it may be committed."""
    return await _near_or_far(len(raw), lambda: _stored_text(state, raw))


async def stored_vectors(
    state: GatewayState, texts: Sequence[str], frames: list[bytes], *, trace_id: str
) -> list[Vector | None]:
    """One ``Vector`` per text with its raw float32 frame appended to ``frames``; None where there is none.

    None for all when embedding is off, costs a network call (the vector then follows the commit) or fails: a
    memory without a vector stays findable by keyword.
    """
    embedder = state.embedder
    if embedder is None or not embedder.local:
        return [None] * len(texts)
    try:
        rows = await _near_or_far(sum(map(len, texts)), lambda: embedder.embed(texts))
    except (SignetError, OSError, ValueError, RuntimeError) as error:
        state.log.warning("embedding_failed", model=embedder.model, error=str(error), trace=trace_id)
        return [None] * len(texts)
    return [_vector(embedder, row, frames) for row in rows]


def raw_frame(row: Vectors) -> bytes:
    """A vector as it travels: little-endian float32."""
    return np.ascontiguousarray(row, dtype="<f4").tobytes()


def _vector(embedder: Embedder, row: Vectors, frames: list[bytes]) -> Vector | None:
    if not row.any():
        return None
    frames.append(raw_frame(row))
    return Vector(model=embedder.model, dimensions=embedder.dimensions, frame=len(frames) - 1)


def _stored_text(state: GatewayState, raw: str) -> StoredText:
    if not state.config.redaction.memories:
        return StoredText(storage_content(raw), redacted=False)
    # Before white space is collapsed: a private key is recognised by its lines.
    clean, secrets = state.redactor.redact(raw)
    return StoredText(storage_content(clean), redacted=secrets > 0)


async def _near_or_far(chars: int, work: Callable[[], T]) -> T:
    return work() if chars <= INLINE_CHARS else await asyncio.to_thread(work)
