"""Which memories a session was offered and shown, how often it searched for them, and what its agent said about them.

Source: memory-pipeline.txt "Continuity Scoring"; architecture.txt "agent_feedback"; docs/guides/hooks.md "Sessions".
"""

from __future__ import annotations

from typing import Literal

import msgspec

from signet_actors.operations.session_memories import SessionMemoryBody, SessionMetrics
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import KeyedRequest, Message, Principal, Request

OfferedBy = Literal["session_start", "prompt", "recall"]


class OfferedMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """A memory that was considered for a session.

    ``rank`` counts from 1, the best. ``was_injected``: the session was shown it. ``hits``: searches of the session
    whose words it matched, to be added to those before.
    """

    session_key: str
    agent_id: str
    memory_id: str
    source: OfferedBy
    rank: int
    was_injected: bool = False
    hits: int = 0


class Rating(msgspec.Struct, frozen=True):
    """How useful a memory was, from -1 to 1."""

    memory_id: str
    score: float


class FeedbackRecorded(Message, frozen=True, tag="writer.feedback_recorded"):
    """The ratings of these memories are on disk; others were not offered to the session, or do not exist."""

    accepted: list[str]


class RecordFeedback(KeyedRequest[FeedbackRecorded], frozen=True, tag="writer.record_feedback"):
    """Add ratings to the mean of each memory that the session was offered."""

    session_key: str
    agent_id: str
    ratings: tuple[Rating, ...]
    principal: Principal


class SessionMemoriesFound(Message, frozen=True, tag="searcher.session_memories_found"):
    """A page, in the order in which the session was offered them. ``known``: something is stored of the session."""

    known: bool
    memories: list[SessionMemoryBody]
    metrics: SessionMetrics


class ListSessionMemories(Request[SessionMemoriesFound], frozen=True, tag="searcher.list_session_memories"):
    """Read what a session of the reading agent was offered, as far as these memories are still readable.

    ``injected_only``: only what a hook showed it, by rank; the metrics are of these. ``chars``: how much of each
    content, None: all.
    """

    session_key: str
    read: ReadScope
    limit: int
    offset: int = 0
    injected_only: bool = False
    chars: int | None = None
