"""Remember a text.

Names and spellings are those of the documents; ``tags`` is a comma string or null here (docs/decisions.md 31).
Source: memory-api.txt "POST /api/memory/remember"; docs/compatibility.md "Remember".
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from signet_actors.operations.memories import Importance, TagsInput
from signet_actors.operations.request_fields import not_yet


class ProvenanceMetadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """Provenance of a memory in the spelling that importers use."""

    source_path: str | None = None
    runtime_path: str | None = None
    idempotency_key: str | None = None


class RememberRequest(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A memory to store; only ``content`` is required.

    snake_case spellings are accepted too. ``warnings`` in the reply names fields that had no effect. ``transcript``
    marks ``sourceId`` as a session key, which is never used to deduplicate.
    """

    content: str
    type: str | None = None
    who: str | None = None
    project: str | None = None
    scope: str | None = None
    importance: Importance | None = None
    tags: TagsInput = None
    pinned: bool | None = None
    source_type: str | None = None
    source_id: str | None = None
    source_path: str | None = None
    runtime_path: str | None = None
    idempotency_key: str | None = None
    created_at: str | None = None
    occurred_at: str | None = None
    observed_at: str | None = None
    source_created_at: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    agent_id: str | None = None
    visibility: Literal["global", "private"] | None = None
    structured: Annotated[dict[str, Any] | None, not_yet("is not available yet; the value was not stored")] = None
    transcript: Annotated[str | None, not_yet("is not stored yet; it only marks sourceId as a session key")] = None
    metadata: ProvenanceMetadata | None = None


class RememberReply(msgspec.Struct, frozen=True):
    """The memory is on disk, or it duplicates an existing one (``deduped``), whose ``id`` this is.

    ``redacted`` is present only if a secret was removed; ``redactions`` are the kinds of the secrets, as in their
    placeholders ``[REDACTED:<kind>]``. ``embedded``: its vector is stored; if not, it may follow.
    """

    id: str
    type: str
    tags: str | None
    pinned: bool
    importance: float
    content: str
    embedded: bool
    deduped: bool
    redacted: Literal[True] | UnsetType = UNSET
    redactions: list[str] | UnsetType = UNSET


class RememberChunksReply(msgspec.Struct, frozen=True):
    """An oversized content is on disk as chunks, in the order of the text."""

    chunk_count: int
    ids: list[str]
    group_id: str
    chunked: Literal[True] = True
    deduped: Literal[True] | UnsetType = UNSET
    redacted: Literal[True] | UnsetType = UNSET
    redactions: list[str] | UnsetType = UNSET
