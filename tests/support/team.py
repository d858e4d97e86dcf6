"""A daemon that needs tokens, and clients with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.live_daemon import Client, LiveDaemon, live_daemon

TEAM = """
embedding: {{provider: embedded}}
auth:
  mode: {mode}
"""
UNLIMITED = """
  rateLimits:
    {admin: {max: 1000000}, modify: {max: 1000000}, forget: {max: 1000000}, batchForget: {max: 1000000},
     wrongTokens: {max: 1000000}}
"""


class Team:
    """The daemon and the clients of its users."""

    def __init__(self, daemon: LiveDaemon) -> None:
        self.daemon = daemon
        self.nobody = daemon.api
        self.owner = daemon.owner

    def issue(self, role: str, name: str | None = None, **scope: str) -> Any:
        """Return the reply that issues a token."""
        return self.owner.post("/api/auth/token", {"role": role, "name": name, "scope": scope}).ok()

    def bearer(self, role: str, name: str | None = None, **scope: str) -> Client:
        """Return a client with a new token."""
        return self.with_token(self.issue(role, name, **scope)["token"])

    def key(self, **fields: str) -> Client:
        """Return a client with a new API key."""
        answer = self.owner.post("/api/auth/api-keys", {"name": "a program", **fields})
        assert answer.status == 201, answer.raw
        return self.with_token(answer.json["apiKey"]["key"])

    def with_token(self, token: str) -> Client:
        return Client(self.daemon, {"Authorization": f"Bearer {token}"})


@contextmanager
def team_daemon(mode: str = "team", more: str = UNLIMITED) -> Iterator[Team]:
    """Run a daemon in this mode for the duration of a block; ``more``: further lines of its configuration."""
    with live_daemon(config=TEAM.format(mode=mode) + more) as daemon:
        yield Team(daemon)
