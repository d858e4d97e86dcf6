"""An agent that was removed from the roster is archived: nothing of it is readable or stored until it is there again.

Source: architecture.txt "Multi-Agent Support".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signet_actors.config.schema import RosterEntry
from signet_actors.errors import ErrorCode
from signet_actors.features.checkpoints.api import CheckpointRecorded, FindRecovery, RecoveryFound
from signet_actors.features.session_memories.api import FEEDBACK, FeedbackRequest
from signet_actors.features.session_scores import reads as scores
from signet_actors.features.session_scores.api import CONTINUITY, ContinuityRequest
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.message import Caller, Failure, Principal, message_of
from signet_actors.protocol.sessions import RecordSessions, SessionContext
from signet_actors.protocol.transcripts import CapturedTurn, ForgetTranscript, StoreTurns
from signet_actors.protocol.writer import ImportLine, ImportMemories, NewMemory, RememberChunks
from signet_actors.searcher.queries import sessions
from signet_actors.store.reads import transcripts
from tests.support.store_room import ENGINES, StoreRoom, recording, remembering

GONE = "agent 'ada' was removed from agents.roster; add it again to use its memories"
READERS = ("ada", "default", "lone", "mate", "stranger")
OFFERED = (
    "INSERT INTO session_memories"
    " (session_key, agent_id, memory_id, source, rank, was_injected, fts_hit_count, created_at)"
    " VALUES ('s', 'mate', ?, 'prompt', 1, 1, 1, '')"
)
SCORE = (
    "INSERT INTO session_scores (id, session_key, agent_id, score, confidence, memories_recalled, memories_used,"
    " novel_context_count, reasoning, created_at) VALUES (?1, 's', ?1, 0.5, 0.5, 1, 1, 0, 'it said: the harbour', '')"
)
STARTED = "2026-01-01T00:00:00.000Z"
BOTH = (RosterEntry("ada", "group", "g"), RosterEntry("mate", "group", "g"), RosterEntry("lone", "isolated"))
WITHOUT_ADA = BOTH[1:]


@pytest.fixture(params=list(ENGINES))
def room(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[StoreRoom]:
    room = StoreRoom(tmp_path, engine=request.param)
    yield room
    room.close()


def turn(text: str) -> CapturedTurn:
    return CapturedTurn(b"key", 0, "user", text, None, "2026-01-01T09:00:00.000Z")


def read_by(room: StoreRoom, agent: str) -> dict[str, Any]:
    """Return what the agent reads, by SQL and by the caches of a searcher."""
    read = ReadScope(agent)
    with room.reader.open_snapshot() as view:
        room.reader.sync(view)
        allowed = room.reader.allowed_rows(view, read, Filters())
        seqs = [seq for seq in range(len(allowed)) if allowed[seq]]
        found = transcripts.readable_transcript(view, "session", read)
        recovery = sessions.recovery(room.reader, view, FindRecovery(agent, session_key="session", same_session=True))
    return {
        "recalled": sorted(row.content for row in room.recall("harbour", read=read).rows),
        "cached": seqs,
        "transcript": None if found is None else found[1].agent_id,
        "recovery": recovery.read(RecoveryFound),
    }


def fill(room: StoreRoom) -> None:
    for agent in ("ada", "mate", "stranger"):
        for visibility in ("global", "private"):
            room.remember(f"The {visibility} harbour of {agent}", agent_id=agent, visibility=visibility)
    room.ask(StoreTurns("session", "ada", "text", (turn("Where is the harbour?"),)))
    room.ask(recording("session", "ada-1", "periodic", "- Recent prompt: the harbour", 1, agent="ada"))


def test_an_agent_that_is_removed_from_the_roster_is_readable_by_no_agent_until_it_is_back(room: StoreRoom) -> None:
    room.sync_roster(*BOTH)
    fill(room)
    before = {agent: read_by(room, agent) for agent in READERS}
    assert before["ada"]["recovery"] != RecoveryFound()
    assert before["ada"]["transcript"] == "ada"
    assert "The global harbour of ada" in before["mate"]["recalled"] + before["default"]["recalled"]
    rows = room.connection.execute("SELECT * FROM memories ORDER BY seq").fetchall()

    assert room.sync_roster(*WITHOUT_ADA) == ["ada"]
    after = {agent: read_by(room, agent) for agent in READERS}
    assert after["ada"] == {"recalled": [], "cached": [], "transcript": None, "recovery": RecoveryFound()}
    for agent in READERS[1:]:
        left = [text for text in before[agent]["recalled"] if not text.endswith("of ada")]
        assert after[agent]["recalled"] == left
        assert len(after[agent]["cached"]) == len(left), "the caches admit what SQL admits"
    assert room.connection.execute("SELECT * FROM memories ORDER BY seq").fetchall() == rows

    assert room.sync_roster(*BOTH) == []
    assert {agent: read_by(room, agent) for agent in READERS} == before


def test_only_agents_that_were_in_the_roster_are_archived_and_never_the_default_one(room: StoreRoom) -> None:
    room.sync_roster(*BOTH, RosterEntry("default", "isolated"))
    fill(room)
    assert room.sync_roster() == [], "an empty roster archives nobody"
    other = RosterEntry("other", "isolated")
    assert room.sync_roster(other) == ["ada", "lone", "mate"]
    assert room.sync_roster(other) == [], "an archived agent stays archived, and is told of once"
    kept = room.connection.execute("SELECT id FROM agents WHERE archived_at IS NULL ORDER BY id").fetchall()
    assert kept == [("default",), ("other",), ("stranger",)]
    assert read_by(room, "stranger")["recalled"] == [
        "The global harbour of stranger",
        "The private harbour of stranger",
    ]


def test_what_an_archived_agent_wants_to_store_is_refused(room: StoreRoom) -> None:
    room.sync_roster(*BOTH)
    fill(room)
    room.sync_roster(*WITHOUT_ADA)
    state = SessionContext("session", "ada", STARTED, STARTED, harness="codex")
    assert not isinstance(room.ask(RecordSessions((state,), (), ())), Failure), "a batch has sessions of others, too"
    caller, people = Caller("ada"), Principal()
    long = RememberChunks(NewMemory("one\ntwo", "fact", 0.5, agent_id="ada"), ("one", "two"), people)
    wanted = [
        remembering("A new harbour", agent_id="ada")[0],
        remembering("The global harbour of ada", agent_id="ada")[0],
        long,
        StoreTurns("session", "ada", "text", (turn("And now?"),)),
        ForgetTranscript("session", "ada", people),
        message_of(FEEDBACK)(caller=caller, request=FeedbackRequest(session_key="session", ratings={"id": 1.0})),
    ]
    refused = [room.ask(command) for command in wanted]
    assert [(failure.code, failure.detail) for failure in refused] == [(ErrorCode.CONFLICT, GONE)] * len(wanted)
    lines = [
        ImportLine(number, NewMemory("imported", "fact", 0.5, agent_id=agent)) for number, agent in enumerate(READERS)
    ]
    imported = room.ask(ImportMemories(tuple(lines), people))
    assert [(line.line, line.detail) for line in imported.refused] == [(0, GONE)]
    assert imported.imported == len(READERS) - 1
    assert (
        not room.ask(recording("session", "ada-2", "periodic", "- Context: more", 1, agent="ada"))
        .read(CheckpointRecorded)
        .stored
    )

    room.sync_roster(*BOTH)
    assert not isinstance(room.ask(wanted[0], message_id="again"), Failure)


def test_a_score_that_quotes_memories_of_an_archived_agent_is_without_its_reasoning(room: StoreRoom) -> None:
    room.sync_roster(*BOTH)
    memory = room.remember("The harbour", agent_id="ada")
    room.connection.execute(OFFERED, (memory.id,))
    room.connection.execute(SCORE, ("mate",))
    room.connection.execute(SCORE, ("ada",))

    def reasons(agent: str) -> list[str | None]:
        asked = message_of(CONTINUITY)(caller=Caller(agent), request=ContinuityRequest())
        with room.reader.open_snapshot() as view:
            return [score.reasoning for score in scores.continuity(view, asked).scores]

    assert reasons("mate") == reasons("ada") == ["it said: the harbour"]
    room.sync_roster(*WITHOUT_ADA)
    assert (reasons("mate"), reasons("ada")) == ([None], [])
