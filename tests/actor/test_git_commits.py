"""The periodic duty of retention that commits the Markdown of the workspace, with a real git.

Source: architecture.txt "How It Works" (5 s debounced git commit); docs/guides/identity.md "Former versions with git".
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import structlog

from signet_actors.config.git_schema import GitConfig
from signet_actors.config.schema import Config
from signet_actors.domain.workspace_git import EXCLUDE_BEGIN, GitAction
from signet_actors.protocol.retention import GitDone
from signet_actors.retention.periodic.git_commits import GitCommits
from signet_actors.retention.work_process import WorkProcess
from signet_actors.retention.workspace_git import GitProblem, Repository, WorkspaceGit, perform

COMMITTING = GitConfig(auto_commit=True)


class HandClock:
    def __init__(self) -> None:
        self.ns = 1_000_000_000

    def monotonic_ns(self) -> int:
        return self.ns

    def wall_ms(self) -> int:
        return self.ns // 1_000_000


class CommitHarness:
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
def harness(tmp_path: Path) -> CommitHarness:
    return CommitHarness(tmp_path)


def test_changes_are_committed_five_seconds_after_the_last_one(harness: CommitHarness) -> None:
    harness.pass_s(5)
    assert harness.begun == []
    harness.pass_s(2)
    assert harness.committed() == {"AGENTS.md"}
    for number in range(8):
        (harness.workspace / "AGENTS.md").write_text(f"Version {number} of the rules.\n")
        harness.pass_s(1)
    assert harness.count() == 1, "it is still being changed"
    harness.pass_s(5)
    assert harness.count() == 2
    assert harness.git("show", "HEAD:AGENTS.md") == "Version 7 of the rules."
    assert (
        harness.git("log", "-1", "--format=%an <%ae>|%cn <%ce>")
        == "Signet <signet@localhost>|Signet <signet@localhost>"
    )
    assert harness.git("log", "-1", "--format=%s").startswith("Auto-commit 20")
    harness.pass_s(100)
    assert harness.begun == ["commit", "commit"], "no process is begun while nothing changes"


def test_markdown_anywhere_is_committed_and_nothing_private_ever(harness: CommitHarness) -> None:
    harness.git("init", "--quiet")
    harness.git("add", "--force", "memory/memories.db", "secrets/key")
    harness.git("commit", "--quiet", "-m", "A person's own mistake")
    for name in (
        "agents/bob/SOUL.md",
        "memory/2026-11-24-login.md",
        "skills/a/SKILL.md",
        "secrets/note.md",
        "a'b ü.md",
    ):
        (harness.workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (harness.workspace / name).write_text("Text.\n")
    (harness.workspace / "memory/memories.db").write_text("changed\n")
    (harness.workspace / "memory/MEMORY.backup-20261124T060000000Z.md").write_text("Former.\n")
    harness.pass_s(7)
    changed = set(harness.git("diff", "-z", "--name-only", "HEAD~1", "HEAD").strip("\0").split("\0"))
    expected = {"AGENTS.md", "agents/bob/SOUL.md", "memory/2026-11-24-login.md", "skills/a/SKILL.md", "a'b ü.md"}
    assert changed == expected
    (harness.workspace / "agents/bob/SOUL.md").unlink()
    harness.pass_s(7)
    assert "agents/bob/SOUL.md" not in harness.committed()
    harness.git("rm", "--quiet", "--cached", "memory/memories.db", "secrets/key")
    harness.git("add", "--all")
    staged = harness.git("diff", "--cached", "--name-only", "--diff-filter=A")
    assert staged == "", "a person's own `git add` leaves the private files out, too"


def test_nothing_is_committed_by_default(tmp_path: Path) -> None:
    harness = CommitHarness(tmp_path, GitConfig())
    harness.pass_s(30)
    assert (harness.begun, (harness.workspace / ".git").exists()) == ([], False)
    harness.duty.reload(Config(git=COMMITTING))
    harness.pass_s(7)
    assert harness.count() == 1
    harness.duty.reload(Config(git=GitConfig(enabled=False, auto_commit=True)))
    (harness.workspace / "AGENTS.md").write_text("Changed.\n")
    harness.pass_s(30)
    assert harness.count() == 1


def test_a_commit_of_many_files_ends_and_the_duty_goes_on(harness: CommitHarness) -> None:
    (harness.workspace / "notes").mkdir()
    for number in range(1100):
        (harness.workspace / "notes" / f"{'long-name-' * 18}{number}.md").touch()
    harness.pass_s(7)
    assert len(harness.committed()) == 1101
    assert {"level": "info", "event": "workspace_committed", "files": 1101} in harness.logged
    assert harness.ask("status").state.uncommitted_changes == 0


def test_a_result_that_is_larger_than_the_pipe_is_read(tmp_path: Path) -> None:
    text = "long " * 100_000
    (tmp_path / "result.json").write_bytes(msgspec.json.encode(text))
    process = WorkProcess("json.tool", [str(tmp_path / "result.json")], str, lambda reason: reason)
    result, deadline = process.poll(), time.monotonic() + 30
    while result is None and time.monotonic() < deadline:
        time.sleep(0.01)
        result = process.poll()
    process.stop()
    assert result == text


@pytest.mark.parametrize("config", [GitConfig(), GitConfig(enabled=False, auto_commit=True)])
def test_a_commit_that_fails_after_it_was_switched_off_is_not_tried_again(
    harness: CommitHarness, config: GitConfig
) -> None:
    harness.git("init", "--quiet")
    lock = harness.workspace / ".git" / "index.lock"
    lock.touch()
    harness.duty.step()
    harness.clock.ns += 6_000_000_000
    harness.duty.step()
    assert (harness.begun, harness.duty.running) == (["commit"], True)
    harness.duty.reload(Config(git=config))
    harness.pass_s(1)
    assert len(harness.reasons()) == 1
    lock.unlink()
    harness.pass_s(400)
    assert harness.begun == ["commit"]
    assert harness.ask("status").problem is None


def test_what_a_person_has_staged_stays_staged(harness: CommitHarness) -> None:
    harness.git("init", "--quiet")
    (harness.workspace / "tool.py").write_text("print()\n")
    harness.git("add", "tool.py")
    harness.pass_s(7)
    assert harness.committed() == {"AGENTS.md"}
    assert harness.git("diff", "--cached", "--name-only") == "tool.py"


def test_no_hook_and_no_filter_of_the_environment_runs(harness: CommitHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    harness.git("init", "--quiet")
    for name in ("pre-commit", "commit-msg", "post-commit", "prepare-commit-msg"):
        hook = harness.workspace / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {harness.workspace}/{name}.ran\nexit 1\n")
        hook.chmod(0o755)
    harness.git("config", "commit.gpgSign", "true")
    harness.git("config", "gpg.program", "/bin/false")
    harness.git("config", "core.fsmonitor", f"touch {harness.workspace}/fsmonitor.ran")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Eve")
    harness.pass_s(7)
    monkeypatch.undo()
    assert list(harness.workspace.glob("*.ran")) == []
    assert harness.git("-c", "core.fsmonitor=false", "log", "-1", "--format=%an") == "Signet"


def test_a_workspace_inside_another_repository_is_left_alone(tmp_path: Path) -> None:
    harness = CommitHarness(tmp_path)
    harness.git("init", "--quiet", directory=tmp_path)
    harness.pass_s(300)
    (reason,) = harness.reasons()
    assert "inside the repository" in reason
    assert str(tmp_path) in reason
    assert 3 <= len(harness.begun) <= 7
    assert harness.git("status", "--porcelain", directory=tmp_path) == "?? workspace/"
    assert EXCLUDE_BEGIN not in (tmp_path / ".git" / "info" / "exclude").read_text()
    harness.git("init", "--quiet")
    harness.pass_s(301)
    assert harness.committed() == {"AGENTS.md"}


def test_a_commit_waits_for_the_end_of_other_work(harness: CommitHarness) -> None:
    harness.git("init", "--quiet")
    (harness.workspace / ".git" / "index.lock").touch()
    harness.pass_s(40)
    (reason,) = harness.reasons()
    assert reason.startswith("index.lock exists")
    (harness.workspace / ".git" / "index.lock").unlink()
    harness.pass_s(60)
    assert harness.count() == 1

    (harness.workspace / "AGENTS.md").write_text("Detached.\n")
    harness.git("checkout", "--quiet", "--detach")
    harness.pass_s(10)
    assert "detached HEAD" in harness.reasons()[-1]
    harness.git("checkout", "--quiet", "main")
    harness.pass_s(60)
    assert harness.count() == 2

    (harness.workspace / ".git" / "MERGE_HEAD").write_text(harness.git("rev-parse", "HEAD") + "\n")
    (harness.workspace / "AGENTS.md").write_text("In a merge.\n")
    harness.pass_s(10)
    assert (harness.count(), harness.reasons()[-1]) == (2, "a merge is in progress")
    assert harness.ask("status").problem == "a merge is in progress"
    (harness.workspace / ".git" / "MERGE_HEAD").unlink()
    harness.pass_s(60)
    assert (harness.count(), len(harness.reasons())) == (3, 3)
    assert harness.ask("status").problem is None


def test_commits_are_exchanged_on_request_only_forward_and_without_private_files(tmp_path: Path) -> None:
    harness = CommitHarness(tmp_path)
    assert (harness.ask("push").success, harness.ask("pull").message) == (False, "Not a git repository")
    harness.git("init", "--quiet")
    harness.pass_s(7)
    assert harness.ask("push").message == "the repository has no remote origin"
    remote, other = tmp_path / "remote.git", tmp_path / "other"
    harness.git("init", "--quiet", "--bare", str(remote), directory=tmp_path)
    harness.git("remote", "add", "origin", str(remote))
    harness.pass_s(60)
    assert harness.git("--git-dir", str(remote), "branch") == "", "nothing is pushed without a request"
    assert harness.ask("push").success
    harness.git("clone", "--quiet", str(remote), str(other), directory=tmp_path)

    def from_elsewhere(name: str) -> None:
        (other / name).parent.mkdir(exist_ok=True)
        (other / name).write_text("From elsewhere.\n")
        harness.git("add", "--force", name, directory=other)
        harness.git("commit", "--quiet", "-m", name, directory=other)
        harness.git("push", "--quiet", "origin", "HEAD", directory=other)

    from_elsewhere("USER.md")
    done = harness.ask("sync")
    assert done.success
    assert (harness.workspace / "USER.md").read_text() == "From elsewhere.\n"
    assert (done.state.unpushed_commits, done.state.unpulled_commits, done.state.has_credentials) == (0, 0, True)
    assert done.last_exchange is not None
    assert done.last_exchange.action == "sync"
    for name in ("memory/memories.db", "agent.yaml"):
        from_elsewhere(name)
        refused = harness.ask("pull")
        assert (refused.success, name in refused.message) == (False, True)
    assert (harness.workspace / "memory" / "memories.db").read_text() == "private\n"
    harness.git("add", "--force", "secrets/key")
    harness.git("commit", "--quiet", "-m", "A mistake")
    pushed = harness.ask("push")
    assert (pushed.success, "secrets/key" in pushed.message) == (False, True)
    harness.git("reset", "--quiet", "--hard", "HEAD~1")
    (harness.workspace / "AGENTS.md").write_text("Diverged.\n")
    harness.pass_s(7)
    assert not harness.ask("push").success
    assert "From elsewhere." not in harness.git("--git-dir", str(remote), "show", "HEAD:AGENTS.md")


@pytest.mark.parametrize("is_first_push", [True, False])
def test_a_private_file_of_the_history_is_not_pushed(tmp_path: Path, is_first_push: bool) -> None:
    harness = CommitHarness(tmp_path)
    harness.git("init", "--quiet")
    harness.git("config", "log.showRoot", "false")
    remote = tmp_path / "remote.git"
    harness.git("init", "--quiet", "--bare", str(remote), directory=tmp_path)
    harness.git("remote", "add", "origin", str(remote))
    if not is_first_push:
        harness.pass_s(7)
        assert harness.ask("push").success
    harness.git("add", "--force", "secrets/key")
    harness.git("commit", "--quiet", "-m", "A mistake")
    mistake = harness.git("rev-parse", "HEAD")
    harness.git("rm", "--quiet", "--cached", "secrets/key")
    harness.git("commit", "--quiet", "--allow-empty", "-m", "Taken out of the tree only")
    harness.pass_s(7)
    refused = harness.ask("push")
    assert (refused.success, "secrets/key" in refused.message) == (False, True)
    assert "rewrite the history" in refused.message
    assert mistake not in harness.git("--git-dir", str(remote), "rev-list", "--all")
    if is_first_push:
        harness.git("update-ref", "-d", "HEAD")
    else:
        harness.git("reset", "--quiet", "--soft", harness.git("merge-base", "HEAD", "origin/main"))
    harness.git("rm", "--quiet", "--cached", "--ignore-unmatch", "secrets/key")
    harness.git("commit", "--quiet", "--allow-empty", "-m", "The same without the key")
    pushed = harness.ask("push")
    assert pushed.success, pushed.message
    assert mistake not in harness.git("--git-dir", str(remote), "rev-list", "--all")


def test_a_private_file_of_a_merge_is_not_pushed_and_one_that_the_remote_has_can_be_taken_out(tmp_path: Path) -> None:
    harness = CommitHarness(tmp_path)
    harness.git("init", "--quiet")
    harness.pass_s(7)
    remote = tmp_path / "remote.git"
    harness.git("init", "--quiet", "--bare", str(remote), directory=tmp_path)
    harness.git("remote", "add", "origin", str(remote))
    assert harness.ask("push").success
    before = harness.git("rev-parse", "HEAD")
    harness.git("commit", "--quiet", "--allow-empty", "-m", "Main")
    harness.git("checkout", "--quiet", "-b", "side", before)
    harness.git("commit", "--quiet", "--allow-empty", "-m", "Side")
    harness.git("checkout", "--quiet", "main")
    harness.git("merge", "--quiet", "--no-ff", "--no-commit", "side")
    harness.git("add", "--force", "secrets/key")
    harness.git("commit", "--quiet", "-m", "A merge with a mistake")
    harness.git("rm", "--quiet", "--cached", "secrets/key")
    harness.git("commit", "--quiet", "-m", "Taken out of the tree only")
    refused = harness.ask("push")
    assert (refused.success, "secrets/key is in commits" in refused.message) == (False, True)

    harness.git("reset", "--quiet", "--soft", before)
    harness.git("add", "--force", "secrets/key")
    harness.git("commit", "--quiet", "-m", "A mistake that a person pushes")
    harness.git("push", "--quiet", "origin", "main")
    assert "`git rm --cached` takes it out" in harness.ask("push").message
    harness.git("rm", "--quiet", "--cached", "secrets/key")
    harness.git("commit", "--quiet", "-m", "Taken out")
    assert harness.ask("push").success


def test_commits_are_exchanged_by_themselves_only_if_configured(tmp_path: Path) -> None:
    harness = CommitHarness(tmp_path, msgspec.structs.replace(COMMITTING, auto_sync=True, sync_interval=60))
    remote = tmp_path / "remote.git"
    harness.git("init", "--quiet", "--bare", str(remote), directory=tmp_path)
    harness.git("init", "--quiet")
    harness.git("remote", "add", "origin", str(remote))
    harness.pass_s(130)
    assert 2 <= harness.begun.count("sync") <= 3
    assert harness.git("--git-dir", str(remote), "show", "HEAD:AGENTS.md") == "Run the tests."


def test_a_status_during_the_first_exchange_is_that_of_the_repository(tmp_path: Path) -> None:
    harness = CommitHarness(tmp_path, GitConfig(auto_sync=True))
    harness.git("init", "--quiet")
    harness.duty.step()
    assert (harness.begun, harness.duty.running) == (["sync"], True)
    assert harness.ask("status").state.is_repo
    assert harness.begun == ["sync", "status"]
    harness.clock.ns += 300_000_000_000
    harness.duty.step()
    assert (harness.begun[2:], harness.duty.running) == (["sync"], True)
    answers: list[GitDone] = []
    harness.duty.request("status", answers.append)
    assert [answer.state.is_repo for answer in answers] == [True], "it is known, so it is not waited for"
    harness.pass_s(1)
    assert len(harness.begun) == 3


def test_a_missing_git_is_reported(harness: CommitHarness, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    harness.pass_s(30)
    assert harness.reasons() == ["git is not installed"]
    assert harness.ask("status").problem == "git is not installed"


def test_credentials_of_a_remote_are_not_shown(harness: CommitHarness) -> None:
    harness.git("init", "--quiet")
    harness.git("remote", "add", "origin", "https://ada:hunter22@localhost:1/x.git")
    harness.pass_s(7)
    state = harness.ask("status").state
    assert (state.remote, state.has_credentials) == ("https://localhost:1/x.git", True)
    failed = harness.ask("push")
    assert not failed.success
    assert "hunter22" not in repr(failed)


class Exchange:
    """A workspace with a remote, and another machine that pushes to it."""

    def __init__(self, root: Path) -> None:
        root.mkdir(exist_ok=True)
        self.here = CommitHarness(root)
        self.remote, self.other = root / "remote.git", root / "other"
        self.here.git("init", "--quiet")
        self.here.git("init", "--quiet", "--bare", str(self.remote), directory=root)
        self.here.git("remote", "add", "origin", str(self.remote))
        self.here.pass_s(7)
        assert self.here.ask("push").success
        self.here.git("clone", "--quiet", str(self.remote), str(self.other), directory=root)

    def push(self, *index_lines: str) -> None:
        """Commit and push entries of the index (``git update-index --index-info``), undoing a refused commit before."""
        self.here.git("fetch", "--quiet", "origin", directory=self.other)
        base = self.here.git("rev-parse", "HEAD")
        self.here.git("reset", "--quiet", "--hard", base, directory=self.other)
        subprocess.run(
            ["git", "update-index", "--add", "--index-info"],
            cwd=self.other,
            input="".join(f"{line}\n" for line in index_lines).encode(),
            check=True,
        )
        self.here.git("commit", "--quiet", "-m", "from elsewhere", directory=self.other)
        self.here.git("push", "--quiet", "--force", "origin", "HEAD", directory=self.other)

    def blob(self, text: str) -> str:
        done = subprocess.run(
            ["git", "hash-object", "-w", "--stdin"],
            cwd=self.other,
            input=text.encode(),
            capture_output=True,
            check=True,
        )
        return done.stdout.decode().strip()


def test_a_pull_brings_no_link_and_no_name_that_means_a_private_file(tmp_path: Path) -> None:
    exchange = Exchange(tmp_path)
    here, text = exchange.here, exchange.blob("From elsewhere.\n")
    repository = Repository(here.workspace, author="Ada <ada@example.com>", remote="origin", branch="")
    commit = here.git("rev-parse", "HEAD")
    key = exchange.blob(str(tmp_path / "key"))
    for entry in (
        *(
            f"120000 {key}\t{name}"
            for name in ("AGENTS.md", "USER.md", "agents/bob/SOUL.md", "notes", "a/b.md", "agents")
        ),
        *(f"160000 {commit}\t{name}" for name in ("skills/x", "agents/bob", "USER.md", "memory")),
        *(
            f"100644 {text}\t{name}"
            for name in (".Daemon/token", "Memory/spool/x.json", "MEMORY/memories.db", "x/.Env")
        ),
        *(f"100644 {text}\t{name}" for name in ("Agent.yaml", "AGENT.YAML", "Secrets/a", "\u017fecrets/a", "a.SQLITE")),
        *(
            f"100755 {text}\t{name}"
            for name in (".dae\u200bmon/x", "memory/x.json", ".secrets/a.md", "agent\u00ad.yaml")
        ),
    ):
        exchange.push(entry)
        with pytest.raises(GitProblem, match="not pull"):
            repository.pull()
        assert here.committed() == {"AGENTS.md"}, entry
        assert (here.workspace / "AGENTS.md").read_text() == "Run the tests.\n"
    controls = ("USER.md", "agents/bob/SOUL.md", "memory/2026-11-24-login.md", "notes/x.txt", "Memories.md", "bin/tool")
    exchange.push(*(f"{'100755' if name == 'bin/tool' else '100644'} {text}\t{name}" for name in controls))
    assert here.ask("pull").success
    assert here.committed() == {"AGENTS.md", *controls}


def test_a_first_pull_brings_no_link_either(tmp_path: Path) -> None:
    exchange = Exchange(tmp_path)
    exchange.push(f"120000 {exchange.blob('/etc/hostname')}\tUSER.md")
    empty = CommitHarness(tmp_path / "second", GitConfig())
    empty.git("init", "--quiet")
    empty.git("remote", "add", "origin", str(exchange.remote))
    (empty.workspace / "AGENTS.md").unlink()
    refused = empty.ask("pull")
    assert (refused.success, "USER.md of the remote is a symbolic link" in refused.message) == (False, True)
    exchange.push(f"100644 {exchange.blob('Ada.')}\tUSER.md")
    assert empty.ask("pull").success
    assert (empty.workspace / "USER.md").read_text() == "Ada."


def test_a_link_of_the_workspace_is_not_committed(harness: CommitHarness) -> None:
    (harness.workspace / "USER.md").symlink_to(harness.workspace / "secrets" / "key")
    (harness.workspace / "notes.md").symlink_to("AGENTS.md")
    harness.pass_s(7)
    assert harness.committed() == {"AGENTS.md"}


def test_the_configuration_is_committed_without_secrets_and_pulled_like_over_http(tmp_path: Path) -> None:
    exchange = Exchange(tmp_path)
    here, config = exchange.here, exchange.here.workspace / "agent.yaml"
    repository = Repository(here.workspace, author="Ada <ada@example.com>", remote="origin", branch="")
    config.write_text("git: {autoCommit: true}\n")
    here.pass_s(7)
    assert here.committed() == {"AGENTS.md"}, (
        "there is a remote, and nobody has decided to send the configuration there"
    )
    here.git("add", "agent.yaml")
    here.pass_s(7)
    assert here.committed() == {"AGENTS.md"}, "what was added by hand waits for the next change"
    config.write_text("# mine\ngit: {autoCommit: true}\n")
    here.pass_s(7)
    assert here.committed() == {"AGENTS.md", "agent.yaml"}
    for secret in (
        "apiKey: sk-ant-api03-" + "a1B2c3D4" * 12,
        "endpoint: https://ada:Tr0ub4dor3x@models.example.org/v1",
    ):
        config.write_text(f"memory:\n  pipelineV2:\n    extraction:\n      {secret}\n")
        here.pass_s(7)
        assert "mine" in here.git("show", "HEAD:agent.yaml")
        assert "contains a secret" in (here.ask("status").problem or "")
    config.write_text("git: {autoCommit: true}\n")
    here.pass_s(7)
    assert here.ask("status").problem is None
    assert here.ask("push").success
    for text in (
        "git: {autoCommit: true, autoSync: true}",
        "embedding: {endpoint: 'http://elsewhere.example.org/v1'}",
        "redaction: {memories: false}",
        "gateway: {allowedHosts: [evil.example.org]}",
        "[not a mapping",
        "gateway: 7",
    ):
        exchange.push(f"100644 {exchange.blob(text)}\tagent.yaml")
        with pytest.raises(GitProblem, match=r"agent\.yaml"):
            repository.pull()
        assert config.read_text() == "git: {autoCommit: true}\n"
    exchange.push(f"0 {'0' * 40}\tagent.yaml")
    with pytest.raises(GitProblem, match=r"agent\.yaml"):
        repository.pull()
    exchange.push(f"100644 {exchange.blob('search: {alpha: 0.6}')}\tagent.yaml")
    pulled = here.ask("pull")
    assert (pulled.success, pulled.message) == (True, "Pulled main from origin")
    assert config.read_text() == "search: {alpha: 0.6}"


RECODED = 'description: "\\ngateway:\\n  allowedHosts: [evil.example]\\nzz: "\n'.replace("\\n", "\n")
"""One quoted text as it is checked; in UTF-7 its quotation marks are letters, and its lines are settings."""


@pytest.mark.parametrize("when", ["with the file", "before the file"])
@pytest.mark.parametrize(
    "attributes",
    [
        "agent.yaml working-tree-encoding=UTF-7",
        "* working-tree-encoding=UTF-7",
        "agent.yaml working-tree-encoding=UTF-16",
    ],
)
def test_the_configuration_is_written_as_it_was_checked_whatever_attributes_come_with_it(
    tmp_path: Path, attributes: str, when: str
) -> None:
    exchange = Exchange(tmp_path)
    config = exchange.here.workspace / "agent.yaml"
    repository = Repository(exchange.here.workspace, author="Ada <ada@example.com>", remote="origin", branch="")
    hostile = f"100644 {exchange.blob(attributes + chr(10))}\t.gitattributes"
    settings = f"100644 {exchange.blob(RECODED)}\tagent.yaml"
    if when == "before the file":
        exchange.push(hostile)
        repository.pull()
        exchange.push(settings)
    else:
        exchange.push(hostile, settings)
    repository.pull()
    assert config.read_text() == RECODED


def test_no_filter_of_the_configuration_runs(harness: CommitHarness, tmp_path: Path) -> None:
    harness.git("init", "--quiet")
    ran = tmp_path / "ran"
    for name, key in (("a", "clean"), ("b", "process"), ("c.d=e", "smudge"), ("f g", "clean")):
        harness.git("config", f"filter.{name}.{key}", f"touch {ran}; cat")
    attributes = harness.workspace / ".git" / "info" / "attributes"
    attributes.write_text("USER.md filter=a\nSOUL.md filter=b\n")
    harness.pass_s(7)
    assert harness.committed() == {"AGENTS.md"}, "files without a filter are committed"
    (harness.workspace / "USER.md").write_text("Encrypt this.\n")
    harness.pass_s(20)
    assert "USER.md: clean filter 'a' failed" in harness.reasons()[-1]
    assert harness.committed() == {"AGENTS.md"}, "what a filter should change is not committed as it is"
    attributes.write_text("* filter=c.d=e\n")
    harness.git("config", "--unset", "filter.c.d=e.smudge")
    harness.ask("status")
    assert not ran.exists()
    attributes.unlink()
    harness.pass_s(300)
    assert harness.committed() == {"AGENTS.md", "USER.md"}
    assert not ran.exists()


PROMISED: Final = [("remote.x.uploadpack", "{run}"), ("remote.x.url", "{remote}")]
PROGRAMS: Final[list[tuple[str, str, list[tuple[str, str]]]]] = [
    ("by ssh", "ssh://nowhere.invalid/x", [("core.sshCommand", "{run}")]),
    ("by ssh, without a scheme", "nowhere.invalid:x", [("core.sshCommand", "{run}")]),
    ("a file that is included", "ssh://nowhere.invalid/x", [("include.path", "{included}")]),
    ("a file that is included here", "ssh://nowhere.invalid/x", [("includeIf.gitdir:**.path", "{included}")]),
    ("of the work tree", "ssh://nowhere.invalid/x", [("extensions.worktreeConfig", "true")]),
    ("uploadpack", "{remote}", [("remote.origin.uploadpack", "{run}")]),
    ("receivepack", "{remote}", [("remote.origin.receivepack", "{run}")]),
    ("file uploadpack", "file://{remote}", [("remote.origin.uploadpack", "{run}")]),
    ("gitProxy", "git://127.0.0.1:9/x", [("core.gitProxy", "{run}")]),
    ("alternates", "{remote}", [("core.alternateRefsCommand", "{run}")]),
    ("helper", "{http}/x", [("credential.helper", "{run}")]),
    ("helper of a shell", "{http}/x", [("credential.helper", "!{run}")]),
    ("helper for an address", "{http}/x", [("credential.{http}.helper", "{run}")]),
    ("helper without a value", "{http}/x", [("credential.helper", ""), ("credential.helper", "{run}")]),
    ("askPass", "{http}/x", [("core.askPass", "{run}")]),
    ("ext", "ext::{run}", [("protocol.ext.allow", "always")]),
    ("ext for all", "ext::{run}", [("protocol.allow", "always")]),
    ("insteadOf", "https://host/x", [("url.ext::{run} .insteadOf", "https://host/"), ("protocol.ext.allow", "always")]),
    ("pushInsteadOf", "{remote}", [("url.ext::{run} .pushInsteadOf", "/"), ("protocol.ext.allow", "always")]),
    ("vcs", "{run}", [("remote.origin.vcs", "ext"), ("protocol.ext.allow", "always")]),
    ("pushurl", "{remote}", [("remote.origin.pushurl", "ext::{run}"), ("protocol.ext.allow", "always")]),
    ("hooks", "{remote}", [("core.hooksPath", "{hooks}")]),
    ("fsmonitor", "{remote}", [("core.fsmonitor", "{run}")]),
    ("pager", "{remote}", [("core.pager", "{run}"), ("pager.log", "true"), ("core.editor", "{run}")]),
    ("signatures", "{remote}", [("gpg.program", "{run}"), ("commit.gpgSign", "true"), ("push.gpgSign", "if-asked")]),
    ("diff", "{remote}", [("diff.external", "{run}"), ("diff.x.textconv", "{run}"), ("diff.x.command", "{run}")]),
    ("promisor", "{remote}", [("remote.x.promisor", "true"), *PROMISED]),
    ("partial", "{remote}", [("extensions.partialClone", "x"), *PROMISED]),
    ("gc", "{remote}", [("gc.recentObjectsHook", "{run}"), ("gc.auto", "1"), ("maintenance.auto", "true")]),
]
RUN_BY_GIT: Final = {
    *(
        "by ssh",
        "by ssh, without a scheme",
        "a file that is included",
        "a file that is included here",
        "of the work tree",
    ),
    *("uploadpack", "receivepack", "file uploadpack", "gitProxy", "alternates", "helper"),
    *(
        "helper of a shell",
        "helper for an address",
        "helper without a value",
        "askPass",
        "ext",
        "ext for all",
        "insteadOf",
    ),
    *("pushInsteadOf", "vcs", "pushurl", "hooks", "fsmonitor", "promisor", "partial"),
}
"""The cases in which git itself, called in the workspace, runs the program."""


@pytest.fixture
def unauthorized() -> Iterator[str]:
    """The address of a server that asks for a password."""

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_no_program_runs_that_the_configuration_of_the_repository_names(
    tmp_path: Path, unauthorized: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For pull, push and what `git.autoSync` does; a plain git runs most of these programs."""
    monkeypatch.setenv("GIT_TERMINAL_PROMPT", "0")
    run_by_git = set()
    made = Exchange(tmp_path / "made")
    made.push(f"100644 {made.blob('From elsewhere.')}\tUSER.md")
    for number, (name, url, keys) in enumerate(PROGRAMS):
        root = tmp_path / str(number)
        shutil.copytree(tmp_path / "made", root)
        workspace, ran, run, included = (root / each for each in ("workspace", "ran", "run", "included"))
        run.write_text(f"#!/bin/sh\ntouch {ran}\nexit 1\n")
        run.chmod(0o755)
        (root / "hooks").mkdir()
        for hook in ("post-commit", "reference-transaction", "pre-push", "post-merge", "post-checkout"):
            (root / "hooks" / hook).symlink_to(run)
        included.write_text(f"[core]\n\tsshCommand = {run}\n")
        if name == "of the work tree":
            included.rename(workspace / ".git" / "config.worktree")
        if name == "alternates":
            (workspace / ".git" / "objects" / "info" / "alternates").write_text(f"{root}/other/.git/objects\n")
        given = {"run": run, "remote": root / "remote.git", "http": unauthorized, "included": included}
        for key, value in (("remote.origin.url", url), *keys):
            words = [text.format(**given, hooks=root / "hooks") for text in (key, value)]
            made.here.git("config", *(["--add"] if key != "remote.origin.url" else []), *words, directory=workspace)
        if name in ("promisor", "partial"):
            tree = made.here.git("rev-parse", "HEAD^{tree}", directory=workspace)
            (workspace / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
        (workspace / "SOUL.md").write_text("Be brief.\n")
        repository = Repository(workspace, author="Ada <ada@example.com>", remote="origin", branch="")
        actions: tuple[GitAction, ...] = ("status", "pull", "push", "commit", "sync")
        said = [perform(repository, action).message for action in actions]
        assert not ran.exists(), (name, said)
        if url == "{remote}" and name not in ("pushInsteadOf", "pushurl", "promisor", "partial"):
            assert said[1:3] == ["Pulled main from origin", "Pushed main to origin"], name
        for arguments in (["status"], ["fetch", "origin"], ["push", "origin", "HEAD:refs/heads/x"], ["log", "--raw"]):
            with contextlib.suppress(subprocess.CalledProcessError):
                made.here.git(*arguments, directory=workspace)
        if ran.exists():
            run_by_git.add(name)
    assert run_by_git == RUN_BY_GIT


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_the_programs_of_the_users_own_configuration_run(
    tmp_path: Path, unauthorized: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, url in (
        ("core.sshCommand", "ssh://nowhere.invalid/x"),
        ("credential.helper", f"{unauthorized}/x"),
        (f"credential.{unauthorized}.helper", f"{unauthorized}/x"),
    ):
        root = tmp_path / key.replace("/", "-")
        exchange = Exchange(root)
        users, foreign = (
            script(root / name, f'echo "$@" >> {root / name}-ran; exit 1') for name in ("users", "foreign")
        )
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(root / "gitconfig"))
        monkeypatch.setenv("HOME", str(root))
        for scope, run in (("--global", users), ("--local", foreign)):
            exchange.here.git("config", scope, key, str(run))
        (root / "gitconfig").rename(root / ".gitconfig")
        monkeypatch.delenv("GIT_CONFIG_GLOBAL")
        exchange.here.git("remote", "set-url", "origin", url)
        repository = Repository(exchange.here.workspace, author="Ada <ada@example.com>", remote="origin", branch="")
        for action in ("pull", "push"):
            (root / "users-ran").unlink(missing_ok=True)
            assert not perform(repository, action).success  # type: ignore[arg-type]
            assert (root / "users-ran").exists(), (key, action)
        assert not (root / "foreign-ran").exists(), key


def test_a_remote_inside_the_workspace_is_refused(tmp_path: Path) -> None:
    exchange = Exchange(tmp_path / "x")
    here, inside = exchange.here, exchange.here.workspace / "evil.git"
    here.git("clone", "--quiet", "--bare", str(exchange.remote), str(inside))
    script(inside / "hooks" / "pre-receive", f"touch {tmp_path}/ran")
    (tmp_path / "link").symlink_to(inside)
    repository = Repository(here.workspace, author="Ada <ada@example.com>", remote="origin", branch="")
    for url in (
        "evil.git",
        "./evil.git",
        str(inside),
        f"file://{inside}",
        str(tmp_path / "link"),
        "memory/../evil.git",
    ):
        here.git("remote", "set-url", "origin", url)
        for action in ("pull", "push", "sync"):
            assert "is inside the workspace" in perform(repository, action).message, url  # type: ignore[arg-type]
    here.git("remote", "set-url", "origin", str(exchange.remote))
    here.git("config", "remote.origin.pushurl", str(inside))
    assert "is inside the workspace" in perform(repository, "push").message
    here.git("config", "--unset", "remote.origin.pushurl")
    assert perform(repository, "push").success
    assert not (tmp_path / "ran").exists()


def test_no_filter_of_a_repository_inside_the_workspace_runs(harness: CommitHarness, tmp_path: Path) -> None:
    inner = harness.workspace / "inner"
    inner.mkdir()
    harness.git("init", "--quiet")
    harness.git("init", "--quiet", directory=inner)
    (inner / "a.txt").write_text("1\n")
    harness.git("add", ".", directory=inner)
    harness.git("commit", "--quiet", "-m", "1", directory=inner)
    harness.git("add", "inner")
    (inner / ".gitattributes").write_text("* filter=x\n")
    harness.git("config", "filter.x.clean", f"touch {tmp_path}/ran; cat", directory=inner)
    (inner / "a.txt").write_text("2\n")
    harness.pass_s(7)
    assert harness.ask("status").state.is_repo
    assert not (tmp_path / "ran").exists()
    harness.git("status")
    assert (tmp_path / "ran").exists(), "git itself runs it"


@pytest.mark.parametrize("is_killed", [False, True])
def test_an_exchange_ends_with_the_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_killed: bool) -> None:
    exchange = Exchange(tmp_path / "x")
    hangs = script(tmp_path / "home" / "ssh", f"echo $$ > {tmp_path}/pid; trap '' TERM; while :; do sleep 1; done")
    (tmp_path / "home" / ".gitconfig").write_text(f"[core]\n\tsshCommand = {hangs}\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    exchange.here.git("remote", "set-url", "origin", "ssh://nowhere.invalid/x")
    command = (
        "import sys, time; from pathlib import Path; from signet_actors.config.git_schema import GitConfig;"
        "from signet_actors.retention.workspace_git import WorkspaceGit;"
        f"work = WorkspaceGit(Path({str(exchange.here.workspace)!r}), 'pull', GitConfig());"
        "sys.stdin.read(); work.stop()"
    )
    with subprocess.Popen([sys.executable, "-c", command], stdin=subprocess.PIPE) as retention:
        deadline = time.monotonic() + 60
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        started = int((tmp_path / "pid").read_text())
        if is_killed:
            retention.kill()
        else:
            assert retention.stdin is not None
            retention.stdin.close()
        retention.wait(60)
    while Path(f"/proc/{started}").exists() and "Z" not in Path(f"/proc/{started}/stat").read_text().split(")")[-1]:
        assert time.monotonic() < deadline + 60
        time.sleep(0.05)


def test_no_program_is_started_as_a_remote(harness: CommitHarness, tmp_path: Path) -> None:
    harness.git("init", "--quiet")
    harness.pass_s(7)
    harness.git("config", "protocol.ext.allow", "always")
    harness.git("remote", "add", "origin", f"ext::sh -c 'touch {tmp_path}/ran'")
    for action in ("pull", "push"):
        refused = harness.ask(action)  # type: ignore[arg-type]
        assert (refused.success, "not allowed" in refused.message) == (False, True), refused.message
    assert not (tmp_path / "ran").exists()
