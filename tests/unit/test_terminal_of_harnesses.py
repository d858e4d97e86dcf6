"""What a terminal shows of harnesses, past sessions, MEMORY.md, the configuration and `call`: screens as in dialogues.

``python -m tests.unit.test_terminal_of_harnesses`` records the screens again; read the difference before you keep it.

Source: docs/cli.md "Output", "Harnesses" and "Maintenance".
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final
from unittest import mock

import pytest
from rich.cells import cell_len

from tests.support import past_sessions
from tests.support.harness_home import Home, install_claude
from tests.unit.test_terminal_dialogues import Scene, Stage, screen, screens, told
from tests.unit.test_terminal_screens import CONTROLS, HOSTILE, SCREENS, TEXTS, TIMES, WIDTHS, memory_id

Prepare = Callable[[Stage], Sequence[str]]
FOREIGN: Final = {"CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCLAW_STATE_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"}
LAST_CHANGED_S: Final = 1_771_660_800
"""When the past sessions were changed last, before the time that the terminal shows as now."""


def at_home(stage: Stage, *harnesses: str) -> Home:
    """Make the workspace the home directory, with these harnesses and without other programs of this machine."""
    home = Home(stage.workspace)
    environ = {name: value for name, value in os.environ.items() if name not in FOREIGN and "SIGNET" not in name}
    environ |= {"HOME": str(stage.workspace), "PATH": str(stage.workspace / "bin"), "SHELL": "/bin/sh"}
    stage.patches.enter_context(mock.patch.dict(os.environ, environ, clear=True))
    for module in ("connect", "installed_program"):
        stage.patch(f"{module}.installed_program", lambda name, _: str(home.program.with_name(name)))
    home.install_signet()
    if "claude-code" in harnesses:
        install_claude(stage.workspace / "bin", "2.1.76 (Claude Code)")
        stage.file(".claude/settings.json", json.dumps({"model": "opus", "note": HOSTILE}, indent=2) + "\n")
    if "codex" in harnesses:
        stage.file(".codex/config.toml", 'model = "gpt-5"\n')
    return home


def connecting(*command: str, harnesses: Sequence[str] = ("claude-code", "codex"), before: str = "") -> Prepare:
    """Return the command, in a home directory with the harnesses, one of which is connected ``before``."""

    def prepare(stage: Stage) -> Sequence[str]:
        home = at_home(stage, *harnesses)
        if before:
            connected = home.run("--workspace", str(stage.workspace), "connect", before)
            assert connected.exit_code == 0, connected.output
        return command

    return prepare


def broken_settings(stage: Stage) -> Sequence[str]:
    at_home(stage, "claude-code")
    stage.file(".claude/settings.json", "{not JSON " + HOSTILE)
    return ("connect", "claude-code")


def past(count: int, *more: str) -> Prepare:
    """Return the command backfill, with 0, 1 or 4 sessions."""

    def prepare(stage: Stage) -> Sequence[str]:
        at_home(stage)
        if count:
            past_sessions.claude_code(stage.workspace)
        if count > 1:
            past_sessions.codex(stage.workspace)
            past_sessions.opencode_files(stage.workspace)
        for path in stage.workspace.rglob("*.json*"):
            os.utime(path, (LAST_CHANGED_S, LAST_CHANGED_S))
        stage.daemon.on("GET", "/api/sessions", {"sessions": []})
        kept = {"stored": True, "newTurns": 12, "redacted": False}
        refused = {"skipped": True, "reason": HOSTILE}
        stage.daemon.script("POST", "/api/hooks/session-end", kept, {**kept, "newTurns": 0}, refused)
        return ("backfill", *more)

    return prepare


def synthesized(count: int, **more: Any) -> Prepare:
    """Return the command that shows the state of MEMORY.md, of which there are so many former versions."""

    def prepare(stage: Stage) -> Sequence[str]:
        body = {
            "running": False,
            "path": "/home/noor/.agents/MEMORY.md",
            "lastRunAt": TIMES[2] if count else None,
            "madeBy": "daemon",
            "model": "qwen3:4b",
            "edited": count > 1,
            "lastError": None,
            "nextRunAt": "2026-02-22T06:00:00.000Z",
            "waiting": None,
            "versions": [
                {
                    "name": f"MEMORY.backup-202602{20 - number:02}T060000000Z{'-edited' * (number % 2)}.md",
                    "keptAt": TIMES[number % 5],
                    "bytes": 700 * (number + 1),
                    "edited": number % 2 == 1,
                }
                for number in range(count)
            ],
            **more,
        }
        stage.daemon.on("GET", "/api/synthesis/status", body)
        return ("synthesis", "status")

    return prepare


def differing(text: str | None) -> Prepare:
    def prepare(stage: Stage) -> Sequence[str]:
        stage.daemon.on("GET", "/api/synthesis/diff", {"version": "v", "diff": text})
        return ("synthesis", "diff")

    return prepare


DIFF: Final = "\n".join(
    (
        "--- MEMORY.backup-20260220T060000000Z.md",
        "+++ MEMORY.md",
        "@@ -1,3 +1,3 @@",
        f"-{TEXTS[5]}",
        f"+{HOSTILE}",
        " x",
    )
)


def made(outcome: dict[str, Any]) -> Prepare:
    def prepare(stage: Stage) -> Sequence[str]:
        stage.daemon.on("POST", "/api/synthesis/trigger", {"success": True, "running": True})
        body = {"running": False, "path": "/home/noor/.agents/MEMORY.md", "chars": 812, "versions": [], **outcome}
        stage.daemon.on("GET", "/api/synthesis/status", body)
        return ("synthesis", "run")

    return prepare


def configured(text: str | None, *command: str) -> Prepare:
    """Return a command of ``config`` in a workspace with this ``agent.yaml``."""

    def prepare(stage: Stage) -> Sequence[str]:
        if text is not None:
            stage.file("agent.yaml", text)
        return ("config", *command)

    return prepare


INVALID: Final = f"search:\n  alpha: 7\n  fusion: best\ngateway:\n  port: {json.dumps(HOSTILE)}\n"
UNKNOWN: Final = "serch:\n  alpha: 0.5\nembedding:\n  provider: openai\n  model: m\n  dimensions: 8\n"


def called(*command: str) -> Prepare:
    def prepare(stage: Stage) -> Sequence[str]:
        body = {"id": memory_id(0), "job_type": "extract", "status": "dead", "error": HOSTILE, "attempts": 3}
        stage.daemon.on("GET", f"/api/memory/jobs/{memory_id(0)}", body)
        return ("call", *command)

    return prepare


SCENES: Final[dict[str, tuple[Scene, ...]]] = {
    "connect": (
        Scene("the list, nothing on this machine", connecting("connect", harnesses=())),
        Scene("the list, one of two is connected", connecting("connect", before="claude-code")),
        Scene("what would change", connecting("connect", "claude-code", "--dry-run")),
        Scene("connect", connecting("connect", "claude-code")),
        Scene("connect one that is not there", connecting("connect", "windsurf")),
        Scene("connect again", connecting("connect", "claude-code", before="claude-code")),
        Scene("settings that cannot be read", broken_settings),
        Scene("any other program", connecting("connect", "generic")),
        Scene(
            "a plugin", lambda stage: (*connecting("connect", "gemini")(stage), "--plugin", str(stage.workspace / "p"))
        ),
        Scene("a plugin that there is not", connecting("connect", "codex", "--plugin", "/tmp/p")),
        Scene("nothing to check", connecting("connect", "--check")),
        Scene("disconnect", connecting("disconnect", "claude-code", before="claude-code")),
        Scene("what a disconnect would change", connecting("disconnect", "codex", "--dry-run", before="codex")),
        Scene("disconnect what is not connected", connecting("disconnect", "codex")),
    ),
    "setup": (
        Scene("nothing on this machine", connecting("setup", harnesses=())),
        Scene("one is connected; yes to the other", connecting("setup", before="claude-code"), typed="y\nn\n"),
        Scene("yes and no", connecting("setup"), typed="y\nn\nn\n"),
        Scene("no answer", connecting("setup", harnesses=("codex",))),
    ),
    "backfill": (
        Scene("nothing to show", past(0, "--dry-run")),
        Scene("show one", past(1, "--dry-run")),
        Scene("show those of three programs", past(4, "--dry-run")),
        Scene("nothing to store", past(0)),
        Scene("all of three programs", past(4, "--yes")),
        Scene("no", past(4), typed="n\n"),
        Scene("a time that is none", past(1, "--dry-run", "--since", "whenever")),
    ),
    "synthesis": (
        Scene("never made", synthesized(0, waiting="no model is available; install Ollama, or have a harness make it")),
        Scene("made once", synthesized(1)),
        Scene("made often, then an error", synthesized(6, lastError=HOSTILE, running=True)),
        Scene("what changed", differing(DIFF)),
        Scene("nothing changed", differing("")),
        Scene("no former version", differing(None)),
        Scene("make it", made({})),
        Scene("it cannot be made", made({"lastError": TEXTS[5]})),
    ),
    "config": (
        Scene("check without a file", configured(None, "check")),
        Scene("check a valid file", configured("search:\n  alpha: 0.4\n", "check")),
        Scene("check a file with a warning", configured(UNKNOWN, "check")),
        Scene("check an invalid file", configured(INVALID, "check")),
        Scene("the path", configured(None, "path")),
        Scene("set a key", configured("search:\n  alpha: 0.4 # as measured\n", "set", "search.alpha", "0.6")),
        Scene("set a key to the same value", configured("search:\n  alpha: 0.4\n", "set", "search.alpha", "0.4")),
        Scene("set an unknown key", configured(None, "set", "search.alhpa", "0.6")),
        Scene("set a section", configured(None, "set", "search", "0.6")),
        Scene("set an invalid value", configured(None, "set", "search.alpha", "7")),
    ),
    "call": (
        Scene("a reply", called("jobs.get", memory_id(0))),
        Scene("not found", called("jobs.get", memory_id(1))),
        Scene("an unknown operation", told("call", "jobs.got")),
        Scene("a missing argument", told("call", "jobs.get")),
        Scene("an unknown option", told("call", "jobs.get", memory_id(0), "--colour", "red")),
        Scene("an object that is no JSON", told("call", "memories.recall", "--time", "{a")),
    ),
}


@pytest.mark.parametrize("name", SCENES)
def test_the_screens_are_those_that_a_person_has_looked_at(name: str) -> None:
    assert screens(SCENES[name]) == (SCREENS / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_thousand_former_versions_keep_to_the_width(width: int) -> None:
    shown = screen(Scene("many", synthesized(20, versions=[{"name": f"v{n}", "bytes": n} for n in range(1000)])), width)
    assert [line for line in shown.splitlines() if cell_len(line) > width] == []
    assert not CONTROLS & set(shown.replace("\n", ""))


def record() -> Iterator[str]:
    for name, scenes in SCENES.items():
        (SCREENS / f"{name}.txt").write_text(screens(scenes), encoding="utf-8")
        yield name


if __name__ == "__main__":
    print(json.dumps(list(record())))
