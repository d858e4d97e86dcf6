"""A memory that does not answer takes no place of a turn that does. Source: docs/guides/transcripts.md."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.live_daemon import Client

pytestmark = pytest.mark.system

TALK = """User: On which port does the staging database listen?
Assistant: On port 5433, behind the tunnel."""
QUESTION = "on which port does the staging database listen?"
ANSWER = "The staging database listens on port 5433"
UNRELATED = (
    "The staging of the play was moved to the garden",
    "The database of birds has a nice cover",
    "The oven of the kitchen is broken",
    "Deploys go out on Tuesdays",
    "The port of Kiel is frozen in winter",
    "We listen to the radio at lunch",
    "Mia is on call this week",
    "The garden needs water",
    "Tom uses the shell fish",
    "Die Werft hat ein neues Tor",
    "The crawler is written in Rust",
    "La impresora necesita papel",
)


def recalled(room: Client, **fields: Any) -> list[dict[str, Any]]:
    body = {"query": QUESTION, "min_score": 0.0, **fields}
    results: list[dict[str, Any]] = room.post("/api/memory/recall", body).ok()["results"]
    return results


@pytest.fixture
def with_talk(room: Client) -> Client:
    room.post("/api/hooks/session-end", {"harness": "x", "sessionKey": "said", "transcript": TALK}).ok()
    for text in UNRELATED:
        room.remember(text)
    return room


@pytest.mark.parametrize("limit", [1, 2, 5, 10])
def test_a_turn_that_answers_is_a_result_before_the_last_memory_that_does_not(with_talk: Client, limit: int) -> None:
    found = recalled(with_talk, limit=limit)
    assert len(found) == limit
    assert [one["type"] == "session_turn" for one in found] == [False] * (limit - 1) + [True]
    assert found[-1]["relevance"] >= 0.5
    assert [one["score"] for one in found] == sorted((one["score"] for one in found), reverse=True)


def test_a_memory_that_answers_keeps_its_place(with_talk: Client) -> None:
    answer = with_talk.remember(ANSWER)["id"]
    assert [one["id"] for one in recalled(with_talk, limit=1)] == [answer]
    first, second = recalled(with_talk, limit=2)
    assert (first["id"], second["type"]) == (answer, "session_turn")


def test_without_a_turn_that_answers_all_memories_stay(with_talk: Client) -> None:
    found = recalled(with_talk, query="who waters the garden?", limit=5)
    assert len(found) == 5
    assert "session_turn" not in [one["type"] for one in found]


def test_a_memory_that_makes_room_is_not_noted_as_received(with_talk: Client) -> None:
    (turn,) = recalled(with_talk, limit=1, sessionKey="asks")
    assert turn["type"] == "session_turn"
    assert recalled(with_talk, limit=20, sessionKey="asks")[0]["content"] in UNRELATED
