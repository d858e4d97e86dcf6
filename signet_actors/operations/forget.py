"""Public bodies of the batch forget.

Source: memory-api.txt "POST /api/memory/forget"; docs/compatibility.md "Forget and modify"; docs/decisions.md 38 and
42.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.operations.memories import Importance, TagsInput


class ForgetRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What to forget: ``ids``, ``query`` or at least one filter. ``reason`` is required to execute.

    ``force`` removes the rows at once instead of leaving tombstones, and always needs a ``confirm_token``.
    """

    mode: Literal["preview", "execute"] = "preview"
    query: str | None = None
    ids: list[str] | None = None
    type: str | None = None
    tags: TagsInput = None
    who: str | None = None
    source_type: str | None = None
    since: str | None = None
    until: str | None = None
    project: str | None = None
    pinned: bool | None = None
    importance_min: Importance | None = None
    limit: Annotated[
        float, Meta(description="Maximum number of memories; fractions are truncated; limited to 1 to 200")
    ] = 20
    reason: str | None = None
    force: bool = False
    confirm_token: str | None = None


class ForgetCandidateBody(msgspec.Struct, frozen=True):
    """A memory that would be forgotten, at this version."""

    id: str
    score: float
    pinned: bool
    version: int


class ForgetPreviewReply(msgspec.Struct, frozen=True, rename="camel"):
    """What an execute with the same body would forget; the token is valid for exactly this set."""

    count: int
    requires_confirm: bool
    confirm_token: str
    candidates: list[ForgetCandidateBody]
    mode: Literal["preview"] = "preview"


class ForgetResult(msgspec.Struct, frozen=True, rename="camel"):
    """Outcome for one memory; a hard delete has no ``newVersion``."""

    id: str
    status: str
    current_version: int | UnsetType = UNSET
    new_version: int | UnsetType = UNSET
    error: str | UnsetType = UNSET


class ForgetReply(msgspec.Struct, frozen=True):
    """The batch is done; each result describes the outcome for one memory."""

    requested: int
    deleted: int
    results: list[ForgetResult]
    mode: Literal["execute"] = "execute"


class ForgetProblem(msgspec.Struct, frozen=True, rename="camel"):
    """Nothing was forgotten: a confirmation is missing, used up, or for another set of memories."""

    error: str
    code: str
    requires_confirm: bool
    count: int
    confirm_token: str | UnsetType = UNSET
    field: str | UnsetType = UNSET
