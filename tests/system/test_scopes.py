"""Nothing that is outside of a token's scope is told, changed, or told apart from what does not exist.

The requests are made from the declarations: every operation at every path, with the names and the ids of others in
every parameter that can hold one. A new operation is among them without a change here.
"""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.support.live_daemon import Answer
from tests.support.scoped_requests import Sent, every, naming, told
from tests.support.team import UNLIMITED, team_daemon
from tests.support.tenants import AGENTS, PROJECTS, TWINS, USERS, Connection, Scope, Tenants, leaked, tenants

pytestmark = pytest.mark.system

PROJECT, USER = str(PROJECTS[0]), USERS[0]
WRITTEN_S = 10
"""A busy daemon has written by then what it counts of a request after its response."""
LIMITS = {
    "an agent": Scope(agent="ada"),
    "a project": Scope(project=PROJECT),
    "a user": Scope(user=USER),
    "an agent and a project": Scope(agent="ada", project=PROJECT),
    "an agent and a user": Scope(agent="ada", user=USER),
    "a project and a user": Scope(project=PROJECT, user=USER),
    "all three": Scope(agent="ada", project=PROJECT, user=USER),
}


@pytest.fixture(scope="module")
def store() -> Iterator[Tenants]:
    with tenants() as found:
        yield found


def ask(caller: Connection, request: Sent) -> Answer:
    answer = caller.request(request.method, request.target, request.body, request.headers)
    assert answer.status not in {429, 500}, (request, answer.raw)
    return answer


@pytest.mark.parametrize("limits", LIMITS)
def test_no_reply_tells_what_is_outside_of_the_scope(store: Tenants, limits: str) -> None:
    scope = LIMITS[limits]
    caller, hidden = store.token("operator", scope), store.hidden(scope)
    assert len(hidden) > 10
    before = store.rows(scope)
    assert sum(map(len, before.values())) > 20
    leaks, told_own = [], set()
    own = {canary.word for canary in store.canaries} - hidden
    for operation, path in every():
        for request in told(operation, path):
            answer = ask(caller, request)
            leaks += [(request, word) for word in leaked(answer, hidden, caller.said)]
            told_own |= leaked(answer, own, caller.said)
    assert leaks == []
    assert told_own, "the requests find what is inside of the scope"
    assert store.rows(scope) == before
    caller.close()


class Foreign(NamedTuple):
    """An id of something that is outside of the scope, and one of the same form that does not exist."""

    kind: str
    known: str
    unknown: str


def foreign(store: Tenants, scope: Scope) -> list[Foreign]:
    """Return one id for each kind of object and each reason to be outside, whole and its beginning."""
    found: dict[tuple[Any, ...], Foreign] = {}
    for kind, known, canary in store.ids:
        if scope.admits(canary) or canary.agent == TWINS[1] or (kind == "session" and canary.agent in TWINS):
            continue
        if kind == "session":
            unknown = known.replace(canary.word, canary.word[:4] + canary.word[4:][::-1] + "x")
        else:
            unknown = known.translate(str.maketrans("abcdef0123456789", "bcdefa1234567890"))
        forms = (kind, known.startswith("agent:"), canary.agent == scope.get("agent"))
        if forms not in found:
            found[forms] = Foreign(kind, known, unknown)
            if kind != "session":
                found[*forms, "beginning"] = Foreign(kind, known[:13], unknown[:13])
    return list(found.values())


def plain(answer: Answer, others: list[Foreign], *, repeatable: bool) -> tuple[Any, ...]:
    """Return what of the reply could tell whether something exists: all but ids, names of the caller, and times.

    Of what it lists, how much that is: what is said of each depends on the moment, too. Where a request cannot be
    repeated, even that does: what a session is given follows from what was counted by then, and so do the numbers of
    prompts that were given something, and nothing.
    """
    names = answer.headers.keys() - {"date", "content-length", "x-signet-trace-id"}
    headers = {name: answer.headers[name] for name in names}
    if "x-signet-next-cursor" in headers:
        headers["x-signet-next-cursor"] = "<cursor>"  # a time and an id
    text = answer.raw.decode("utf-8", "replace")
    for each in sorted(others, key=lambda other: -len(other.known)):  # whole ids before their beginnings
        text = text.replace(each.known, "<given>").replace(each.unknown, "<given>")
    for pattern, instead in _VARYING:
        text = pattern.sub(instead, text)
    try:
        body = json.loads(text.replace("{,", "{"))
    except ValueError:  # lines of JSON, or a page
        return answer.status, headers, text
    if isinstance(body, list):
        return answer.status, headers, len(body) if repeatable else 0
    lists = {name: len(value) for name, value in body.items() if isinstance(value, list | dict) and repeatable}
    return (
        answer.status,
        headers,
        lists | {name: body[name] for name in body if not isinstance(body[name], list | dict)},
    )


