"""A memory that moves to another project is found there and nowhere else, by every way that leads to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from signet_actors.domain.memories import MOVED_WITH
from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client, LiveDaemon, run_signet, signet
from tests.support.team import Team, team_daemon
from tests.system.test_pipeline import finished, pipeline

pytestmark = pytest.mark.system

TEXT = "The frontend of the shop runs on port 5173"
QUESTION = "which port has the frontend of the shop?"
WAYS = ("recall", "list", "search", "facets", "start", "prompt")


def patch(client: Client, memory_id: str, **fields: Any) -> Any:
    return client.request("PATCH", f"/api/memory/{memory_id}", {"reason": "sorted", **fields})


def ways(client: Client, project: str, turn: int) -> dict[str, bool]:
    """Return by which ways a caller in the project finds the text."""
    hook = {"harness": "x", "sessionKey": f"{project}-{turn}", "project": project}
    start = client.post("/api/hooks/session-start", hook).ok()["inject"]
    prompt = {**hook, "sessionKey": f"{project}-{turn}-prompt", "userPrompt": QUESTION}
    facets = client.get("/api/memories/facets", project=project).ok()
    return {
        "recall": bool(client.recalled(QUESTION, project=project, min_relevance=0.5)),
        "list": bool(client.get("/api/memories", project=project).ok()["memories"]),
        "search": bool(client.get("/memory/search", q="frontend", project=project).ok()["results"]),
        "facets": facets["total"] == 1,
        "start": TEXT in start,
        "prompt": TEXT in client.post("/api/hooks/user-prompt-submit", prompt).ok()["inject"],
    }


def test_a_memory_is_found_in_the_project_that_it_moved_to(empty_rooms: Callable[[], Client]) -> None:
    room = empty_rooms()
    here, there = "/home/you/quay", "/home/you/pier"
    memory = room.remember(TEXT, project=here, type="rule")["id"]
    everywhere, nowhere = dict.fromkeys(WAYS, True), dict.fromkeys(WAYS, False)
    for turn, (source, target) in enumerate(((here, there), (there, here), (here, there))):
        assert (ways(room, source, 2 * turn), ways(room, target, 2 * turn)) == (everywhere, nowhere), turn
        moved = patch(room, memory, project=target, if_version=turn + 1).ok()
        assert (moved["status"], moved["newVersion"], moved["contentChanged"]) == ("updated", turn + 2, False)
        assert (ways(room, source, 2 * turn + 1), ways(room, target, 2 * turn + 1)) == (nowhere, everywhere), turn
    assert room.memory(memory)["project"] == there
    changes = [event["metadata"] for event in room.get(f"/api/memory/{memory}/history").ok()["history"]][1:]
    assert [change["before"]["project"] for change in changes] == [here, there, here]
    exported = [json.loads(line) for line in room.get("/api/memory/export").raw.splitlines()]
    assert [line["project"] for line in exported if line.get("content") == TEXT] == [there]
    events = room.get(f"/api/timeline/{memory}").ok()["events"]
    assert sum(event["event"] == "updated" for event in events) == 3


def test_a_memory_without_a_project_is_one_of_all_projects(room: Client) -> None:
    memory = room.remember(TEXT, project="/home/you/quay", type="rule")["id"]
    assert patch(room, memory, project=None).ok()["status"] == "updated"
    assert room.memory(memory)["project"] is None
    found = ways(room, "/home/you/pier", 1)
    assert (found["start"], found["prompt"], found["list"]) == (True, True, False)
    assert patch(room, memory, project="").ok()["status"] == "no_changes"
    patch(room, memory, project=5).refused(400, field="project")
    patch(room, memory, project="x" * 501).refused(400, field="project")


def test_a_memory_in_the_same_words_is_not_moved_beside_its_twin(room: Client) -> None:
    memory, twin = (room.remember(TEXT, project=f"/home/you/{name}")["id"] for name in ("quay", "pier"))
    refused = patch(room, memory, project="/home/you/pier")
    refused.refused(
        409,
        status="duplicate_in_project",
        error="That project has a memory with this text already",
        duplicateMemoryId=twin,
        code="conflict",
    )
    assert room.memory(memory)["version"] == 1
    batch = {"reason": "r", "patches": [{"id": each, "project": "/home/you/pier"} for each in (memory, twin)]}
    done = room.post("/api/memory/modify", batch).ok()
    assert [one["status"] for one in done["results"]] == ["duplicate_in_project", "no_changes"]
    assert done["results"][0]["error"] == refused.json["error"]


def test_a_memory_that_comes_back_has_its_idempotency_key_again(room: Client) -> None:
    here, there = "/home/you/berth", "/home/you/jetty"
    memory = room.remember(TEXT, project=here, idempotencyKey="k")["id"]
    room.remember("The crane is red", project=there, idempotencyKey="k")
    for project in (there, here):
        assert patch(room, memory, project=project).ok()["status"] == "updated"
    again = room.post("/api/memory/remember", {"content": "A retry", "project": here, "idempotencyKey": "k"}).ok()
    assert (again["id"], again["deduped"]) == (memory, True)


def test_facts_that_moved_in_one_batch_are_forgotten_and_recovered_with_their_memory() -> None:
    """Also by a caller who gives the reason that the daemon itself notes at a fact that moved with its memory."""
    here, there = "/home/you/quay", "/home/you/pier"
    with pipeline() as (daemon, _):
        room = daemon.api
        sources = [
            room.remember("The staging database listens on port 5433. It has a replica", project=here)["id"],
            room.remember("The vault opens with the code word Wolverine. It is in the cellar", project=here)["id"],
        ]
        finished(daemon, count=len(sources))
        for source in sources:
            rows = daemon.read("SELECT id FROM memories WHERE source_id = ? ORDER BY seq", source)
            facts = [fact for (fact,) in rows]
            assert len(facts) == 2
            batch = {"reason": "r", "patches": [{"id": each, "project": there} for each in (source, *facts)]}
            done = room.post("/api/memory/modify", batch).ok()
            assert [one["status"] for one in done["results"]] == ["updated"] * 3
            forgotten = room.request("DELETE", f"/api/memory/{source}", {"reason": "r"}).ok()
            assert sorted(forgotten["forgottenWith"]) == sorted(facts)
            back = room.post(f"/api/memory/{source}/recover", {"reason": "r"}).ok()
            assert sorted(back["recoveredWith"]) == sorted(facts)
            assert {room.memory(each)["project"] for each in (source, *facts)} == {there}
        room.request("PATCH", f"/api/memory/{facts[0]}", {"reason": MOVED_WITH, "tags": "mine"}).ok()
        assert room.request("DELETE", f"/api/memory/{source}", {"reason": "r"}).ok()["forgottenWith"] == facts[1:]


def test_a_directory_is_moved_to_by_its_project(room: Client, tmp_path: Path) -> None:
    """A directory inside of a repository stands for the repository, as where memories are stored."""
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    (tmp_path / "shop" / "web").mkdir()
    ids = [room.remember(f"{TEXT}, number {number}")["id"] for number in range(3)]
    inside = str(tmp_path / "shop" / "web")
    patch(room, ids[0], project=inside).ok()
    batch = [{"id": each, "project": inside} for each in ids]
    done = room.post("/api/memory/modify", {"reason": "r", "patches": batch}).ok()
    assert [one["status"] for one in done["results"]] == ["no_changes", "updated", "updated"]
    assert {room.memory(each)["project"] for each in ids} == {str(tmp_path / "shop")}


def test_the_command_line_moves_a_memory_and_out_of_its_project(daemon: LiveDaemon, room: Client) -> None:
    memory = room.remember(TEXT, project="quay")["id"]
    agent = room.headers["x-signet-agent-id"]
    out = signet(daemon, "edit", memory, "--project", "pier", "--agent", agent)
    assert "Updated" in out
    assert room.memory(memory)["project"] == "pier"
    signet(daemon, "edit", memory, "--project", "", "--agent", agent)
    assert room.memory(memory)["project"] is None
    room.remember(TEXT, project="quay")
    refused = run_signet(daemon, "edit", memory, "--project", "quay", "--agent", agent)
    assert refused.returncode == 1
    assert "A memory of that project has this text already" in refused.stderr


@pytest.fixture(scope="module")
def team() -> Iterator[Team]:
    with team_daemon() as team:
        yield team


def test_a_token_of_one_project_moves_nothing_out_of_it_or_into_it(team: Team) -> None:
    here, there = "/srv/quay", "/srv/pier"
    limited, free = team.bearer("operator", project=here), team.bearer("operator")
    own = limited.remember(TEXT)["id"]
    other = free.remember("The crane is red", project=there)["id"]
    for target in (there, None, ""):
        patch(limited, own, project=target).refused(403, error=f"scope restricted to project '{here}'")
        batch = {"reason": "r", "patches": [{"id": own, "importance": 0.1}, {"id": own, "project": target}]}
        limited.post("/api/memory/modify", batch).refused(403)
    patch(limited, other, project=here).refused(404)
    assert patch(limited, own, project=here).ok()["status"] == "no_changes"
    before = {each: free.memory(each) for each in (own, other)}
    assert [before[each]["project"] for each in before] == [here, there]
    assert patch(free, own, project=there).ok()["status"] == "updated"
    assert limited.get(f"/api/memory/{own}").status == 404
    assert limited.recalled(QUESTION) == []
    assert patch(free, other, project=here).ok()["status"] == "updated"
    assert eventually(lambda: limited.recalled("which colour has the crane?"), what="the one that came") == [other]


def test_a_token_of_one_author_gives_no_memory_to_another(team: Team) -> None:
    limited = team.bearer("operator", user="ada")
    own = limited.remember("The lamp is amber")["id"]
    batch: dict[str, Any] = {"reason": "r", "patches": [{"id": own, "who": "bob"}]}
    limited.post("/api/memory/modify", batch).refused(403, error="scope restricted to user 'ada'")
    batch["patches"][0]["who"] = "ada"
    assert limited.post("/api/memory/modify", batch).ok()["results"][0]["status"] == "no_changes"
