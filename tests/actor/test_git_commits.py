"""The periodic duty of retention that commits the Markdown of the workspace, with a real git.

Source: architecture.txt "How It Works" (5 s debounced git commit); docs/guides/identity.md "Former versions with git".
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog

from signet_actors.config.git_schema import GitConfig
from signet_actors.config.schema import Config
from signet_actors.domain.workspace_git import EXCLUDE_BEGIN, GitAction
from signet_actors.protocol.retention import GitDone
from signet_actors.retention.periodic.git_commits import GitCommits
from signet_actors.retention.workspace_git import WorkspaceGit

COMMITTING = GitConfig(auto_commit=True)


class HandClock:
    def __init__(self) -> None:
        self.ns = 1_000_000_000

    def monotonic_ns(self) -> int:
        return self.ns

    def wall_ms(self) -> int:
        return self.ns // 1_000_000


class Room:
    """A workspace with private files, and the duty with a clock that the test moves."""

    def __init__(self, root: Path, config: GitConfig = COMMITTING) -> None:
        self.workspace = root / "workspace"
        self.clock = HandClock()
        self.logged: list[dict[str, Any]] = []
        self.begun: list[GitAction] = []
        for name in ("memory/memories.db", "memory/memories.db-wal", ".daemon/secret", "secrets/key", ".env"):
            (self.workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (self.workspace / name).write_text("private\n")
        (self.workspace / "AGENTS.md").write_text("Run the tests.\n")
        self._log = structlog.wrap_logger(structlog.ReturnLogger(), processors=[self._note])
        self.duty = GitCommits(self.clock, self._log, Config(git=config), self.workspace, self._begin)

    def _begin(self, workspace: Path, action: GitAction, config: GitConfig) -> WorkspaceGit:
        self.begun.append(action)
        return WorkspaceGit(workspace, action, config)

    def _note(self, _: Any, level: str, event: dict[str, Any]) -> dict[str, Any]:
        self.logged.append({"level": level, **event})
        return event

    def pass_s(self, seconds: float) -> None:
        """Step once a second, and wait for each process that is begun."""
        for _ in range(round(seconds)):
            self.clock.ns += 1_000_000_000
            self.duty.step()
            deadline = time.monotonic() + 60
            while self.duty.running and time.monotonic() < deadline:
                time.sleep(0.01)
                self.duty.step()

    def ask(self, action: GitAction) -> GitDone:
        answers: list[GitDone] = []
        self.duty.request(action, answers.append)
        self.pass_s(1)
        (answer,) = answers
        return answer

    def git(self, *arguments: str, directory: Path | None = None) -> str:
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main")
        done = subprocess.run(
            ["git", *identity, *arguments],
            cwd=directory or self.workspace,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout.strip()

    def committed(self) -> set[str]:
        return set(self.git("ls-tree", "-r", "-z", "--name-only", "HEAD").strip("\0").split("\0"))

    def count(self) -> int:
        return int(self.git("rev-list", "--count", "HEAD"))

    def reasons(self) -> list[str]:
        return [event["reason"] for event in self.logged if event["event"] == "git_postponed"]


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def test_changes_are_committed_five_seconds_after_the_last_one(room: Room) -> None:
    room.pass_s(5)
    assert room.begun == []
    room.pass_s(2)
    assert room.committed() == {"AGENTS.md"}
    for number in range(8):
        (room.workspace / "AGENTS.md").write_text(f"Version {number} of the rules.\n")
        room.pass_s(1)
    assert room.count() == 1, "it is still being changed"
    room.pass_s(5)
    assert room.count() == 2
    assert room.git("show", "HEAD:AGENTS.md") == "Version 7 of the rules."
    assert (
        room.git("log", "-1", "--format=%an <%ae>|%cn <%ce>") == "Signet <signet@localhost>|Signet <signet@localhost>"
    )
    assert room.git("log", "-1", "--format=%s").startswith("Auto-commit 20")
    room.pass_s(100)
    assert room.begun == ["commit", "commit"], "no process is begun while nothing changes"


def test_markdown_anywhere_is_committed_and_nothing_private_ever(room: Room) -> None:
    room.git("init", "--quiet")
    room.git("add", "--force", "memory/memories.db", "secrets/key")
    room.git("commit", "--quiet", "-m", "A person's own mistake")
    for name in (
        "agents/bob/SOUL.md",
        "memory/2026-11-24-login.md",
        "skills/a/SKILL.md",
        "secrets/note.md",
        "a'b ü.md",
    ):
        (room.workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (room.workspace / name).write_text("Text.\n")
    (room.workspace / "memory/memories.db").write_text("changed\n")
    (room.workspace / "memory/MEMORY.backup-20261124T060000000Z.md").write_text("Former.\n")
    room.pass_s(7)
    changed = set(room.git("diff", "-z", "--name-only", "HEAD~1", "HEAD").strip("\0").split("\0"))
    expected = {"AGENTS.md", "agents/bob/SOUL.md", "memory/2026-11-24-login.md", "skills/a/SKILL.md", "a'b ü.md"}
    assert changed == expected
    (room.workspace / "agents/bob/SOUL.md").unlink()
    room.pass_s(7)
    assert "agents/bob/SOUL.md" not in room.committed()
    room.git("rm", "--quiet", "--cached", "memory/memories.db", "secrets/key")
    room.git("add", "--all")
    staged = room.git("diff", "--cached", "--name-only", "--diff-filter=A")
    assert staged == "", "a person's own `git add` leaves the private files out, too"


def test_nothing_is_committed_by_default(tmp_path: Path) -> None:
    room = Room(tmp_path, GitConfig())
    room.pass_s(30)
    assert (room.begun, (room.workspace / ".git").exists()) == ([], False)
    room.duty.reload(Config(git=COMMITTING))
    room.pass_s(7)
    assert room.count() == 1
    room.duty.reload(Config(git=GitConfig(enabled=False, auto_commit=True)))
    (room.workspace / "AGENTS.md").write_text("Changed.\n")
    room.pass_s(30)
    assert room.count() == 1


def test_what_a_person_has_staged_stays_staged(room: Room) -> None:
    room.git("init", "--quiet")
    (room.workspace / "tool.py").write_text("print()\n")
    room.git("add", "tool.py")
    room.pass_s(7)
    assert room.committed() == {"AGENTS.md"}
    assert room.git("diff", "--cached", "--name-only") == "tool.py"


def test_no_hook_and_no_filter_of_the_environment_runs(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    room.git("init", "--quiet")
    for name in ("pre-commit", "commit-msg", "post-commit", "prepare-commit-msg"):
        hook = room.workspace / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {room.workspace}/{name}.ran\nexit 1\n")
        hook.chmod(0o755)
    room.git("config", "commit.gpgSign", "true")
    room.git("config", "gpg.program", "/bin/false")
    room.git("config", "core.fsmonitor", f"touch {room.workspace}/fsmonitor.ran")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Eve")
    room.pass_s(7)
    monkeypatch.undo()
    assert list(room.workspace.glob("*.ran")) == []
    assert room.git("-c", "core.fsmonitor=false", "log", "-1", "--format=%an") == "Signet"


def test_a_workspace_inside_another_repository_is_left_alone(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.git("init", "--quiet", directory=tmp_path)
    room.pass_s(300)
    (reason,) = room.reasons()
    assert "inside the repository" in reason
    assert str(tmp_path) in reason
    assert 3 <= len(room.begun) <= 7
    assert room.git("status", "--porcelain", directory=tmp_path) == "?? workspace/"
    assert EXCLUDE_BEGIN not in (tmp_path / ".git" / "info" / "exclude").read_text()
    room.git("init", "--quiet")
    room.pass_s(301)
    assert room.committed() == {"AGENTS.md"}


def test_a_commit_waits_for_the_end_of_other_work(room: Room) -> None:
    room.git("init", "--quiet")
    (room.workspace / ".git" / "index.lock").touch()
    room.pass_s(40)
    (reason,) = room.reasons()
    assert reason.startswith("index.lock exists")
    (room.workspace / ".git" / "index.lock").unlink()
    room.pass_s(60)
    assert room.count() == 1

    (room.workspace / "AGENTS.md").write_text("Detached.\n")
    room.git("checkout", "--quiet", "--detach")
    room.pass_s(10)
    assert "detached HEAD" in room.reasons()[-1]
    room.git("checkout", "--quiet", "main")
    room.pass_s(60)
    assert room.count() == 2

    (room.workspace / ".git" / "MERGE_HEAD").write_text(room.git("rev-parse", "HEAD") + "\n")
    (room.workspace / "AGENTS.md").write_text("In a merge.\n")
    room.pass_s(10)
    assert (room.count(), room.reasons()[-1]) == (2, "a merge is in progress")
    assert room.ask("status").problem == "a merge is in progress"
    (room.workspace / ".git" / "MERGE_HEAD").unlink()
    room.pass_s(60)
    assert (room.count(), len(room.reasons())) == (3, 3)
    assert room.ask("status").problem is None


def test_commits_are_exchanged_on_request_only_forward_and_without_private_files(tmp_path: Path) -> None:
    room = Room(tmp_path)
    assert (room.ask("push").success, room.ask("pull").message) == (False, "Not a git repository")
    room.git("init", "--quiet")
    room.pass_s(7)
    assert room.ask("push").message == "the repository has no remote origin"
    remote, other = tmp_path / "remote.git", tmp_path / "other"
    room.git("init", "--quiet", "--bare", str(remote), directory=tmp_path)
    room.git("remote", "add", "origin", str(remote))
    room.pass_s(60)
    assert room.git("--git-dir", str(remote), "branch") == "", "nothing is pushed without a request"
    assert room.ask("push").success
    room.git("clone", "--quiet", str(remote), str(other), directory=tmp_path)

    def from_elsewhere(name: str) -> None:
        (other / name).parent.mkdir(exist_ok=True)
        (other / name).write_text("From elsewhere.\n")
        room.git("add", "--force", name, directory=other)
        room.git("commit", "--quiet", "-m", name, directory=other)
        room.git("push", "--quiet", "origin", "HEAD", directory=other)

    from_elsewhere("USER.md")
    done = room.ask("sync")
    assert done.success
    assert (room.workspace / "USER.md").read_text() == "From elsewhere.\n"
    assert (done.state.unpushed_commits, done.state.unpulled_commits, done.state.has_credentials) == (0, 0, True)
    assert done.last_exchange is not None
    assert done.last_exchange.action == "sync"
    for name in ("memory/memories.db", "agent.yaml"):
        from_elsewhere(name)
        refused = room.ask("pull")
        assert (refused.success, name in refused.message) == (False, True)
    assert (room.workspace / "memory" / "memories.db").read_text() == "private\n"
    room.git("add", "--force", "secrets/key")
    room.git("commit", "--quiet", "-m", "A mistake")
    pushed = room.ask("push")
    assert (pushed.success, "secrets/key" in pushed.message) == (False, True)
    room.git("reset", "--quiet", "--hard", "HEAD~1")
    (room.workspace / "AGENTS.md").write_text("Diverged.\n")
    room.pass_s(7)
    assert not room.ask("push").success
    assert "From elsewhere." not in room.git("--git-dir", str(remote), "show", "HEAD:AGENTS.md")


def test_commits_are_exchanged_by_themselves_only_if_configured(tmp_path: Path) -> None:
    room = Room(tmp_path, msgspec.structs.replace(COMMITTING, auto_sync=True, sync_interval=60))
    remote = tmp_path / "remote.git"
    room.git("init", "--quiet", "--bare", str(remote), directory=tmp_path)
    room.git("init", "--quiet")
    room.git("remote", "add", "origin", str(remote))
    room.pass_s(130)
    assert 2 <= room.begun.count("sync") <= 3
    assert room.git("--git-dir", str(remote), "show", "HEAD:AGENTS.md") == "Run the tests."


def test_a_machine_without_git_is_told_so(room: Room, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    room.pass_s(30)
    assert room.reasons() == ["git is not installed"]
    assert room.ask("status").problem == "git is not installed"


def test_credentials_of_a_remote_are_not_shown(room: Room) -> None:
    room.git("init", "--quiet")
    room.git("remote", "add", "origin", "https://ada:hunter22@localhost:1/x.git")
    room.pass_s(7)
    state = room.ask("status").state
    assert (state.remote, state.has_credentials) == ("https://localhost:1/x.git", True)
    failed = room.ask("push")
    assert not failed.success
    assert "hunter22" not in repr(failed)
