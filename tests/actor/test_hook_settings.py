"""Each setting of the section ``hooks`` of agent.yaml has its effect.

Source: docs/guides/hooks.md; docs/configuration.md.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from signet_actors.config.load import load_config
from signet_actors.protocol.sessions import (
    FindSessionStart,
    GetSession,
    RecordSessions,
    SessionFound,
    SessionsRecorded,
    SessionStartFound,
)
from signet_actors.protocol.transcripts import StoreTurns, TranscriptStored
from signet_actors.protocol.writer import Remember
from tests.support.memory_api import MemoryApi, memory

ID = "01a208b3-2318-7802-8a5f-bc64ce92bc22"
ROW = memory(id=ID, content="The editor is vim")
START, END = "/api/hooks/session-start", "/api/hooks/session-end"
BEFORE, AFTER = "/api/hooks/pre-compaction", "/api/hooks/compaction-complete"
BODIES: dict[str, dict[str, Any]] = {
    START: {},
    END: {"transcript": "User: hello"},
    BEFORE: {},
    AFTER: {"summary": "We chose vim."},
}


def configured(workspace: Path, **hooks: Any) -> MemoryApi:
    """Return a gateway with these settings, as they are read from a file."""
    (workspace / "agent.yaml").write_text(json.dumps({"hooks": hooks}))
    api = MemoryApi(workspace, config=load_config(workspace, {}).config)
    api.bus.script |= {
        GetSession: SessionFound(),
        FindSessionStart: SessionStartFound([], [ROW], {ID: (7, 1)}, last_active_at="2026-01-01T00:00:00.000Z"),
        RecordSessions: SessionsRecorded(),
    }
    return api


def post(api: MemoryApi, path: str, **fields: Any) -> Any:
    answer = api.request("POST", path, {"harness": "codex", "sessionKey": "s", **BODIES[path], **fields})
    assert answer.status == 200, answer.raw
    return answer.json


@pytest.mark.parametrize(
    ("section", "path"),
    [("sessionStart", START), ("sessionEnd", END), ("preCompaction", BEFORE), ("compactionComplete", AFTER)],
)
def test_a_hook_that_is_switched_off_does_nothing_and_says_so(tmp_path: Path, section: str, path: str) -> None:
    api = configured(tmp_path, **{section: {"enabled": False}})
    body = post(api, path)
    assert (body["skipped"], body["reason"]) == (True, "disabled")
    assert not any(isinstance(sent.body, FindSessionStart | StoreTurns | Remember) for sent in api.bus.asked)


def test_a_compaction_begins_a_new_epoch_even_if_its_summary_is_not_stored(tmp_path: Path) -> None:
    api = configured(tmp_path, compactionComplete={"enabled": False})
    assert "The editor is vim" in post(api, START)["inject"]
    assert "The editor is vim" not in post(api, START)["inject"]
    post(api, AFTER)
    assert "The editor is vim" in post(api, START)["inject"]


def test_a_start_compares_memories_as_configured(tmp_path: Path) -> None:
    api = configured(tmp_path, sessionStart={"candidatePoolLimit": 20, "recallLimit": 3, "recencyBias": 0.7})
    post(api, START)
    asked = api.bus.only(FindSessionStart).body
    assert (asked.candidates, asked.limit, asked.recency_bias) == (20, 3, 0.7)


@pytest.mark.parametrize("wanted", [True, False])
def test_a_start_can_leave_out_what_is_recent(tmp_path: Path, wanted: bool) -> None:
    (tmp_path / "MEMORY.md").write_text("The ferry is late")
    (tmp_path / "AGENTS.md").write_text("Be brief")
    api = configured(tmp_path, sessionStart={"includeRecentContext": wanted})
    found = api.bus.script[FindSessionStart]
    api.bus.script[FindSessionStart] = msgspec.structs.replace(found, new_memories=2)
    answer = post(api, START)
    text = answer["inject"]
    assert answer.get("recentContext") == ("The ferry is late" if wanted else None)
    assert ("The ferry is late" in text) is wanted
    assert ("[since last session:" in text) is wanted
    assert "Be brief" in text


def test_before_a_compaction_the_configured_guidelines_are_given(tmp_path: Path) -> None:
    api = configured(tmp_path, preCompaction={"summaryGuidelines": "Store port numbers.", "memoryLimit": 4})
    body = post(api, BEFORE)
    assert body["guidelines"].startswith("Store port numbers.")
    assert "The editor is vim" in body["guidelines"]
    assert api.bus.only(FindSessionStart).body.limit == 4


def test_before_a_compaction_memories_can_be_left_out(tmp_path: Path) -> None:
    api = configured(tmp_path, preCompaction={"includeRecentMemories": False})
    assert "The editor is vim" not in post(api, BEFORE)["guidelines"]


PROMPT, KEEP = "/api/hooks/user-prompt-submit", "/api/hooks/session-checkpoint-extract"
ANYWHERE: dict[str, dict[str, Any]] = {
    **BODIES,
    PROMPT: {"userPrompt": "Which editor does the user like?"},
    KEEP: {"transcript": "User: hello"},
    "/api/hooks/remember": {"content": "The port is 8080"},
    "/api/hooks/recall": {"query": "editor"},
    "/api/hooks/skill-invocation": {"skill": "release"},
}


def chosen(workspace: Path, *directories: Path) -> MemoryApi:
    """Return a gateway whose hooks work in these directories only."""
    (workspace / "agent.yaml").write_text(json.dumps({"projects": {"only": [str(path) for path in directories]}}))
    api = MemoryApi(workspace, config=load_config(workspace, {}).config)
    api.bus.script |= {
        GetSession: SessionFound(),
        FindSessionStart: SessionStartFound([], [ROW], {ID: (7, 1)}),
        RecordSessions: SessionsRecorded(),
    }
    return api


@pytest.mark.parametrize("path", ANYWHERE)
@pytest.mark.parametrize("where", [{"project": "/elsewhere"}, {"project": "shop"}, {}])
def test_a_hook_outside_the_chosen_directories_does_nothing_and_says_so(
    tmp_path: Path, path: str, where: dict[str, str]
) -> None:
    api = chosen(tmp_path, tmp_path / "shop")
    answer = api.request("POST", path, {"harness": "codex", "sessionKey": "s", **ANYWHERE[path], **where})
    assert (answer.status, answer.json["skipped"], answer.json["reason"]) == (200, True, "other_project"), answer.raw
    assert answer.json.get("inject", "") == ""
    asked = [type(sent.body).__name__ for sent in api.bus.asked]
    assert set(asked) <= {"GetSession"}, asked


def test_a_session_that_began_in_a_chosen_directory_goes_on_there(tmp_path: Path) -> None:
    api = chosen(tmp_path, tmp_path / "shop")
    assert "The editor is vim" in post(api, START, project=str(tmp_path / "shop" / "src"))["inject"]
    assert "skipped" not in post(api, BEFORE)
    assert post(api, BEFORE, sessionKey="another")["reason"] == "other_project"


@pytest.mark.parametrize("key", [{"sessionKey": None}, {"sessionKey": None, "sessionId": "x"}])
def test_the_end_of_a_session_elsewhere_is_not_captured(tmp_path: Path, key: dict[str, Any]) -> None:
    api = chosen(tmp_path, tmp_path / "shop")
    for where in ({"cwd": "/elsewhere"}, {}):
        assert post(api, END, **key, **where)["reason"] == "other_project"
    assert not any(isinstance(sent.body, StoreTurns) for sent in api.bus.asked)
    another = {name: value and f"{value} of another" for name, value in key.items()}
    body = {"harness": "codex", **BODIES[END], **another, "cwd": "/elsewhere", "project": str(tmp_path / "shop")}
    api.request("POST", END, body)
    assert any(isinstance(sent.body, StoreTurns) for sent in api.bus.asked)


@pytest.mark.parametrize("key", [{}, {"sessionKey": None}])
@pytest.mark.parametrize("where", [{"project": "/elsewhere"}, {"project": "shop"}, {}])
def test_a_past_session_is_stored_wherever_it_was(tmp_path: Path, key: dict[str, Any], where: dict[str, str]) -> None:
    api = chosen(tmp_path, tmp_path / "shop")
    api.bus.script[StoreTurns] = lambda request: TranscriptStored(added=len(request.turns))
    assert post(api, END, **key, **where, reason="backfill")["stored"] is True
    assert api.bus.only(StoreTurns).body.project == where.get("project")
