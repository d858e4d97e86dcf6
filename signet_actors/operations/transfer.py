"""The lines of an export or import of memories: JSON Lines, documented in docs/transfer.md.

Source: docs/performance.md "Write targets" (bulk import); docs/architecture.md "Directories".
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

FORMAT = "signet-memories"
FORMAT_VERSION = 1
MEDIA_TYPE = "application/x-ndjson"


class ExportHeader(msgspec.Struct, frozen=True):
    """The first line of a file."""

    format: str = FORMAT
    version: int = FORMAT_VERSION


class LineTime(msgspec.Struct, frozen=True, omit_defaults=True):
    """A time of a memory. ``facet``: session, source, captured, observed, occurred or valid."""

    facet: str
    start: str | None = None
    end: str | None = None


class MemoryLine(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One live memory with everything that an import restores. Absent fields have their defaults.

    Times are ISO 8601. ``id`` is kept if it is a UUID that is not in use; ``agent_id`` is the owner of the memory.
    """

    content: str
    id: str | None = None
    type: str | None = None
    tags: list[str] = msgspec.field(default_factory=list)
    importance: float | None = None
    pinned: bool = False
    who: str | None = None
    project: str | None = None
    scope: str | None = None
    agent_id: str | None = None
    visibility: str | None = None
    source_type: str | None = None
    source_id: str | None = None
    source_path: str | None = None
    runtime_path: str | None = None
    idempotency_key: str | None = None
    session_id: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    access_count: int = 0
    injected_count: int = 0
    last_accessed: str | None = None
    times: list[LineTime] = msgspec.field(default_factory=list)


class RefusedLine(msgspec.Struct, frozen=True):
    """A line that was not stored; ``line`` counts from 1 in the request's body."""

    line: int
    error: str
    code: str
    field: str | UnsetType = UNSET


class ImportReply(msgspec.Struct, frozen=True):
    """Every line except the ``refused`` ones is on disk.

    Each is a new memory, or the one that it duplicates (``deduped``). ``redacted`` counts lines from which a secret was
    removed; ``redactions`` are the kinds of these secrets, if any. ``receipt`` identifies the commit: the same request,
    repeated under its ``Idempotency-Key``, gets the same receipt from a store that still holds the commit.
    """

    imported: int
    deduped: int
    redacted: int
    refused: list[RefusedLine]
    redactions: list[str] | UnsetType = UNSET
    receipt: str | UnsetType = UNSET
