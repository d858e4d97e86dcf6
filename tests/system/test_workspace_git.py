"""The workspace as a git repository of a running daemon.

Source: architecture.txt "How It Works" (5 s debounced git commit), "HTTP API Reference" (``/api/git/*``).
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import live_daemon

pytestmark = pytest.mark.system


def git(directory: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=directory, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip()


def test_an_edit_is_committed_and_the_database_never() -> None:
    with live_daemon() as daemon:
        assert daemon.api.get("/api/git/status").ok()["isRepo"] is False
        assert daemon.api.post("/api/git/push").ok() == {"success": False, "message": "Not a git repository"}
        changed = daemon.api.post("/api/git/config", {"autoCommit": True, "syncInterval": 600, "branch": ""}).ok()
        assert changed["success"] is True
        assert (changed["config"]["autoCommit"], changed["config"]["syncInterval"]) == (True, 600)
        eventually(lambda: daemon.api.get("/api/git/config").ok()["autoCommit"] is True, what="the reload", within_s=60)
        daemon.api.remember("The staging database listens on port 5433.")
        (daemon.workspace / "AGENTS.md").write_text("Run the tests before each commit.\n")

        def text() -> str:
            return git(daemon.workspace, "show", "HEAD:AGENTS.md")

        eventually(lambda: "Run the tests" in text(), what="the commit", within_s=60)
        (daemon.workspace / "AGENTS.md").write_text("Never on Fridays.\n")
        eventually(lambda: "Fridays" in text(), what="the second commit", within_s=60)
        tracked = git(daemon.workspace, "log", "--all", "--name-only", "--format=").split()
        assert {name for name in tracked if not name.endswith(".md")} == {"agent.yaml"}
        status = daemon.api.get("/api/git/status").ok()
        shown = {name: status[name] for name in ("isRepo", "autoCommit", "autoSync", "hasCredentials", "problem")}
        assert shown == {
            "isRepo": True,
            "autoCommit": True,
            "autoSync": False,
            "hasCredentials": False,
            "problem": None,
        }
        assert status["lastCommit"]["author"] == "Signet"
        assert git(daemon.workspace, "status", "--porcelain") == ""


def test_nothing_about_git_is_changed_by_a_web_page_or_sent_elsewhere_over_http() -> None:
    with live_daemon() as daemon:
        before = (daemon.workspace / "agent.yaml").read_bytes()
        foreign = {"Origin": "https://evil.example"}
        for path in ("pull", "push", "sync", "config"):
            daemon.api.post(f"/api/git/{path}", {"autoCommit": True}, **foreign).refused(403)
        daemon.api.post("/api/git/config", {"autoSync": True}).refused(403, field="git.autoSync")
        daemon.api.post("/api/git/config", {"remote": "elsewhere"}).refused(403, field="git.remote")
        daemon.api.post("/api/git/config", {"branch": "--upload-pack=x"}).refused(400)
        daemon.api.post("/api/git/config", {"syncInterval": 5}).refused(400)
        daemon.api.post("/api/git/config", {}).refused(400)
        assert (daemon.workspace / "agent.yaml").read_bytes() == before
        daemon.configure("git:\n  enabled: false\n")
        eventually(lambda: daemon.api.get("/api/git/status").ok()["enabled"] is False, what="the reload", within_s=60)
        assert daemon.api.post("/api/git/sync").ok() == {"success": False, "message": "git.enabled is false"}
