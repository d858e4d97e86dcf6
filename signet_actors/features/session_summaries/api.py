"""Summaries of ended sessions: list them, and read one with what belongs to it.

Source: docs/compatibility.md "Summaries of sessions"; docs/guides/transcripts.md "Summaries".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.domain.dated_sections import DatedMemory
from signet_actors.operations.field_types import (
    ABSENT,
    WHOLE_INTEGER,
    ArgumentForm,
    Clamped,
    FieldType,
    Flag,
    Given,
    SecretRule,
    Text,
)
from signet_actors.operations.operation import EXAMPLE_MEMORY, SESSION_READ, Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import Offset
from signet_actors.operations.transcripts import OwnAgent
from signet_actors.protocol.message import Answered, Request

MAX_LISTED: Final = 200
MIN_EXCERPT_CHARS: Final = 400
MAX_EXCERPT_CHARS: Final = 12_000


@dataclass(frozen=True, kw_only=True)
class Depth(FieldType):
    """A non-negative integer."""

    argument = ArgumentForm.JSON

    def read(self, given: Given) -> Any:
        text = str(given.value).strip()
        if not text:
            return ABSENT
        if WHOLE_INTEGER.fullmatch(text) is None or text.startswith("-"):
            raise given.invalid("must be a non-negative integer")
        return min(int(text[:9]), MAX_LISTED)


class ListSummariesRequest(OwnAgent, frozen=True, kw_only=True, omit_defaults=True):
    """Which summaries to list."""

    project: (
        Annotated[
            str, Text(secret=SecretRule.KEEP, max_chars=4096), Meta(description="Only of sessions of this project")
        ]
        | None
    ) = None
    depth: Annotated[int, Depth(), Meta(description="Level of the summaries: 0, the only one")] | None = None
    limit: Annotated[int, Clamped(low=0, high=MAX_LISTED), Meta(description="Summaries to return")] = 50
    offset: Offset = 0


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A summary; ``id`` is that of the memory that holds it. ``note``: its file in the workspace's memory directory.

    ``earliest_at``, ``latest_at``: when the conversation began and ended.
    """

    id: str
    project: str | None
    depth: Literal[0] = 0
    kind: Literal["session"] = "session"
    content: str
    token_count: int
    earliest_at: str
    latest_at: str
    session_key: str
    harness: str | None
    agent_id: str
    source_type: Literal["summary"] = "summary"
    source_ref: str
    meta_json: None = None
    created_at: str
    note: str | None
    child_count: Annotated[Literal[0], Meta(description="A summary of a session has no parts")] = msgspec.field(
        name="childCount", default=0
    )


class SummariesReply(msgspec.Struct, frozen=True):
    """A page of summaries, the latest session first; ``total`` counts all that match."""

    summaries: list[Summary]
    total: int


class ExpandSummaryRequest(OwnAgent, frozen=True, kw_only=True, omit_defaults=True):
    """Which summary to read, and how much of the transcript."""

    id: Annotated[str, Text(secret=SecretRule.KEEP, missing="id is required"), Meta(description="The summary")]
    include_transcript: Annotated[bool, Flag(), Meta(description="Also the beginning of the transcript")] = (
        msgspec.field(name="includeTranscript", default=True)
    )
    transcript_char_limit: Annotated[
        int, Clamped(low=MIN_EXCERPT_CHARS, high=MAX_EXCERPT_CHARS), Meta(description="Characters of the transcript")
    ] = msgspec.field(name="transcriptCharLimit", default=2_000)


class SummaryNode(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A summary, as in the list."""

    id: str
    project: str | None
    depth: Literal[0] = 0
    kind: Literal["session"] = "session"
    content: str
    token_count: int
    earliest_at: str
    latest_at: str
    session_key: str
    harness: str | None
    agent_id: str
    source_type: Literal["summary"] = "summary"
    source_ref: str
    meta_json: None = None
    created_at: str
    note: str | None


class LinkedMemoryBody(msgspec.Struct, frozen=True, rename="camel"):
    """A memory that the pipeline made from the summary. ``content`` is null if the reply has no room for it."""

    id: str
    content: str | None
    type: str
    created_at: str
    deleted: Literal[False] = False


class TranscriptExcerpt(msgspec.Struct, frozen=True, rename="camel"):
    """The beginning of the session's transcript; ``excerpt`` is shorter than ``content``."""

    session_key: str
    harness: str | None
    project: str | None
    updated_at: str
    excerpt: str
    content: str


class ExpandSummaryReply(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A summary with the memories made from it; parents and children are empty, as there is one level."""

    node: SummaryNode
    parents: list[SummaryNode] = []
    children: list[SummaryNode] = []
    linked_memories: list[LinkedMemoryBody]
    transcript: TranscriptExcerpt | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET


class FindDated(Request[Answered], frozen=True, tag="session_summaries.find_dated"):
    """Find the summaries of the latest sessions that the agent may read; ``chars``: how much of each content."""

    agent_id: str
    limit: int
    chars: int


class DatedSummaries(msgspec.Struct, frozen=True):
    """Summaries as memories, the latest session first; each with the time at which its session ended."""

    summaries: list[DatedMemory]


LIST: Final[Operation[ListSummariesRequest, SummariesReply]] = Operation(
    name="sessions.summaries",
    summary="Summaries of ended sessions",
    tag="Sessions",
    paths=("/api/sessions/summaries",),
    request=ListSummariesRequest,
    example={"limit": 10},
    replies={200: SummariesReply, 403: Problem, **PROBLEMS},
    **SESSION_READ,
)
EXPAND: Final[Operation[ExpandSummaryRequest, ExpandSummaryReply]] = Operation(
    name="sessions.expand_summary",
    summary="Read a summary with what belongs to it",
    tag="Sessions",
    method="POST",
    paths=("/api/sessions/summaries/expand",),
    request=ExpandSummaryRequest,
    memory_ids=("id",),
    example={"id": EXAMPLE_MEMORY},
    replies={200: ExpandSummaryReply, 403: Problem, 404: Problem, **PROBLEMS},
    **SESSION_READ,
)
OPERATIONS: Final = (LIST, EXPAND)
