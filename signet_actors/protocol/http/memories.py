"""Public bodies of a single memory: remember, read, list, history, patch, delete, recover.

Names and spellings are those of the documents; ``tags`` is a comma string or null here (docs/decisions.md 31).
Source: memory-api.txt "Memories"; docs/compatibility.md "Remember", "Reading memories".
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.protocol.http.request_fields import not_yet

Importance = Annotated[float, Meta(ge=0, le=1)]
Version = Annotated[int, Meta(ge=1)]
TagsInput = str | list[str] | None


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


class MemoryReply(msgspec.Struct, frozen=True):
    """One whole memory; ``pinned`` and ``is_deleted`` are 0 or 1. Provenance is given in both spellings."""

    id: str
    content: str
    type: str
    importance: float
    tags: str | None
    pinned: int
    who: str | None
    source_id: str | None
    source_type: str | None
    source_path: str | None
    runtime_path: str | None
    idempotency_key: str | None
    source_path_alias: str | None = msgspec.field(name="sourcePath")
    runtime_path_alias: str | None = msgspec.field(name="runtimePath")
    idempotency_key_alias: str | None = msgspec.field(name="idempotencyKey")
    project: str | None
    scope: str | None
    agent_id: str
    visibility: str
    session_id: str | None
    confidence: float | None
    access_count: int
    last_accessed: str | None
    is_deleted: int
    deleted_at: str | None
    extraction_status: str
    embedding_model: str | None
    version: int
    created_at: str
    updated_at: str
    updated_by: str | None


class ListedMemory(msgspec.Struct, frozen=True):
    """A memory in a list; ``deleted_at`` only if deleted memories were requested."""

    id: str
    content: str
    created_at: str
    who: str | None
    importance: float
    tags: str | None
    source_type: str | None
    pinned: int
    type: str
    project: str | None
    version: int
    updated_at: str
    deleted_at: str | UnsetType = UNSET


class ListStats(msgspec.Struct, frozen=True, rename="camel"):
    """Counts over every live memory that the caller may read; ``critical``: importance of 0.9 or more."""

    total: int
    with_embeddings: int
    critical: int


class MemoryListReply(msgspec.Struct, frozen=True):
    """A page, newest first; ``total`` counts what the filters admit."""

    memories: list[ListedMemory]
    stats: ListStats
    total: int


class HistoryItem(msgspec.Struct, frozen=True, rename="camel"):
    """One audit event; ``metadata`` is parsed if it is JSON, else it is text."""

    id: str
    event: str
    old_content: str | None
    new_content: str | None
    changed_by: str
    actor_type: str | None
    reason: str | None
    metadata: Any
    created_at: str
    session_id: str | None
    request_id: str | None


class HistoryReply(msgspec.Struct, frozen=True, rename="camel"):
    """Audit events, oldest first."""

    memory_id: str
    count: int
    history: list[HistoryItem]


class HistoryProblem(msgspec.Struct, frozen=True, rename="camel"):
    """The memory does not exist, or the caller may not read it."""

    error: str
    code: str
    memory_id: str


class PatchRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What to change: at least one of content, type, tags, importance, pinned. ``tags`` null clears them."""

    reason: str
    content: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    tags: TagsInput | UnsetType = UNSET
    importance: Importance | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET
    if_version: Version | None = None
    changed_by: str | None = None


class PatchReply(msgspec.Struct, frozen=True, rename="camel"):
    """The patch is applied (``updated``) or changed nothing (``no_changes``)."""

    id: str
    status: Literal["updated", "no_changes"]
    current_version: int | UnsetType | None = UNSET
    new_version: int | UnsetType = UNSET
    content_changed: bool = False
    embedded: bool | UnsetType = UNSET
    redacted: Literal[True] | UnsetType = UNSET
    redactions: list[str] | UnsetType = UNSET
    success: Literal[True] = True


class DeleteRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why to delete; each field may be in the query instead. ``force`` allows deleting a pinned memory."""

    reason: str
    force: bool = False
    if_version: Version | None = None


class DeleteReply(msgspec.Struct, frozen=True, rename="camel"):
    """The memory is soft-deleted."""

    id: str
    status: Literal["deleted"] = "deleted"
    current_version: int | UnsetType | None = UNSET
    new_version: int | UnsetType = UNSET
    success: Literal[True] = True


class RecoverRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why to recover; each field may be in the query instead."""

    reason: str
    if_version: Version | None = None


class RecoverReply(msgspec.Struct, frozen=True, rename="camel"):
    """The memory is live again."""

    id: str
    retention_days: int
    status: Literal["recovered"] = "recovered"
    current_version: int | UnsetType | None = UNSET
    new_version: int | UnsetType = UNSET


class Refusal(msgspec.Struct, frozen=True, rename="camel"):
    """A change of one memory was refused; nothing was applied. ``status`` as in the endpoint's table."""

    id: str
    status: str
    error: str
    code: str
    current_version: int | UnsetType = UNSET
    duplicate_memory_id: str | UnsetType = UNSET
