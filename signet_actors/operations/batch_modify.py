"""Change many memories. Source: memory-api.txt "POST /api/memory/modify"; memory-system.txt "Modify"."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import MAX_TEXT_CHARS, SecretRule, Text
from signet_actors.operations.memory_changes import MOVED_WITH, IfVersion, NewContent, NewProject, NewTags, NewType
from signet_actors.operations.operation import BY_ALL, EXAMPLE_MEMORY, Effect, Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import CallerFields, Importance, LongText
from signet_actors.operations.request_reader import Items

MAX_PATCHES: Final = 200


class ModifyPatch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One memory's changes; ``reason`` overrides the batch's."""

    id: Annotated[str, Text(max_chars=MAX_TEXT_CHARS, secret=SecretRule.KEEP)]
    content: NewContent | None = None
    type: NewType | None = None
    tags: NewTags | None = None
    importance: Importance | None = None
    pinned: bool | None = None
    who: str | None = None
    to_project: NewProject | None = msgspec.field(default=None, name="project")
    reason: LongText | None = None
    if_version: IfVersion | None = None


class ModifyRequest(CallerFields, frozen=True, kw_only=True, omit_defaults=True):
    """1 to 200 patches with defaults for all of them."""

    reason: Annotated[LongText, Meta(description="Reason of the patches that have none of their own")] | None = None
    patches: Annotated[list[Any], Items(kind=ModifyPatch, max_items=MAX_PATCHES)]


class ModifyResult(msgspec.Struct, frozen=True, rename="camel"):
    """Outcome of one patch; ``error`` unless it is ``updated`` or ``no_changes``."""

    id: str | None
    status: str
    current_version: int | UnsetType = UNSET
    new_version: int | UnsetType = UNSET
    content_changed: bool | UnsetType = UNSET
    embedded: bool | UnsetType = UNSET
    duplicate_memory_id: str | UnsetType = UNSET
    moved_with: Annotated[list[str], Meta(description=MOVED_WITH)] | UnsetType = UNSET
    redacted: bool | UnsetType = UNSET
    redactions: list[str] | UnsetType = UNSET
    error: str | UnsetType = UNSET
    field: str | UnsetType = UNSET


class ModifyReply(msgspec.Struct, frozen=True):
    """One result per patch, in order; ``updated`` counts those that changed something."""

    total: int
    updated: int
    results: list[ModifyResult]


MODIFY_MEMORIES: Final[Operation[ModifyRequest, ModifyReply]] = Operation(
    name="memories.modify",
    summary="Change many memories",
    tag="Memories",
    method="POST",
    paths=("/api/memory/modify",),
    request=ModifyRequest,
    example={"patches": [{"id": EXAMPLE_MEMORY, "tags": ["release"], "reason": "sorted"}]},
    replies={200: ModifyReply, 409: Problem, 504: Problem, 507: Problem, **PROBLEMS},
    permission=Permission.MODIFY,
    scoped_by=BY_ALL,
    served_by="writer",
    effect=Effect.MEMORIES,
    rate="modify",
    owner_only=True,
)
OPERATIONS: Final = (MODIFY_MEMORIES,)
