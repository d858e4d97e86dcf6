"""Public bodies of the Codex native note.

Source: memory-api.txt "POST /api/memory/codex-native-note"; docs/decisions.md 47.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType


class NoteRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A note for Codex."""

    content: Annotated[str, Meta(max_length=8000)]
    title: str | None = None
    tags: str | None = None


class NoteReply(msgspec.Struct, frozen=True):
    """The note is on disk at the absolute ``path``."""

    path: str
    ok: Literal[True] = True
    redacted: Literal[True] | UnsetType = UNSET
    redactions: list[str] | UnsetType = UNSET
