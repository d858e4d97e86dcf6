"""A session that reports its end has ended, whatever the report has of its transcript: for its claim, for lists, for
other sessions, and for the other path of the same program.

Source: memory-pipeline.txt "Session Checkpoints"; docs/guides/transcripts.md.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from tests.support.live_daemon import Client, LiveDaemon

pytestmark = pytest.mark.system

END = "/api/hooks/session-end"
KEEP = "/api/hooks/session-checkpoint-extract"
TALK = "User: Where is the ferry?\nAssistant: At the pier"
NUMBERS = count()

NOTHING_NAMED: list[dict[str, Any]] = [
    {},
    {"reason": "done"},
    {"reason": "logout", "cwd": "/home/ada"},
    {"reason": "prompt_input_exit"},
    {"reason": "fermé", "harness": "ouvrage"},
    {"reason": "clear"},
    {"transcript": "  \n"},
    {"transcript": None, "transcriptPath": None},
    {"transcriptPath": ""},
    {"transcriptPath": 7},
    {"unknown": "field"},
    {"transcriptPath": "WORKSPACE/none.jsonl"},
    {"transcriptPath": "WORKSPACE/transcripts/at/all.jsonl", "reason": "exit"},
]
"""Reports in which nothing is missing: without a transcript, or with the file of a session that said nothing."""
UNREADABLE: list[dict[str, Any]] = [
    {"transcriptPath": "/etc/passwd"},
    {"transcriptPath": "relative.jsonl"},
    {"transcriptPath": "WORKSPACE/.daemon/secret"},
    {"transcriptPath": "WORKSPACE/agent.yaml"},
    {"transcriptPath": "WORKSPACE/memory/none.md"},
    {"transcriptPath": "WORKSPACE/agents/alice/MEMORY.md"},
    {"transcriptPath": "WORKSPACE/../x.jsonl"},
    {"transcriptPath": "/no/such/root/x.jsonl"},
    {"transcript": '{"type":"summary","summary":"x"}'},
    {"transcript": '{"role":"user","content":[]}\n'},
    {"transcript": "User: [memory active | /remember]\nAssistant: [memory active | /remember]"},
]
"""Reports of a transcript that cannot be stored, which the log says."""


def hook(client: Client, name: str, key: str, headers: dict[str, str] | None = None, **fields: Any) -> Any:
    body = {"harness": "oc", "sessionKey": key, "project": f"/srv/{key}", **fields}
    return client.post(f"/api/hooks/{name}", body, **headers or {}).ok()


def begun(daemon: LiveDaemon, path: str | None = "plugin") -> str:
    """Start a session of its own, and return its key."""
    key = f"ending-{next(NUMBERS)}"
    hook(daemon.api, "session-start", key, runtimePath=path)
    assert key in running(daemon)
    return key


def running(daemon: LiveDaemon) -> list[str]:
    return [session["key"] for session in daemon.api.get("/api/sessions").ok()["sessions"]]


def skipped_transcripts(daemon: LiveDaemon) -> int:
    counted: int = daemon.api.get("/api/status").ok()["gateway"]["transcripts_skipped"]
    return counted


def ended(daemon: LiveDaemon, key: str, fields: dict[str, Any], path: str | None) -> Any:
    named = {"runtimePath": path, "reason": "done", **fields}
    if isinstance(file := named.get("transcriptPath"), str):
        named["transcriptPath"] = file.replace("WORKSPACE", str(daemon.workspace))
    return hook(daemon.api, "session-end", key, **named)


@pytest.mark.parametrize("context", [None, "", "  "])
def test_a_checkpoint_in_which_nothing_happened_is_not_told_and_hides_no_other_one(
    daemon: LiveDaemon, context: str | None
) -> None:
    key = begun(daemon)
    for _ in range(2):
        hook(daemon.api, "pre-compaction", key, runtimePath="plugin", sessionContext=context)
        goes_on = hook(daemon.api, "session-start", key, source="compact", runtimePath="plugin")
        assert "Session Recovery Context" not in goes_on["inject"]
    hook(daemon.api, "user-prompt-submit", key, userPrompt="Paint the shed green", runtimePath="plugin")
    hook(daemon.api, "pre-compaction", key, runtimePath="plugin")
    for _ in range(2):
        hook(daemon.api, "pre-compaction", key, runtimePath="plugin", sessionContext=context)
        goes_on = hook(daemon.api, "session-start", key, source="compact", runtimePath="plugin")
        assert "Paint the shed green" in goes_on["inject"]


@pytest.mark.parametrize("path", ["plugin", "legacy", None])
@pytest.mark.parametrize("fields", NOTHING_NAMED + UNREADABLE, ids=repr)
def test_a_report_of_the_end_that_stores_no_turns_ends_the_session(
    daemon: LiveDaemon, fields: dict[str, Any], path: str | None
) -> None:
    key, before = begun(daemon, path), skipped_transcripts(daemon)
    answer = ended(daemon, key, fields, path)
    assert (answer["memoriesSaved"], answer["stored"]) == (0, False)
    assert answer["reason"]
    assert (skipped_transcripts(daemon) > before) == (fields in UNREADABLE)

    assert key not in running(daemon)
    daemon.api.get(f"/api/sessions/{key}").refused(404, error="Session not found")
    peer = hook(daemon.api, "session-start", f"{key}-peer", project=f"/srv/{key}")["inject"]
    assert f"session {key}," not in peer, "an ended session is no peer"
    other = "legacy" if path == "plugin" else "plugin"
    twice = ended(daemon, key, {}, other)
    assert (twice["skipped"], twice["duplicateSessionEnd"]) == (True, True)
    assert twice.get("endedBy") == path
    goes_on = hook(daemon.api, "user-prompt-submit", key, userPrompt="And the ferry?", runtimePath=other)
    assert "skipped" not in goes_on, "its claim is released, and it goes on"
    assert key in running(daemon)


@pytest.mark.parametrize(
    ("name", "fields", "headers"),
    [
        ("session-checkpoint-extract", {}, {}),
        ("session-checkpoint-extract", {"transcript": TALK}, {}),
        ("pre-compaction", {}, {}),
        ("compaction-complete", {"summary": "The ferry is at the pier."}, {}),
        ("user-prompt-submit", {"userPrompt": "exit"}, {}),
        ("session-end", {"runtimePath": "legacy"}, {}),
        ("session-end", {}, {"x_signet_no_hooks": "1"}),
        ("session-end", {"reason": "backfill", "transcript": TALK, "runtimePath": None}, {}),
        ("session-end", {"reason": "backfill", "runtimePath": None}, {}),
        ("session-end", {"reason": "stop"}, {}),
        ("session-end", {"reason": "stop", "transcript": TALK}, {}),
        ("session-end", {"sessionKey": "another-session"}, {}),
        ("session-end", {"capturedAt": "2026-01-01T00:00:00Z"}, {"x_signet_late": "1"}),
        ("session-end", {"capturedAt": "2026-01-01T00:00:00Z", "transcript": TALK}, {"x_signet_late": "1"}),
    ],
    ids=repr,
)
def test_a_session_that_reports_no_end_of_its_own_goes_on(
    daemon: LiveDaemon, name: str, fields: dict[str, Any], headers: dict[str, str]
) -> None:
    key = begun(daemon)
    hook(daemon.api, name, fields.get("sessionKey", key), headers, **{"runtimePath": "plugin", **fields})
    assert daemon.api.get(f"/api/sessions/{key}").ok()["runtimePath"] == "plugin"


def test_the_file_of_a_session_with_prompts_that_is_not_there_is_told(daemon: LiveDaemon) -> None:
    key, before = begun(daemon), skipped_transcripts(daemon)
    hook(daemon.api, "user-prompt-submit", key, userPrompt="Where is the ferry?", runtimePath="plugin")
    answer = ended(daemon, key, {"transcriptPath": "WORKSPACE/lost.jsonl"}, "plugin")
    assert answer["skipped"] is True
    assert skipped_transcripts(daemon) == before + 1
    assert key not in running(daemon)
