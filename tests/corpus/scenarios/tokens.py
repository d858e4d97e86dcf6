"""Tokens and API keys: issued, listed, replaced, revoked, refused."""

from __future__ import annotations

from typing import Any

from tests.corpus.exchange import Scenario, Step, delete, get, post

_MADE = {"token", "id", "key", "prefix", "jti", "kid", "iat", "exp", "expiresAt"}
"""Members whose values differ between two runs."""


def shape(value: Any) -> Any:
    """Return the body with the type of each value that differs between two runs."""
    if isinstance(value, dict):
        return {name: type(each).__name__ if name in _MADE else shape(each) for name, each in value.items()}
    return [shape(each) for each in value] if isinstance(value, list) else value


def members(body: Any) -> Any:
    """Return what a token is listed with, and how many there are."""
    return [sorted(each) for each in body["tokens"]], body["total"]


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer <<{name}>>"}


STEPS: tuple[Step, ...] = (
    post(
        "issue a token",
        "/api/auth/token",
        {"role": "agent", "name": "Ada", "scope": {"agent": "ada"}, "ttlSeconds": 3600},
        save={"ada": "token", "adaId": "id"},
        view=shape,
    ),
    post("issue one without a name", "/api/auth/token", {"role": "readonly"}, save={"reader": "token"}, view=shape),
    post("issue one without a role", "/api/auth/token", {}),
    post("issue one of an unknown role", "/api/auth/token", {"role": "root"}),
    post("issue one for an agent that cannot be", "/api/auth/token", {"role": "agent", "scope": {"agent": "a/b"}}),
    post("issue one with an unknown limit", "/api/auth/token", {"role": "agent", "scope": {"team": "x"}}),
    post("issue one with a scope that is text", "/api/auth/token", {"role": "agent", "scope": "ada"}),
    post("issue one with a misspelled scope", "/api/auth/token", {"role": "agent", "scopes": {"agent": "ada"}}),
    get("who the bearer is", "/api/auth/whoami", headers=bearer("ada"), view=shape),
    get("memories with a token", "/api/memories", headers=bearer("ada")),
    get("memories of another agent", "/api/memories?agentId=bob", headers=bearer("ada")),
    post("remember with readonly", "/api/memory/remember", {"content": "x"}, headers=bearer("reader")),
    get("status with a token of an agent", "/api/status", headers=bearer("ada")),
    get("with a tampered token", "/api/memories", headers={"Authorization": "Bearer <<ada>>A"}),
    get("with no token in the header", "/api/memories", headers={"Authorization": "Bearer"}),
    get("with half a token", "/api/memories", headers={"Authorization": "Bearer abc"}),
    get("the tokens", "/api/auth/tokens?limit=1", view=members),
    post(
        "replace a token", "/api/auth/tokens/<<adaId>>/rotate", save={"second": "token", "secondId": "id"}, view=shape
    ),
    get("with the replaced token", "/api/memories", headers=bearer("ada")),
    post("replace it again", "/api/auth/tokens/<<adaId>>/rotate"),
    delete("revoke a token", "/api/auth/tokens/<<secondId>>", view=shape),
    delete("revoke it again", "/api/auth/tokens/<<secondId>>", view=shape),
    delete("revoke an unknown token", "/api/auth/tokens/unknown"),
    get("with the revoked token", "/api/memories", headers=bearer("second")),
    post(
        "issue an API key",
        "/api/auth/api-keys",
        {"name": "importer", "connector": "openclaw", "agentId": "ada"},
        save={"key": "apiKey.key", "keyId": "apiKey.id"},
        view=shape,
    ),
    post("issue one without a name of it", "/api/auth/api-keys", {}),
    get("memories with an API key", "/api/memories", headers=bearer("key")),
    get("the API keys", "/api/auth/api-keys", view=shape),
    delete("revoke the key as a token", "/api/auth/tokens/<<keyId>>"),
    delete("revoke the key", "/api/auth/api-keys/<<keyId>>", view=shape),
    get("with the revoked key", "/api/memories", headers=bearer("key")),
    post("a code for the page", "/api/auth/page-code", {}, save={"code": "code"}, view=sorted),
    post("exchange the code", "/api/auth/page-token", {"code": "<<code>>"}, view=sorted),
    post("exchange it again", "/api/auth/page-token", {"code": "<<code>>"}),
)

SCENARIOS = (Scenario("tokens", STEPS, config="auth: {mode: hybrid}\n"),)
