"""The pipeline of a real daemon fills the knowledge graph: relations, facts, aspects, contradictions, communities.

Source: memory-pipeline.txt "Knowledge Graph", "Structural Classification"; knowledge-graph.txt "Retroactive
Supersession".
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon
from tests.support.scripted_model import ScriptedModel, data_of, stage_of
from tests.support.scripted_provider import Act, Asked, Fault
from tests.system.test_pipeline import finished, pipeline

pytestmark = pytest.mark.system

AT_ONCE = "    structural: {pollIntervalMs: 0}\n"
KIND = "structural_classify"


def facts_with(daemon: LiveDaemon, status: str) -> list[Any]:
    """Return entity, aspect and content of the attributes with this status."""
    return daemon.read(
        "SELECT e.name, p.name, a.content FROM entity_attributes a JOIN entities e ON e.id = a.entity_id"
        " LEFT JOIN entity_aspects p ON p.id = a.aspect_id WHERE a.status = ? ORDER BY a.seq",
        status,
    )


def count(daemon: LiveDaemon, table: str) -> int:
    return int(daemon.read(f"SELECT count(*) FROM {table}")[0][0])


def test_what_memories_say_is_sorted_by_a_model_replaced_by_later_words_and_taken_back_by_an_undo() -> None:
    model = ScriptedModel(aspects={"Traefik": "proxy", "Caddy": "proxy"})
    with pipeline(model, more=AT_ONCE) as (daemon, provider):
        daemon.api.remember("The homelab uses Traefik. The weather is nice.")
        finished(daemon, KIND)
        assert facts_with(daemon, "active") == [("homelab", "proxy", "The homelab uses Traefik.")]
        assert daemon.read("SELECT name, entity_type FROM entities ORDER BY name") == [
            ("Traefik", "extracted"),
            ("homelab", "system"),
        ]
        (prompt,) = (asked.prompt for asked in provider.asked if stage_of(asked.prompt) == "classification")
        assert data_of(prompt) == ["homelab", "none", "The homelab uses Traefik."]

        daemon.api.remember("The homelab uses Caddy.")
        finished(daemon, KIND, count=2)
        assert facts_with(daemon, "active") == [("homelab", "proxy", "The homelab uses Caddy.")]
        ((old, metadata),) = daemon.read(
            "SELECT m.content, h.metadata FROM memory_history h JOIN memories m ON m.id = h.memory_id"
            " WHERE h.event = 'attribute_superseded'"
        )
        assert old == "The homelab uses Traefik."
        assert (json.loads(metadata)["method"], json.loads(metadata)["confidence"]) == ("value", 0.75)

        run = daemon.api.get("/api/pipeline/runs").ok()["runs"][0]["id"]
        daemon.api.post(f"/api/pipeline/runs/{run}/undo", {}).ok()
        assert facts_with(daemon, "active") == [("homelab", "proxy", "The homelab uses Traefik.")]
        assert count(daemon, "entities WHERE name = 'Caddy'") == 0
        said = daemon.api.get("/api/pipeline/status").ok()
        assert said["workers"]["structuralClassify"] == {"running": True}
        (jobs,) = (kind for kind in said["jobs"] if kind["kind"] == KIND)
        assert (jobs["completed"], jobs["pending"], jobs["dead"]) == (2, 0, 0)


def test_a_model_may_find_a_contradiction_that_the_words_do_not_show() -> None:
    more = f"{AT_ONCE}    semanticContradictionEnabled: true\n"

    def judge(stage: str, asked: Asked) -> Act | None:
        contradicts = all(part in asked.prompt for part in ("stores all orders in", "keeps all orders in"))
        said = {"contradicts": contradicts, "confidence": 0.9, "reasoning": "by the rules"}
        return Act("ok", json.dumps(said)) if stage == "contradiction" else None

    with pipeline(ScriptedModel(fault=judge), more=more) as (daemon, provider):
        daemon.api.remember("The shop stores all orders in PostgreSQL tables. The shop uses PostgreSQL.")
        finished(daemon, KIND)
        daemon.api.remember("The shop keeps all orders in MongoDB tables. The shop uses MongoDB.")
        finished(daemon, KIND, count=2)
        methods = daemon.read(
            "SELECT m.content, h.reason, h.metadata ->> 'method' FROM memory_history h"
            " JOIN memories m ON m.id = h.memory_id WHERE h.event = 'attribute_superseded' ORDER BY m.content"
        )
        assert [(content, method) for content, _, method in methods] == [
            ("The shop stores all orders in PostgreSQL tables.", "semantic"),
            ("The shop uses PostgreSQL.", "value"),
        ]
        assert any(stage_of(asked.prompt) == "contradiction" for asked in provider.asked)


def test_an_answer_without_an_aspect_is_asked_for_again_and_the_job_is_dead_after_the_last() -> None:
    def fault(stage: str, _: Asked) -> Act | Fault | None:
        answer = '{"facts": [{"i": 9, "aspect": "x", "kind": "attribute"}]}'
        return Act("ok", answer) if stage == "classification" else None

    with pipeline(ScriptedModel(fault=fault), more=AT_ONCE) as (daemon, provider):
        daemon.api.remember("The homelab uses Traefik.")
        finished(daemon, KIND, state="dead")
        assert sum(stage_of(asked.prompt) == "classification" for asked in provider.asked) == 3
        assert facts_with(daemon, "active") == [("homelab", None, "The homelab uses Traefik.")]
        assert count(daemon, "relations") == 1


@pytest.mark.parametrize(
    "points",
    [
        "extractor.classified=kill@1/1;extractor.apply_sent=kill@2/2",
        "writer.before_commit=kill@4/1;writer.after_commit=kill@4/2",
    ],
)
def test_a_kill_during_the_job_classifies_each_fact_once(points: str) -> None:
    environ = {"SIGNET_SYNC_POINTS": points}
    with pipeline(more=AT_ONCE, environ=environ) as (daemon, _):
        key = {"Idempotency_Key": "one"}
        note = {"content": "The homelab uses Traefik. The homelab uses Vim."}
        eventually(lambda: daemon.api.post("/api/memory/remember", note, **key).status == 200, what="it is stored")
        finished(daemon, KIND)
        assert len(facts_with(daemon, "active")) + len(facts_with(daemon, "superseded")) == 2
        assert [count(daemon, table) for table in ("entities", "relations", "entity_aspects")] == [3, 2, 1]
        assert count(daemon, "memory_history WHERE event = 'attribute_superseded'") == 1
        assert count(daemon, f"memory_jobs WHERE job_type = '{KIND}'") == 1
