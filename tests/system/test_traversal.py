"""What a user finds by the knowledge graph, through the daemon: recall, hooks, search, and the sessions that follow.

Source: knowledge-graph.txt "Graph Traversal", "API"; memory-api.txt "recall"; docs/guides/hooks.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.live_daemon import Client, LiveDaemon

pytestmark = pytest.mark.system

PROJECT = "/home/me/webshop"
STATED = {
    "entities": [{"source": "Billing", "relationship": "depends on", "target": "Postgres", "confidence": 0.9}],
    "aspects": [
        {"entity": "Billing", "aspect": "schedule", "attributes": [
            {"content": "invoices go out on the third", "importance": 0.9}]},
    ],
}  # fmt: skip


def about(entity: str, content: str, **fields: Any) -> dict[str, Any]:
    kind, aspect = fields.pop("kind", "attribute"), fields.pop("aspect", "general")
    attribute = {"content": content, "kind": kind, "importance": 0.9}
    return {"aspects": [{"entity": entity, "aspect": aspect, "attributes": [attribute], **fields}]}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveDaemon]:
    running = LiveDaemon(
        tmp_path_factory.mktemp("walked"), config="embedding:\n  provider: none\n", patient=True
    ).start()
    try:
        yield running
    finally:
        running.close()


def sources(reply: Any) -> dict[str, str]:
    return {result["content"]: result["source"] for result in reply["results"]}


def filled(room: Client) -> None:
    room.remember("The third of each month is the day", structured=STATED)
    room.remember("It listens on 5433", structured=about("Postgres", "listens on 5433", aspect="network"))


def test_a_recall_finds_what_was_stated_of_what_it_names_and_of_its_neighbours(daemon: LiveDaemon) -> None:
    room = daemon.agent("walker")
    filled(room)
    reply = room.recall("tell me about billing")
    assert sources(reply) == {"The third of each month is the day": "structured", "It listens on 5433": "traversal"}
    assert "traversal" in {stage["name"] for stage in reply["meta"]["timings"]["stages"]}
    assert room.recall("tell me about invoicing")["results"] == []
    explained = room.recall("tell me about billing", explain=True)["results"]
    assert [result["explanation"]["path"] for result in explained] == [
        ["Billing", "schedule", "invoices go out on the third"],
        ["Billing", "depends_on", "Postgres", "network", "listens on 5433"],
    ]


def test_a_change_of_a_memory_is_seen_by_the_next_recall(daemon: LiveDaemon) -> None:
    room = daemon.agent("changed")
    stored = room.remember("The third of each month", structured=STATED)
    assert sources(room.recall("billing")) == {"The third of each month": "structured"}
    room.request("DELETE", f"/api/memory/{stored['id']}", {"reason": "test"}).ok()
    assert room.recall("billing")["results"] == []
    room.post(f"/api/memory/{stored['id']}/recover", {"reason": "test"}).ok()
    assert sources(room.recall("billing")) == {"The third of each month": "structured"}


def test_nobody_elses_graph_is_walked(daemon: LiveDaemon) -> None:
    filled(daemon.agent("hers"))
    assert daemon.agent("his").recall("billing")["results"] == []


def test_constraints_are_shown_beside_the_results(daemon: LiveDaemon) -> None:
    room = daemon.agent("bound")
    room.remember("Deploy on Mondays only", structured=about("Billing", "Mondays only", kind="constraint"))
    for number in range(3):
        room.remember(f"Billing has {number} open tickets in group {number}")
    reply = room.recall("billing tickets", limit=2)
    assert [result["supplementary"] for result in reply["results"]] == [False, False, True]
    rule = reply["results"][-1]
    assert (rule["content"], rule["supplementary_reason"]) == ("Deploy on Mondays only", "constraint")
    assert (reply["meta"]["hasSupplementary"], reply["meta"]["totalReturned"]) == (True, 3)
    plain = room.recall("tickets", limit=2)
    assert (len(plain["results"]), plain["meta"]["hasSupplementary"]) == (2, False)


def test_a_search_describes_the_entities_that_it_names(daemon: LiveDaemon) -> None:
    room = daemon.agent("described")
    filled(room)
    found = room.get("/api/memory/search", q="when does billing send invoices?").ok()
    (entity,) = found["entity_context"]
    assert (entity["name"], [fact["content"] for fact in entity["facts"]]) == (
        "Billing",
        ["invoices go out on the third"],
    )
    assert "entity_context" not in room.recall("billing")


def test_a_start_tells_the_constraints_of_the_projects_entity(daemon: LiveDaemon) -> None:
    room = daemon.agent("started")
    said = about("webshop", "no deploys on Friday", kind="constraint", entityType="project")
    room.remember("Friday is quiet", structured=said, project=PROJECT)
    hook = {"harness": "codex", "sessionKey": "start-1"}
    start = room.post("/api/hooks/session-start", {**hook, "project": PROJECT}).ok()
    assert "## Active Constraints" in start["inject"]
    assert "Friday is quiet" in start["inject"].partition("## Active Constraints")[2]
    other = room.post("/api/hooks/session-start", {**hook, "sessionKey": "start-2", "project": "/home/me/else"}).ok()
    assert "Friday is quiet" not in other["inject"]


def test_a_prompt_is_given_what_binds_the_entity_that_it_names(daemon: LiveDaemon) -> None:
    room = daemon.agent("prompted")
    room.remember("Mondays only", structured=about("Billing", "deploys on Mondays only", kind="constraint"))
    hook = {"harness": "codex", "sessionKey": "prompt-1"}
    given = room.post("/api/hooks/user-prompt-submit", {**hook, "userPrompt": "please deploy the billing service"}).ok()
    assert given["engine"] == "entity-context"
    assert given["inject"].splitlines() == [
        "## Relevant Entity Context",
        "- Billing (constraint): deploys on Mondays only",
    ]
    again = room.post("/api/hooks/user-prompt-submit", {**hook, "userPrompt": "is the billing service up?"}).ok()
    assert again["inject"] == ""
    other = room.post("/api/hooks/user-prompt-submit", {**hook, "userPrompt": "please deploy the mail service"}).ok()
    assert other["inject"] == ""


def test_a_session_goes_on_with_what_the_last_one_was_about(daemon: LiveDaemon) -> None:
    room = daemon.agent("follower")
    room.remember("Mondays only", structured=about("Billing", "deploys on Mondays only", kind="constraint"))
    hook = {"harness": "codex", "project": PROJECT}
    room.post("/api/hooks/session-start", {**hook, "sessionKey": "first"}).ok()
    room.post("/api/memory/recall", {"query": "how is billing deployed?", "sessionKey": "first"}).ok()
    room.post("/api/hooks/session-end", {**hook, "sessionKey": "first", "reason": "exit", "transcript": ""}).ok()
    ((ids, names),) = daemon.read(
        "SELECT focal_entity_ids, focal_entity_names FROM session_checkpoints WHERE agent_id = 'follower'"
    )
    assert (len(json.loads(ids)), json.loads(names)) == (1, ["Billing"])
    start = room.post("/api/hooks/session-start", {**hook, "sessionKey": "second"}).ok()
    assert "Mondays only" in start["inject"].partition("## Active Constraints")[2]


def test_the_status_says_that_recalls_follow_the_graph(daemon: LiveDaemon) -> None:
    assert daemon.api.get("/api/pipeline/status").ok()["traversal"]["enabled"] is True
