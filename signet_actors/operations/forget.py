"""Forget many memories: preview them, then delete exactly those.

Source: memory-api.txt "POST /api/memory/forget"; docs/compatibility.md "Forget and modify"; docs/decisions.md 38 and
42.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.domain.permissions import Permission
from signet_actors.errors import InvalidRequest
from signet_actors.operations.field_types import Clamped, FieldType, Given, Names, SecretRule, Text
from signet_actors.operations.operation import BY_ALL, Effect, Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.recall import QueryText
from signet_actors.operations.request_fields import FilterFields, LongText

BATCH_LIMIT: Final = 200
FORGOTTEN_WITH: Final = (
    "Ids of what is forgotten too: the facts that the pipeline had made of it and, with `whole`, the other parts"
)
OTHER_PARTS: Final = "Ids of the other live parts of the long text that it is a part of; they stay"
SAID_BY: Final = "Ids of other memories that say what was forgotten, or that the pipeline had made of it; they stay"
SAID_IN: Final = "Keys of the sessions whose transcripts say what was forgotten; they keep it until they are erased"
MAY_BE_SAID_IN: Final = "Keys of other sessions that may say it in much fewer or other words; prompts may be given that"


@dataclass(frozen=True, kw_only=True)
class NotForBatches(FieldType):
    """A field of the forget of one memory that a batch refuses, because ignoring it would delete other versions."""

    def read(self, given: Given) -> Any:
        raise InvalidRequest(
            "if_version is not supported for batch forget; use DELETE /api/memory/:id", field=given.name
        )


class ForgetRequest(FilterFields, frozen=True, kw_only=True, omit_defaults=True):
    """What to forget: ``ids``, ``query`` or at least one filter. ``reason`` is required to execute.

    ``force`` removes the rows at once instead of leaving tombstones, and always needs a ``confirm_token``.
    """

    mode: Literal["preview", "execute"] = "preview"
    query: QueryText | None = None
    ids: Annotated[tuple[str, ...], Names(max_items=BATCH_LIMIT)] = ()
    limit: (
        Annotated[
            int,
            Clamped(low=1, high=BATCH_LIMIT),
            Meta(description="Maximum number of memories; fractions are cut off; default: the number of ids, else 20"),
        ]
        | None
    ) = None
    reason: LongText | None = None
    force: bool = False
    if_version: Annotated[int | None, NotForBatches(), Meta(description="Refused: use DELETE /api/memory/{id}")] = None
    confirm_token: Annotated[str, Text(secret=SecretRule.KEEP)] | None = None


class ForgetCandidate(msgspec.Struct, frozen=True):
    """A memory that would be forgotten, at this version; ``score`` in [0, 1], 1.0 where nothing was ranked."""

    id: str
    score: float
    pinned: bool
    version: int


class ForgetPreviewReply(msgspec.Struct, frozen=True, rename="camel"):
    """What an execute with the same body would forget; the token is valid for exactly this set."""

    count: int
    requires_confirm: bool
    confirm_token: str
    candidates: list[ForgetCandidate]
    other_parts: Annotated[list[str], Meta(description=OTHER_PARTS)] | UnsetType = UNSET
    mode: Literal["preview"] = "preview"


class ForgetResult(msgspec.Struct, frozen=True, rename="camel"):
    """Outcome for one memory; a hard delete has no ``newVersion``."""

    id: str
    status: str
    current_version: int | UnsetType = UNSET
    new_version: int | UnsetType = UNSET
    error: str | UnsetType = UNSET


class ForgetReply(msgspec.Struct, frozen=True, rename="camel"):
    """The batch is done; each result describes the outcome for one memory."""

    requested: int
    deleted: int
    results: list[ForgetResult]
    mode: Literal["execute"] = "execute"
    forgotten_with: Annotated[list[str], Meta(description=FORGOTTEN_WITH)] | UnsetType = UNSET
    other_parts: Annotated[list[str], Meta(description=OTHER_PARTS)] | UnsetType = UNSET
    said_by: Annotated[list[str], Meta(description=SAID_BY)] | UnsetType = UNSET
    said_in: Annotated[list[str], Meta(description=SAID_IN)] | UnsetType = UNSET
    may_be_said_in: Annotated[list[str], Meta(description=MAY_BE_SAID_IN)] | UnsetType = UNSET


class ForgetProblem(msgspec.Struct, frozen=True, rename="camel"):
    """Nothing was forgotten: a confirmation is missing, used up, or for another set of memories."""

    error: str
    code: str
    requires_confirm: bool
    count: int
    confirm_token: str | UnsetType = UNSET
    field: str | UnsetType = UNSET


FORGET_MEMORIES: Final[Operation[ForgetRequest, ForgetPreviewReply | ForgetReply]] = Operation(
    name="memories.forget",
    summary="Forget many memories",
    tag="Memories",
    method="POST",
    paths=("/api/memory/forget",),
    request=ForgetRequest,
    memory_ids=("ids",),
    example={"mode": "preview", "tags": ["scratch"], "limit": 20},
    replies={
        200: ForgetPreviewReply | ForgetReply,
        **PROBLEMS,
        400: ForgetProblem | Problem,
        403: Problem,
        409: ForgetProblem | Problem,
        504: Problem,
        507: Problem,
    },
    permission=Permission.FORGET,
    scoped_by=BY_ALL,
    served_by="writer",
    audited=True,
    effect=Effect.MAYBE_MEMORIES,
    rate="batchForget",
    owner_only=True,
    description=(
        "Preview (the default mode) deletes nothing. Its token is required with force, and if more than 25 "
        "memories match (before limit) or were deleted by such requests within 5 minutes."
    ),
)
OPERATIONS: Final = (FORGET_MEMORIES,)
