"""A session is joined by the daemon: each prompt with its turn and what it was given, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from signet_actors.features.conversation.api import MOST_TURNS
from tests.support.live_daemon import Client, LiveDaemon, live_daemon, signet
from tests.system.test_asked_and_given import searches
from tests.system.test_dry_run import given
from tests.system.test_offered_memories import hook

pytestmark = pytest.mark.system

PROJECT = "/home/ada/shop"
PORT, ANSWER = "which port does the staging database listen on?", "It is 5433."
FRIDAY = "and who deploys the staging frontend?"
MEMORIES = (
    "The staging database listens on port 5433",
    "The staging frontend is deployed on Fridays by Grace",
    "Invoices are numbered per year and never reused",
)
HOOK = "/api/hooks/user-prompt-submit"


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon(patient=True) as started:
        yield started


def person(daemon: LiveDaemon, name: str) -> Client:
    """Return an agent with memories that are its own."""
    agent = daemon.agent(name)
    for content in MEMORIES:
        agent.remember(content, project=PROJECT, visibility="private")
    return agent


def ask(agent: Client, key: str, *prompts: str, **fields: Any) -> list[Any]:
    return [hook(agent, "user-prompt-submit", key, project=PROJECT, userPrompt=each, **fields) for each in prompts]


def say(agent: Client, key: str, *said: tuple[str, str]) -> None:
    """Store the transcript of the session."""
    talk = [{"role": role, "content": content} for role, content in said]
    agent.post("/api/hooks/session-end", {"harness": "codex", "sessionKey": key, "transcript": talk}).ok()


def rows(agent: Client, key: str, **query: Any) -> list[Any]:
    """Return all rows of the session, read page by page."""
    found: list[Any] = []
    after: Any = 0
    while after is not None:
        page = agent.get(f"/api/sessions/{key}/conversation", after=after, **query).ok()
        assert page["count"] == len(page["rows"])
        found += page["rows"]
        after = page["next"]
    return found


def shape(found: list[Any]) -> list[tuple[str | None, Any]]:
    """Return of each row the words of its turn, and the number or the kind of its search."""
    return [
        (row["turn"] and row["turn"]["content"], row["search"] and row["search"].get("number", row["search"]["kind"]))
        for row in found
    ]


def test_a_prompt_and_its_turn_are_one_row_with_what_it_was_given(daemon: LiveDaemon) -> None:
    agent = person(daemon, "ada")
    ask(agent, "s-1", PORT, FRIDAY)
    agent.recall("how are invoices numbered?", sessionKey="s-1", project=PROJECT)
    say(agent, "s-1", ("user", PORT), ("assistant", ANSWER), ("user", FRIDAY), ("assistant", "Somebody does."))
    found = rows(agent, "s-1")
    assert shape(found) == [(PORT, 1), (ANSWER, None), (FRIDAY, 2), ("Somebody does.", None), (None, "recall")]
    kept = searches(agent, session="s-1")[::-1]
    assert [row["search"]["id"] for row in found if row["search"]] == [row["id"] for row in kept]
    told = [
        (one["content"], one.get("seemsUsed"))
        for row in found[:3:2]
        for one in row["search"]["memories"]
        if one["given"]
    ]
    assert ("The staging database listens on port 5433", True) in told, "the answer has its number"
    assert ("The staging frontend is deployed on Fridays by Grace", False) in told
    assert all("seemsUsed" not in one for row in kept for one in row["memories"])


def test_pages_have_all_rows_once_and_a_search_is_beside_an_answer_on_the_next_page(daemon: LiveDaemon) -> None:
    agent = person(daemon, "bob")
    said: list[tuple[str, str]] = []
    for number in range(20):
        prompt = PORT if number == 2 else f"question {number} about the weather of town {number}"
        ask(agent, "s-1", prompt)
        said += [("user", prompt), ("assistant", ANSWER if number == 2 else f"answer {number}")]
    say(agent, "s-1", *said)
    whole = rows(agent, "s-1")
    assert shape(whole) == [(text, at // 2 + 1 if at % 2 == 0 else None) for at, (_, text) in enumerate(said)]
    for limit in (1, 7, 40):
        assert rows(agent, "s-1", limit=limit) == whole
    beyond = agent.get("/api/sessions/s-1/conversation", after=1000).ok()
    first = agent.get("/api/sessions/s-1/conversation", limit=1).ok()
    assert beyond == {"rows": [], "count": 0, "next": None, "version": first["version"], "cut": False}
    (used,) = [one["seemsUsed"] for one in whole[4]["search"]["memories"] if one["given"]]
    assert used is True
    agent.get("/api/sessions/s-1/conversation", after="x").refused(400)


def test_the_version_is_another_one_as_soon_as_a_row_is(daemon: LiveDaemon) -> None:
    agent = person(daemon, "berta")
    memory = {row["content"]: row["id"] for row in agent.listed()}[MEMORIES[0]]

    def version() -> str:
        return str(agent.get("/api/sessions/s-1/conversation", limit=1).ok()["version"])

    found = [version()]
    for change in (
        lambda: ask(agent, "s-1", PORT) and searches(agent, session="s-1"),
        lambda: say(agent, "s-1", ("user", PORT), ("assistant", ANSWER)),
        lambda: say(agent, "s-1", ("user", "ok")),
        lambda: agent.request("PATCH", f"/api/memory/{memory}", {"content": "It is 5434", "reason": "r"}).ok(),
        lambda: agent.request("DELETE", f"/api/memory/{memory}?reason=r").ok(),
        lambda: agent.request("DELETE", "/api/sessions/s-1/transcript").ok(),
    ):
        change()
        found.append(version())
        daemon.agent("bea").remember(f"Of another agent {len(found)}", visibility="private")
        assert version() == found[-1]
    assert len(set(found)) == len(found)


def test_words_are_looked_for_in_all_that_is_said_before_the_next_prompt(daemon: LiveDaemon) -> None:
    agent = person(daemon, "bruno")
    ask(agent, "s-1", PORT, "which frontend is deployed?")
    say(agent, "s-1", ("user", PORT), ("assistant", "I will look."), ("assistant", ANSWER), ("user", "thanks"))
    used = {one["content"]: one["seemsUsed"] for one in rows(agent, "s-1")[0]["search"]["memories"] if one["given"]}
    assert used[MEMORIES[0]] is True


def test_of_a_session_that_is_too_long_the_beginning_is_shown_and_it_says_so(daemon: LiveDaemon) -> None:
    agent = person(daemon, "bill")
    ask(agent, "s-1", FRIDAY)
    for part in range(6):
        turns = [("assistant", f"turn {number}") for number in range(part * 10_000, (part + 1) * 10_000)]
        say(agent, "s-1", *(turns if part != 4 else [*turns[:-1], ("user", FRIDAY)]))
    page = agent.get("/api/sessions/s-1/conversation", after=MOST_TURNS - 1).ok()
    assert (shape(page["rows"]), page["next"], page["cut"]) == ([(FRIDAY, 1)], None, True)
    body = {"sessionKey": "s-1", "dryRun": True, "asOf": page["rows"][0]["search"]["id"], "explain": True}
    assert given(agent.post(HOOK, body).ok()["considered"]) == given(page["rows"][0]["search"]["memories"])


def test_a_prompt_that_is_said_twice_has_its_own_turn_each_time(daemon: LiveDaemon) -> None:
    agent = person(daemon, "cleo")
    ask(agent, "s-1", PORT, "ok", PORT, "ok")
    talk = [
        ("user", PORT),
        ("assistant", "One."),
        ("user", "ok"),
        ("assistant", "Two."),
        ("user", PORT),
        ("user", "ok"),
    ]
    say(agent, "s-1", *talk)
    found = rows(agent, "s-1")
    assert shape(found) == [(PORT, 1), ("One.", None), ("ok", 2), ("Two.", None), (PORT, 3), ("ok", 4)]
    first, third = found[0]["search"]["memories"], found[4]["search"]["memories"]
    assert [one["outcome"] for one in first if one["given"]] == ["given"]
    (had,) = [one for one in third if one["id"] == first[0]["id"]]
    assert (had["outcome"], had["earlier"]) == ("received", {"kind": "prompt", "number": 1})


def test_a_prompt_that_the_transcript_lacks_leaves_the_others_their_turns(daemon: LiveDaemon) -> None:
    agent = person(daemon, "carl")
    ask(agent, "s-1", "which port", PORT, FRIDAY, "which port")
    say(agent, "s-1", ("user", PORT), ("assistant", "A."), ("user", FRIDAY), ("user", "which port"))
    found = rows(agent, "s-1")
    assert shape(found) == [(None, 1), (PORT, 2), ("A.", None), (FRIDAY, 3), ("which port", 4)]
    body = {"sessionKey": "s-1", "dryRun": True, "asOf": found[0]["search"]["id"]}
    named = {"userPrompt": "which port", "harness": "codex", "project": PROJECT}
    asked = [agent.post(HOOK, each).ok()["queryTerms"] for each in (body, {**body, **named})]
    assert asked[0] == asked[1]


def test_the_turn_that_is_run_again_is_that_of_all_that_is_kept_of_the_prompt(daemon: LiveDaemon) -> None:
    agent = person(daemon, "cora")
    same = "Please be brief and answer in one sentence only, if you can, thank you: "
    ask(agent, "s-1", f"{same}{PORT}")
    say(agent, "s-1", ("user", f"{same}{FRIDAY}"))
    (row,) = rows(agent, "s-1")
    (memory,) = [one["id"] for one in row["search"]["memories"] if "5433" in one["content"]]
    body = {"sessionKey": "s-1", "dryRun": True, "asOf": row["search"]["id"], "explainId": memory}
    told = agent.post(HOOK, body).ok()
    assert ("port" in told["queryTerms"], told["explained"]["asThen"]) == (True, True)


def test_what_the_start_had_given_is_told_so_and_a_compaction_is_marked(daemon: LiveDaemon) -> None:
    agent = person(daemon, "dora")
    hook(agent, "session-start", "s-1", project=PROJECT)
    ask(agent, "s-1", "how are invoices numbered?")
    compacted = {"harness": "codex", "sessionKey": "s-1", "summary": "The weather was fine."}
    agent.post("/api/hooks/compaction-complete", compacted).ok()
    ask(agent, "s-1", "how are invoices numbered?")
    found = rows(agent, "s-1")
    assert [(row["search"]["kind"], row["compacted"]) for row in found][:2] == [("start", False), ("prompt", False)]
    assert [row["search"].get("number") for row in found if row["compacted"]] == [2]
    had = [one["earlier"] for one in found[1]["search"]["memories"] if one["outcome"] == "received"]
    assert had
    assert all(each == {"kind": "start"} for each in had)


def test_a_session_without_a_transcript_has_its_searches_and_one_without_searches_its_turns(daemon: LiveDaemon) -> None:
    agent = person(daemon, "eva")
    ask(agent, "asked-only", PORT, FRIDAY)
    assert shape(rows(agent, "asked-only")) == [(None, 1), (None, 2)]
    say(agent, "said-only", ("user", "what is the colour of the ferry?"), ("assistant", "White."))
    assert shape(rows(agent, "said-only")) == [("what is the colour of the ferry?", None), ("White.", None)]
    assert rows(agent, "of-nobody") == []


def test_a_long_turn_is_cut_and_its_session_goes_on(daemon: LiveDaemon) -> None:
    agent = person(daemon, "fay")
    long = f"{PORT}\n" + "it is a long story. " * 5000
    ask(agent, "s-1", long)
    say(agent, "s-1", ("user", long), ("assistant", ANSWER))
    first, second = rows(agent, "s-1")
    assert (len(first["turn"]["content"]), first["turn"]["content"][-1]) == (4001, "…")
    assert (first["search"]["number"], second["turn"]["content"]) == (1, ANSWER)
    reply = agent.post(HOOK, {"sessionKey": "s-1", "dryRun": True, "asOf": first["search"]["id"], "explain": True}).ok()
    assert given(reply["considered"]) == given(first["search"]["memories"])


def test_what_was_erased_stays_erased(daemon: LiveDaemon) -> None:
    agent = person(daemon, "grete")
    ask(agent, "s-1", "where does the armadillowolf keep port 5433 of staging?")
    say(agent, "s-1", ("user", "where does the armadillowolf keep port 5433 of staging?"), ("assistant", "Here."))
    (before, _) = rows(agent, "s-1")
    agent.request("DELETE", "/api/sessions/s-1/transcript").ok()
    (row,) = rows(agent, "s-1")
    assert (row["turn"], row["search"]["prompt"], row["search"]["id"]) == (None, None, before["search"]["id"])
    assert "armadillowolf" not in str(row)
    body = {"sessionKey": "s-1", "dryRun": True, "asOf": row["search"]["id"]}
    assert agent.post(HOOK, body).refused(404)["error"] == "The words of this prompt were erased, or not kept"
    result = signet(
        daemon, "why", "s-1", "1", "--memory", row["search"]["memories"][0]["id"], "--agent", "grete", exit_code=1
    )
    assert "armadillowolf" not in result


def test_another_agent_sees_nothing_of_the_session(daemon: LiveDaemon) -> None:
    agent, other = person(daemon, "hanna"), daemon.agent("mallory")
    ask(agent, "s-1", PORT)
    say(agent, "s-1", ("user", PORT), ("assistant", ANSWER))
    (row, _) = rows(agent, "s-1")
    assert rows(other, "s-1") == []
    body = {"sessionKey": "s-1", "dryRun": True, "asOf": row["search"]["id"], "explain": True}
    unknown = {**body, "asOf": "of-no-session"}
    refusals = [other.post(HOOK, each).refused(404)["error"] for each in (body, unknown)]
    assert refusals == ["asOf names no prompt of this session"] * 2
    ask(other, "s-1", "what is the weather like?")
    named = {"explainId": row["search"]["memories"][0]["id"], "asOf": searches(other, session="s-1")[0]["id"]}
    fate = other.post(HOOK, {**body, **named}).ok()["explained"]
    assert (fate["outcome"], "then" in fate, "earlier" in fate) == ("not_found", False, False)


def test_a_dry_run_takes_the_words_of_then_and_says_whether_its_reasons_are_those_of_then(daemon: LiveDaemon) -> None:
    agent = person(daemon, "iris")
    ids = {row["content"]: row["id"] for row in agent.listed()}
    port, invoices = (ids[next(text for text in ids if word in text)] for word in ("5433", "Invoices"))
    long = f"{PORT} " + " ".join(f"please be brief in {number}" for number in range(40))
    ask(agent, "s-1", PORT, long)
    kept = searches(agent, session="s-1")[::-1]

    def fate(number: int, memory: str) -> Any:
        body = {"sessionKey": "s-1", "dryRun": True, "asOf": kept[number]["id"], "explainId": memory, "explain": True}
        reply = agent.post(HOOK, body).ok()
        assert reply["dryRun"] is True
        return reply["explained"]

    assert [fate(0, port)[name] for name in ("given", "then", "asThen")] == [True, "it was given", True]
    told = fate(0, invoices)
    assert (told["then"], told["asThen"]) == ("it was not considered: the search of the prompt did not find it", False)
    told = fate(1, port)
    assert (told["then"], told["earlier"]) == (
        "it was left out: the session already had it",
        {"kind": "prompt", "number": 1},
    )
    assert told["asThen"] is False, "of this prompt only the beginning is kept"
    say(agent, "s-1", ("user", PORT), ("user", long))
    assert fate(1, port)["asThen"] is True, "the transcript has the whole prompt"
    later = agent.remember("The staging database was moved to another port in March", project=PROJECT)["id"]
    assert fate(0, later)["then"] == "it did not exist"
    agent.request(
        "PATCH", f"/api/memory/{port}", {"content": "The staging database listens on port 5434", "reason": "r"}
    ).ok()
    assert [fate(0, port)[name] for name in ("given", "then", "asThen")] == [True, "it was given", False]
    agent.post(HOOK, {"dryRun": True, "asOf": kept[0]["id"]}).refused(400)
    refusal = agent.post(HOOK, {"sessionKey": "s-1", "asOf": kept[0]["id"]}).refused(400)
    assert refusal["error"] == "asOf without a prompt needs dryRun: true"
    refusal = agent.get("/api/telemetry/memory-search", number=1).refused(400)
    assert refusal["error"] == "number needs the session of which it is the prompt"
    agent.post(HOOK, {"sessionKey": "s-1", "userPrompt": PORT, "dryRun": True, "asOf": kept[0]["id"]}).refused(400)


def test_the_answer_before_a_prompt_counts_as_it_did_then(daemon: LiveDaemon) -> None:
    agent = person(daemon, "judy")
    answer = "The invoices are numbered, and the staging frontend is deployed."
    ask(agent, "s-1", "hello there, how is the weather in the town today?")
    ask(agent, "s-1", "why that?", lastAssistantMessage=answer)
    kept = searches(agent, session="s-1")[0]
    say(
        agent,
        "s-1",
        ("user", "hello there, how is the weather in the town today?"),
        ("assistant", answer),
        ("user", "why that?"),
    )
    assert kept["given"], "of the answer before it"
    body = {"sessionKey": "s-1", "dryRun": True, "asOf": kept["id"], "explain": True}
    reply = agent.post(HOOK, body).ok()
    assert given(reply["considered"]) == given(kept["memories"])
    explain = {"explainId": kept["memories"][0]["id"]}
    assert agent.post(HOOK, body | explain).ok()["explained"]["asThen"] is True


def test_an_answer_that_was_not_sent_with_a_prompt_does_not_count(daemon: LiveDaemon) -> None:
    agent = person(daemon, "karl")
    before, answer = (
        "what did we talk about yesterday evening?",
        "The invoices are numbered, and the staging frontend is deployed.",
    )
    ask(agent, "s-1", before, "why that?")
    say(agent, "s-1", ("user", before), ("assistant", answer), ("user", "why that?"))
    kept = searches(agent, session="s-1")[0]
    assert (kept["prompt"], kept["memories"]) == ("why that?", [])
    reply = agent.post(HOOK, {"sessionKey": "s-1", "dryRun": True, "asOf": kept["id"], "explain": True}).ok()
    assert (reply["considered"], reply["memoryCount"]) == ([], 0)


def test_a_dry_run_without_the_answer_that_was_sent_is_not_as_then(daemon: LiveDaemon) -> None:
    agent = person(daemon, "kurt")
    ask(agent, "s-1", PORT, lastAssistantMessage="The invoices are numbered.")
    (kept,) = searches(agent, session="s-1")
    body = {"sessionKey": "s-1", "dryRun": True, "asOf": kept["id"], "explainId": kept["memories"][0]["id"]}
    assert agent.post(HOOK, body).ok()["explained"]["asThen"] is False
