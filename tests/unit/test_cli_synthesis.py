"""The command synthesis: when MEMORY.md was made, have it made now, and what changed.

Source: docs/cli.md; docs/guides/working-memory.md.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from signet_actors.cli import duties

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

    from tests.support.scripted_daemon import ScriptedDaemon

STATUS, TRIGGER, DIFF = "/api/synthesis/status", "/api/synthesis/trigger", "/api/synthesis/diff"
MADE: dict[str, Any] = {
    "running": False,
    "lastRunAt": "2026-11-24T06:00:00.000Z",
    "agentId": "default",
    "path": "/w/MEMORY.md",
    "chars": 812,
    "madeBy": "daemon",
    "model": "qwen3:4b",
    "edited": True,
    "lastError": None,
    "nextRunAt": "2026-11-25T06:00:00.000Z",
    "waiting": None,
    "versions": [
        {
            "name": "MEMORY.backup-20261123T060000000Z-edited.md",
            "keptAt": "2026-11-23T06:00:00.000Z",
            "bytes": 700,
            "edited": True,
        }
    ],
}


def test_the_status_says_when_the_file_was_made_and_lists_its_versions(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    daemon.on("GET", STATUS, MADE)
    said = signet("synthesis", "status", "--agent", "ann")
    assert said.exit_code == 0
    assert said.stdout.splitlines() == [
        "file: /w/MEMORY.md",
        "made: 2026-11-24T06:00:00.000Z by qwen3:4b",
        "changed by you: yes; the next run keeps what you wrote",
        "next run: 2026-11-25T06:00:00.000Z",
        "",
        "MEMORY.backup-20261123T060000000Z-edited.md\t2026-11-23T06:00:00.000Z\t700 B\tchanged by you",
    ]
    assert daemon.asked[-1].query == {"agentId": "ann"}


def test_the_status_of_a_file_that_was_never_made_says_why(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    daemon.on(
        "GET",
        STATUS,
        {**MADE, "lastRunAt": None, "edited": False, "versions": [], "lastError": "no text", "waiting": "no model"},
    )
    lines = signet("synthesis", "status").stdout.splitlines()
    assert {"made: never", "last error: no text", "waiting: no model"} <= set(lines)


def test_a_run_waits_until_the_file_is_made(
    daemon: ScriptedDaemon, signet: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duties, "POLL_S", 0.0)
    daemon.on("POST", TRIGGER, {"success": True, "running": True, "agentId": "default"})
    daemon.script("GET", STATUS, {**MADE, "running": True}, MADE)
    said = signet("synthesis", "run", "--again")
    assert (said.exit_code, said.stdout) == (0, "/w/MEMORY.md is up to date, 812 characters.\n")
    assert "signet synthesis diff" in said.stderr
    assert [asked.body for asked in daemon.asked if asked.method == "POST"] == [{"again": True}]


def test_a_run_that_fails_says_why_and_fails(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("POST", TRIGGER, {"success": True, "running": True, "agentId": "default"})
    daemon.on("GET", STATUS, {**MADE, "lastError": "the model returned no text\x1b[2J"})
    said = signet("synthesis", "run")
    assert said.exit_code == 1
    assert (
        said.stderr == "MEMORY.md was not made: the model returned no text\\u001b[2J. The present file is unchanged.\n"
    )


def test_a_run_without_a_model_is_refused(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    error = "Synthesis worker not running: no model: Ollama does not answer"
    daemon.on("POST", TRIGGER, {"error": error, "code": "unavailable"}, status=503)
    said = signet("synthesis", "run")
    assert said.exit_code == 1
    assert said.stderr.startswith("signet: MEMORY.md needs a language model; none is available. `signet ")
    assert said.stderr.endswith(" providers` tells how to get one.\n")


@pytest.mark.parametrize(
    ("diff", "out", "err"),
    [
        ("--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\x1b[2J\n", "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\\u001b[2J\n", ""),
        ("", "", "Nothing has changed since that version.\n"),
        (None, "", "There is no former version of MEMORY.md.\n"),
    ],
)
def test_the_diff_is_printed_without_what_could_control_a_terminal(
    daemon: ScriptedDaemon, signet: Callable[..., Result], diff: str | None, out: str, err: str
) -> None:
    daemon.on("GET", DIFF, {"version": None if diff is None else "v", "diff": diff})
    said = signet("synthesis", "diff")
    assert (said.exit_code, said.stdout, said.stderr) == (0, out, err)


@pytest.mark.parametrize("command", ["status", "diff"])
def test_the_answer_is_printed_as_json_if_that_is_asked_for(
    daemon: ScriptedDaemon, signet: Callable[..., Result], command: str
) -> None:
    body: dict[str, Any] = MADE if command == "status" else {"version": "v", "diff": "x"}
    daemon.on("GET", STATUS if command == "status" else DIFF, body)
    assert json.loads(signet("synthesis", command, "--json").stdout) == body


@pytest.mark.parametrize("body", [{}, {"versions": {}}, {"versions": [1]}, []])
def test_an_answer_of_another_program_is_no_success(
    daemon: ScriptedDaemon, signet: Callable[..., Result], body: Any
) -> None:
    daemon.on("GET", STATUS, body)
    daemon.on("GET", DIFF, body)
    assert signet("synthesis", "status").exit_code == 1
    assert signet("synthesis", "diff").exit_code == 1
