"""Who may call what: every operation, at every path, by every kind of caller, in every mode.

The table is made from the declarations; the roles, and which permission each has, are those of the specification.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from signet_actors.domain.permissions import Permission
from signet_actors.operations.headers import EVENT_STREAM
from signet_actors.operations.operation import Operation
from signet_actors.operations.registry import OPERATIONS
from tests.support.live_daemon import Answer, Client
from tests.support.team import Team, team_daemon

pytestmark = pytest.mark.system

AGENT = {"remember", "recall", "modify", "forget", "recover", "documents"}
EVERYTHING = {permission.value for permission in Permission}
LIMITS = {"project": "/home/you/shop", "agent": "ada", "user": "eve"}


@pytest.fixture(scope="module", params=["team", "hybrid"])
def team(request: pytest.FixtureRequest) -> Iterator[Team]:
    with team_daemon(request.param) as running:
        yield running


@pytest.fixture(scope="module")
def callers(team: Team) -> dict[str, tuple[Client, set[str], set[str]]]:
    """Each kind of caller: a client, its permissions, and what its token is limited to."""
    roles = {
        "admin": EVERYTHING,
        "operator": EVERYTHING - {"admin"},
        "agent": AGENT,
        "readonly": {"recall"},
    }
    found = {role: (team.bearer(role), permissions, set[str]()) for role, permissions in roles.items()}
    for limit, value in LIMITS.items():
        found |= {
            f"{role} limited to a {limit}": (team.bearer(role, **{limit: value}), roles[role], {limit})
            for role in ("operator", "agent", "readonly")
        }
        found[f"admin with a {limit}"] = (team.bearer("admin", **{limit: value}), EVERYTHING, set())
    found["API key"] = (team.key(), {"recall", "remember", "documents"}, set())
    found["API key of an agent"] = (team.key(agentId="ada"), {"recall", "remember", "documents"}, {"agent"})
    return found


def send(client: Client, operation: Operation, path: str) -> Answer:
    """Ask for the operation without having it do anything: a body that is no JSON is refused after who may call."""
    named = dict.fromkeys(("id", "key", "run", "file", "aspect", "version"), "unknown-1")
    target = path.format(domain="queue", **named)
    target += "?seconds=0" if EVENT_STREAM in operation.media_types else ""  # else it has no end
    accept = {"Accept": "application/json, text/event-stream"}
    return client.request(operation.method, target, None if operation.method == "GET" else b"{", accept)


def expected(operation: Operation, permissions: set[str], limits: set[str]) -> str:
    if operation.permission is not None and operation.permission.value not in permissions:
        return "lacks"
    return "restricted" if limits - set(operation.scoped_by) and operation.permission is not None else "served"


def outcome(answer: Answer) -> str:
    if answer.status == 401:
        return "unauthorized"
    if answer.status == 403:
        error = answer.json["error"]
        return "lacks" if "lacks" in error else "restricted" if "scope restricted to" in error else error
    assert answer.status not in {429, 500}, answer.raw
    return "served"


def test_every_operation_serves_exactly_who_may_have_it(
    team: Team, callers: dict[str, tuple[Client, set[str], set[str]]]
) -> None:
    wrong = []
    for name, (client, permissions, limits) in callers.items():
        for operation in OPERATIONS:
            for path in operation.paths:
                found, right = outcome(send(client, operation, path)), expected(operation, permissions, limits)
                if operation.public:
                    right = "served"
                if found != right:
                    wrong.append((name, operation.name, path, found, right))
    assert wrong == []


PUBLIC = {"health.get", "health.live", "health.ready", "page.index", "page.file", "auth.page_token"}
"""Liveness, the page, which has no data, and what gives it a token for a code of the owner's."""


def test_without_a_token_nothing_but_health_and_the_shell_of_the_page_is_served(team: Team) -> None:
    served = {
        operation.name
        for operation in OPERATIONS
        for path in operation.paths
        if outcome(send(team.nobody, operation, path)) != "unauthorized"
    }
    everything = {operation.name for operation in OPERATIONS}
    assert served == (PUBLIC if team.daemon.api.get("/api/auth/whoami").status == 401 else everything)


def test_a_wrong_token_is_refused_by_every_operation_also_where_none_is_needed(team: Team) -> None:
    token = team.issue("admin")["token"]
    tampered = team.with_token(token[:-2] + ("A" if token[-2] != "A" else "B") + token[-1])
    served = {
        one.name for one in OPERATIONS for path in one.paths if outcome(send(tampered, one, path)) != "unauthorized"
    }
    assert served == PUBLIC


def test_a_refused_request_has_the_form_that_clients_know(team: Team) -> None:
    answer = team.with_token("a.b").get("/api/memories")
    answer.refused(401, error="invalid signature")
    assert answer.headers["www-authenticate"] == "Bearer"
    for header in ("", "Bearer", "Bearer ", "Bearer a b", "Basic YTpi", "bearer  x", "token x"):
        Client(team.daemon, {"Authorization": header}).get("/api/memories").refused(
            401, error="authentication required"
        )
    team.bearer("readonly").post("/api/memory/remember", {"content": "x"}).refused(
        403, error="role 'readonly' lacks 'remember' permission"
    )
    team.bearer("agent", agent="ada").get("/api/memories", agentId="bob").refused(
        403, error="scope restricted to agent 'ada'"
    )


def test_the_agent_of_a_limited_token_is_the_one_of_the_token(team: Team) -> None:
    ada = team.bearer("agent", agent="ada")
    own = {"x-signet-agent-id": "ada"}, {"x-signet-agent-id": "default"}, {}  # `signet mcp` sends the second
    memories = [ada.post("/api/memory/remember", {"content": f"Note {len(each)}{each}"}, **each).ok() for each in own]
    rows = team.daemon.read(
        "SELECT DISTINCT agent_id FROM memories WHERE id IN (?, ?, ?)", *(m["id"] for m in memories)
    )
    assert rows == [("ada",)]
    for body, header in (
        ({"agentId": "default"}, {}),
        ({"agentId": "bob"}, own[0]),
        ({}, {"x-signet-agent-id": "bob"}),
    ):
        answer = ada.post("/api/memory/remember", {"content": "x", **body}, **header)
        answer.refused(403, error="scope restricted to agent 'ada'")


def test_a_reader_changes_no_session_of_others(team: Team) -> None:
    reader, prompt = team.bearer("readonly"), "/api/hooks/user-prompt-submit"
    asked = {"harness": "claude-code", "sessionKey": "the-owners", "prompt": "[signet:off] where are the kettles?"}
    first = team.owner.post(prompt, {**asked, "prompt": "where are the kettles?"}).ok()
    assert "bypassed" not in first
    assert reader.post(prompt, asked).ok().get("bypassed") is None
    assert "bypassed" not in team.owner.post(prompt, {**asked, "prompt": "and the cups?"}).ok()
    assert team.owner.post(prompt, asked).ok()["bypassed"] is True
