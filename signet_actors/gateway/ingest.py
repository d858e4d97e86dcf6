"""Preparation of text for the store: redaction of secrets, storage form, and embedding where that takes microseconds.

Short texts are processed inline. A long text goes to one of two threads, so that no request blocks the event loop. When
too many texts wait for a thread, further long texts are shed.

Source: docs/decisions.md 23 and 26; docs/architecture.md "The path of a remember".
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import numpy as np

from signet_actors.config.pipeline_schema import GuardrailsConfig
from signet_actors.domain.chunking import chunk_target, distinct_chunks
from signet_actors.domain.memories import Prefixes, infer_type, parse_prefixes
from signet_actors.domain.normalization import collapsed, storage_content
from signet_actors.domain.redaction.scan import Kinds
from signet_actors.errors import InvalidRequest, SignetError
from signet_actors.gateway.encoder_thread import ENCODER_THREAD
from signet_actors.gateway.limits import TEXT_EXECUTOR
from signet_actors.gateway.state import GatewayState
from signet_actors.operations.field_types import SecretRule
from signet_actors.operations.request_reader import request_fields
from signet_actors.protocol.message import Principal
from signet_actors.protocol.writer import Vector
from signet_actors.providers.embedding import Embedder, Encoded, Vectors, encode
from signet_actors.providers.minilm.encoder import Encoder

INLINE_CHARS: Final = 2048
"""Embedding a text of this length takes about two milliseconds."""
INLINE_TEXT_CHARS: Final = 4096
"""Up to this length, everything but the embedding takes one to three milliseconds, even for a text full of suspicious
words.
"""
MAX_UNBOUNDED_CHARS: Final = 16_384
"""A longer text is shed when too many texts wait. A shorter one takes a thread at most twenty milliseconds."""

T = TypeVar("T")
RequestT = TypeVar("RequestT", bound=msgspec.Struct)


class PreparedText(NamedTuple):
    """A text in storage form, which may be empty, and the kinds of secrets that were cut out of it."""

    content: str
    redactions: Kinds


class PreparedMemory(NamedTuple):
    """A ``PreparedText`` with the values of its prefixes, its inferred type, and its chunks if it is oversized."""

    content: str
    redactions: Kinds
    pinned: bool
    tags: tuple[str, ...]
    type: str
    chunks: tuple[str, ...]


def redaction_fields(kinds: Kinds) -> dict[str, Any]:
    """Return the fields of a response about redacted secrets: none if there were none. ``kinds`` may repeat."""
    return {"redacted": True, "redactions": list(dict.fromkeys(kinds))} if kinds else {}


class FieldRedactor:
    """Redact the fields beside the content, and collect the kinds of secrets in ``redactions``.

    A secret in a type, a scope or the name of an agent is refused instead: two different names must never become equal.
    ``redaction.memories: false`` keeps the secrets of what is ``for_memories``; all else is redacted always.
    """

    def __init__(self, state: GatewayState, *, for_memories: bool = True) -> None:
        self._redactor = state.redactor if state.config.redaction.memories or not for_memories else None
        self.redactions: Kinds = ()

    def clean(self, text: str) -> str:
        """Return ``text`` without secrets."""
        if self._redactor is None:
            return text
        text, kinds = self._redactor.clean(text)
        self.redactions += kinds
        return text

    def tags(self, tags: Sequence[str]) -> tuple[str, ...]:
        """Return the tags without secrets and without duplicates."""
        return tuple(dict.fromkeys(map(self.clean, tags)))

    def identifier(self, name: str, field: str) -> str:
        """Return ``name`` unchanged, because two different names must never become equal by redaction.

        Raises InvalidRequest if it contains a secret.
        """
        if self.clean(name) != name:
            raise InvalidRequest(f"{field} must not contain a secret", field=field)
        return name

    def digest(self, key: str) -> str:
        """Return ``key``, or a digest of it if it contains a secret, because different keys must stay different."""
        return key if self.clean(key) == key else f"redacted-{hashlib.sha256(key.encode()).hexdigest()}"

    def principal(self, principal: Principal) -> Principal:
        """Return the principal as the history stores it. The agent's identity is not changed."""
        texts = {name: getattr(principal, name) for name in ("changed_by", "session_id", "request_id")}
        return msgspec.structs.replace(principal, **{name: text and self.clean(text) for name, text in texts.items()})


async def prepare_text(state: GatewayState, raw: str) -> PreparedText:
    """Return ``raw`` as it may be stored. Raises Busy for a long text that would have to wait too long."""
    return await _inline_or_threaded(raw, lambda: _prepare_text(state, raw))


async def prepare_remembered_text(state: GatewayState, raw: str, *, prefixes: bool = True) -> PreparedMemory:
    """Return ``raw`` prepared for a remember, with its ``prefixes`` parsed. Secrets are redacted first. Raises Busy."""
    return await _inline_or_threaded(raw, lambda: _prepare_remembered_text(state, raw, prefixes))


