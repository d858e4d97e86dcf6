"""Change one memory: patch, delete, recover.

Source: memory-api.txt "Memories"; docs/compatibility.md "Forget and modify".
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from signet_actors.operations.memories import Importance, TagsInput, Version


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
