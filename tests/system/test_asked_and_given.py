"""A real daemon keeps what was asked and given, and why the rest was left out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.live_daemon import Client, LiveDaemon, live_daemon, signet
from tests.system.test_offered_memories import hook

pytestmark = pytest.mark.system

PROJECT = "/home/ada/shop"
PORT = "which port does the staging database listen on?"


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon(patient=True) as started:
        started.api.remember("The staging database listens on port 5433", project=PROJECT, type="decision")
        started.api.remember("The staging frontend is deployed on Fridays by Grace", project=PROJECT)
        started.api.remember("Another project keeps its staging database on port 6000", project="/home/ada/other")
        yield started


def searches(client: Client, **query: Any) -> Any:
    return client.get("/api/telemetry/memory-search", **query).ok()["searches"]


def told(search: Any) -> list[tuple[str, str]]:
    return [(memory["content"].split()[-1], memory["outcome"]) for memory in search["memories"]]


def test_a_session_is_kept_prompt_by_prompt_with_what_was_left_out(daemon: LiveDaemon) -> None:
    start = hook(daemon.api, "session-start", "s-1", project=PROJECT)
    first = hook(daemon.api, "user-prompt-submit", "s-1", project=PROJECT, userPrompt=PORT)
    asked = "who deploys the staging frontend on Fridays?"
    second = hook(daemon.api, "user-prompt-submit", "s-1", project=PROJECT, userPrompt=asked)
    rows = searches(daemon.api, session="s-1")[::-1]
    assert [(row["kind"], row.get("number"), row["prompt"]) for row in rows] == [
        ("start", None, None),
        ("prompt", 1, PORT),
        ("prompt", 2, asked),
    ]
    assert {row["harness"] for row in rows} == {"codex"}
    assert {row["project"] for row in rows} == {PROJECT}
    assert [row["characters"] for row in rows] == [len(reply["inject"]) for reply in (start, first, second)]
    assert {outcome for _, outcome in told(rows[0])} <= {"important", "pinned", "rule"}
    assert ("5433", "important") in told(rows[0])
    assert ("5433", "received") in told(rows[1]), "the start had given it"
    assert rows[1]["given"] == first["memoryCount"] == 0
    assert ("Grace", "given") in told(rows[2])
    assert [row["outcome"] for row in rows] == [
        "given 1 memory",
        "nothing new, because the session had what fits",
        "given 1 memory",
    ]
    assert all(row["ms"] > 0 for row in rows)


def test_a_prompt_that_is_given_nothing_tells_what_was_nearest(daemon: LiveDaemon) -> None:
    hook(daemon.api, "user-prompt-submit", "s-2", project=PROJECT, userPrompt="what does the staging kubectl say?")
    (row,) = searches(daemon.api, session="s-2", no_hits="true")
    assert (row["given"], row["outcome"]) == (0, "no memory fits")
    assert {memory["outcome"] for memory in row["memories"]} == {"below_relevance"}
    nearest = [memory["relevance"] for memory in row["memories"]]
    assert nearest == sorted(nearest, reverse=True)
    assert searches(daemon.api, session="s-2", no_hits="false") == []


def test_searches_are_exported_as_lines_page_by_page(daemon: LiveDaemon) -> None:
    agent = daemon.agent("exporter")
    for number in range(3):
        agent.recall(f"query number {number}")
    listed = searches(agent)
    assert [row["prompt"] for row in listed] == [f"query number {number}" for number in (2, 1, 0)]
    lines: list[Any] = []
    before: dict[str, Any] = {}
    for expected in (2, 1):
        page = agent.get("/api/telemetry/memory-search/export", limit=2, no_hits="true", **before)
        assert (page.status, page.headers["content-type"]) == (200, "application/x-ndjson")
        rows = [json.loads(line) for line in page.raw.splitlines()]
        assert len(rows) == expected
        before = {"before": page.headers.get("x-signet-next-cursor")}
        lines += rows
    assert (lines, before) == (listed, {"before": None})
    assert daemon.agent("nobody").get("/api/telemetry/memory-search/export").raw == b""
    for path in ("/api/telemetry/memory-search/export", "/api/telemetry/memory-search"):
        refused = agent.get(path, before="01a208b3-2318-7000-8000-000000000000").refused(400)
        assert "`next` of a page" in refused["error"]


def test_recalls_and_tools_are_kept_with_their_query(daemon: LiveDaemon) -> None:
    agent = daemon.agent("ada")
    agent.remember("The invoices are numbered per year")
    agent.recall("how are invoices numbered?")
    agent.post("/api/memory/recall", {"query": "invoices"}, x_signet_actor="codex", x_signet_actor_type="agent").ok()
    tool, recall = searches(agent)
    assert (recall["kind"], recall["prompt"], recall["given"]) == ("recall", "how are invoices numbered?", 1)
    assert (tool["kind"], tool["prompt"], tool["harness"], tool["sessionKey"]) == ("tool", "invoices", "codex", None)
    assert searches(daemon.agent("grace")) == [], "another agent's"


def test_a_secret_in_a_prompt_is_not_kept(daemon: LiveDaemon) -> None:
    secret = "ghp_" + "a1B2c3D4" * 4 + "e5F6"
    agent = daemon.agent("eve")
    hook(agent, "user-prompt-submit", "s-3", userPrompt=f"deploy the frontend with the token {secret} please")
    agent.recall(f"where is {secret} used?")
    kept = str(searches(agent))
    assert "deploy the frontend" in kept
    assert secret not in kept


def test_a_retry_is_kept_once_and_a_skipped_hook_without_its_words(daemon: LiveDaemon) -> None:
    agent = daemon.agent("heidi")
    body = {"harness": "codex", "sessionKey": "s-4", "userPrompt": PORT}
    for _ in range(2):
        agent.post("/api/hooks/user-prompt-submit", body, x_signet_request_id="once").ok()
    assert len(searches(agent)) == 1
    agent.post("/api/hooks/user-prompt-submit", {**body, "runtimePath": "plugin"}).ok()
    agent.post("/api/hooks/user-prompt-submit", {**body, "runtimePath": "legacy"}).ok()
    latest = searches(agent)[0]
    assert (latest["skipped"], latest["prompt"], latest["given"]) == ("claimed", None, 0)
    assert latest["outcome"] == "not asked: another program serves this session"


def test_nothing_is_kept_of_a_session_for_which_memory_is_off(daemon: LiveDaemon) -> None:
    agent = daemon.agent("ivan")
    for prompt in ("[signet-off] do not keep this", "nor what follows it"):
        hook(agent, "user-prompt-submit", "s-5", userPrompt=prompt)
    assert searches(agent) == []


def test_what_is_erased_is_gone_from_the_file_of_the_database(daemon: LiveDaemon) -> None:
    agent = daemon.agent("judy")
    stored = agent.remember("The quokkabird nests in the server room")
    hook(agent, "user-prompt-submit", "s-6", userPrompt="where does the quokkabird nest?")
    assert [row["prompt"] for row in searches(agent)] == ["where does the quokkabird nest?"]
    agent.forget(ids=[stored["id"]], force=True)
    (row,) = searches(agent)
    assert (row["prompt"], row["memories"], row["given"]) == (None, [], 1)
    hook(agent, "user-prompt-submit", "s-7", userPrompt="an armadillowolf has the key")
    agent.request("DELETE", "/api/sessions/s-7/transcript").ok()
    assert "armadillowolf" not in str(searches(agent))


def test_all_sessions_are_listed_with_what_each_was_given(daemon: LiveDaemon) -> None:
    agent = daemon.agent("karl")
    stored = agent.remember("The staging database listens on port 5433", project=PROJECT)
    for number, prompt in enumerate((PORT, "who wrote the kernel of the moon?")):
        hook(agent, "user-prompt-submit", "k-1", project=PROJECT, userPrompt=prompt)
        hook(agent, "user-prompt-submit", f"k-{number + 2}", project="/home/karl/other", userPrompt=prompt)
    agent.recall("staging port", sessionKey="k-1")
    talk = [{"role": "user", "content": PORT}, {"role": "assistant", "content": "It is 5433."}]
    agent.post("/api/hooks/session-end", {"harness": "codex", "sessionKey": "k-1", "transcript": talk}).ok()
    listed = agent.get("/api/sessions", state="all").ok()["sessions"]
    assert {row["key"] for row in listed} == {"k-1", "k-2", "k-3"}
    (first,) = agent.get("/api/sessions", state="all", project=PROJECT).ok()["sessions"]
    assert {name: first[name] for name in ("key", "prompts", "promptsGiven", "searches", "transcript", "turns")} == {
        "key": "k-1",
        "prompts": 2,
        "promptsGiven": 1,
        "searches": 1,
        "transcript": "kept",
        "turns": 2,
    }
    assert (first["harness"], first["project"], first["active"]) == ("codex", PROJECT, False)
    assert first["prompt"] == PORT
    agent.forget(ids=[stored["id"]], force=True)
    (first,) = agent.get("/api/sessions", state="all", project=PROJECT).ok()["sessions"]
    assert first["prompt"] == PORT, "the transcript has it, although the erased memory took it from the record"
    page = agent.get("/api/sessions", state="all", limit=2).ok()
    rest = agent.get("/api/sessions", state="all", limit=2, before=page["next"]).ok()
    assert [row["key"] for row in page["sessions"] + rest["sessions"]] == [row["key"] for row in listed]
    agent.request("DELETE", "/api/sessions/k-1/transcript").ok()
    (first,) = agent.get("/api/sessions", state="all", project=PROJECT).ok()["sessions"]
    assert (first["transcript"], first["prompts"], first["prompt"]) == ("erased", 2, None)
    assert daemon.agent("lena").get("/api/sessions", state="all").ok()["sessions"] == []


def test_what_came_of_prompts_is_counted_by_project_and_printed(daemon: LiveDaemon) -> None:
    agent = daemon.agent("counter")
    agent.remember("The staging database listens on port 5433", project=PROJECT)
    for project, prompt in ((PROJECT, PORT), (PROJECT, "what does the staging kubectl say?"), ("/home/ada/api", PORT)):
        hook(agent, "user-prompt-submit", "c-1", project=project, userPrompt=prompt)
    hook(agent, "user-prompt-submit", "c-1", project=PROJECT, userPrompt=PORT, runtimePath="plugin")
    hook(agent, "user-prompt-submit", "c-1", project=PROJECT, userPrompt=PORT, runtimePath="legacy")
    counted = agent.get("/api/analytics/prompts", hours=1).ok()
    kept = searches(agent)
    assert (counted["prompts"], counted["given"], counted["skipped"]) == (5, 1, {"claimed": 1})
    assert counted["nothing"] == 3
    assert counted["byHour"] == [5]
    assert counted["characters"] == sum(row["characters"] for row in kept)
    assert [(one["project"], one["prompts"], one["nothing"]) for one in counted["projects"]] == [
        (PROJECT, 4, 2),
        ("/home/ada/api", 1, 1),
    ]
    assert counted["ms"]["count"] == 4
    assert counted["complete"] is True
    first, second = (agent.get("/api/analytics/prompts", hours=24).ok() for _ in range(2))
    assert first["since"] == second["since"], "the reply was kept"
    assert agent.get("/api/analytics/prompts", hours=0).ok()["byHour"] == counted["byHour"], "at least one hour"
    lines = [line.split("\t") for line in signet(daemon, "analytics", "prompts", "--agent", "counter").splitlines()]
    assert [line[:5] for line in lines[:2]] == [["all", "5", "1", "3", "1"], [PROJECT, "4", "1", "2", "1"]]
    assert daemon.agent("stranger").get("/api/analytics/prompts").ok()["prompts"] == 0


def test_why_shows_the_prompts_of_a_session_one_of_them_and_the_fate_of_a_memory(daemon: LiveDaemon) -> None:
    hook(daemon.api, "session-start", "w-1", project="/home/ada/other")
    for prompt in (PORT, "ok"):
        hook(daemon.api, "user-prompt-submit", "w-1", project=PROJECT, userPrompt=prompt)
    ids = {row["content"]: row["id"] for row in daemon.api.listed()}

    def why(*arguments: str) -> str:
        return signet(daemon, "why", "w-1", *arguments)

    lines = [line.split("\t") for line in why().splitlines()]
    outcomes = [row["outcome"] for row in searches(daemon.api, session="w-1")[::-1]]
    assert [(line[0], line[2], line[3].partition("; ")[0], line[4]) for line in lines] == [
        ("", "start", outcomes[0], ""),
        ("1", "prompt", outcomes[1], PORT),
        ("2", "prompt", "no memory fits", "ok"),
    ]
    one = why("1")
    assert outcomes[1] in one
    assert "The staging database listens on port 5433" in one
    assert "given" in one
    elsewhere = ids["Another project keeps its staging database on port 6000"]
    assert "it belongs to another project" in why("1", "--memory", elsewhere)
    assert "nothing was searched for" in why("--memory", elsewhere)
    signet(daemon, "why", "w-1", "9", exit_code=1)
    signet(daemon, "why", "no-such-session", exit_code=1)
    assert "w-1" in signet(daemon, "sessions", "--all")
