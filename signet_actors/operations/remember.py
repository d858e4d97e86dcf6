"""Remember a text.

Names and spellings are those of the documents; ``tags`` is a comma string or null here (docs/decisions.md 31).
Source: memory-api.txt "POST /api/memory/remember"; docs/compatibility.md "Remember".
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.domain.permissions import Permission
from signet_actors.operations import field_types as types
from signet_actors.operations.operation import BY_ALL, OWNERS_SESSION, Effect, Operation, Tool
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import TYPE_FOR_MODELS, CallerFields, Importance, LongText
from signet_actors.operations.structured import Structured, StructuredField
from signet_actors.operations.transcripts import TranscriptText

RowKey = Annotated[str, types.Text(max_chars=types.MAX_TEXT_CHARS, secret=types.SecretRule.DIGEST)]
"""A key that makes a memory unique among those of its agent."""


class ProvenanceFields(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Provenance of a memory in the spelling that importers use."""

    source_path: LongText | None = None
    runtime_path: LongText | None = None
    idempotency_key: RowKey | None = None


class RememberRequest(CallerFields, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A memory to store; only ``content`` is required.

    snake_case spellings are accepted too. ``warnings`` in the reply names fields that had no effect. ``transcript``
    is stored too, and marks ``sourceId`` as a session key, which is never used to deduplicate.
    """

    content: Annotated[str, types.Content()]
    type: Annotated[str, types.MemoryType()] | None = None
    who: str | None = None
    project: str | None = None
    scope: Annotated[str, types.Text(secret=types.SecretRule.REFUSE)] | None = None
    importance: Importance | None = None
    tags: Annotated[tuple[str, ...], types.Tags()] | None = None
    pinned: bool | None = None
    source_type: str | None = None
    source_id: LongText | None = None
    source_path: LongText | None = None
    runtime_path: LongText | None = None
    idempotency_key: RowKey | None = None
    created_at: Annotated[str, types.Timestamp(past=True)] | None = None
    occurred_at: Annotated[str, types.Timestamp()] | None = None
    observed_at: Annotated[str, types.Timestamp()] | None = None
    source_created_at: Annotated[str, types.Timestamp()] | None = None
    valid_from: Annotated[str, types.Timestamp()] | None = None
    valid_until: Annotated[str, types.Timestamp()] | None = None
    visibility: Literal["global", "private"] = "global"
    prefixes: Annotated[bool, Meta(description="false: `critical:` and `[a,b]:` at the beginning are text")] = True
    structured: (
        Annotated[Structured, StructuredField(), Meta(description="Entities, aspects and hints of the memory")] | None
    ) = None
    transcript: (
        Annotated[str, TranscriptText(), Meta(description="The conversation of the session that sourceId names")] | None
    ) = None
    metadata: ProvenanceFields | None = None
    similar: Annotated[
        bool | None,
        Meta(description="true: the reply names similar memories; default: for the memory tools and the command line"),
    ] = None


class SimilarMemory(msgspec.Struct, frozen=True, rename="camel"):
    """A memory about the same as the one that was stored, which may replace it. ``content`` may be cut."""

    id: str
    content: str
    created_at: str
    relevance: float


class RememberReply(msgspec.Struct, frozen=True):
    """The memory is on disk, or it duplicates an existing one (``deduped``), whose ``id`` this is.

    ``redacted`` is present only if a secret was removed; ``redactions`` are the kinds of the secrets, as in their
    placeholders ``[REDACTED:<kind>]``. ``embedded``: its vector is stored; if not, it may follow. ``similar``: at most
    three older memories about the same, best first; absent if there are none, if they are not asked for, or if they
    cannot be found in time.
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
    similar: list[SimilarMemory] | UnsetType = UNSET


class RememberChunksReply(msgspec.Struct, frozen=True):
    """An oversized content is on disk as chunks, in the order of the text."""

    chunk_count: int
    ids: list[str]
    group_id: str
    chunked: Literal[True] = True
    deduped: Literal[True] | UnsetType = UNSET
    redacted: Literal[True] | UnsetType = UNSET
    redactions: list[str] | UnsetType = UNSET


REMEMBER: Final[Operation[RememberRequest, RememberReply | RememberChunksReply]] = Operation(
    name="memories.remember",
    summary="Store a memory",
    tag="Memories",
    method="POST",
    paths=("/api/memory/remember", "/api/memory/save", "/api/hook/remember"),
    request=RememberRequest,
    example={
        "content": "The staging database listens on port 5433",
        "tags": ["ops", "db"],
        "importance": 0.9,
        "structured": {
            "entities": [{"source": "shop", "relationship": "uses", "target": "PostgreSQL"}],
            "aspects": [
                {
                    "entity": "shop",
                    "aspect": "database",
                    "attributes": [{"content": "staging listens on port 5433", "claimKey": "port"}],
                }
            ],
        },
    },
    replies={
        200: RememberReply | RememberChunksReply,
        409: Problem,
        413: Problem,
        504: Problem,
        507: Problem,
        **PROBLEMS,
    },
    owner_parts=f"`transcript`, and {OWNERS_SESSION}",
    permission=Permission.REMEMBER,
    scoped_by=BY_ALL,
    served_by="writer",
    effect=Effect.MEMORIES,
    description="`critical: text` pins the memory, `[a,b]: text` sets tags; body fields override these prefixes. Over "
    "MCP they are text. Without `project`, the memory belongs to that of the caller's session, if hooks told where it "
    "began; an empty text: to none.",
    tool=Tool(
        name="memory_store",
        title="Store a memory",
        description="Store one fact, decision, preference or lesson that will matter in later sessions, as a sentence "
        "that can be understood alone. When this returns, the memory is on disk. The same text is stored once. The "
        "reply names `similar` older memories: if the new one replaces one of them, forget that one (memory_forget), "
        "so that no outdated fact stays.",
        fields={
            "content": "One or two sentences that can be understood without this session",
            "type": f"{TYPE_FOR_MODELS}; default: told from the text",
            "importance": "How much it matters in later sessions; default 0.8",
            "tags": "A few words to find it by",
            "pinned": "true: keep it always, at the highest importance",
            "project": "The absolute directory of its project; leave it out for the one that you work in, and give an "
            "empty text for what holds in every project, such as a preference of the user",
            "session_key": "",
        },
        shown={
            **dict.fromkeys(
                ("id", "ids", "content", "type", "tags", "pinned", "deduped", "redacted", "redactions"), ()
            ),
            "similar": ("id", "content", "createdAt"),
        },
    ),
)
OPERATIONS: Final = (REMEMBER,)
