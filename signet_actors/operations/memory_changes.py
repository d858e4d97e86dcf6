"""Change one memory: patch, delete, recover. Each needs a reason and may name the expected version.

Source: memory-api.txt "Memories"; docs/compatibility.md "Forget and modify".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import Content, Flag, MemoryType, OptionalName, Tags, Version
from signet_actors.operations.forget import FORGOTTEN_WITH, MAY_BE_SAID_IN, OTHER_PARTS, SAID_BY, SAID_IN
from signet_actors.operations.operation import BY_ALL, EXAMPLE_MEMORY, Effect, Operation, Tool
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import TYPE_FOR_MODELS, CallerFields, Importance, LongText

NewTags = Annotated[tuple[str, ...], Tags(null=()), Meta(description="An array, or separated by commas; null: no tags")]
NewType = Annotated[str, MemoryType()]
NewContent = Annotated[str, Content()]
NewProject = Annotated[
    str,
    OptionalName(),
    Meta(description="The project to move it to: a directory, or any other name; null: it belongs to none"),
]
IfVersion = Annotated[int, Version(), Meta(description="Refuse unless this is the current version")]


MOVED_WITH: Final = "Ids of the facts that the pipeline had made of it, which moved to the same project"
WHOLE: Final = "if the memory is a part of a long text, the same for all of its other parts"


class PatchRequest(CallerFields, frozen=True, kw_only=True, omit_defaults=True):
    """What to change: at least one of content, type, tags, importance, pinned, project.

    ``tags`` null clears them; ``project`` null moves the memory out of its project.
    """

    reason: LongText
    content: NewContent | None = None
    type: NewType | None = None
    tags: NewTags | None = None
    importance: Importance | None = None
    pinned: bool | None = None
    to_project: NewProject | None = msgspec.field(default=None, name="project")
    if_version: IfVersion | None = None


class PatchReply(msgspec.Struct, frozen=True, rename="camel"):
    """The patch is applied (``updated``) or changed nothing (``no_changes``)."""

    id: str
    status: Literal["updated", "no_changes"]
    current_version: int | UnsetType | None = UNSET
    new_version: int | UnsetType = UNSET
    content_changed: bool = False
    embedded: bool | UnsetType = UNSET
    other_parts: Annotated[list[str], Meta(description=OTHER_PARTS)] | UnsetType = UNSET
    moved_with: Annotated[list[str], Meta(description=MOVED_WITH)] | UnsetType = UNSET
    redacted: Literal[True] | UnsetType = UNSET
    redactions: list[str] | UnsetType = UNSET
    success: Literal[True] = True


class DeleteRequest(CallerFields, frozen=True, kw_only=True, omit_defaults=True):
    """Why to delete; each field may be in the query instead."""

    reason: Annotated[LongText, Meta(description="Reason; required in the body or in the query")]
    force: Annotated[bool, Flag(), Meta(description="true: delete the memory even if it is pinned")] = False
    whole: Annotated[bool, Flag(), Meta(description=f"true: {WHOLE}, except pinned ones without force")] = False
    if_version: IfVersion | None = None


class DeleteReply(msgspec.Struct, frozen=True, rename="camel"):
    """The memory is soft-deleted."""

    id: str
    status: Literal["deleted"] = "deleted"
    current_version: int | UnsetType | None = UNSET
    new_version: int | UnsetType = UNSET
    forgotten_with: Annotated[list[str], Meta(description=FORGOTTEN_WITH)] | UnsetType = UNSET
    other_parts: Annotated[list[str], Meta(description=OTHER_PARTS)] | UnsetType = UNSET
    said_by: Annotated[list[str], Meta(description=SAID_BY)] | UnsetType = UNSET
    said_in: Annotated[list[str], Meta(description=SAID_IN)] | UnsetType = UNSET
    may_be_said_in: Annotated[list[str], Meta(description=MAY_BE_SAID_IN)] | UnsetType = UNSET
    success: Literal[True] = True


class RecoverRequest(CallerFields, frozen=True, kw_only=True, omit_defaults=True):
    """Why to recover; each field may be in the query instead."""

    reason: Annotated[LongText, Meta(description="Reason; required in the body or in the query")]
    whole: Annotated[bool, Flag(), Meta(description=f"true: {WHOLE}")] = False
    if_version: IfVersion | None = None


class RecoverReply(msgspec.Struct, frozen=True, rename="camel"):
    """The memory is live again."""

    id: str
    retention_days: int
    status: Literal["recovered"] = "recovered"
    current_version: int | UnsetType | None = UNSET
    new_version: int | UnsetType = UNSET
    recovered_with: (
        Annotated[
            list[str], Meta(description="Ids of the facts that had been forgotten with it and, with `whole`, of parts")
        ]
        | UnsetType
    ) = UNSET


class Refusal(msgspec.Struct, frozen=True, rename="camel"):
    """A change of one memory was refused; nothing was applied. ``status`` as in the endpoint's table."""

    id: str
    status: str
    error: str
    code: str
    current_version: int | UnsetType = UNSET
    duplicate_memory_id: str | UnsetType = UNSET


