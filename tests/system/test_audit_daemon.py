"""The audit log of a real daemon: who changed, exported or was denied what, and that a change is never lost.

Source: docs/operations.md "Audit log".
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from signet_actors.features.audit.rules import HEAD
from tests.support.bus_harness import eventually
from tests.support.live_daemon import WITHOUT_PIPELINE, LiveDaemon, live_daemon, signet

pytestmark = pytest.mark.system

CONFIG = "search: {alpha: 0.6}\nmemory: {pipelineV2: {enabled: false}}\n"


def events(daemon: LiveDaemon, **only: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = daemon.api.get("/api/audit", **only).ok()["events"]
    return found


def appears(daemon: LiveDaemon, kind: str, count: int = 1) -> list[dict[str, Any]]:
    """Return the events of this kind once there are as many as expected."""
    eventually(lambda: len(events(daemon, kind=kind)) >= count, within_s=60, what=f"{count} {kind}")
    return events(daemon, kind=kind)


def brief(event: dict[str, Any]) -> tuple[str, str, str]:
    return event["actor"], event["outcome"], event["detail"].get("operation", "")


def test_denials_exports_changes_and_the_configuration_are_found_with_who_and_what() -> None:
    with live_daemon() as daemon:
        daemon.configure(CONFIG)
        (reload,) = appears(daemon, "configuration")
        assert "search.alpha" in reload["detail"]["keys"]
        alice = daemon.api.acting(x_signet_actor="alice", x_signet_actor_type="sdk")
        secret = daemon.api.acting(x_signet_actor="sk-ant-api03-" + "a1B2" * 20)
        ids = [alice.remember(f"The lighthouse number {number} is red")["id"] for number in range(3)]
        mallory = daemon.api.acting(x_signet_actor="mallory", origin="https://evil.example")
        for _ in range(50):
            mallory.get("/api/memory/export").refused(403)
        wanted = {"ids": ids[:2], "reason": "a private reason"}
        token = alice.post("/api/memory/forget", {"mode": "preview", **wanted}).ok()["confirmToken"]
        done = alice.post("/api/memory/forget", {"mode": "execute", "confirm_token": token, **wanted}).ok()
        assert done["deleted"] == 2
        (forgot,) = events(daemon, kind="change")
        assert brief(forgot) == ("alice", "done", "memories.forget"), "it is there when the answer is"
        assert forgot["detail"]["actorType"] == "sdk"
        assert (forgot["detail"]["deleted"], forgot["detail"]["status"]) == (2, 200)
        alice.post("/api/memory/forget", {"mode": "execute", "ids": ids[2:]}).refused(400)
        assert secret.get("/api/memory/export").status == 200
        alice.post("/api/memory/import", b'{"content": "An imported lighthouse"}\n').ok()
        body = {"file": "agent.yaml", "content": CONFIG.replace("0.6", "0.4321")}
        daemon.api.post("/api/config", body, x_signet_actor="bob").ok()
        (export,) = appears(daemon, "export")
        assert export["outcome"] == "done"
        assert "sk-ant" not in str(export)
        (*_, denied) = appears(daemon, "denied")
        assert brief(denied) == ("mallory", "refused", "")
        assert appears(daemon, "configuration", 2)[0]["detail"] == {"keys": ["search.alpha"]}
        changes = {brief(event): event for event in appears(daemon, "change", 3)}
        assert set(changes) == {
            ("alice", "done", "memories.forget"),
            ("alice", "refused", "memories.forget"),
            ("bob", "done", "config.write"),
        }
        assert changes["bob", "done", "config.write"]["detail"]["file"] == "agent.yaml"
        stored = str(daemon.read("SELECT * FROM audit_log"))
        assert not [text for text in ("lighthouse", "private reason", "0.4321", *ids, token) if text in stored]
        listed = signet(daemon, "audit", "--kind", "change", "-n", "1").split("\t")
        assert listed[2:5] == ["change", *brief(events(daemon, kind="change")[0])[:2]]
        assert signet(daemon, "audit", "--verify").startswith("The log is intact: ")


def test_a_program_that_is_denied_again_and_again_makes_two_rows_and_a_stop_stores_its_number() -> None:
    with live_daemon() as daemon:
        mallory = daemon.api.acting(x_signet_actor="mallory", x_forwarded_for="10.0.0.1")
        mallory.get("/api/memories").refused(403)
        appears(daemon, "denied")
        for _ in range(200):
            mallory.get("/api/memories").refused(403)
        daemon.stop()
        assert daemon.read("SELECT actor, count FROM audit_log ORDER BY seq") == [("mallory", 1), ("mallory", 200)]


def test_a_change_that_was_answered_survives_a_kill_of_gateway_and_writer() -> None:
    with live_daemon() as daemon:
        for number in range(3):
            body = {"file": "USER.md", "content": f"Version {number}"}
            daemon.api.post("/api/config", body, x_signet_actor=f"bob-{number}").ok()
            daemon.kill("gateway" if number else "writer")
            daemon.wait_ready()
        recorded = [event["actor"] for event in events(daemon, kind="change")]
        assert recorded == ["bob-2", "bob-1", "bob-0"]
        assert daemon.api.get("/api/audit/verify").ok()["intact"]


def test_a_row_that_was_changed_in_the_file_is_found_and_a_restore_is_recorded() -> None:
    with live_daemon() as daemon:
        daemon.api.post("/api/config", {"file": "USER.md", "content": "One"}, x_signet_actor="bob").ok()
        signet(daemon, "backup")
        daemon.api.post("/api/config", {"file": "USER.md", "content": "Two"}, x_signet_actor="carol").ok()
        last = daemon.read("SELECT seq, hash FROM audit_log ORDER BY seq DESC LIMIT 1")[0]
        daemon.stop()
        daemon.edit("UPDATE audit_log SET actor = 'alice' WHERE seq = 1")
        daemon.start()
        said = signet(daemon, "audit", "--verify", exit_code=1)
        assert said == "Row 1 was changed or is missing; the 0 rows before it fit.\n"
        daemon.stop()
        assert daemon.read("SELECT value FROM store_meta WHERE key = ?", HEAD) == [(f"{last[0]} {last[1]}",)]
        signet(daemon, "restore", "latest", "--yes")
        daemon.start()
        assert daemon.api.get("/api/audit/verify").ok()["intact"]
        restored = events(daemon)[0]
        assert brief(restored) == ("signet restore", "done", "")
        detail = restored["detail"]
        assert (detail["uid"], detail["replacedRow"], detail["replacedHash"]) == (os.geteuid(), *last)
        assert "carol" not in [event["actor"] for event in events(daemon)]


def test_tokens_and_what_they_were_denied_are_recorded_with_their_ids() -> None:
    with live_daemon(config="auth: {mode: team}\n" + WITHOUT_PIPELINE) as daemon:
        owner = daemon.api.acting(x_signet_owner_token=(daemon.workspace / ".daemon" / "owner-token").read_text())
        issued = owner.post("/api/auth/token", {"role": "readonly", "name": "dashboard"}).ok()
        bearer = daemon.api.acting(authorization=f"Bearer {issued['token']}", x_signet_actor="somebody else")
        bearer.post("/api/memory/remember", {"content": "x"}).refused(403)
        daemon.api.acting(authorization="Bearer a.b", x_signet_actor="mallory").get("/api/memories").refused(401)
        owner.request("DELETE", f"/api/auth/tokens/{issued['id']}").ok()
        eventually(lambda: len(owner.get("/api/audit").ok()["events"]) == 4, within_s=60, what="four events")
        rows = {brief(event): event["detail"] for event in owner.get("/api/audit").ok()["events"]}
        assert set(rows) == {
            ("owner", "done", "auth.create_token"),
            ("dashboard", "refused", "memories.remember"),
            ("mallory", "refused", "memories.list"),
            ("owner", "done", "auth.revoke_token"),
        }
        assert rows["owner", "done", "auth.create_token"]["issued"] == issued["id"]
        assert rows["dashboard", "refused", "memories.remember"]["token"] == issued["id"]
        assert rows["owner", "done", "auth.revoke_token"]["revoked"] == issued["id"]
        assert issued["token"] not in str(rows)
        bearer.get("/api/audit").refused(401)
