"""A session that was resumed or forked begins with copies of the turns of another one: these count once.

Source: docs/guides/transcripts.md "Copied turns".
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.live_daemon import Client, LiveDaemon

pytestmark = pytest.mark.system
NAMES = itertools.count(1)
FIRST = (("user", "Where does the walrusgate keep its lock file?"), ("assistant", "Below run, as walrusgate.lock."))
NEXT = (("user", "Who may delete the heronlatch?"), ("assistant", "Only the night shift may delete the heronlatch."))
Said = tuple[tuple[str, str], ...]


def claude(key: str, said: Said, start: int = 0, origin: str | None = None, **fields: Any) -> list[dict[str, Any]]:
    return [
        {
            "type": role,
            "sessionId": key,
            "uuid": f"00000000-0000-4000-8000-{number:012}",
            "message": {"role": role, "content": text},
            **({"forkedFrom": {"sessionId": origin, "messageUuid": f"{number}"}} if origin else {}),
            **fields,
        }
        for number, (role, text) in enumerate(said, start)
    ]


def timed(key: str, said: Said, start: int = 0, **fields: Any) -> list[dict[str, Any]]:
    records = claude(key, said, start, **fields)
    return [{**record, "timestamp": f"2026-11-20T09:00:{start + n:02}.000Z"} for n, record in enumerate(records)]


def qwen(key: str, said: Said, start: int = 0, **fields: Any) -> list[dict[str, Any]]:
    found = []
    for record in claude(key, said, start, **fields):
        text = record["message"]["content"]
        role = "model" if record["type"] == "assistant" else "user"
        found.append({**record, "message": {"role": role, "parts": [{"text": text}]}})
    return found


def codex(key: str, said: Said, start: int = 0, origin: str | None = None, **_: Any) -> list[dict[str, Any]]:
    meta = {"id": key, "cwd": "/srv/shop", **({"forked_from_id": origin} if origin else {})}
    records: list[dict[str, Any]] = [] if start else [{"timestamp": NOW, "type": "session_meta", "payload": meta}]
    for role, text in said:
        payload = {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
        records.append(
            {"timestamp": f"2026-11-20T09:{next(NAMES) % 60:02}:00Z", "type": "response_item", "payload": payload}
        )
    return records


NOW = "2026-11-20T09:00:00Z"
PROGRAMS: dict[str, Callable[..., list[dict[str, Any]]]] = {
    "claude-code": claude,
    "claude-code with times": timed,
    "qwen": qwen,
    "codex": codex,
}


def end(agent: Client, key: str, records: list[dict[str, Any]], **fields: Any) -> Any:
    text = "".join(json.dumps(record) + "\n" for record in records)
    return agent.post("/api/hooks/session-end", {"harness": "x", "sessionKey": key, "transcript": text, **fields}).ok()


def hits(agent: Client, query: str, **fields: Any) -> list[str]:
    found = agent.post("/api/sessions/search", {"query": query, **fields}).ok()["hits"]
    return [hit["sessionKey"] for hit in found]


def turns_of(agent: Client, key: str) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = agent.get(f"/api/sessions/{key}/transcript", view="turns").ok()["turns"]
    return turns


def recalled(agent: Client, query: str, **fields: Any) -> list[str]:
    asked = {"query": query, "type": "session_turn", **fields}
    return [one["session_key"] for one in agent.post("/api/memory/recall", asked).ok()["results"]]


@pytest.fixture
def agent(daemon: LiveDaemon) -> Client:
    return daemon.agent(f"forking-{next(NAMES)}")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_turn_that_a_fork_has_copied_is_found_once(agent: Client, program: str) -> None:
    records = PROGRAMS[program]
    end(agent, "first", records("first", FIRST))
    forked = [*records("fork", FIRST, origin="first" if program == "codex" else None), *records("fork", NEXT, 2)]
    assert end(agent, "fork", forked)["newTurns"] == 4
    assert end(agent, "fork", forked)["newTurns"] == 0
    assert hits(agent, "walrusgate lock file") == ["first"]
    assert hits(agent, "heronlatch") == ["fork"]
    assert recalled(agent, "where does the walrusgate keep its lock file?") == ["first"]
    assert [turn.get("copyOf") for turn in turns_of(agent, "fork")] == ["first", "first", None, None]
    assert [turn.get("copyOf") for turn in turns_of(agent, "first")] == [None, None]
    [hit] = agent.post("/api/sessions/search", {"query": "walrusgate", "sessionKey": "fork"}).ok()["hits"]
    assert (hit["sessionKey"], hit["copyOf"]) == ("fork", "first")


def test_a_fork_that_names_the_record_it_copied_is_recognised(agent: Client) -> None:
    original = [{**record, "uuid": str(number)} for number, record in enumerate(claude("first", FIRST))]
    end(agent, "first", original)
    end(agent, "fork", claude("fork", FIRST, origin="first"))
    assert hits(agent, "walrusgate") == ["first"]


def test_the_session_that_asks_gets_no_original_of_its_own_turns(agent: Client) -> None:
    end(agent, "first", claude("first", FIRST))
    end(agent, "fork", [*claude("fork", FIRST), *claude("fork", NEXT, 2)])
    for current in ("fork", "first"):
        assert hits(agent, "walrusgate", currentSessionKey=current) == []
        assert recalled(agent, "where does the walrusgate keep its lock file?", sessionKey=current) == []


def test_a_copy_is_found_when_its_original_is_erased_or_of_another_project(agent: Client) -> None:
    end(agent, "first", claude("first", FIRST), cwd="/srv/shop")
    end(agent, "fork", claude("fork", FIRST), cwd="/srv/barn")
    assert hits(agent, "walrusgate", project="/srv/barn") == ["fork"]
    assert hits(agent, "walrusgate", project="/srv/shop") == ["first"]
    agent.request("DELETE", "/api/sessions/first/transcript").ok()
    assert hits(agent, "walrusgate") == ["fork"]
    assert [turn.get("copyOf") for turn in turns_of(agent, "fork")] == [None, None]


def test_a_fork_of_a_fork_names_the_first_session(agent: Client) -> None:
    for key in ("first", "second", "third"):
        end(agent, key, claude(key, FIRST))
    assert hits(agent, "walrusgate") == ["first"]
    assert turns_of(agent, "third")[0]["copyOf"] == "first"


def test_what_was_said_twice_is_no_copy(agent: Client, daemon: LiveDaemon) -> None:
    end(agent, "monday", claude("monday", FIRST))
    end(agent, "tuesday", claude("tuesday", FIRST, start=7))
    end(agent, "wednesday", timed("wednesday", FIRST, start=9))
    end(agent, "rewritten", claude("rewritten", tuple((role, f"{text} Indeed.") for role, text in FIRST)))
    end(agent, "unnamed", [{"role": role, "content": text} for role, text in FIRST])
    end(agent, "numbered", [{"id": n, "role": role, "content": text} for n, (role, text) in enumerate(FIRST)])
    assert sorted(hits(agent, "walrusgate")) == ["monday", "numbered", "rewritten", "tuesday", "unnamed", "wednesday"]
    other = daemon.agent(f"forking-{next(NAMES)}")
    end(other, "elsewhere", claude("elsewhere", FIRST))
    assert hits(other, "walrusgate") == ["elsewhere"]
