"""Play a session to our plugins, in hosts with the shapes of OpenCode and of OpenClaw."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

HOSTS = Path(__file__).resolve().parents[1] / "unit" / "fixtures" / "harnesses"
NODE = shutil.which("node")
NOW_MS = 4_000_000_000_000
"""After the start of the plugin's process: the session is a new one."""
needs_node = pytest.mark.skipif(NODE is None, reason="the plugin is JavaScript, which needs node here")
TURNS_1: list[dict[str, Any]] = [
    {
        "info": {"id": "msg_1", "role": "user", "time": {"created": 1_790_000_000_000}, "summary": {"diffs": []}},
        "parts": [
            {"type": "text", "text": "Which port has the database?"},
            {"type": "text", "text": "a note of the program", "synthetic": True},
        ],
    },
    {
        "info": {"id": "msg_2", "role": "assistant", "time": {"created": 1_790_000_001_000}},
        "parts": [
            {"type": "reasoning", "text": "It must be somewhere."},
            {"type": "tool", "tool": "bash", "state": {"status": "completed", "output": "5433"}},
            {"type": "text", "text": "It is port 5433."},
        ],
    },
]
TURNS_2: list[dict[str, Any]] = [
    {"id": "msg_1", "type": "user", "text": "Which port has the database?", "time": {"created": 1_790_000_000_000}},
    {"id": "msg_s", "type": "synthetic", "text": "a note of the program", "time": {"created": 1_790_000_000_500}},
    {
        "id": "msg_2",
        "type": "assistant",
        "time": {"created": 1_790_000_001_000},
        "content": [
            {"type": "reasoning", "text": "It must be somewhere."},
            {"type": "tool", "id": "call_1", "name": "bash", "state": {"status": "completed", "content": []}},
            {"type": "text", "text": "It is port 5433."},
        ],
    },
]
"""The same conversation as OpenCode 1 and OpenCode 2 have it."""


def play(plugin: Path, api: int, *steps: dict[str, Any], created_ms: int = NOW_MS, **plan: Any) -> dict[str, Any]:
    """Play to the plugin of OpenCode; return what the model got at each request, and the problems that OpenCode has."""
    plan = {
        "plugin": str(plugin),
        "api": api,
        "directory": "/srv/shop",
        "session": {"time": {"created": created_ms}, **plan.pop("session", {})},
        "messages": TURNS_1 if api == 1 else TURNS_2,
        "steps": steps,
        **plan,
    }
    return _run("opencode-host.mjs", plan)


def play_openclaw(directory: Path, workspace: str, *steps: dict[str, Any]) -> dict[str, Any]:
    """Play to the plugin of OpenClaw; return what the model and the tools gave, and the problems that OpenClaw has."""
    return _run("openclaw-host.mjs", {"directory": str(directory), "workspace": workspace, "steps": steps})


def _run(host: str, plan: dict[str, Any]) -> dict[str, Any]:
    assert NODE is not None
    done = subprocess.run(
        [NODE, str(HOSTS / host)], input=json.dumps(plan), capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
