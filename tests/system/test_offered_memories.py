"""A real daemon records what its hooks offer to a session, and an agent's feedback about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from signet_actors.client import Client as PythonClient
from signet_actors.client import DoesNotExist
from tests.support.live_daemon import Client, LiveDaemon, live_daemon

pytestmark = pytest.mark.system

PROJECT = "/home/ada/shop"


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon(patient=True) as started:
        started.api.remember("The staging database listens on port 5433", project=PROJECT, type="decision")
        started.api.remember("A note of little weight about the office plants", project=PROJECT, importance=0.1)
        yield started


def hook(client: Client, name: str, session: str, **fields: Any) -> Any:
    """Return the reply of a hook that was served; on a busy machine it may be out of time, and is repeated."""
    for _ in range(20):
        reply = client.post(f"/api/hooks/{name}", {"harness": "codex", "sessionKey": session, **fields}).ok()
        if reply.get("reason") != "timeout":
            break
    return reply


def memories(client: Client, session: str) -> Any:
    return client.get(f"/api/sessions/{session}/memories").ok()


def test_a_session_lists_what_its_start_showed_and_what_it_searched_for(daemon: LiveDaemon) -> None:
    (shown,) = hook(daemon.api, "session-start", "s-1", project=PROJECT)["memories"]
    (row,) = memories(daemon.api, "s-1")["memories"]
    assert {name: row[name] for name in ("id", "source", "rank", "wasInjected", "ftsHitCount")} == {
        "id": shown["id"],
        "source": "session_start",
        "rank": 1,
        "wasInjected": True,
        "ftsHitCount": 0,
    }
    # The search matches the shown memory, which is not returned again.
    found = daemon.api.recall("staging database port", sessionKey="s-1", project=PROJECT)
    assert shown["id"] not in [result["id"] for result in found["results"]]
    listed = memories(daemon.api, "session:s-1")
    assert [row["ftsHitCount"] for row in listed["memories"] if row["id"] == shown["id"]] == [1]
    assert listed["metrics"]["injectedAndHit"] == 1


def test_a_prompt_records_what_it_showed(daemon: LiveDaemon) -> None:
    prompt = {"userPrompt": "which port does the staging database listen on?", "project": PROJECT}
    assert hook(daemon.api, "user-prompt-submit", "s-2", **prompt)["memoryCount"] == 1
    (row,) = memories(daemon.api, "s-2")["memories"]
    assert (row["source"], row["rank"], row["wasInjected"], row["ftsHitCount"]) == ("prompt", 1, True, 1)


def test_feedback_is_averaged_clamped_and_survives_a_restart(daemon: LiveDaemon) -> None:
    (shown,) = hook(daemon.api, "session-start", "s-3", project=PROJECT)["memories"]
    for score in (0.8, 0.4):
        reply = daemon.api.post("/api/memory/feedback", {"sessionKey": "s-3", "feedback": {shown["id"]: score}}).ok()
        assert (reply["ok"], reply["recorded"], reply["accepted"], reply["rejected"]) == (True, 1, 1, 0)
    mixed = {"sessionKey": "s-3", "feedback": {shown["id"]: 7, "other": 1, "bad": "high"}}
    reply = daemon.api.post("/api/memory/feedback", mixed).ok()
    assert (reply["recorded"], reply["rejected"]) == (1, 1)
    assert any("1 invalid entry is skipped" in warning for warning in reply["warnings"])
    assert daemon.stop() == 0
    daemon.start()
    daemon.wait_ready()
    (row,) = memories(daemon.api, "s-3")["memories"]
    assert (row["feedback"], row["feedbackCount"]) == (pytest.approx((0.8 + 0.4 + 1) / 3), 3)


def test_feedback_without_a_valid_score_or_a_session_is_refused(daemon: LiveDaemon) -> None:
    for body in ({"sessionKey": "s-4", "feedback": {"a": "high"}}, {"sessionKey": "s-4", "feedback": {}}):
        assert daemon.api.post("/api/memory/feedback", body).refused(400)["field"] == "feedback"
    assert daemon.api.post("/api/memory/feedback", {"feedback": {"a": 1}}).refused(400)["field"] == "sessionKey"


def test_feedback_changes_no_importance_and_belongs_to_one_agent(daemon: LiveDaemon) -> None:
    (shown,) = hook(daemon.api, "session-start", "s-5", project=PROJECT)["memories"]
    before = daemon.api.memory(shown["id"])["importance"]
    foreign = daemon.agent("cleo")
    body = {"sessionKey": "s-5", "feedback": {shown["id"]: -1}}
    assert foreign.post("/api/memory/feedback", body).ok()["accepted"] == 0
    assert foreign.get("/api/sessions/s-5/memories").refused(404)["error"] == "Session not found"
    assert daemon.api.post("/api/memory/feedback", body).ok()["accepted"] == 1
    assert daemon.api.memory(shown["id"])["importance"] == before


def test_the_python_client_rates_what_a_session_was_offered(daemon: LiveDaemon) -> None:
    with PythonClient(f"http://127.0.0.1:{daemon.port}", session="s-6") as client:
        found = client.recall("staging database port", project=PROJECT)
        assert client.rate("s-6", {found.results[0].id: 0.5}).accepted == 1
        listed = client.session_memories("s-6")
        assert (listed.metrics.rated, listed.metrics.mean_feedback) == (1, 0.5)
        with pytest.raises(DoesNotExist):
            client.session_memories("never-seen")
