"""A memory that was injected is corrected, rated and forgotten with the beginning of its id that the line shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.live_daemon import LiveDaemon, live_daemon

pytestmark = pytest.mark.system

AGENTS = "agents:\n  roster:\n    - {name: ada, read_policy: isolated}\n    - {name: bob, read_policy: isolated}\n"
TWINS = ("deadbeef-0000-4000-8000-000000000001", "deadbeef-0000-4000-8000-000000000002")


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon(config=AGENTS, patient=True) as started:
        lines = "\n".join(json.dumps({"id": id_, "content": f"Twin {id_[-1]} of the lynx"}) for id_ in TWINS)
        started.agent("ada").request("POST", "/api/memory/import", lines.encode()).ok()
        yield started


def shown_id(daemon: LiveDaemon, session: str, text: str) -> tuple[str, str]:
    """Store the text, have it injected into the session, and return its id and the beginning that the line shows."""
    ada = daemon.agent("ada")
    stored = ada.remember(f"critical: {text}")["id"]
    for _ in range(20):  # on a busy machine a hook may be out of time
        started = ada.post("/api/hooks/session-start", {"harness": "codex", "sessionKey": session}).ok()
        if started.get("reason") != "timeout":
            break
    (line,) = [line for line in started["inject"].splitlines() if text in line]
    short = line.split("(id ")[1].split(")")[0]
    assert stored.startswith(short)
    assert short != stored
    return stored, short


def test_a_shown_id_reads_rates_changes_forgets_and_recovers_its_memory(daemon: LiveDaemon) -> None:
    ada = daemon.agent("ada")
    stored, short = shown_id(daemon, "shown", "the ferry leaves at nine")
    assert ada.get(f"/api/memory/{short}").ok()["id"] == stored
    assert ada.get(f"/api/memory/{short}/history").ok()["memoryId"] == stored
    rated = ada.post("/api/memory/feedback", {"sessionKey": "shown", "feedback": {short: 1}}).ok()
    assert (rated["accepted"], rated["rejected"]) == (1, 0)
    change = {"content": "the ferry leaves at ten", "reason": "new timetable"}
    changed = ada.request("PATCH", f"/api/memory/{short}", change).ok()
    assert (changed["id"], changed["status"]) == (stored, "updated")
    deleted = ada.request("DELETE", f"/api/memory/{short}?reason=test&force=true").ok()
    assert (deleted["id"], deleted["status"]) == (stored, "deleted")
    assert ada.get(f"/api/memory/{short}").status == 404
    recovered = ada.post(f"/api/memory/{short}/recover", {"reason": "test"}).ok()
    assert (recovered["id"], recovered["status"]) == (stored, "recovered")
    assert ada.get(f"/memory/similar?id={short}").status in {200, 404}
    explained = ada.recall("when does the ferry leave?", explainId=short)["explained"]
    assert explained["id"] == stored


def test_a_model_can_rate_what_a_prompt_showed_with_what_the_text_tells(daemon: LiveDaemon) -> None:
    ada = daemon.agent("ada")
    stored = ada.remember("The kestrel nests in the north tower")["id"]
    prompt = {"harness": "codex", "sessionKey": "rated", "userPrompt": "where does the kestrel nest?"}
    ada.post("/api/memory/recall", {"query": "owl"}, x_signet_actor="codex", x_signet_actor_type="agent").ok()
    for _ in range(20):
        inject = ada.post("/api/hooks/user-prompt-submit", prompt).ok()["inject"]
        if inject:
            break
    assert "memory_feedback: rate by id" in inject
    told = ada.post("/api/hooks/session-start", {"harness": "cursor", "sessionKey": "no-tools"}).ok()["inject"]
    assert "memory_feedback" not in told
    key = inject.split('session_key="')[1].split('"')[0]
    short = inject.split("(id ")[1].split(")")[0]
    assert ada.post("/api/memory/feedback", {"session_key": key, "ratings": {short: 1}}).ok()["accepted"] == 1
    reply = ada.post("/api/hooks/user-prompt-submit", {**prompt, "memory_feedback": {short: 0}}).ok()
    assert "warnings" not in reply
    (row,) = [row for row in ada.get(f"/api/sessions/{key}/memories").ok()["memories"] if row["id"] == stored]
    assert (row["feedback"], row["feedbackCount"]) == (0.5, 2)


def test_a_batch_takes_the_beginnings_of_ids(daemon: LiveDaemon) -> None:
    ada = daemon.agent("ada")
    stored, short = shown_id(daemon, "batch", "the kiosk sells maps")
    patches = [{"id": one, "tags": ["map"], "reason": "sorted"} for one in (short, "deadbeef", "unknown-id")]
    results = ada.post("/api/memory/modify", {"patches": patches}).ok()["results"]
    assert [(result["id"], result["status"]) for result in results] == [
        (stored, "updated"),
        ("deadbeef", "invalid_request"),
        ("unknown-id", "not_found"),
    ]
    assert all(twin in results[1]["error"] for twin in TWINS)
    selection = {"ids": [short, stored, "unknown-id"], "mode": "execute", "reason": "test"}
    ada.request("PATCH", f"/api/memory/{short}", {"pinned": False, "reason": "test"}).ok()
    forgotten = ada.post("/api/memory/forget", selection).ok()
    assert [(result["id"], result["status"]) for result in forgotten["results"]] == [
        (stored, "deleted"),
        ("unknown-id", "not_found"),
    ]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/memory/deadbeef", None),
        ("PATCH", "/api/memory/deadbeef-0000", {"pinned": True, "reason": "r"}),
        ("DELETE", "/api/memory/deadbeef-0000?reason=r", None),
        ("POST", "/api/memory/forget", {"ids": ["deadbeef"], "mode": "execute", "reason": "r"}),
        ("POST", "/api/memory/feedback", {"sessionKey": "s", "feedback": {"deadbeef": 1}}),
    ],
)
def test_the_beginning_of_several_ids_is_refused_with_these_ids(
    daemon: LiveDaemon, method: str, path: str, body: Any
) -> None:
    answer = daemon.agent("ada").request(method, path, body)
    assert answer.status == 400
    assert all(twin in answer.json["error"] for twin in TWINS)


def test_a_beginning_names_only_what_the_caller_may_read(daemon: LiveDaemon) -> None:
    bob = daemon.agent("bob")
    for path in ("/api/memory/deadbeef", f"/api/memory/{TWINS[0][:30]}"):
        answer = bob.get(path)
        assert (answer.status, TWINS[0] in answer.raw.decode()) == (404, False)
    assert bob.request("DELETE", f"/api/memory/{TWINS[0][:35]}?reason=r").status == 404
    assert daemon.agent("ada").get(f"/api/memory/{TWINS[0][:35]}").status == 400
    assert daemon.agent("ada").get(f"/api/memory/{TWINS[0]}").ok()["is_deleted"] == 0


def test_fewer_than_eight_characters_name_nothing(daemon: LiveDaemon) -> None:
    assert daemon.agent("ada").get("/api/memory/deadbee").status == 404
