"""A recall with ``expand`` returns what was said in the sessions of its results, to the user that runs the daemon."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signet_actors.errors import ErrorCode, SignetError, Unavailable
from signet_actors.gateway import app
from signet_actors.protocol.searcher import Recall, Recalled, RecalledRow
from signet_actors.protocol.transcripts import ExpandSessions, SessionExcerpt, SessionsExpanded
from tests.support.memory_api import Answer, MemoryApi


def row(id_: str, **fields: Any) -> RecalledRow:
    return RecalledRow(
        **{
            "id": id_,
            "content": "text",
            "score": 0.9,
            "source": "keyword",
            "type": "fact",
            "tags": [],
            "pinned": False,
            "importance": 0.8,
            "who": None,
            "project": None,
            "scope": None,
            "visibility": "global",
            "agent_id": "default",
            "created_at": "2026-11-20T10:00:00.000Z",
            **fields,
        }
    )


@pytest.fixture
def api(tmp_path: Path) -> MemoryApi:
    made = MemoryApi(tmp_path)
    made.bus.script[Recall] = Recalled(
        rows=[
            row("one", session_id="session:s"),
            row("two", source_id="s"),
            row("three"),
            row("four", session_id="t", agent_id="ann"),
        ],
        method="keyword",
        timings=[],
    )
    made.bus.script[ExpandSessions] = SessionsExpanded([SessionExcerpt("default", "s", "User: Where is the ferry?")])
    return made


def recall(api: MemoryApi, **fields: Any) -> Answer:
    return api.request("POST", "/api/memory/recall", {"query": "ferry", **fields})


def test_each_result_names_the_session_of_which_a_part_is_added(api: MemoryApi) -> None:
    answer = recall(api, expand=True).json
    assert answer["sources"] == {"s": "User: Where is the ferry?"}
    assert [result.get("session_key") for result in answer["results"]] == ["s", "s", None, None]
    asked = api.bus.only(ExpandSessions).body
    assert asked.sessions == (("default", "s"), ("ann", "t"))
    assert (asked.query, asked.read.agent_id) == ("ferry", "default")


def test_without_expand_no_transcript_is_read(api: MemoryApi) -> None:
    answer = recall(api).json
    assert "sources" not in answer
    assert all("session_key" not in result for result in answer["results"])
    assert not any(isinstance(sent.body, ExpandSessions) for sent in api.bus.asked)


def test_transcripts_that_cannot_be_read_do_not_fail_the_recall(api: MemoryApi) -> None:
    api.bus.script[ExpandSessions] = Unavailable()
    answer = recall(api, expand=True)
    assert answer.status == 200
    assert len(answer.json["results"]) == 4
    assert answer.json["sources"] == {}
    assert answer.json["warnings"][0].startswith("expand: no transcript is added")


def test_another_user_of_the_machine_gets_no_transcript(api: MemoryApi, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: Any) -> None:
        raise SignetError("Only the user that runs the daemon may make this request", code=ErrorCode.FORBIDDEN)

    monkeypatch.setattr(app, "require_owner", refuse)
    answer = recall(api, expand=True)
    assert (answer.status, answer.json["sources"]) == (200, {})
    assert "Only the user that runs the daemon" in answer.json["warnings"][0]
    assert not any(isinstance(sent.body, ExpandSessions) for sent in api.bus.asked)


def test_another_user_of_the_machine_gets_no_turn(api: MemoryApi, monkeypatch: pytest.MonkeyPatch) -> None:
    turn = row("turn:1", type="session_turn", session_id="s", content="User: Where is the ferry?")
    api.bus.script[Recall] = Recalled(rows=[row("one")], method="keyword", timings=[], turns=[turn])
    assert [result["id"] for result in recall(api).json["results"]] == ["one", "turn:1"]

    async def refuse(*_: Any) -> None:
        raise SignetError("Only the user that runs the daemon may make this request", code=ErrorCode.FORBIDDEN)

    monkeypatch.setattr(app, "require_owner", refuse)
    answer = recall(api).json
    assert [result["id"] for result in answer["results"]] == ["one"]
    assert "warnings" not in answer


def test_turns_end_at_the_limit_of_the_recall(api: MemoryApi) -> None:
    turns = [row(f"turn:{number}", type="session_turn", session_id=f"s-{number}") for number in range(3)]
    api.bus.script[Recall] = Recalled(rows=[row("one"), row("two")], method="keyword", timings=[], turns=turns)
    answer = recall(api, limit=3).json
    assert [result["id"] for result in answer["results"]] == ["one", "two", "turn:0"]
    assert answer["meta"]["totalReturned"] == 3