def unlike(*texts: str) -> list[str]:
    """Return the texts from a little before where they differ."""
    at = next((at for at, chars in enumerate(zip(*texts, strict=False)) if len(set(chars)) > 1), min(map(len, texts)))
    return [text[max(0, at - 80) : at + 80] for text in texts]


_FIELDS = (
    r',?"(\w*(?:[mM]s|[tT]okens?|rationale|inject|given|nothing|characters|Context|access_?\w*|last_?\w*|\w*Count|\w*Score))":'
    r' ?("(?:\\.|[^"\\])*"|[\d.]+|null)'
)
_VARYING = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}(-[0-9a-f]{4}(-[0-9a-f]{4}-[0-9a-f]{12})?)?"), "<id>"),
    (re.compile(r"[0-9a-f]{16,}"), "<digest>"),
    (re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+(Z|\+00:00)|\d{8}T\d{9}Z"), "<time>"),
    (re.compile(r"\b(amy|ann)\b"), "<me>"),
    (re.compile(_FIELDS), ""),
)


@pytest.mark.parametrize("limits", ["an agent", "a project", "all three"])
def test_what_is_outside_of_the_scope_is_answered_like_what_does_not_exist(store: Tenants, limits: str) -> None:
    scope = LIMITS[limits]
    mine = [Scope(scope | ({"agent": name} if "agent" in scope else {})) for name in TWINS]
    callers = [store.token("operator", each) for each in mine]
    for caller, name in zip(callers, TWINS, strict=True):
        caller.headers["x-signet-agent-id"] = name
    hidden, others = store.hidden(mine[0]), foreign(store, mine[0])
    before, different = store.rows(scope), []
    for (operation, path), each in itertools.product(every(), others):
        two = (naming(operation, path, named, each.kind) for named in (each.known, each.unknown))
        repeatable = not (operation.has_effect or operation.keeps_names)
        for known, unknown in zip(*two, strict=True):
            until = time.monotonic() + (WRITTEN_S if repeatable else 0)
            while True:
                answers = ask(callers[0], known), ask(callers[1], unknown)
                assert not leaked(answers[0], hidden, callers[0].said), known
                shown = [plain(answer, others, repeatable=repeatable) for answer in answers]
                if shown[0] == shown[1]:
                    break
                if time.monotonic() > until:
                    different.append((known, each.kind, *unlike(*map(str, shown))))
                    break
                time.sleep(0.1)
    assert different == [], different[0]
    assert store.rows(scope) == before
    for caller in callers:
        caller.close()


def test_an_entity_of_another_agent_is_like_none_and_another_agent_is_refused(store: Tenants) -> None:
    ada = store.token("operator", {"agent": "ada"})
    theirs = next(known for kind, known, canary in store.ids if kind == "entity" and canary.agent == "bob")
    for path in ("", "/aspects", "/dependencies", "/pinned"):
        target = f"/api/knowledge/entities{path if path == '/pinned' else f'/{theirs}{path}'}?agentId=bob"
        ada.get(target).refused(403, error="scope restricted to agent 'ada'")
    ada.get(f"/api/timeline/{theirs}").refused(404)
    ada.get(f"/api/knowledge/entities/{theirs}").refused(404, error="Entity not found")
    ada.post(f"/api/knowledge/entities/{theirs}/pin").refused(404, error="Entity not found")
    assert ada.get(f"/api/knowledge/entities/{theirs}/aspects").ok() == {"items": []}
    limited = store.token("operator", {"agent": "ada", "project": PROJECT})
    limited.get("/api/knowledge/entities").refused(403)
    told = {"content": "The ferry is blue", "structured": {"aspects": [{"entity": "ferry", "aspect": "paint",
            "attributes": [{"content": "blue", "claimKey": "colour"}]}]}}  # fmt: skip
    limited.post("/api/memory/remember", told).refused(403)
    limited.post("/api/memory/remember", {"content": told["content"]}).ok()
    for caller in (ada, limited):
        caller.close()


