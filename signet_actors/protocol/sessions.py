"""What the writer keeps of a session: its state, and which memories it has received in which context epoch.

A context epoch ends with a compaction, after which the model no longer has what it received before.

Source: memory-api.txt "POST /api/memory/recall" (context ledger); docs/decisions.md 60.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from signet_actors.domain.ranking.stage_settings import Traversal
from signet_actors.protocol.memories import Memory, ReadScope, Wording
from signet_actors.protocol.message import Message, Request

OfferedBy = Literal["session_start", "prompt", "recall"]
MAX_RECEIVED: Final = 2000
"""Rows of one epoch that are left out; of more, the first received may be returned again."""


class SessionContext(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of a session of one agent. Times are ISO text.

    ``started_epoch``: the epoch in which it received the text of its start, ``start_key`` the key of that request.
    """

    session_key: str
    agent_id: str
    started_at: str
    last_active_at: str
    context_epoch: int = 0
    harness: str | None = None
    project: str | None = None
    started_epoch: int | None = None
    start_key: str | None = None


class ReturnedMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """A memory that a session received; ``request_key`` names the request, if it had a key that a retry repeats.

    ``content_version``: in the words that the memory has had since this version.
    """

    session_key: str
    agent_id: str
    context_epoch: int
    memory_id: str
    request_key: str | None = None
    content_version: int = 1


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


class SessionsRecorded(Message, frozen=True, tag="writer.sessions_recorded"):
    """All of it is on disk."""


class RecordSessions(Request[SessionsRecorded], frozen=True, tag="writer.record_sessions"):
    """Store the newest state of sessions, what they received, and what they were offered.

    Safe to repeat, but for the hits of offered memories, which are added again. An epoch never goes back.
    """

    contexts: tuple[SessionContext, ...] = ()
    returned: tuple[ReturnedMemory, ...] = ()
    offered: tuple[OfferedMemory, ...] = ()


class SetBypass(Request[SessionsRecorded], frozen=True, tag="writer.set_bypass"):
    """Switch memory off or on for a session of all agents. Safe to repeat.

    The other fields are those of the row that keeps the switch if nothing is stored of the session yet.
    """

    session_key: str
    agent_id: str
    started_at: str
    bypassed: bool


class ReturnedRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A received memory that still exists, with its ``memories.seq``, and in which words it was received."""

    memory_id: str
    seq: int
    request_key: str | None = None
    content_version: int = 1


class SessionFound(Message, frozen=True, tag="searcher.session_found"):
    """The stored state of a session, None if there is none, and what it received in its present epoch.

    ``returned``: the last ``MAX_RECEIVED`` memories, the first received one first.
    ``bypassed``: memory is switched off for the session of all agents; ``paused``: it is, or was.
    ``agent_known``: the agent has a read policy. ``project``: that of its transcript. ``of_agent``: the agent that
    used the session last; None if the key is not known.
    """

    context: SessionContext | None = None
    returned: list[ReturnedRow] = []
    bypassed: bool = False
    paused: bool = False
    agent_known: bool = True
    project: str | None = None
    of_agent: str | None = None


class GetSession(Request[SessionFound], frozen=True, tag="searcher.get_session"):
    """Read the stored state of a session."""

    session_key: str
    agent_id: str


class WordingsFound(Message, frozen=True, tag="searcher.wordings_found"):
    """Live memories by id, with the words that they have now."""

    wordings: dict[str, Wording]


class FindWordings(Request[WordingsFound], frozen=True, tag="searcher.find_wordings"):
    """Find the agent's memory of the id, or those of the group of chunks that has it."""

    id: str
    agent_id: str


class SessionStartFound(Message, frozen=True, tag="searcher.session_start_found"):
    """What a new session should know, best first.

    ``memories``: preferences and decisions; ``used``: what was asked for in the project; ``summary``: that of its last
    summarized session. ``wordings``: by id. ``newer``: by the id of each that a newer one of them corrects, the newer
    one's. ``last_active_at``: when another session of the agent was active last, None if none is known.
    ``new_memories``: how many of the readable memories were created since then.
    ``all_constraints``: how many there are, also beyond the limit.
    """

    constraints: list[Memory]
    memories: list[Memory]
    wordings: dict[str, Wording] = {}
    last_active_at: str | None = None
    new_memories: int = 0
    all_constraints: int = 0
    used: list[Memory] = []
    summary: Memory | None = None
    newer: dict[str, str] = {}


class FindSessionStart(Request[SessionStartFound], frozen=True, tag="searcher.find_session_start"):
    """Find what a session of the project should know, of the project and of no project, by decayed importance.

    ``of_all_types``: memories of any type, instead of preferences, decisions and what was asked for. ``now_ms``: the
    moment for the decay, in milliseconds since 1970. ``session_key``: the session that starts, which is not the last
    session. ``candidates``: how many rows of the highest importance are compared exactly. ``recency_bias``: how much
    the age of a memory counts, 0 to 1. ``without``: ids of what is not found among what was asked for. ``chars``: how
    much of each content; a start compares it with those of others. ``graph``: limits of
    the knowledge graph, None without it.
    """

    read: ReadScope
    now_ms: int
    project: str | None = None
    former_project: str | None = None
    session_key: str | None = None
    without: tuple[str, ...] = ()
    limit: int = 50
    max_constraints: int = 50
    decay_rate: float = 0.95
    recency_bias: float = 0.0
    min_score: float = 0.2
    candidates: int = 200
    chars: int = 8_000
    of_all_types: bool = False
    graph: Traversal | None = None


SessionQuery = GetSession | FindSessionStart | FindWordings
