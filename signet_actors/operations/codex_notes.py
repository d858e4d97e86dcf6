"""Write a note for Codex. Source: memory-api.txt "POST /api/memory/codex-native-note"; docs/decisions.md 47."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import SecretRule, Tags, Text
from signet_actors.operations.operation import Effect, Operation
from signet_actors.operations.problem import PROBLEMS, Problem

MAX_NOTE_CHARS: Final = 8000


class NoteRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A note for Codex. Secrets are cut out of the whole note, after its parts were joined."""

    content: Annotated[str, Text(max_chars=MAX_NOTE_CHARS, secret=SecretRule.KEEP)]
    title: Annotated[str, Text(secret=SecretRule.KEEP)] | None = None
    tags: Annotated[tuple[str, ...], Tags(secret=SecretRule.KEEP)] = ()


class NoteReply(msgspec.Struct, frozen=True):
    """The note is on disk at the absolute ``path``."""

    path: str
    ok: Literal[True] = True
    redacted: Literal[True] | UnsetType = UNSET
    redactions: list[str] | UnsetType = UNSET


WRITE_NOTE: Final[Operation[NoteRequest, NoteReply]] = Operation(
    name="codex.write_note",
    summary="Write a note for Codex",
    tag="Memories",
    method="POST",
    paths=("/api/memory/codex-native-note",),
    request=NoteRequest,
    example={"title": "Deployments", "content": "Deployments are blocked on Fridays", "tags": ["release"]},
    replies={200: NoteReply, 409: Problem, 507: Problem, **PROBLEMS},
    permission=Permission.REMEMBER,
    effect=Effect.MEMORIES,
    owner_only=True,
)
OPERATIONS: Final = (WRITE_NOTE,)
