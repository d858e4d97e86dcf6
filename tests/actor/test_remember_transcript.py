"""A transcript that comes with a memory is stored for the session that ``sourceId`` names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signet_actors.errors import Unavailable
from signet_actors.protocol.transcripts import CapturePosition, StoreTurns, TranscriptStored
from signet_actors.protocol.writer import Remember, Remembered
from tests.support.memory_api import Answer, MemoryApi

TALK = "User: Where is the ferry?\nAssistant: At the pier"


@pytest.fixture
def api(tmp_path: Path) -> MemoryApi:
    made = MemoryApi(tmp_path)
    made.bus.script[Remember] = lambda asked: Remembered(
        "m1", asked.memory.type, [], False, 0.8, asked.memory.content, True, False, 1
    )
    made.bus.script[StoreTurns] = lambda asked: TranscriptStored(len(asked.turns), position=CapturePosition(0, b""))
    return made


def remember(api: MemoryApi, **fields: Any) -> Answer:
    return api.request("POST", "/api/memory/remember", {"content": "The ferry is at the pier", **fields})


def stores(api: MemoryApi) -> list[StoreTurns]:
    return [sent.body for sent in api.bus.asked if isinstance(sent.body, StoreTurns)]


def test_it_is_stored_after_the_memory_under_the_session_and_its_agent(api: MemoryApi) -> None:
    answer = remember(api, sourceId="session:s-1", transcript=TALK, agentId="ann", project="/p")
    assert answer.status == 200
    assert "warnings" not in answer.json
    assert [type(sent.body) for sent in api.bus.asked] == [Remember, StoreTurns]
    (command,) = stores(api)
    assert (command.session_key, command.agent_id, command.project) == ("s-1", "ann", "/p")
    assert [turn.content for turn in command.turns] == ["Where is the ferry?", "At the pier"]


@pytest.mark.parametrize(
    ("fields", "warning"),
    [
        ({}, "sourceId names no session"),
        ({"sourceId": "s" * 2000}, "sourceId names no session"),
        ({"sourceId": "s", "transcript": f"{TALK}\n" * 25_001}, "more than 50000 turns"),
    ],
)
def test_the_memory_is_stored_without_a_transcript_that_cannot_be(
    api: MemoryApi, fields: dict[str, str], warning: str
) -> None:
    answer = remember(api, **{"transcript": TALK, **fields})
    assert answer.json["id"] == "m1"
    assert warning in answer.json["warnings"][0]
    assert stores(api) == []


def test_a_forgotten_session_stays_forgotten(api: MemoryApi) -> None:
    api.bus.script[StoreTurns] = TranscriptStored(added=0, forgotten=True)
    answer = remember(api, sourceId="s", transcript=TALK)
    assert (answer.status, "forgotten" in answer.json["warnings"][0]) == (200, True)


def test_a_failure_after_the_memory_is_stored_asks_for_a_retry(api: MemoryApi) -> None:
    api.bus.script[StoreTurns] = Unavailable()
    answer = remember(api, sourceId="s", transcript=TALK)
    assert (answer.status, answer.json["code"]) == (504, "outcome_unknown")
    assert "the memory is stored" in answer.json["error"]


def test_a_refused_memory_brings_no_transcript(api: MemoryApi) -> None:
    assert remember(api, content="  ", sourceId="s", transcript=TALK).status == 400
    assert stores(api) == []
