"""A memory with a scope is hidden from searches and lists, and is read and changed by its id like any other."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import Answer, Client, LiveDaemon

pytestmark = pytest.mark.system

TEXT = "The blue heron nests at the north pier"
ByID = Callable[[Client, str], Answer]

READS: dict[str, ByID] = {
    "get": lambda client, memory: client.get(f"/api/memory/{memory}"),
    "history": lambda client, memory: client.get(f"/api/memory/{memory}/history"),
    "similar": lambda client, memory: client.get("/memory/similar", id=memory),
}
CHANGES: dict[str, ByID] = {
    "patch": lambda client, memory: client.request(
        "PATCH", f"/api/memory/{memory}", {"content": "The heron has left", "reason": "r"}
    ),
    "delete": lambda client, memory: client.request("DELETE", f"/api/memory/{memory}", {"reason": "r"}),
}


@pytest.fixture
def scoped(room: Client) -> str:
    """The id of a memory of the room that has a scope."""
    memory: str = room.remember(TEXT, scope="birds")["id"]
    return memory


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_its_owner_reads_it_by_its_id(room: Client, scoped: str, read: ByID) -> None:
    read(room, scoped).ok()
    assert room.memory(scoped)["scope"] == "birds"


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_its_owner_changes_it_by_its_id(room: Client, scoped: str, change: ByID) -> None:
    assert change(room, scoped).ok()["newVersion"] == 2


def test_its_owner_recovers_it_by_its_id(room: Client, scoped: str) -> None:
    CHANGES["delete"](room, scoped).ok()
    recovered = room.post(f"/api/memory/{scoped}/recover", {"reason": "r"}).ok()
    assert (recovered["status"], room.memory(scoped)["content"]) == ("recovered", TEXT)


def test_its_owner_modifies_it_in_a_batch(room: Client, scoped: str) -> None:
    answer = room.post("/api/memory/modify", {"patches": [{"id": scoped, "importance": 0.3}], "reason": "r"}).ok()
    assert [result["status"] for result in answer["results"]] == ["updated"]


def test_its_owner_forgets_it_by_its_id(room: Client, scoped: str) -> None:
    plain = room.remember("The grey heron nests at the south pier")["id"]
    preview = room.post("/api/memory/forget", {"ids": [scoped, plain]}).ok()
    assert {found["id"] for found in preview["candidates"]} == {scoped, plain}
    done = room.forget(ids=[scoped, plain])
    assert {(one["id"], one["status"]) for one in done["results"]} == {(scoped, "deleted"), (plain, "deleted")}


def test_its_owner_erases_it_by_its_id(room: Client, scoped: str) -> None:
    done = room.forget(ids=[scoped], force=True)
    assert done["deleted"] == 1
    room.get(f"/api/memory/{scoped}", includeDeleted=True).refused(404)


def test_a_forget_with_a_scope_selects_only_that_scope(room: Client, scoped: str) -> None:
    for scope, found in (("birds", [scoped]), ("fish", [])):
        preview = room.post("/api/memory/forget", {"ids": [scoped], "scope": scope}).ok()
        assert [candidate["id"] for candidate in preview["candidates"]] == found


@pytest.mark.parametrize("act", {**READS, **CHANGES}.values(), ids={**READS, **CHANGES})
def test_another_agents_private_memory_stays_unknown_with_or_without_the_scope(
    daemon: LiveDaemon, room: Client, act: ByID
) -> None:
    memory = room.remember(TEXT, scope="birds", visibility="private")["id"]
    stranger = daemon.agent("wide")
    act(stranger, memory).refused(404)
    stranger.get(f"/api/memory/{memory}", scope="birds").refused(404)
    stranger.post(f"/api/memory/{memory}/recover", {"reason": "r"}).refused(404)
    batch = stranger.post("/api/memory/modify", {"patches": [{"id": memory, "importance": 0.3}], "reason": "r"}).ok()
    assert [result["status"] for result in batch["results"]] == ["not_found"]
    assert stranger.post("/api/memory/forget", {"ids": [memory]}).ok()["candidates"] == []
    assert room.memory(memory)["version"] == 1


BY_ID: dict[str, ByID] = {
    **READS,
    "get deleted": lambda client, memory: client.get(f"/api/memory/{memory}", include_deleted="true"),
    "patch": lambda client, memory: client.request(
        "PATCH", f"/api/memory/{memory}", {"tags": "a", "reason": "r", "if_version": 7}
    ),
    "delete": lambda client, memory: client.request("DELETE", f"/api/memory/{memory}?reason=r&if_version=7"),
    "erase": lambda client, memory: client.request("DELETE", f"/api/memory/{memory}?reason=r&force=true"),
    "recover": lambda client, memory: client.post(f"/api/memory/{memory}/recover", {"reason": "r", "if_version": 7}),
    "modify": lambda client, memory: client.post(
        "/api/memory/modify", {"patches": [{"id": memory, "importance": 0.3, "if_version": 7}], "reason": "r"}
    ),
    "forget": lambda client, memory: client.post(
        "/api/memory/forget", {"ids": [memory], "mode": "execute", "reason": "r"}
    ),
    "runs": lambda client, memory: client.get("/api/pipeline/runs", memory_id=memory),
}
JOBS_BY_ID: dict[str, ByID] = {
    "job": lambda client, job: client.get(f"/api/memory/jobs/{job}"),
    "run": lambda client, job: client.get(f"/api/pipeline/runs/{job}"),
    "requeue": lambda client, job: client.post("/api/pipeline/requeue", {"ids": [job]}),
    "repair": lambda client, job: client.post("/api/repair/requeue-dead", {"ids": [job]}),
}


@pytest.mark.parametrize("deleted", [False, True], ids=["live", "deleted"])
def test_another_agents_private_memory_and_job_look_like_missing_ones(
    daemon: LiveDaemon, room: Client, deleted: bool
) -> None:
    stranger = daemon.agent("wide")
    missing = "01a20000-0000-7000-8000-0000000000ff"
    memory = room.remember(f"{TEXT} {deleted}", visibility="private")["id"]
    with closing(sqlite3.connect(f"file:{daemon.database}?mode=ro", uri=True)) as database:
        (job,) = database.execute("SELECT id FROM memory_jobs WHERE memory_id = ? LIMIT 1", (memory,)).fetchone()
    assert room.get(f"/api/memory/jobs/{job}").ok()["id"] == job
    if deleted:
        room.request("DELETE", f"/api/memory/{memory}?reason=r").ok()
    before = room.get(f"/api/memory/{memory}/history").ok()
    for hidden, routes in ((memory, BY_ID), (job, JOBS_BY_ID)):
        for name, ask in routes.items():
            seen, unknown = ask(stranger, hidden), ask(stranger, missing)
            assert (seen.status, seen.raw.replace(hidden.encode(), missing.encode())) == (
                unknown.status,
                unknown.raw,
            ), name
    assert room.get(f"/api/memory/{memory}/history").ok() == before


def test_searches_and_lists_show_it_only_for_its_scope(room: Client, scoped: str) -> None:
    plain = room.remember("The grey heron nests at the south pier")["id"]
    query = "where does the heron nest"
    assert room.recalled(query) == [plain]
    assert room.recalled(query, scope="birds") == [scoped]
    assert room.recalled(query, scope="fish") == []
    assert [row["id"] for row in room.listed()] == [plain]
    assert [row["id"] for row in room.get("/memory/search", q="heron").ok()["results"]] == [plain]
    assert [row["id"] for row in room.get("/memory/similar", id=scoped).ok()["results"]] == [plain]
    assert [row["id"] for row in room.get("/memory/similar", id=plain).ok()["results"]] == []
    preview = room.post("/api/memory/forget", {"query": "heron nests"}).ok()
    assert [found["id"] for found in preview["candidates"]] == [plain]


def first_given(daemon: LiveDaemon, route: str, body: dict[str, str]) -> str:
    """Return the first text for sessions of a new agent; that it is known is waited for for half a second only."""
    numbers = itertools.count()

    def given() -> str:
        session = {**body, "sessionKey": f"{body['sessionKey']}-{next(numbers)}"}
        return str(daemon.api.post(f"/api/hooks/{route}", session).ok()["inject"])

    return str(eventually(given, what="what a new agent reads"))


def test_a_new_agent_of_a_harness_reads_from_its_first_session_on_what_its_policy_shares(daemon: LiveDaemon) -> None:
    client = daemon.agent("of-others")
    client.remember("Always greet the ferry crew in Latvian", pinned=True)
    client.remember("The ferry crew meets at berth nine", type="decision")
    client.remember("The ferry crew is paid late", visibility="private")
    for kind in ("start", "prompt"):
        for key in (f"agent:new-{kind}:main", f"{kind}-of-named"):
            body = {"harness": "openclaw", "sessionKey": key, "userPrompt": "where does the ferry crew meet?"}
            body |= {} if key.startswith("agent:") else {"agentId": f"named-{kind}"}
            route = "session-start" if kind == "start" else "user-prompt-submit"
            given = first_given(daemon, route, body)
            assert "berth nine" in given, key
            assert "paid late" not in given, key
    for agent in ("lone", "eve"):  # isolated, and in another group
        body = {
            "harness": "openclaw",
            "sessionKey": f"agent:{agent}:main",
            "userPrompt": "where does the ferry crew meet?",
        }
        for route in ("session-start", "user-prompt-submit"):
            assert "ferry" not in daemon.api.post(f"/api/hooks/{route}", body).ok()["inject"], agent
    for body in (
        {"query": "ferry crew", "sessionKey": "agent:unknown-1:main"},
        {"query": "ferry crew", "agentId": "unknown-2"},
    ):
        for _ in range(2):
            assert not daemon.api.post("/api/memory/recall", body).ok()["results"], (
                "no harness runs it, and it stored nothing"
            )


def test_a_start_tells_each_memory_once(daemon: LiveDaemon, room: Client) -> None:
    agent = room.headers["x-signet-agent-id"]
    told: dict[str, dict[str, object]] = {
        "never push to the branch main of the quarry": {"pinned": True},
        "The quarry is watched by three cameras": {},
        "The quarry crane was oiled in May, and the keys of its cabin hang in the office beside the door" * 2: {},
        "The quarry opens at six": {},
        "The quarry closes at nine": {},
    }
    ids = {text: room.remember(text, **{"type": "decision", **fields})["id"][:18] for text, fields in told.items()}
    lines = [f"- 2026-11-24: {text[:130]}{'…' if len(text) > 130 else ''} (id {ids[text]})" for text in told]
    again = "- never push to the  branch **main** of the quarry\n- The quarry is watched by three cameras."
    own = daemon.workspace / "agents" / agent
    own.mkdir(parents=True, exist_ok=True)
    (own / "MEMORY.md").write_text(
        f"# Mine\n{again}\n- The quarry has a dog\n\n## Temporal Index\n" + "\n".join(lines) + "\n"
    )
    (own / "SOUL.md").write_text("- The quarry opens at six\n- Be terse about the quarry\n")
    body = {"harness": "codex", "sessionKey": "each-once"}
    for key, more in (("once", {}), ("once-short", {"maxInjectChars": 3000})):
        given = room.post("/api/hooks/session-start", {**body, "sessionKey": key, **more}).ok()
        plain = given["inject"].replace("**", "").replace("  ", " ")
        for text in (*told, "The quarry has a dog", "Be terse about the quarry"):
            assert plain.count(text[:120]) == 1, (key, text, plain)
        assert "Temporal Index" not in plain
        assert "- The quarry has a dog" in given["recentContext"]
        assert "cameras" not in given["recentContext"]
