"""A session as a person reads it: what was said, and beside each prompt what it was given.

Source: docs/guides/hooks.md "A session, prompt by prompt".
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from signet_actors.domain.permissions import Permission
from signet_actors.features.searches.api import SearchRow
from signet_actors.operations.field_types import Clamped, Cursor
from signet_actors.operations.hooks import GivenEarlier, SearchMemory
from signet_actors.operations.operation import BY_AGENT, EXAMPLE_SESSION, Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.transcripts import OwnAgent, TurnBody
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Answered, Request

MAX_ROWS: Final = 200
"""Of one page."""
MOST_TURNS: Final = 50_000
MOST_SEARCHES: Final = 10_000
"""The first ones of a session, of which its rows are made."""
TURN_CHARS: Final = 4_000
"""Of a turn in a row."""
ANSWER_CHARS: Final = 8_000
"""Of an answer in which words of what was given are looked for."""


class ConversationRequest(OwnAgent, frozen=True, kw_only=True, omit_defaults=True):
    """Which part of the session to return."""

    after: Annotated[
        int, Cursor(high=MOST_TURNS + MOST_SEARCHES), Meta(description="The `next` of the page before")
    ] = 0
    limit: Annotated[int, Clamped(low=1, high=MAX_ROWS), Meta(description="Rows to return")] = MAX_ROWS


class ConversationRow(msgspec.Struct, frozen=True, kw_only=True):
    """A turn, a search, or both: a prompt and what it was given.

    ``turn``: its first 4,000 characters, and ``…`` where there are more; null if it is not kept. ``compacted``: the
    context of the session began anew between the search before and this one.
    """

    turn: TurnBody | None
    search: SearchRow | None
    compacted: bool = False


class ConversationReply(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the session, the oldest row first. ``next``: what the next page is ``after``, null on the last one.

    ``version``: another one as soon as a turn, a search or a memory of any row is. ``cut``: more is kept of the session
    than its rows are made of.
    """

    rows: list[ConversationRow]
    count: int
    next: int | None
    version: str
    cut: bool


class FindPrompt(Request[Answered], frozen=True, kw_only=True, tag="conversation.find_prompt"):
    """Find what is kept of the words of the prompt ``id``, a search of the agent's session."""

    session_key: str
    agent_id: str
    id: str


class FoundPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """``found``: the session has this prompt. ``text``: as its transcript has it, else what is kept; None if erased.

    ``whole``: nothing of it is missing. ``before``: the answer that came with it, if the transcript has it.
    """

    found: bool
    harness: str | None = None
    project: str | None = None
    text: str | None = None
    whole: bool = False
    before: str = ""


class FindFate(Request[Answered], frozen=True, kw_only=True, tag="conversation.find_fate"):
    """Find what became of a memory that ``read`` may read at the search ``id`` of the agent's session."""

    session_key: str
    read: ReadScope
    id: str
    memory_id: str


class FoundFate(msgspec.Struct, frozen=True, kw_only=True):
    """``then``: what became of it, in words; None if the session has no such search, or it may not be read.

    ``memory``: its row of the search, None without one. ``earlier``: where the session had been given it before.
    """

    then: str | None = None
    memory: SearchMemory | None = None
    earlier: GivenEarlier | None = None


CONVERSATION: Final[Operation[ConversationRequest, ConversationReply]] = Operation(
    name="sessions.conversation",
    summary="What was said in a session, with what each prompt was given",
    tag="Sessions",
    method="GET",
    paths=("/api/sessions/{key}/conversation",),
    request=ConversationRequest,
    example={"key": EXAMPLE_SESSION, "limit": 20},
    replies={200: ConversationReply, 403: Problem, **PROBLEMS},
    permission=Permission.RECALL,
    scoped_by=BY_AGENT,
    served_by="searcher",
    owner_only=True,
    needs_offers=True,
    description="The turns of the transcript and the searches of the session in one list; a prompt and its turn are "
    f"one row. It has the first {MOST_TURNS:,} turns and {MOST_SEARCHES:,} searches; `cut` tells of more. "
    "Pages of one `version` belong together. If nothing is kept it is empty.",
)
OPERATIONS: Final = (CONVERSATION,)
