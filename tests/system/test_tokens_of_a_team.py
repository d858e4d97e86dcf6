"""Tokens while the daemon runs: issued, replaced, revoked, also while its processes are killed."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest

from signet_actors.domain.permissions import Role
from signet_actors.domain.tokens import TokenScope, sign, verify
from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client, run_signet, signet
from tests.support.team import Team, team_daemon

pytestmark = pytest.mark.system


def accepted(client: Client) -> bool:
    status = client.get("/api/auth/whoami").status
    assert status in {200, 401}, status
    return status == 200


def test_a_token_is_accepted_until_it_is_revoked_and_says_who_has_it() -> None:
    with team_daemon() as team:
        issued = team.issue("agent", "Ada", agent="ada")
        ada = team.with_token(issued["token"])
        who = ada.get("/api/auth/whoami").ok()
        assert who["authenticated"] is True
        assert who["mode"] == "team"
        assert {name: who["claims"][name] for name in ("sub", "role", "scope", "jti")} == {
            "sub": "Ada",
            "role": "agent",
            "scope": {"agent": "ada"},
            "jti": issued["id"],
        }
        memory = ada.acting(x_signet_actor="eve", x_signet_actor_type="operator").remember("Tea is in the kitchen")
        (created,) = ada.get(f"/api/memory/{memory['id']}/history").ok()["history"]
        assert (created["changedBy"], created["actorType"]) == ("Ada", "agent")
        (row,) = [each for each in team.owner.get("/api/auth/tokens").ok()["tokens"] if each["id"] == issued["id"]]
        assert (row["name"], row["revokedAt"], row["createdBy"]) == ("Ada", None, "owner")
        team.owner.request("DELETE", f"/api/auth/tokens/{issued['id']}").ok()
        ada.get("/api/memories").refused(401, error="token revoked")
        team.owner.request("DELETE", "/api/auth/tokens/unknown").refused(404)


def test_a_leaked_secret_changes_no_token_and_makes_none() -> None:
    with team_daemon() as team:
        issued = team.issue("readonly", agent="ada")
        secret = (team.daemon.workspace / ".daemon" / "token-secret").read_bytes()
        claims = verify(secret, issued["token"], int(time.time()))
        assert accepted(team.with_token(sign(secret, claims)))
        for changes in (
            {"role": Role.ADMIN},
            {"scope": TokenScope()},
            {"scope": TokenScope(agent="bob")},
            {"exp": claims.exp + 3600},
            {"jti": "0123456789abcdef01"},
        ):
            forged = sign(secret, msgspec.structs.replace(claims, **changes))
            team.with_token(forged).get("/api/memories").refused(401, error="token revoked")


def test_a_token_lives_as_long_as_it_is_asked_to() -> None:
    with team_daemon() as team:

        def seconds(**asked: object) -> int:
            token = team.owner.post("/api/auth/token", {"role": "readonly", **asked}).ok()["token"]
            claims = team.with_token(token).get("/api/auth/whoami").ok()["claims"]
            return int(claims["exp"] - claims["iat"])

        assert seconds() == 604_800
        assert seconds(session=True) == 86_400
        assert seconds(ttlSeconds=3600, session=True) == 3600
        assert seconds(ttlSeconds=1) == 60


def test_a_limit_that_would_not_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    (tmp_path / "shop" / "docs").mkdir()
    with team_daemon() as team:
        for scope in ({"agent": ""}, {"user": " "}, {"project": "\n"}, {"agent": "ada", "user": ""}):
            team.owner.post("/api/auth/token", {"role": "agent", "scope": scope}).refused(400)
        team.owner.post("/api/auth/api-keys", {"name": "nightly import", "agentId": ""}).refused(400)
        refused = run_signet(team.daemon, "token", "create", "--role", "agent", "--agent", "")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "must not be blank" in refused.stderr
        for spelled in (f"{tmp_path}/shop/", f"{tmp_path}/shop/docs"):
            answer = team.owner.post("/api/auth/token", {"role": "agent", "scope": {"project": spelled}})
            answer.refused(400, error=f"scope.project must be {tmp_path}/shop, the project of {spelled}")
        assert team.owner.get("/api/auth/tokens").ok()["total"] == 0
        shop = team.bearer("agent", project=f"{tmp_path}/shop")
        shop.post("/api/memory/remember", {"content": "Tea", "project": f"{tmp_path}/shop/docs"}).ok()


def test_a_replaced_token_ends_and_the_new_one_has_its_rights() -> None:
    with team_daemon() as team:
        issued = team.issue("readonly", "Ada", project="/shop")
        answer = team.owner.post(f"/api/auth/tokens/{issued['id']}/rotate").ok()
        team.with_token(issued["token"]).get("/api/memories").refused(401, error="token revoked")
        claims = team.with_token(answer["token"]).get("/api/auth/whoami").ok()["claims"]
        assert (claims["sub"], claims["role"], claims["scope"]) == ("Ada", "readonly", {"project": "/shop"})
        team.owner.post(f"/api/auth/tokens/{issued['id']}/rotate").refused(404)


def test_a_change_of_mode_acts_on_the_next_request_of_an_open_connection() -> None:
    with team_daemon("local") as team:
        team.nobody.remember("Before")
        team.nobody.post("/api/auth/token", {"role": "agent"}).refused(
            400, error="auth secret not available (local mode?)"
        )
        text = (team.daemon.workspace / "agent.yaml").read_text()
        team.daemon.configure(text.replace("mode: local", "mode: team"))
        eventually(lambda: team.nobody.get("/api/memories").status == 401)
        eventually(lambda: accepted(team.daemon.owner))  # its token is made with the first change to this mode
        token = team.daemon.owner.post("/api/auth/token", {"role": "agent"}).ok()["token"]
        assert accepted(team.with_token(token))
        team.daemon.configure(text)
        eventually(lambda: team.nobody.get("/api/memories").status == 200)


@pytest.mark.parametrize("victim", ["gateway", "writer"])
def test_no_kill_brings_a_revoked_token_back_or_loses_an_answered_one(victim: str) -> None:
    with team_daemon() as team:
        answered: dict[str, str] = {}
        revoked: dict[str, str] = {}
        for round_number in range(4):
            for _ in range(4):
                issued = _tried(team, "POST", "/api/auth/token", {"role": "readonly"})
                if issued is not None:
                    answered[issued["id"]] = issued["token"]
            doomed = list(answered)[: 2 + round_number % 2]
            if round_number % 2:
                team.daemon.kill(victim)
            for token_id in doomed:
                if _tried(team, "DELETE", f"/api/auth/tokens/{token_id}") is not None:
                    revoked[token_id] = answered.pop(token_id)
                else:
                    answered.pop(token_id)  # whether it was revoked is not known
            if not round_number % 2:
                team.daemon.kill(victim)
            team.daemon.wait_ready()
            assert not [each for each in revoked.values() if accepted(team.with_token(each))]
            assert [each for each in answered.values() if not accepted(team.with_token(each))] == []
        assert revoked
        assert answered


@pytest.mark.parametrize("readable", [True, False])
def test_a_restore_brings_no_revoked_token_back(readable: bool) -> None:
    with team_daemon() as team:
        kept, ended = team.issue("readonly"), team.issue("readonly")
        ended_key = team.owner.post("/api/auth/api-keys", {"name": "importer"}).json["apiKey"]
        signet(team.daemon, "backup")
        later = team.issue("readonly")
        team.owner.request("DELETE", f"/api/auth/tokens/{ended['id']}").ok()
        team.owner.request("DELETE", f"/api/auth/api-keys/{ended_key['id']}").ok()
        team.daemon.stop()
        if not readable:
            team.daemon.database.write_bytes(b"damaged" * 1000)
        signet(team.daemon, "restore", "latest", "--yes")
        team.daemon.start()
        valid = [accepted(team.with_token(issued["token"])) for issued in (kept, later, ended)]
        assert valid == [readable, readable, False]
        assert not accepted(team.with_token(ended_key["key"]))
        assert accepted(team.bearer("readonly"))


def _tried(team: Team, method: str, target: str, body: object = None) -> dict[str, str] | None:
    """Return the reply of status 200, None if there was none."""
    try:
        answer = team.owner.request(method, target, body)
    except OSError:
        return None
    return answer.json if answer.status == 200 else None


def test_a_caller_of_this_machine_needs_no_token_in_hybrid_mode_and_a_sent_one_counts() -> None:
    with team_daemon("hybrid") as team:
        team.nobody.remember("Without a token")
        team.bearer("readonly").post("/api/memory/remember", {"content": "x"}).refused(403)
        team.with_token("a.b").get("/api/memories").refused(401)
        for header in ("x-forwarded-for", "forwarded", "via", "x-real-ip"):
            team.nobody.request("GET", "/api/memories", headers={header: "127.0.0.1"}).refused(403)


def test_the_bearer_of_a_token_has_rate_limits_of_its_own() -> None:
    limits = "  rateLimits: {modify: {max: 2}}\n"
    with team_daemon(more=limits) as team:
        ada, bob = team.bearer("agent", "Ada"), team.bearer("agent", "Ada")
        memory = ada.remember("A fact")["id"]
        change = {"reason": "r", "importance": 0.5}
        for _ in range(2):
            ada.request("PATCH", f"/api/memory/{memory}", change).ok()
        refused = ada.request("PATCH", f"/api/memory/{memory}", change)
        body = refused.refused(429, error="rate limit exceeded")
        assert 0 < body["retryAfter"] <= 60_000
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert ada.memory(memory)["importance"] == 0.5
        bob.request("PATCH", f"/api/memory/{memory}", change).ok()
        for _ in range(4):
            team.owner.request("PATCH", f"/api/memory/{memory}", change).ok()


def test_a_wrong_token_is_counted_although_the_request_only_observes() -> None:
    with team_daemon() as team:
        wrong = team.with_token("wrong").acting(x_signet_observe="1")
        before = refused_requests(team)
        for _ in range(3):
            wrong.get("/api/memories").refused(401)
        assert refused_requests(team) == before + 3


def refused_requests(team: Team) -> int:
    page = team.owner.get("/metrics").raw.decode()
    found = [line for line in page.splitlines() if line.startswith("signet_http_requests_total") and "4xx" in line]
    return sum(int(float(line.split()[-1])) for line in found)