async def embed_texts(
    state: GatewayState, texts: Sequence[str], frames: list[bytes], *, trace_id: str
) -> list[Vector | None]:
    """Return one ``Vector`` per text, or None for each text without one; append raw float32 frames to ``frames``.

    The text is embedded on one line, since its layout carries no meaning for a query. All are None if embedding is off,
    needs a network call or a busy encoder (the vector then follows the commit) or fails. A memory without a vector is
    still found by keyword.
    """
    embedder = state.embedder
    encoded: Encoded | None
    try:
        if isinstance(embedder, Encoder):
            # Beside other requests, the extractor's thread of low priority does it.
            alone = state.counters.in_flight <= 1
            encoded = None if not alone else await ENCODER_THREAD.encode_if_idle(embedder, texts)
        elif embedder is None or not embedder.local:
            encoded = None
        elif sum(map(len, texts)) <= INLINE_CHARS:
            encoded = encode(embedder, [collapsed(text) for text in texts])
        else:
            encoded = await TEXT_EXECUTOR.run_unbounded(lambda: encode(embedder, [collapsed(text) for text in texts]))
    except (SignetError, OSError, ValueError, RuntimeError) as error:
        # Log only the type: the message of a tokenizer may quote the text.
        name = None if embedder is None else embedder.model
        state.log.warning("embedding_failed", model=name, error=type(error).__name__, trace=trace_id)
        encoded = None
    if embedder is None or encoded is None:
        return [None] * len(texts)
    return [_vector(embedder, row, codes, frames) for row, codes in zip(*encoded, strict=True)]


def chunks_of(content: str, guardrails: GuardrailsConfig) -> tuple[str, ...]:
    """Return the different chunks of an oversized content in text order; empty if it is stored whole."""
    if len(content) <= guardrails.max_content_chars:
        return ()
    chunks = distinct_chunks(content, chunk_target(len(content), guardrails.chunk_target_chars))
    return tuple(chunks) if len(chunks) > 1 else ()


def raw_frame(row: Vectors) -> bytes:
    """Return the vector as it is sent: little-endian float32."""
    return np.ascontiguousarray(row, dtype="<f4").tobytes()


def _vector(embedder: Embedder, row: Vectors, codes: bytes | None, frames: list[bytes]) -> Vector | None:
    if not row.dot(row):  # zero vector: there is no embedding
        return None
    frames.append(raw_frame(row))
    return Vector(embedder.model, embedder.dimensions, len(frames) - 1, codes)


def _prepare_text(state: GatewayState, raw: str) -> PreparedText:
    if not state.config.redaction.memories:
        return PreparedText(storage_content(raw), redactions=())
    return PreparedText(*state.redactor.clean_for_storage(raw))


def _prepare_remembered_text(state: GatewayState, raw: str, prefixes: bool) -> PreparedMemory:
    text, redactions = _prepare_text(state, raw)
    # Redaction comes first: "[db password]: <secret>" is recognized only while both halves are together, and a token
    # in a tag would be lower-cased, which would hide it.
    content, pinned, tags = parse_prefixes(text) if prefixes else Prefixes(text, False, ())
    chunks = chunks_of(content, state.config.memory.pipeline_v2.guardrails)
    return PreparedMemory(content, redactions, pinned, tags, infer_type(content), chunks)


async def _inline_or_threaded(raw: str, work: Callable[[], T]) -> T:
    if len(raw) <= INLINE_TEXT_CHARS:
        return work()
    return await (
        TEXT_EXECUTOR.run_unbounded(work) if len(raw) <= MAX_UNBOUNDED_CHARS else TEXT_EXECUTOR.run_bounded(work)
    )


def redacted(redactor: FieldRedactor, request: RequestT, *, ignored: list[str] | None = None) -> RequestT:
    """Return ``request`` without the secrets in its fields. Raises InvalidRequest.

    With a list ``ignored``, a value that would be refused counts as absent, and the list gets a warning. Handlers call
    it only for what they read themselves: the items of a batch, the lines of an import.
    """
    changed: dict[str, Any] = {}
    for each in request_fields(type(request)):
        value = getattr(request, each.name)
        if isinstance(value, msgspec.Struct):
            clean: Any = redacted(redactor, value)
        elif isinstance(value, tuple) and value and isinstance(value[0], msgspec.Struct):
            clean = tuple(redacted(redactor, item, ignored=ignored) for item in value)
        elif each.type.secret is SecretRule.KEEP or not value:
            continue
        elif each.type.secret is SecretRule.REFUSE:
            try:
                clean = redactor.identifier(value, each.spellings[0])
            except InvalidRequest as error:
                if ignored is None:
                    raise
                ignored.append(f"{error.detail}; the value is ignored")
                clean = each.default
        elif each.type.secret is SecretRule.DIGEST:
            clean = redactor.digest(value)
        else:
            clean = redactor.clean(value) if isinstance(value, str) else redactor.tags(value)
        if clean != value:
            changed[each.name] = clean
    return msgspec.structs.replace(request, **changed) if changed else request
