"""After a session a model judges how well memory served it: per session, and per memory that a hook showed it.

Source: memory-pipeline.txt "Continuity Scoring".
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.live_daemon import Client
from tests.support.scripted_model import ScriptedModel, data_of, stage_of
from tests.support.scripted_provider import Act, Asked, Fault
from tests.system.test_pipeline import finished, pipeline
from tests.system.test_session_summaries_daemon import end, turns

pytestmark = pytest.mark.system

PROJECT = "/home/ada/ferry"
RULE = "The login form of the harbour office uses formkit 2."


def scores(client: Client, **parameters: Any) -> Any:
    return client.get("/api/analytics/continuity", **parameters).ok()


def start(client: Client, key: str) -> None:
    body = {"harness": "generic", "sessionKey": key, "project": PROJECT}
    assert "formkit" in client.post("/api/hooks/session-start", body).ok()["inject"]


def test_a_session_is_scored_with_the_memories_that_it_was_shown() -> None:
    with pipeline(ScriptedModel()) as (daemon, provider):
        memory = daemon.api.remember(RULE, project=PROJECT, importance=1.0, type="decision")["id"]
        start(daemon.api, "s-1")
        end(daemon.api, "s-1", turns("login form"))
        finished(daemon, "score_session")
        said = scores(daemon.api)
        (score,) = said["scores"]
        assert {name: score[name] for name in ("session_key", "project", "harness", "score", "confidence")} == {
            "session_key": "s-1",
            "project": PROJECT,
            "harness": "generic",
            "score": 0.75,
            "confidence": 0.9,
        }
        assert (score["memories_recalled"], score["memories_used"], score["novel_context_count"]) == (1, 1, 1)
        assert score["reasoning"] == "By the rules."
        assert said["summary"] == {"count": 1, "average": 0.75, "trend": 0.0, "latest": 0.75}
        offered = daemon.api.get("/api/sessions/s-1/memories").ok()
        (shown,) = [one for one in offered["memories"] if one["id"] == memory]
        assert shown["relevanceScore"] == 0.5
        assert offered["metrics"]["meanRelevance"] == 0.5
        (prompt,) = (asked.prompt for asked in provider.asked if stage_of(asked.prompt) == "session_score")
        assert data_of(prompt)[-1] == RULE
        assert f"Memory {memory[-8:]}:" in prompt

        assert scores(daemon.agent("ann"))["scores"] == [], "scores are the agent's own"
        assert scores(daemon.api, project="/elsewhere")["summary"]["average"] is None

        daemon.api.request("DELETE", f"/api/memory/{memory}", {"reason": "r"}).ok()
        assert scores(daemon.api)["scores"][0]["reasoning"] is None, "it may quote the forgotten memory"
        daemon.api.request("DELETE", "/api/sessions/s-1/transcript", {}).ok()
        assert scores(daemon.api)["scores"] == [], "the scores of an erased session are erased"


def test_a_session_without_memories_has_a_score_and_the_latest_of_each_project_is_listed() -> None:
    with pipeline(ScriptedModel()) as (daemon, _):
        for number, project in enumerate((PROJECT, PROJECT, "/home/ada/crane")):
            end(daemon.api, f"s-{number}", turns(f"subject {number}", 6), project=project)
        finished(daemon, "score_session", count=3)
        said = scores(daemon.api)
        assert [score["memories_recalled"] for score in said["scores"]] == [0, 0, 0]
        assert said["summary"]["count"] == 3
        latest = daemon.api.get("/api/analytics/continuity/latest").ok()["scores"]
        assert {score["project"] for score in latest} == {PROJECT, "/home/ada/crane"}
        assert len(latest) == 2


def test_an_answer_without_a_score_is_retried_and_affects_no_summary() -> None:
    answers = iter(("I do not know", json.dumps({"score": "high"}), json.dumps({"score": 9})))

    def fault(stage: str, _: Asked) -> Act | Fault | None:
        return Act("ok", next(answers)) if stage == "session_score" else None

    with pipeline(ScriptedModel(fault=fault)) as (daemon, _):
        end(daemon.api, "s-1", turns("login form"))
        finished(daemon, "score_session")
        (score,) = scores(daemon.api)["scores"]
        assert (score["score"], score["confidence"], score["reasoning"]) == (1.0, 0.0, "")
        assert daemon.api.get("/api/sessions/summaries").ok()["total"] == 1
