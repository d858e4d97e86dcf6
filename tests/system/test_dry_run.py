"""A dry run of a prompt answers as the prompt was answered, says why, and changes nothing; nor does who looks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.live_daemon import Client, LiveDaemon, live_daemon
from tests.system.test_asked_and_given import searches
from tests.system.test_offered_memories import hook

pytestmark = pytest.mark.system

PROJECT = "/home/ada/shop"
MEMORIES = (
    "The staging database listens on port 5433",
    "The staging frontend is deployed on Fridays by Grace",
    "Invoices are numbered per year and never reused",
    "The release branch of the shop is cut on Mondays",
    "Payments are retried three times by the upload worker",
)
PROMPTS = (
    "which port does the staging database listen on?",
    "and who deploys the staging frontend?",
    "how are invoices numbered?",
    "which port does the staging database listen on?",
    "ok",
    "when is the release branch cut, and how often are payments retried?",
    "what does the kubectl of staging say?",
)
PROMPT = "/api/hooks/user-prompt-submit"
STORED = (
    *("searches", "search_rows", "session_contexts", "session_recalls", "session_memories", "session_checkpoints"),
    *("agents", "memory_history", "memory_jobs", "session_pauses"),
)


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon(patient=True) as started:
        for content in MEMORIES:
            started.api.remember(content, project=PROJECT)
        started.api.remember("The staging database of another project has port 6000", project="/home/ada/other")
        started.api.remember("A remark on the staging port of no weight", project=PROJECT, importance=0.1)
        yield started


def given(rows: Any) -> list[tuple[str, int, str]]:
    return sorted((row["id"], row["version"], row["outcome"]) for row in rows if row["given"])


def stored(daemon: LiveDaemon) -> dict[str, Any]:
    """Return everything that a use of memory changes in the database."""
    tables = {table: sorted(map(repr, daemon.read(f"SELECT * FROM {table}"))) for table in STORED}
    used = "SELECT id, last_accessed, access_count, injected_count FROM memories ORDER BY id"
    return {**tables, "uses": daemon.read(used)}


def figures(daemon: LiveDaemon) -> dict[str, Any]:
    """Return the counts and durations of requests, without those of looking at them."""
    lines = daemon.api.request("GET", "/metrics", headers={"x-signet-observe": "1"}).raw.decode().splitlines()
    told = ("signet_http_requests_total", "signet_http_request_duration_seconds", "signet_sessions")
    return {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in lines if line.startswith(told)}


def settle(client: Client) -> None:
    """Wait until what was asked and offered is stored."""
    searches(client, limit="1")


def restart(daemon: LiveDaemon) -> None:
    """Restart the daemon, which stores what waits."""
    assert daemon.stop() == 0
    daemon.start()
    daemon.wait_ready()


def dry(client: Client, prompt: str, **fields: Any) -> Any:
    body = {"harness": "codex", "project": PROJECT, "userPrompt": prompt, "dryRun": True, **fields}
    return client.post(PROMPT, body).ok()


def test_the_dry_run_of_each_prompt_of_a_session_gives_what_was_given(daemon: LiveDaemon) -> None:
    hook(daemon.api, "session-start", "s-1", project=PROJECT)
    replies = []
    for number, prompt in enumerate(PROMPTS):
        replies.append(hook(daemon.api, "user-prompt-submit", "s-1", project=PROJECT, userPrompt=prompt))
        if number == 3:
            daemon.api.recall("payments retried", sessionKey="s-1", project=PROJECT)
        if number == 2:
            compacted = {"harness": "codex", "sessionKey": "s-1", "summary": "The weather was fine."}
            daemon.api.post("/api/hooks/compaction-complete", compacted).ok()
    kept = searches(daemon.api, session="s-1", kind="prompt")[::-1]
    assert [row["prompt"] for row in kept] == list(PROMPTS)
    assert sum(row["given"] for row in kept) >= 4
    restart(daemon)
    before, counted = stored(daemon), figures(daemon)
    for row, reply in zip(kept, replies, strict=True):
        again = dry(daemon.api, row["prompt"], sessionKey="s-1", asOf=row["id"], explain=True)
        recorded = {"sessionKey": "s-1", "dryRun": True, "asOf": row["id"], "explain": True}
        assert daemon.api.post(PROMPT, recorded).ok() == again, "without its words it is run with those that were kept"
        assert again["dryRun"] is True
        assert given(again["considered"]) == given(row["memories"]), row["prompt"]
        assert again["inject"] == reply["inject"], row["prompt"]
        outcomes = {each["id"]: each["outcome"] for each in again["considered"]}  # also of the later summary
        assert {each["id"]: each["outcome"] for each in row["memories"]}.items() <= outcomes.items()
    assert figures(daemon) == counted
    settle(daemon.api)
    assert stored(daemon) == before


def test_without_a_moment_the_dry_run_has_what_the_session_has_now(daemon: LiveDaemon) -> None:
    hook(daemon.api, "user-prompt-submit", "s-2", project=PROJECT, userPrompt=PROMPTS[0])
    now = dry(daemon.api, PROMPTS[0], sessionKey="s-2", explain=True)
    assert [row["outcome"] for row in now["considered"] if row["content"] == MEMORIES[0]] == ["received"]
    new = dry(daemon.api, PROMPTS[0], sessionKey="s-unknown", explain=True)
    assert [row["outcome"] for row in new["considered"] if row["content"] == MEMORIES[0]] == ["given"]
    wrong = dry(daemon.api, PROMPTS[0], sessionKey="s-2", asOf="of-no-session")
    assert (wrong["skipped"], wrong["reason"], wrong["dryRun"]) == (True, "not_found", True)


def test_the_fate_of_a_memory_is_told_in_words(daemon: LiveDaemon) -> None:
    ids = {row["content"]: row["id"] for row in daemon.api.listed()}
    gone = daemon.api.remember("The staging database has a forgotten port", project=PROJECT)["id"]
    daemon.api.forget(ids=[gone])

    def fate(content: str, prompt: str = PROMPTS[0], **fields: Any) -> tuple[str, str]:
        told = dry(daemon.api, prompt, explainId=ids.get(content, content), **fields)["explained"]
        return told["outcome"], told["why"]

    assert fate(MEMORIES[0])[0] == "given"
    assert fate("The staging database of another project has port 6000") == (
        "filtered",
        "it belongs to another project",
    )
    assert fate("A remark on the staging port of no weight") == (
        "filtered",
        "its importance is below 0.3, the least that is given",
    )
    assert fate(MEMORIES[2])[0] in {"not_a_candidate", "below_relevance", "below_min_relevance", "below_min_score"}
    assert fate(gone) == ("forgotten", "it was forgotten")
    assert fate(MEMORIES[0], prompt="ok")[0] == "not_searched"
    other = daemon.agent("mallory")
    secret = daemon.api.remember("Only ada may read this", visibility="private")["id"]
    body = {"harness": "x", "prompt": PROMPTS[0], "dryRun": True, "explainId": secret}
    assert other.post(PROMPT, body).ok()["explained"]["outcome"] == "not_found"


def test_a_person_who_looks_changes_nothing(daemon: LiveDaemon) -> None:
    """A tour of everything that reads, with the header: tables and figures stay as they are."""
    hook(daemon.api, "user-prompt-submit", "s-3", project=PROJECT, userPrompt=PROMPTS[0])
    some = daemon.api.listed()[0]["id"]
    restart(daemon)
    looking = Client(daemon, {"x-signet-observe": "1"})
    paths = daemon.api.get("/api/openapi.json").ok()["paths"]
    before, counted = stored(daemon), figures(daemon)
    values = {"{id}": some, "{key}": "s-3", "{domain}": "queue", "{file}": "x", "{run}": "r", "{aspect}": "a"}
    asked = 0
    for path, methods in paths.items():
        target = path
        for name, value in values.items():
            target = target.replace(name, value)
        if "get" in methods and "stream" not in path and path != "/api/changes":
            answer = looking.request("GET", f"{target}?q=staging&id={some}&project={PROJECT}&sessionKey=s-3")
            assert answer.status < 500, (target, answer.status)
            asked += 1
    assert asked > 50
    found = looking.post("/api/memory/recall", {"query": "staging database port", "sessionKey": "s-3"}).ok()
    assert found["meta"]["dedupe"]["suppressed"] >= 1, "it is answered as the session would be"
    assert looking.post("/api/memory/recall", {"query": "how are invoices numbered?"}).ok()["results"]
    assert hook(looking, "recall", "s-3", query="release branch")["count"]
    assert hook(looking, "session-start", "s-new", project=PROJECT)["inject"]
    assert hook(looking, "user-prompt-submit", "s-3", project=PROJECT, userPrompt=PROMPTS[2])["memoryCount"]
    assert hook(looking, "pre-compaction", "s-3")["reason"] == "observed"
    call = {"name": "memory_search", "arguments": {"query": "how are invoices numbered?"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    tool = looking.post("/mcp", message, Accept="application/json, text/event-stream").ok()
    assert "never reused" in str(tool["result"])
    assert "s-new" not in str(looking.get("/api/sessions").ok())
    assert figures(daemon) == counted
    assert daemon.stop() == 0
    assert stored(daemon) == before