def claude_code(session: str, *said: str) -> str:
    """Return the transcript of a session as Claude Code writes it."""
    turns = zip(itertools.cycle(("user", "assistant")), said)
    records = [{"type": role, "sessionId": session, "message": {"role": role, "content": text}} for role, text in turns]
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.mark.parametrize("first", ["Where is the ferry?", "[signet: off] where is the ferry?"])
def test_a_transcript_names_no_session_of_another_agent(store: Tenants, first: str) -> None:
    ada, bob = (store.token("agent", {"agent": name}) for name in AGENTS[:2])
    bob.post("/api/hooks/session-start", {"harness": "codex", "sessionKey": "asleep", "runtimePath": "plugin"}).ok()
    before = bob.get("/api/sessions/asleep").ok()
    said = claude_code("agent:bob:asleep", first, "It is at the pier.")
    hook = {"harness": "claude-code", "transcript": said, "runtimePath": "legacy"}
    reply = ada.post("/api/hooks/session-end", hook).ok()
    assert reply.get("sessionKey", "agent:ada:agent:bob:asleep") == "agent:ada:agent:bob:asleep"
    ada.post("/api/hooks/session-checkpoint-extract", {**hook, "sessionKey": "own"}).ok()
    assert bob.get("/api/sessions/asleep").ok() == before
    bob.post("/api/hooks/remember", {"harness": "codex", "sessionKey": "asleep", "content": "The pier is long"}).ok()
    for caller in (ada, bob):
        caller.close()


def test_memory_that_is_off_for_a_session_is_off_for_that_agent_alone(store: Tenants) -> None:
    ada, bob = (store.token("agent", {"agent": name}) for name in AGENTS[:2])
    hook = {"harness": "codex", "sessionKey": "same-name"}
    for caller in (ada, bob):
        caller.post("/api/hooks/session-start", hook).ok()
    ada.post("/api/sessions/same-name/bypass", {"enabled": True}).ok()
    assert ada.get("/api/sessions/same-name").ok()["bypassed"] is True
    assert bob.get("/api/sessions/same-name").ok()["bypassed"] is False
    assert bob.post("/api/hooks/user-prompt-submit", {**hook, "userPrompt": "the ferry"}).ok().get("bypassed") is None
    for caller in (ada, bob):
        caller.close()


TRUSTED = "gateway: {trustedProxies: [127.0.0.1]}\n"


def test_a_file_of_the_machine_is_read_for_no_bearer_who_may_be_elsewhere() -> None:
    with team_daemon(more=UNLIMITED + TRUSTED) as team:
        file = team.daemon.workspace / "transcripts" / "bobs.jsonl"
        file.parent.mkdir()
        file.write_text(claude_code("s", "Where is the canary?", "The canary is in the cage."))
        ada = team.bearer("agent", agent="ada")
        hook = {"harness": "claude-code", "sessionKey": "s", "transcriptPath": str(file)}
        for target in ("session-end", "session-checkpoint-extract", "pre-compaction"):
            for headers in ({}, {"x-forwarded-for": "203.0.113.9"}):
                answer = ada.request("POST", f"/api/hooks/{target}", hook, headers)
                assert "transcriptPath is ignored" in str(answer.ok().get("warnings")), target
        assert team.daemon.read("SELECT count(*) FROM session_transcripts") == [(0,)]
        assert ada.post("/api/hooks/session-end", {**hook, "transcriptPath": "/none.jsonl"}).ok()["warnings"]
        ada.post("/api/memory/codex-native-note", {"content": "x"}).refused(403)
        team.bearer("agent").post("/api/memory/codex-native-note", {"content": "x"}).refused(403)
        assert team.owner.post("/api/hooks/session-end", hook).ok()["stored"] is True


def test_a_tool_stores_into_what_the_token_is_limited_to_wherever_the_client_works(store: Tenants) -> None:
    caller = store.token("agent", {"agent": "ada", "project": PROJECT, "user": USER})
    call = {"name": "memory_store", "arguments": {"content": "The buoy is green"}}
    headers = {"Accept": "application/json, text/event-stream"}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    answer = caller.request("POST", "/mcp?harness=codex&workspace=/elsewhere", message, headers).ok()
    assert answer["result"].get("isError") is not True, answer
    rows = store.daemon.read("SELECT project, who, agent_id FROM memories WHERE content = 'The buoy is green'")
    assert rows == [(PROJECT, USER, "ada")]
    caller.close()


def test_a_limited_token_reads_no_words_of_a_session_by_running_a_prompt_again(store: Tenants) -> None:
    (kept,) = store.daemon.read("SELECT id, session_key FROM searches WHERE agent_id = 'ada' AND prompt <> '' LIMIT 1")
    again = {"sessionKey": kept[1] or "s", "asOf": kept[0], "dryRun": True, "explain": True}
    for limit in ({"project": PROJECT}, {"user": USER}):
        caller = store.token("agent", Scope(agent="ada", **limit))
        answer = caller.request("POST", "/api/hooks/user-prompt-submit", again, {})
        assert answer.refused(403)["error"] == "The token is limited to a project or a user"
        caller.request("GET", f"/api/sessions/{again['sessionKey']}/conversation", None, {}).refused(403)
        caller.close()
