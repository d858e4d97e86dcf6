"""Reviews, undo and requeues over HTTP and on the command line, against a real daemon."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from signet_actors.cli.main import cli
from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon
from tests.support.scripted_model import ScriptedModel
from tests.system.test_pipeline import MUTATING, NOTE, about, finished, pipeline

pytestmark = pytest.mark.system

OLD = "The nightly backup job is enabled on the server."
NEW = "The nightly backup job is disabled on the server."
MODEL = ScriptedModel({"nightly backup": about("update")})
LASTING = ("content", "type", "importance", "tags", "pinned", "who", "project", "scope", "visibility", "is_deleted")


def signet(daemon: LiveDaemon, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["--url", f"http://127.0.0.1:{daemon.port}", *arguments], prog_name="signet")


def lasting(memory: dict[str, Any]) -> dict[str, Any]:
    """What of a memory is not about who touched it when."""
    return {name: memory[name] for name in LASTING}


def circuit(daemon: LiveDaemon) -> str | None:
    """The state of the extractor's circuit; None while there is no extractor or no model."""
    model = daemon.api.get("/api/pipeline/status").ok()["providers"]["extraction"] or {}
    return (model.get("calls") or {}).get("circuit")


def flagged(daemon: LiveDaemon) -> tuple[str, dict[str, Any]]:
    """A memory, and the proposal against it that waits for a person."""
    memory = daemon.api.remember(OLD)["id"]
    finished(daemon)
    daemon.api.remember(f"{NEW} The invoices are kept in the blue folder.")
    finished(daemon, count=2)
    (item,) = daemon.api.get("/api/memory/review-queue").ok()["items"]
    return memory, item


def test_a_contradicting_update_waits_for_review_and_is_approved_once() -> None:
    with pipeline(MODEL, MUTATING) as (daemon, _):
        memory, item = flagged(daemon)
        assert (item["memory_id"], item["event"], item["reason"]) == (memory, "updated", "contradiction")
        assert (item["current_content"], item["fact_content"]) == (OLD, NEW)
        assert daemon.api.memory(memory)["content"] == OLD

        approved = signet(daemon, "review", "approve", item["id"], "--reason", "checked on the server")
        assert approved.exit_code == 0, approved.output
        assert daemon.api.memory(memory)["content"] == NEW
        (event,) = [
            event
            for event in daemon.api.get(f"/api/memory/{memory}/history").ok()["history"]
            if event["event"] == "updated"
        ]
        assert (event["changedBy"], event["reason"], event["oldContent"]) == ("cli", "checked on the server", OLD)
        assert event["metadata"]["proposalId"] == item["id"]

        again = daemon.api.post(f"/api/memory/review-queue/{item['id']}/approve").ok()
        assert again["already"] is True
        daemon.api.post(f"/api/memory/review-queue/{item['id']}/reject").refused(409, status="decided_otherwise")
        assert daemon.api.get("/api/memory/review-queue").ok()["items"] == []
        assert daemon.api.memory(memory)["version"] == 2


def test_a_rejected_proposal_changes_nothing_and_leaves_the_queue() -> None:
    with pipeline(MODEL, MUTATING) as (daemon, _):
        memory, item = flagged(daemon)
        rejected = signet(daemon, "review", "reject", item["id"])
        assert rejected.exit_code == 0, rejected.output
        assert (daemon.api.memory(memory)["content"], daemon.api.memory(memory)["version"]) == (OLD, 1)
        assert signet(daemon, "review", "list").stdout == ""
        assert signet(daemon, "review", "list", "--state", "rejected").stdout.startswith(f"{item['id']}\trejected\t")
        assert signet(daemon, "review", "approve", item["id"]).exit_code == 1


def test_an_undone_run_restores_every_memory() -> None:
    model = ScriptedModel({"staging runs on": about("update")})
    with pipeline(model, MUTATING) as (daemon, _):
        changed = daemon.api.remember("The staging host is called alpha.", tags=["ops"], importance=0.7)["id"]
        finished(daemon)
        before = {row["id"]: lasting(daemon.api.memory(row["id"])) for row in daemon.api.listed()}
        source = daemon.api.remember("Since May staging runs on the host beta. The move took a night.")["id"]
        finished(daemon, count=2)
        assert daemon.api.memory(changed)["content"] == "Since May staging runs on the host beta."
        (run,) = daemon.api.get("/api/pipeline/runs", memory_id=source).ok()["runs"]
        assert run["counts"] == {"created": 1, "updated": 1}
        shown = signet(daemon, "pipeline", "show", run["id"])
        assert "The move took a night." in shown.stdout

        undone = signet(daemon, "pipeline", "undo", run["id"], "--yes")
        assert (undone.exit_code, undone.stdout) == (0, "Undid 2 of 2 changes.\n")
        after = {row["id"]: lasting(daemon.api.memory(row["id"])) for row in daemon.api.listed()}
        source_now = after.pop(source)
        assert source_now["content"].startswith("Since May")
        assert after == before
        finished(daemon, "embed", "completed", 1)
        assert daemon.api.recalled("what is the staging host called?")[0] == changed
        again = signet(daemon, "pipeline", "undo", run["id"], "--yes", "--json")
        assert json.loads(again.stdout)["status"] == "already_undone"
        assert {row["id"]: lasting(daemon.api.memory(row["id"])) for row in daemon.api.listed()} == {
            **before,
            source: source_now,
        }


