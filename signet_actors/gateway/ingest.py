"""Text on its way into the store: secrets cut out, in storage form, embedded where that costs microseconds.

Short texts are worked on inline; a long one goes to one of two threads of its own, in one hop, so that no request
holds up the event loop; beyond a few that wait for one, further long texts are refused until there is room again.

Source: docs/decisions.md 23 and 26; docs/architecture.md "The path of a remember".
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec
import numpy as np

from signet_actors.domain.chunking import chunk_by_sentence, chunk_target
from signet_actors.domain.memories import infer_type, parse_prefixes
from signet_actors.domain.normalization import collapsed, content_hash, storage_content
from signet_actors.errors import Busy, InvalidRequest, SignetError
from signet_actors.gateway.redaction import Kinds
from signet_actors.protocol.message import Principal
from signet_actors.protocol.writer import Vector
from signet_actors.providers.embedding import Embedder, Vectors

if TYPE_CHECKING:
    from signet_actors.config.schema import GuardrailsConfig
    from signet_actors.gateway.state import GatewayState

INLINE_CHARS: Final = 2048
"""Up to here, an embedding takes some two milliseconds."""
INLINE_TEXT_CHARS: Final = 4096
"""Up to here, everything but the embedding takes one to three milliseconds, however dense with suspicious words."""
MAX_UNBOUNDED_CHARS: Final = 16_384
"""Above this, a text is refused where too many wait; below, it costs a thread no more than twenty milliseconds."""
LONG_TEXT_THREADS: Final = 1
"""Two would only take the interpreter from each other, which on a busy machine costs more than the work."""
MAX_WAITING: Final = 8
"""Long texts that wait for a thread; the longest content of all takes a thread for about a second."""

CHUNKS_AT_ONCE: Final = 1000
"""Chunks in one commit: about a quarter of a second of the writer."""
CHUNKS_WAITING: Final = 4000

T = TypeVar("T")


class TextExecutor:
    """Two threads for long texts, and a bound on how many wait for them. Serves any number of event loops."""

    def __init__(self, threads: int = LONG_TEXT_THREADS, max_waiting: int = MAX_WAITING) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="long-text")
        self._second = ThreadPoolExecutor(1, thread_name_prefix="long-text-second")
        self._room = threads + max_waiting
        self._admitted = 0
        self._lock = threading.Lock()

    async def run_bounded(self, work: Callable[[], T]) -> T:
        """What ``work`` returns from a thread. Raises Busy, and starts nothing, where too many wait already."""
        with self._lock:
            if self._admitted >= self._room:
                raise Busy
            self._admitted += 1
        future = self._executor.submit(work)
        # Not when the caller goes away: a thread cannot be called back, so its place is taken until it is done.
        future.add_done_callback(self._leave)
        return await asyncio.wrap_future(future)

    async def run_unbounded(self, work: Callable[[], T]) -> T:
        """The same without a refusal: for a text of middle length, or for the second half of an admitted request."""
        return await asyncio.wrap_future(self._second.submit(work))

    def _leave(self, _: Future[T]) -> None:
        with self._lock:
            self._admitted -= 1


TEXT_EXECUTOR: Final = TextExecutor()


class ChunkWriteLimiter:
    """Chunks on their way to the writer: so many at once that a commit of them all keeps nobody waiting for long.

    Whoever does not fit waits for its turn, first come first served; who would wait too long is refused at once.
    Serves one event loop.

    Source: docs/reliability.md R13.
    """

    def __init__(self, at_once: int = CHUNKS_AT_ONCE, waiting: int = CHUNKS_WAITING) -> None:
        self._at_once = at_once
        self._max_waiting = waiting
        self._in_flight = 0
        self._queue: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def slot(self, chunks: int) -> AsyncIterator[None]:
        """Inside, the ``chunks`` may be sent. Raises Busy where too many wait already."""
        if self._queue or not self._fits(chunks):
            if self._queue and sum(count for count, _ in self._queue) + chunks > self._max_waiting:
                raise Busy("too many long texts are waiting for the writer", retry_after_ms=1000)
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._queue.append((chunks, waiter))
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._in_flight -= chunks  # its turn had come, and nobody takes it
                self._admit()
                raise
        else:
            self._in_flight += chunks
        try:
            yield
        finally:
            self._in_flight -= chunks
            self._admit()

    def _fits(self, chunks: int) -> bool:
        return not self._in_flight or self._in_flight + chunks <= self._at_once

    def _admit(self) -> None:
        while self._queue:
            chunks, waiter = self._queue[0]
            if waiter.cancelled():
                self._queue.popleft()
            elif self._fits(chunks):
                self._queue.popleft()
                self._in_flight += chunks
                waiter.set_result(None)
            else:
                return


class PreparedText(NamedTuple):
    """``content`` is in storage form and may be empty; ``redactions`` are the kinds of secrets cut out of it."""

    content: str
    redactions: Kinds


class PreparedMemory(NamedTuple):
    """A ``PreparedText`` with what its prefixes say, the type that it suggests, and its chunks if it is oversized."""

    content: str
    redactions: Kinds
    pinned: bool
    tags: tuple[str, ...]
    type: str
    chunks: tuple[str, ...]


class FieldRedactor:
    """The fields beside the content on their way into the store; ``redactions``: the kinds of secrets cut out of them.

    Not for a scope or an agent: two of them that differ must never become the same.
    """

    def __init__(self, state: GatewayState) -> None:
        self._redactor = state.redactor if state.config.redaction.memories else None
        self.redactions: Kinds = ()

    def clean(self, text: str) -> str:
        """``text`` without secrets."""
        if self._redactor is None:
            return text
        text, kinds = self._redactor.clean(text)
        self.redactions += kinds
        return text

    def optional(self, text: str | None) -> str | None:
        """The same where there may be no text."""
        return None if text is None else self.clean(text)

    def tags(self, tags: Sequence[str]) -> tuple[str, ...]:
        """The same for each tag; none twice."""
        return tuple(dict.fromkeys(map(self.clean, tags)))

    def type_name(self, name: str | None) -> str | None:
        """``name``, which must not hold a secret: with one cut out of it, it would be no type's name any more."""
        if name is not None and self.clean(name) != name:
            raise InvalidRequest("type must not hold a secret", field="type")
        return name

    def principal(self, principal: Principal) -> Principal:
        """Who acts, as the history tells it; an agent's identity stays as it is."""
        return msgspec.structs.replace(
            principal,
            changed_by=self.clean(principal.changed_by),
            session_id=self.optional(principal.session_id),
            request_id=self.optional(principal.request_id),
        )


