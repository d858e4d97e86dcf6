"""Which path has a session, and which one ended it, is known after a kill of the daemon or of its gateway.

Source: docs/guides/hooks.md "Sessions".
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.live_daemon import LiveDaemon, live_daemon

pytestmark = pytest.mark.system
PATHS = ("plugin", "legacy")


def hook(daemon: LiveDaemon, name: str, key: str, path: str | None, **fields: Any) -> Any:
    body = {"harness": "oc", "sessionKey": key, "runtimePath": path, "project": "/srv/shop", **fields}
    return daemon.api.post(f"/api/hooks/{name}", body).ok()


def session(daemon: LiveDaemon, key: str) -> Any:
    return daemon.api.get(f"/api/sessions/{key}").ok()


def test_claims_and_ends_survive_kills_and_an_orderly_restart() -> None:
    with live_daemon(patient=True) as daemon:
        keys = ["s", "session:prefixed", "agent:alice:main", "Ünï", "a b", "x" * 100]
        for number, key in enumerate(keys):
            hook(daemon, "session-start", key, PATHS[number % 2], claimOnly=number == 1)
        hook(daemon, "session-start", "unmarked", None)
        hook(daemon, "session-start", "over", "plugin")
        hook(daemon, "session-end", "over", "plugin")
        hook(daemon, "session-start", "again", "plugin")
        hook(daemon, "session-end", "again", "plugin")
        hook(daemon, "session-start", "again", "legacy")
        before = session(daemon, "s")

        def kill_all() -> None:
            daemon.kill_supervisor()
            daemon.gone()
            daemon.start()

        def kill_gateway() -> None:
            daemon.kill("gateway")
            daemon.wait_ready()

        def restart() -> None:
            assert daemon.stop() == 0
            daemon.start()

        for interrupt in (kill_all, kill_gateway, restart):
            interrupt()
            assert session(daemon, "s") == before, "the claim, its beginning and its expiry"
            for number, key in enumerate(keys):
                refused = hook(daemon, "user-prompt-submit", key, PATHS[(number + 1) % 2], userPrompt="Which port?")
                assert (refused["skipped"], refused["duplicateRuntimePath"]) == (True, True), (interrupt, key)
                assert refused["claimedBy"] == PATHS[number % 2]
            daemon.api.get("/api/sessions/over").refused(404)
            twice = hook(daemon, "session-end", "over", "legacy")
            assert (twice["duplicateSessionEnd"], twice["endedBy"]) == (True, "plugin")
            assert session(daemon, "again")["runtimePath"] == "legacy"
        for number, key in enumerate(keys):
            assert "skipped" not in hook(daemon, "user-prompt-submit", key, PATHS[number % 2], userPrompt="Which port?")
        assert "skipped" not in hook(daemon, "user-prompt-submit", "unmarked", "plugin", userPrompt="Which port?")
        assert "skipped" not in hook(daemon, "user-prompt-submit", "over", "legacy", userPrompt="Which port?")
        assert daemon.faults() == []