_CHANGE_PROBLEMS: Final[Mapping[int, Any]] = {
    404: Refusal,
    409: Refusal | Problem,
    504: Problem,
    507: Problem,
    **PROBLEMS,
}

PATCH_MEMORY: Final[Operation[PatchRequest, PatchReply]] = Operation(
    name="memories.patch",
    summary="Change a memory",
    tag="Memories",
    method="PATCH",
    paths=("/api/memory/{id}",),
    request=PatchRequest,
    memory_ids=("id",),
    example={"id": EXAMPLE_MEMORY, "content": "Deployments are blocked on Fridays after 15:00", "reason": "new rule"},
    replies={200: PatchReply, 403: Refusal, **_CHANGE_PROBLEMS},
    permission=Permission.MODIFY,
    scoped_by=BY_ALL,
    served_by="writer",
    effect=Effect.MEMORIES,
    rate="modify",
    tool=Tool(
        name="memory_modify",
        title="Change a memory",
        description="Correct a stored memory: give its id, the fields to change and a reason. The former content stays "
        "in the history. otherParts: the memory is a part of a longer text, whose other parts stay as they are.",
        fields={
            "id": "The id of the memory, or the beginning of it that your context shows",
            "reason": "Why; the history keeps it",
            "content": "The new text",
            "type": TYPE_FOR_MODELS,
            "tags": "The new tags, instead of the old ones",
            "importance": "",
            "pinned": "true: keep it always; only the user can unpin a memory",
        },
        shown=dict.fromkeys(("id", "status", "otherParts", "redacted", "redactions"), ()),
        destructive=True,
    ),
)
DELETE_MEMORY: Final[Operation[DeleteRequest, DeleteReply]] = Operation(
    name="memories.delete",
    summary="Forget a memory",
    tag="Memories",
    method="DELETE",
    paths=("/api/memory/{id}",),
    request=DeleteRequest,
    memory_ids=("id",),
    example={"id": EXAMPLE_MEMORY, "reason": "no longer true"},
    replies={200: DeleteReply, 403: Refusal, **_CHANGE_PROBLEMS},
    permission=Permission.FORGET,
    scoped_by=BY_ALL,
    served_by="writer",
    effect=Effect.MEMORIES,
    rate="forget",
    query_too=True,
    body_required=False,
    description="Soft delete; `reason` is required in the body or in the query.",
    tool=Tool(
        name="memory_forget",
        title="Forget a memory",
        description="Forget one memory by its id, because it is wrong or no longer true. It can be recovered for some "
        "time. To correct a memory, use memory_modify instead. forgottenWith: what was forgotten too. otherParts: the "
        "other parts of the longer text that it is a part of, which stay: call again with one of these and `whole` to "
        "forget them all. saidBy: other memories that say it. saidIn: sessions whose transcript still says it, until "
        "the user erases them with `signet forget SESSION`. mayBeSaidIn: sessions that may say it in other words.",
        fields={
            "id": "The id of the memory, or the beginning of it that your context shows",
            "reason": "Why; the history keeps it",
            "whole": "true: if it is a part of a longer text, forget all of its parts",
        },
        shown=dict.fromkeys(("id", "status", "forgottenWith", "otherParts", "saidBy", "saidIn", "mayBeSaidIn"), ()),
        destructive=True,
    ),
)
RECOVER_MEMORY: Final[Operation[RecoverRequest, RecoverReply]] = Operation(
    name="memories.recover",
    summary="Recover a forgotten memory",
    tag="Memories",
    method="POST",
    paths=("/api/memory/{id}/recover",),
    request=RecoverRequest,
    memory_ids=("id",),
    deleted_first=True,
    example={"id": EXAMPLE_MEMORY, "reason": "deleted by mistake"},
    replies={200: RecoverReply, **_CHANGE_PROBLEMS},
    permission=Permission.RECOVER,
    scoped_by=BY_ALL,
    served_by="writer",
    effect=Effect.MEMORIES,
    query_too=True,
    body_required=False,
)
OPERATIONS: Final = (PATCH_MEMORY, DELETE_MEMORY, RECOVER_MEMORY)
