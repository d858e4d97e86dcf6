"""The daemon says in sentences whether memory works and what is wrong, and the command line says the same."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from signet_actors.runtime.connected_harnesses import ConnectedHarness, add_connected
from tests.corpus.scenarios.pipeline import GARBLED, with_a_model
from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client, LiveDaemon, live_daemon, signet
from tests.support.team import team_daemon
from tests.system.test_maintenance import signet as signet_json
from tests.system.test_offered_memories import hook

pytestmark = pytest.mark.system

PORT = "which port does the staging database listen on?"
JOKE = "tell me a joke about penguins"
SHOP = "/home/ada/shop"


def told(client: Client) -> Any:
    return client.get("/api/diagnostics/findings").ok()


def verdict(client: Client) -> tuple[str, str, str]:
    found = told(client)["verdict"]
    return found["level"], found["word"], found["sentence"]


def findings(client: Client) -> list[tuple[str, str, str | None]]:
    return [(one["severity"], one["text"], one["command"]) for one in told(client)["findings"]]


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    """A daemon that tells its owner from others."""
    with live_daemon(config="gateway: {requireOwner: true}\n", patient=True) as started:
        yield started


def test_the_verdict_tells_when_the_last_prompt_came_and_what_came_of_it(daemon: LiveDaemon) -> None:
    owner = daemon.owner
    assert told(owner) == {
        "verdict": {"level": "none", "word": "Ready", "sentence": "No prompt has come yet."},
        "findings": [],
    }
    owner.remember("The staging database listens on port 5433", project=SHOP)
    hook(owner, "user-prompt-submit", "s-1", project=SHOP, userPrompt=PORT)
    working = ("ok", "Working", "The last prompt came just now from codex: given 1 memory.")
    assert verdict(owner) == working
    hook(owner, "user-prompt-submit", "s-1", project=SHOP, userPrompt=JOKE)
    level, word, sentence = verdict(owner)
    assert (level, word) == working[:2]
    assert sentence.startswith("The last prompt came just now from codex: no memory fits. Before it, ")
    assert sentence.endswith(", one was given 1 memory.")
    assert f"Working. {sentence[:40]}" in signet(daemon, "status")
    other = owner.acting(x_signet_agent_id="other")
    assert verdict(other) == ("none", "Ready", "No prompt has come yet."), "of another agent"


def test_who_is_not_the_owner_learns_nothing_of_prompts(daemon: LiveDaemon) -> None:
    answer = daemon.api.get("/api/diagnostics/findings")
    assert answer.ok()["verdict"] == {"level": "none", "word": "Ready", "sentence": "The daemon is healthy."}
    assert answer.json["findings"] == []
    (warning,) = answer.json["warnings"]
    assert warning.startswith("Left out: when the last prompt came")
    daemon.api.get("/api/analytics/prompts").refused(403)


def test_a_daemon_that_was_not_asked_for_a_week_is_silent(daemon: LiveDaemon) -> None:
    hook(daemon.owner, "user-prompt-submit", "s-2", project=SHOP, userPrompt=JOKE)
    assert verdict(daemon.owner)[1] == "Working"
    assert daemon.stop() == 0
    for days, expected in ((6, ("ok", "Working")), (2, ("warn", "Silent"))):
        daemon.edit(
            "UPDATE searches SET created_at = strftime('%Y-%m-%dT%H:%M:%fZ', julianday(created_at) - ?)", float(days)
        )
        daemon.start()
        level, word, sentence = verdict(daemon.owner)
        assert (level, word) == expected
        assert sentence == f"The last prompt came {6 if days == 6 else 8} d ago from codex: no memory fits."
        assert daemon.stop() == 0
    daemon.start()


def test_a_connected_program_that_was_not_heard_for_a_week_is_a_finding(daemon: LiveDaemon) -> None:
    add_connected(daemon.workspace, ConnectedHarness("claude-code", "Claude Code", str(daemon.root / "settings.json")))
    assert findings(daemon.owner) == [], "the daemon has just started"
    body = {"harness": "claude-code", "sessionKey": "s-3", "userPrompt": JOKE}
    daemon.owner.post("/api/hooks/user-prompt-submit", body).ok()
    assert findings(daemon.owner) == []
    assert daemon.stop() == 0
    daemon.start()
    assert findings(daemon.owner) == [], "it was heard before the daemon started again"
    hook(daemon.owner, "user-prompt-submit", "s-4", project=SHOP, userPrompt=JOKE)
    assert daemon.stop() == 0
    daemon.edit("UPDATE searches SET created_at = '2026-01-01T00:00:00.000Z' WHERE harness = 'claude-code'")
    daemon.start()
    ((severity, text, command),) = findings(daemon.owner)
    assert (severity, command) == ("warn", "signet connect claude-code --check")
    assert re.fullmatch(r"Claude Code was not heard for \d+ (d|mo|y)\.", text), text
    daemon.owner.post("/api/hooks/user-prompt-submit", {**body, "sessionKey": "signet-check-2"}).ok()
    assert findings(daemon.owner)[0][1] == text, "a check is made by signet, not by the program"
    daemon.owner.post("/api/hooks/user-prompt-submit", body).ok()
    assert findings(daemon.owner) == []


def test_a_check_is_no_prompt_and_a_long_name_is_cut(daemon: LiveDaemon) -> None:
    agent = daemon.owner.acting(x_signet_agent_id="checked")
    agent.remember("The staging database listens on port 5433")
    hook(agent, "user-prompt-submit", "signet-check-1", userPrompt=PORT)
    assert verdict(agent) == ("none", "Ready", "No prompt has come yet.")
    assert agent.get("/api/analytics/prompts").ok()["prompts"] == 0
    agent.post("/api/hooks/user-prompt-submit", {"harness": "h" * 90, "sessionKey": "s-1", "userPrompt": PORT}).ok()
    assert verdict(agent) == ("ok", "Working", f"The last prompt came just now from {'h' * 30}: given 1 memory.")


def test_a_hook_that_is_switched_off_is_a_finding_and_memory_does_not_work() -> None:
    with live_daemon(config="hooks: {userPromptSubmit: {enabled: false}}\n") as daemon:
        hook(daemon.api, "user-prompt-submit", "s-1", userPrompt=PORT)
        told_off = "The last prompt came just now from codex: not asked: it is switched off in the settings."
        assert verdict(daemon.api) == ("warn", "Not asked", told_off)
        assert findings(daemon.api) == [
            (
                "warn",
                "Prompts are given no memories: hooks.userPromptSubmit.enabled is false.",
                "signet config set hooks.userPromptSubmit.enabled true",
            )
        ]


def test_a_prompt_that_another_program_serves_is_no_fault(daemon: LiveDaemon) -> None:
    agent = daemon.owner.acting(x_signet_agent_id="claimed")
    for path in ("plugin", "legacy"):
        hook(agent, "user-prompt-submit", "s-1", userPrompt=PORT, runtimePath=path)
    level, word, sentence = verdict(agent)
    assert (level, word) == ("ok", "Working")
    assert "not asked: another program serves this session." in sentence


def test_a_failed_backup_and_a_frozen_store_are_findings_the_worst_first() -> None:
    frozen = "memory: {pipelineV2: {mutationsFrozen: true}}\n"
    with live_daemon(config=frozen, environ={"SIGNET_SYNC_POINTS": "backup.before_rename=kill"}) as daemon:
        assert signet_json(daemon, "backup", SIGNET_SYNC_POINTS="")[0] == 1
        (severity, text, command), *others = findings(daemon.api)
        assert (severity, command) == ("bad", "signet backup")
        assert text.startswith("The last backup failed: the check of the copy failed")
        assert ("warn", "Changes are frozen by memory.pipelineV2.mutationsFrozen.", "signet config show") in others


def test_a_dead_job_is_a_finding_with_its_cause() -> None:
    with with_a_model() as daemon:
        daemon.api.remember(GARBLED)
        eventually(lambda: "failed for good" in str(findings(daemon.api)), what="the job is dead", within_s=60)
        (found,) = (one for one in findings(daemon.api) if "failed for good" in one[1])
        cause = daemon.api.get("/api/pipeline/status").ok()["dead"][0]["cause"].rstrip(".")
        assert found == (
            "warn",
            f"1 job of the kind extract failed for good: {cause}.",
            "signet repair requeue-dead",
        )


def test_a_process_that_does_not_answer_is_a_finding(daemon: LiveDaemon) -> None:
    pid = daemon.kill("retention", signal.SIGSTOP)
    try:
        ((severity, text, _),) = findings(daemon.owner)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert (severity, text) == ("warn", "Retention: no answer within 1000 ms.")


def test_a_limited_token_is_refused_and_one_without_a_limit_is_told() -> None:
    with team_daemon() as team:
        for role, scope, status in (
            ("operator", {}, 200),
            ("operator", {"project": SHOP}, 403),
            ("operator", {"user": "ada"}, 403),
            ("operator", {"agent": "other"}, 403),
            ("agent", {}, 403),
            ("readonly", {}, 403),
        ):
            answer = team.bearer(role, **scope).get("/api/diagnostics/findings")
            assert answer.status == status, (role, scope, answer.raw)
        team.nobody.get("/api/diagnostics/findings").refused(401)