def test_the_status_shows_a_job_pending_dead_and_requeued() -> None:
    garbage = [True]
    model = ScriptedModel(fault=lambda stage, _: "garbage" if garbage and stage == "extraction" else None)
    with pipeline(model) as (daemon, _):
        daemon.api.remember(NOTE)
        finished(daemon, state="dead")
        said = daemon.api.get("/api/pipeline/status").ok()
        jobs = {job["kind"]: job for job in said["jobs"]}
        assert (jobs["extract"]["dead"], jobs["extract"]["pending"]) == (1, 0)
        (dead,) = said["dead"]
        assert "JSON" in dead["cause"]
        assert said["mode"] == "controlled-write"
        assert (said["workers"]["extraction"], said["workers"]["decision"]) == ({"running": True}, {"running": True})
        extraction = said["providers"]["extraction"]
        assert (extraction["name"], extraction["calls"]["calls"]) == ("ollama", 3)
        assert said["notes"] == []
        eventually(  # without a cap, calls are added up and handed in some at a time
            lambda: [row["calls"] for row in daemon.api.get("/api/pipeline/status").ok()["usageToday"]] == [3],
            within_s=30,
            what="the day's calls",
        )
        assert "dead: 1 extract job: " in signet(daemon, "pipeline").stdout

        garbage.clear()
        requeued = signet(daemon, "pipeline", "requeue")
        assert (requeued.exit_code, len(requeued.stdout.split())) == (0, 1)
        finished(daemon)
        said = daemon.api.get("/api/pipeline/status").ok()
        assert (said["dead"], said["runs"]["total"]) == ([], 1)
        assert said["figures"]["today"]["outcomes"] == {"created": 3}
        answer = daemon.api.post("/api/repair/requeue-dead")
        answer.refused(429, code="rate_limited")
        assert 0 < int(answer.headers["retry-after"]) <= 60


def test_every_status_shows_an_unavailable_model() -> None:
    with pipeline(extraction="      breaker: {failures: 1, cooldownMs: 60000}\n") as (daemon, provider):
        provider.stuck = "http_503"
        daemon.api.remember(NOTE)
        eventually(lambda: circuit(daemon) == "open", within_s=30, what="an open circuit")
        eventually(
            lambda: daemon.api.get("/api/pipeline/status").ok()["waiting"], within_s=30, what="the attempt given back"
        )
        said = daemon.api.get("/api/pipeline/status").ok()
        (lane,) = [lane for lane in said["lanes"] if lane["kind"] == "extract"]
        assert "ollama" in lane["pausedBecause"]
        assert "waiting uses no attempts" in said["waiting"][0]
        status = daemon.api.get("/api/status").ok()
        assert status["providerResolution"]["extraction"] == {
            "configured": "ollama",
            "resolved": "ollama",
            "effective": "none",
        }
        assert "waiting uses no attempts" in status["waiting"][0]
        assert "circuit: open" in signet(daemon, "providers").stdout
        open_circuit = 'signet_provider_circuit{actor="extractor",provider="ollama",state="open"} 1.0'
        daemon.api.get("/metrics")
        eventually(
            lambda: open_circuit in daemon.api.get("/metrics").raw.decode(), within_s=30, what="the circuit's metric"
        )
        provider.stuck = None


@pytest.mark.parametrize("provider", ["none", "auto"])
def test_without_a_provider_the_command_prints_how_to_get_one(provider: str) -> None:
    nowhere = "http://127.0.0.1:9"
    config = f"memory:\n  pipelineV2:\n    extraction: {{provider: {provider}, endpoint: '{nowhere}'}}\n"
    with live_daemon(config=config) as daemon:
        eventually(
            lambda: "ollama pull qwen3:4b" in signet(daemon, "providers").stdout, within_s=30, what="the way to a model"
        )
        assert daemon.stop() == 0
