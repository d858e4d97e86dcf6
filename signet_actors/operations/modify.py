"""Public bodies of the batch modify.

Source: memory-api.txt "POST /api/memory/modify"; memory-system.txt "Modify".
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from signet_actors.operations.memories import Importance, TagsInput, Version


class ModifyPatch(msgspec.Struct, frozen=True, omit_defaults=True):
    """One memory's changes; ``reason`` overrides the batch's."""

    id: str
    content: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    tags: TagsInput | UnsetType = UNSET
    importance: Importance | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET
    who: str | UnsetType = UNSET
    reason: str | None = None
    if_version: Version | None = None


class ModifyRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """1 to 200 patches with defaults for all of them."""

    patches: list[ModifyPatch]
    reason: str | None = None
    changed_by: str | None = None


class ModifyResult(msgspec.Struct, frozen=True, rename="camel"):
    """Outcome of one patch; ``error`` unless it is ``updated`` or ``no_changes``."""

    id: str | None
    status: str
    current_version: int | UnsetType = UNSET
    new_version: int | UnsetType = UNSET
    content_changed: bool | UnsetType = UNSET
    embedded: bool | UnsetType = UNSET
    duplicate_memory_id: str | UnsetType = UNSET
    redacted: bool | UnsetType = UNSET
    redactions: list[str] | UnsetType = UNSET
    error: str | UnsetType = UNSET
    field: str | UnsetType = UNSET


class ModifyReply(msgspec.Struct, frozen=True):
    """One result per patch, in order; ``updated`` counts those that changed something."""

    total: int
    updated: int
    results: list[ModifyResult]
