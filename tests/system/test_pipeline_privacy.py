"""A memory deleted permanently is nowhere on disk, including texts that a model wrote about it."""

from __future__ import annotations

import json

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon
from tests.support.scripted_model import ScriptedModel, data_of, stage_of
from tests.support.scripted_provider import Act, Asked, Fault
from tests.system.test_pipeline import MUTATING, finished, pipeline

pytestmark = pytest.mark.system

CANARY = "Wolverine7731"
SECRET = f"The code word of the vault is {CANARY}."
NEXT = [f"The code word of the vault {what}." for what in ("is known", "was stolen", "was lent", "was copied")]


def gossip(stage: str, asked: Asked) -> Act | Fault | None:
    """Whatever is said of a fact quotes the memory with the canary, once that is among those that are shown."""
    if stage != "decision" or CANARY not in asked.prompt:
        return None
    fact, *shown = data_of(asked.prompt)
    said: dict[str, object] = {"action": "none", "targetId": None, "confidence": 0.9, "reason": f"see {SECRET}"}
    if "stolen" in fact:
        said["action"] = f"as {CANARY}"
    elif "lent" in fact:
        said |= {"action": "delete", "targetId": f"{CANARY}"}
    elif "copied" in fact:
        said |= {"action": "update", "targetId": 1, "confidence": f"like {CANARY}"}
    assert shown
    return Act("ok", json.dumps(said))


def holders(daemon: LiveDaemon) -> list[str]:
    return [
        str(path.relative_to(daemon.workspace))
        for path in sorted(daemon.workspace.rglob("*"))
        if path.is_file() and CANARY.lower().encode() in path.read_bytes().lower()
    ]


def test_a_reason_that_quotes_a_memory_is_erased_with_it() -> None:
    with pipeline(ScriptedModel(fault=gossip), MUTATING) as (daemon, provider):
        api = daemon.api
        secret = api.remember(SECRET)["id"]
        finished(daemon)
        source = api.remember(" ".join(NEXT))["id"]
        finished(daemon, count=2)
        decisions = [asked.prompt for asked in provider.asked if stage_of(asked.prompt) == "decision"]
        facts = {data_of(prompt)[0] for prompt in decisions if CANARY in prompt}
        assert len(facts) == len(NEXT), "each was held against it"
        run = daemon.read("SELECT id FROM pipeline_runs WHERE memory_id = ?", source)[0][0]
        shown = api.get(f"/api/pipeline/runs/{run}").ok()["proposals"]
        assert [row["rationale"] for row in shown] == [f"see {SECRET}"] * 2
        assert holders(daemon) != []

        api.request("DELETE", f"/api/memory/{secret}", {"reason": "r"}).ok()
        assert CANARY.encode() not in api.get(f"/api/memory/{source}/history").raw
        hidden = api.get(f"/api/pipeline/runs/{run}").ok()["proposals"]
        assert [row["rationale"] for row in hidden] == [None] * 2
        api.post(f"/api/memory/{secret}/recover", {"reason": "r"}).ok()
        assert api.get(f"/api/pipeline/runs/{run}").ok()["proposals"] == shown

        seen = api.post("/api/memory/forget", {"mode": "preview", "ids": [secret], "force": True}).ok()
        execute = {"mode": "execute", "ids": [secret], "force": True, "reason": "r"}
        api.post("/api/memory/forget", {**execute, "confirm_token": seen["confirmToken"]}).ok()
        for path in (
            f"/api/pipeline/runs/{run}",
            f"/api/memory/{source}/history",
            "/api/pipeline/status",
            "/api/memory/review-queue?state=all",
            "/api/memory/export",
        ):
            answer = api.get(path)
            assert (answer.status, CANARY.encode() in answer.raw) == (200, False), path
        assert daemon.stop() == 0
        assert holders(daemon) == []


def test_a_prompt_repeated_in_a_server_error_is_stored_nowhere() -> None:
    def echoing(stage: str, asked: Asked) -> Act | Fault | None:
        return Act("http_500", asked.prompt[-400:]) if stage == "decision" and CANARY in asked.prompt else None

    with pipeline(ScriptedModel(fault=echoing), extraction="      breaker: {failures: 50}\n") as (daemon, provider):
        secret = daemon.api.remember(SECRET)["id"]
        finished(daemon)
        daemon.api.remember(" ".join(NEXT))
        sql = "SELECT coalesce(error, result, '') FROM memory_jobs WHERE job_type = 'extract' ORDER BY seq DESC LIMIT 1"
        eventually(lambda: "500" in daemon.read(sql)[0][0], within_s=30, what="the server's error with the job")
        assert any(CANARY in asked.prompt for asked in provider.asked if stage_of(asked.prompt) == "decision")
        daemon.api.get("/api/pipeline/status").ok()
        seen = daemon.api.post("/api/memory/forget", {"mode": "preview", "ids": [secret], "force": True}).ok()
        execute = {"mode": "execute", "ids": [secret], "force": True, "reason": "r"}
        daemon.api.post("/api/memory/forget", {**execute, "confirm_token": seen["confirmToken"]}).ok()
        assert daemon.stop() == 0
        assert holders(daemon) == []
