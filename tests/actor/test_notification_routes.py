"""A session is told that memory does not work, once, and again when the reason changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from signet_actors.domain.extraction.injected_text import without_injected
from signet_actors.protocol.control import TreeChanged
from signet_actors.protocol.sessions import GetSession, RecordSessions, SessionFound, SessionsRecorded
from tests.support.memory_api import EVERYBODY_UP, MemoryApi

PATH = "/api/hooks/notifications"


@pytest.fixture
def api(tmp_path: Path) -> MemoryApi:
    made = MemoryApi(tmp_path)
    made.bus.script |= {GetSession: SessionFound(), RecordSessions: SessionsRecorded()}
    return made


def down(api: MemoryApi, *roles: str) -> None:
    """Let the processes of these roles be restarting, and all others be up."""
    api.bus.tree = TreeChanged(
        [msgspec.structs.replace(each, state="restarting") if each.role in roles else each for each in EVERYBODY_UP]
    )


def told(api: MemoryApi, key: str | None = "s", **fields: Any) -> str:
    body = {"harness": "opencode", "hook": "chat.message", **({} if key is None else {"sessionKey": key}), **fields}
    answer = api.request("POST", PATH, body)
    assert answer.status == 200, answer.raw
    return str(answer.json["inject"])


def test_there_is_nothing_to_tell_while_memory_works(api: MemoryApi) -> None:
    assert told(api) == ""
    assert api.request("GET", PATH).json == {"inject": "", "notifications": {"items": [], "unreadCount": 0}}


def test_a_session_is_told_once_why_memory_does_not_work(api: MemoryApi) -> None:
    down(api, "writer")
    first = told(api)
    assert first == "[signet: memory does not work now, because writer is being restarted]"
    assert told(api) == ""
    assert told(api, "other") == first
    assert told(api, None) == told(api, None) == first, "nothing is known of a caller without a session"
    (item,) = api.request("GET", PATH).json["notifications"]["items"]
    assert (item["message"], item["type"]) == (first, "memory_unavailable")


def test_what_a_session_is_told_is_not_extracted_as_a_fact(api: MemoryApi) -> None:
    down(api, "writer", "searcher")
    kept, count = without_injected(f"{told(api)}\nmine")
    assert (kept.strip(), count) == ("mine", 1)


def test_a_session_is_told_again_when_the_reason_changes_or_comes_back(api: MemoryApi) -> None:
    down(api, "writer")
    first = told(api)
    down(api, "searcher")
    assert told(api) not in ("", first)
    down(api)
    assert told(api) == ""
    down(api, "writer")
    assert told(api) == first


def test_a_session_without_memory_is_told_nothing(api: MemoryApi) -> None:
    down(api, "writer")
    answer = api.request("POST", PATH, {"harness": "x", "sessionKey": "s"}, {"x-signet-no-hooks": "1"}).json
    assert (answer["skipped"], answer["reason"], answer["inject"]) == (True, "no_hooks", "")