async def prepare_text(state: GatewayState, raw: str) -> PreparedText:
    """``raw`` as it may be committed. Raises Busy for a long text that would have to wait too long."""
    return await _inline_or_threaded(raw, lambda: _prepare_text(state, raw))


async def prepare_remembered_text(state: GatewayState, raw: str) -> PreparedMemory:
    """The same for an explicit remember, which heeds prefixes; secrets are looked for before these are cut off."""
    return await _inline_or_threaded(raw, lambda: _prepare_remembered_text(state, raw))


async def embed_texts(
    state: GatewayState, texts: Sequence[str], frames: list[bytes], *, trace_id: str
) -> list[Vector | None]:
    """One ``Vector`` per text with its raw float32 frame appended to ``frames``; None where there is none.

    What is embedded is the text on one line: layout says nothing that a query could ask for.

    None for all when embedding is off, costs a network call (the vector then follows the commit) or fails: a
    memory without a vector stays findable by keyword.
    """
    embedder = state.embedder
    if embedder is None or not embedder.local:
        return [None] * len(texts)
    try:
        if sum(map(len, texts)) <= INLINE_CHARS:
            rows = embedder.embed([collapsed(text) for text in texts])
        else:
            rows = await TEXT_EXECUTOR.run_unbounded(lambda: embedder.embed([collapsed(text) for text in texts]))
    except (SignetError, OSError, ValueError, RuntimeError) as error:
        # Its kind only: what a tokenizer says may quote the text.
        state.log.warning("embedding_failed", model=embedder.model, error=type(error).__name__, trace=trace_id)
        return [None] * len(texts)
    return [_vector(embedder, row, frames) for row in rows]


def chunks_of(content: str, guardrails: GuardrailsConfig) -> tuple[str, ...]:
    """Return the parts of an oversized content, each once, in order of the text; none where it is stored whole.

    A content is stored whole, too, when it would be a single part.
    """
    if len(content) <= guardrails.max_content_chars:
        return ()
    chunks = chunk_by_sentence(content, chunk_target(len(content), guardrails.chunk_target_chars))
    if len(chunks) == 1:
        return ()
    # A text that repeats itself is no conflict with itself: each chunk is stored once, where it stands first.
    unique: dict[str, str] = {}
    for chunk in chunks:
        if storage_content(chunk):  # else nothing is visible in it
            unique.setdefault(content_hash(chunk), chunk)
    return tuple(unique.values())


def raw_frame(row: Vectors) -> bytes:
    """A vector as it travels: little-endian float32."""
    return np.ascontiguousarray(row, dtype="<f4").tobytes()


def _vector(embedder: Embedder, row: Vectors, frames: list[bytes]) -> Vector | None:
    if not row.dot(row):  # a unit vector, or none
        return None
    frames.append(raw_frame(row))
    return Vector(model=embedder.model, dimensions=embedder.dimensions, frame=len(frames) - 1)


def _prepare_text(state: GatewayState, raw: str) -> PreparedText:
    if not state.config.redaction.memories:
        return PreparedText(storage_content(raw), redactions=())
    return PreparedText(*state.redactor.clean_for_storage(raw))


def _prepare_remembered_text(state: GatewayState, raw: str) -> PreparedMemory:
    text, redactions = _prepare_text(state, raw)
    # After the secrets are cut: "[db password]: <it>" is one only as long as both halves stand together, and a tag
    # that is a token is lower-cased, which would hide it.
    content, pinned, tags = parse_prefixes(text)
    chunks = chunks_of(content, state.config.memory.pipeline_v2.guardrails)
    return PreparedMemory(content, redactions, pinned, tags, infer_type(content), chunks)


async def _inline_or_threaded(raw: str, work: Callable[[], T]) -> T:
    if len(raw) <= INLINE_TEXT_CHARS:
        return work()
    return await (
        TEXT_EXECUTOR.run_unbounded(work) if len(raw) <= MAX_UNBOUNDED_CHARS else TEXT_EXECUTOR.run_bounded(work)
    )
