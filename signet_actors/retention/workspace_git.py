"""``python -m signet_actors.retention.workspace_git WORKSPACE ACTION``: commit the workspace, or exchange commits.

It is a process of its own because git may wait for a network or a file system. It prints what it did as JSON. Git runs
without hooks, signatures and questions, and nothing of the daemon's environment directs it to another repository.

Source: architecture.txt "How It Works" (5 s debounced git commit); docs/guides/identity.md "Former versions with git".
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from signet_actors.config.git_schema import GitConfig
from signet_actors.config.regular_file import read_regular
from signet_actors.domain import workspace_git as rules
from signet_actors.errors import ConfigError
from signet_actors.retention.work_process import WorkProcess
from signet_actors.runtime.file_draft import replace_file
from signet_actors.runtime.processes.parent_death import die_with_supervisor

LOCAL_S: Final = 30.0
NETWORK_S: Final = 20.0
"""A pull or push takes at most so long for each exchange with the remote."""
_END_S: Final = 3.0
_STOP_S: Final = 0.3
"""The same while the daemon stops, which waits for a second."""
_OPTIONS: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "core.askPass=",
    "commit.gpgSign=false",
    "push.gpgSign=false",
    "push.followTags=false",
    "fetch.recurseSubmodules=false",
    "gc.autoDetach=false",
    "maintenance.autoDetach=false",
    "advice.detachedHead=false",
    "protocol.ext.allow=never",
)
_MAX_CONFIG_BYTES: Final = 1024 * 1024
_LINK_MODES: Final = {"120000": "a symbolic link", "160000": "another repository"}
_SECRET_IN_CONFIG: Final = (
    f"{rules.CONFIG_FILE} is not committed, because it contains a secret; let `apiKeyEnv` name a variable that has it"
)
_UNFINISHED: Final = {
    "MERGE_HEAD": "a merge is in progress",
    "rebase-merge": "a rebase is in progress",
    "rebase-apply": "a rebase is in progress",
    "CHERRY_PICK_HEAD": "a cherry-pick is in progress",
    "REVERT_HEAD": "a revert is in progress",
    "BISECT_LOG": "a bisection is in progress",
}
NO_REPOSITORY: Final = "Not a git repository"
NO_GIT: Final = "git is not installed"


class GitProblem(Exception):
    """Git cannot do it now; the message says why."""


class WorkspaceGit(WorkProcess[rules.GitOutcome]):
    """The process. It ends by itself, because each call of git has a time limit."""

    def __init__(self, workspace: Path, action: rules.GitAction, config: GitConfig) -> None:
        options = ["--author", config.author, "--remote", config.remote, "--branch", config.branch]
        super().__init__(
            "signet_actors.retention.workspace_git",
            [str(workspace), action, *options],
            rules.GitOutcome,
            lambda reason: rules.GitOutcome(success=False, message=reason),
        )


class Repository:
    """The repository whose top level is the workspace. Raises GitProblem."""

    def __init__(self, workspace: Path, *, author: str, remote: str, branch: str) -> None:
        self._workspace = workspace
        self._remote = remote
        self._branch = branch
        name, _, address = author.rpartition(" <")
        self._author = (f"user.name={name}", f"user.email={address.rstrip('>')}")
        self._without_programs: dict[str, str] | None = None

    def find(self) -> bool:
        """Return whether there is a repository. Raises GitProblem if it is not the workspace's own."""
        done = self._run("rev-parse", "--show-toplevel", check=False)
        if done.returncode:
            reason = _last_line(done.stderr)
            if "not a git repository" in reason.lower():
                return False
            raise GitProblem(reason or "git does not open the repository")
        top = os.fsdecode(done.stdout.removesuffix(b"\n"))
        if os.path.realpath(top) != os.path.realpath(self._workspace):
            raise GitProblem(f"the workspace is inside the repository {top}; only one of its own is committed to")
        return True

    def commit(self) -> rules.GitOutcome:
        """Commit what has changed; make the repository if there is none."""
        if not self.find():
            self._run("init", "--quiet", "--template=")
        self._write_block("info/exclude", rules.EXCLUDED)
        reason = self._blocked()
        if reason is not None:
            raise GitProblem(reason)
        paths = self._changed()
        if not paths:
            return rules.GitOutcome(message="Nothing has changed", state=self.state())
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        listed = ["--pathspec-from-file=-", "--pathspec-file-nul"]
        given = b"\0".join(map(os.fsencode, paths))
        self._run("--literal-pathspecs", "add", "--all", *listed, given=given)
        message = ["--cleanup=verbatim", "-m", rules.commit_message([_shown(path) for path in paths], now)]
        self._run(
            *("--literal-pathspecs", "commit", "--quiet", "--no-verify", "--no-gpg-sign", "--only"),
            *message,
            *listed,
            given=given,
            options=self._author,
        )
        return rules.GitOutcome(message=f"{len(paths)} committed", state=self.state(), committed=len(paths))

    def pull(self) -> str:
        """Bring the branch forward to that of the remote, if it only follows; return what was done."""
        branch = self._exchanged_branch(checked_out=True)
        reference = f"refs/heads/{branch}"
        by = "--upload-pack=git-upload-pack"
        if not self._run("ls-remote", by, "--", self._remote, reference, limit_s=NETWORK_S).stdout:
            return f"{self._remote} has no branch {branch} yet"
        self._run("fetch", "--quiet", "--no-tags", by, "--", self._remote, reference, limit_s=NETWORK_S)
        head = self._run("rev-parse", "--verify", "--quiet", "HEAD", check=False)
        if head.returncode:
            nothing = self._text("hash-object", "-t", "tree", "--stdin") or ""
            incoming = self._run("diff-tree", "-r", "--raw", "--no-renames", "-z", nothing, "FETCH_HEAD").stdout
        else:
            if not self._run("merge-base", "--is-ancestor", "FETCH_HEAD", "HEAD", check=False).returncode:
                return "Already up to date"
            incoming = self._run("diff", "--raw", "--no-abbrev", "--no-renames", "-z", "HEAD...FETCH_HEAD").stdout
        entries = _names(incoming)
        for facts, path in zip(entries[::2], entries[1::2], strict=True):
            mode = facts.split(" ")[1]
            if rules.is_private(path) or (rules.comparable(path) == rules.CONFIG_FILE and path != rules.CONFIG_FILE):
                raise GitProblem(f"the remote changes {_shown(path)}, which is not pulled by the daemon")
            if mode in _LINK_MODES:
                raise GitProblem(f"{_shown(path)} of the remote is {_LINK_MODES[mode]}, which the daemon does not pull")
            if path == rules.CONFIG_FILE:
                self._check_config(facts.split(" ")[3])
        self._write_block("info/attributes", rules.ATTRIBUTES)
        self._run("merge", "--quiet", "--ff-only", "--no-overwrite-ignore", "--no-verify-signatures", "FETCH_HEAD")
        return f"Pulled {branch} from {self._remote}"

    def _check_config(self, blob: str) -> None:
        """Raise GitProblem if the incoming agent.yaml is gone or not valid, or changes a protected key."""
        from signet_actors.config.load import load_config  # noqa: PLC0415 - retention itself needs no YAML
        from signet_actors.config.protected_keys import protected_changes  # noqa: PLC0415 - see the previous line

        problem = f"the remote changes {rules.CONFIG_FILE}, which is not pulled by the daemon"
        content = self._run("cat-file", "blob", blob, check=False)
        if content.returncode or len(content.stdout) > _MAX_CONFIG_BYTES:
            raise GitProblem(problem)
        with tempfile.TemporaryDirectory() as scratch:
            (Path(scratch) / rules.CONFIG_FILE).write_bytes(content.stdout)
            try:
                new = load_config(Path(scratch), os.environ).config
                changed = protected_changes(load_config(self._workspace, os.environ).config, new)
            except ConfigError as error:
                raise GitProblem(f"{problem}: {_printable(error.detail)}") from None
        if changed:
            raise GitProblem(
                f"{problem}: it has another {', '.join(changed)}, which only an edit on this machine changes"
            )

    def push(self) -> str:
        """Send the branch to the remote, never by force; return what was done."""
        branch = self._exchanged_branch(checked_out=False)
        reference = f"refs/heads/{branch}"
        path = next(filter(rules.is_private, self._unpushed_names(reference)), None)
        if path is not None:
            raise GitProblem(
                f"{_shown(path)} is in commits that are not pushed yet: rewrite the history without it, because "
                "`git rm --cached` leaves it in them"
            )
        path = next(
            filter(rules.is_private, _names(self._run("ls-tree", "-r", "-z", "--name-only", reference).stdout)), None
        )
        if path is not None:
            raise GitProblem(f"{_shown(path)} is in the repository; `git rm --cached` takes it out of the next commits")
        options = (
            "--quiet",
            "--no-verify",
            "--no-signed",
            "--recurse-submodules=no",
            "--receive-pack=git-receive-pack",
        )
        self._run("push", *options, "--", self._remote, f"{reference}:{reference}", limit_s=NETWORK_S)
        return f"Pushed {branch} to {self._remote}"

    def _unpushed_names(self, reference: str) -> list[str]:
        """Return the names of all files that commits not known at the remote add or change, those of merges, too."""
        shown = ("--format=", "--name-only", "-z", "--root", "-m", "--no-renames", "--diff-filter=d")
        commits = (reference, "--not", f"--remotes={self._remote}", "--")
        return _names(self._run("--no-replace-objects", "log", "--no-show-signature", *shown, *commits).stdout)

    def state(self) -> rules.GitState:
        """Return the state of the repository."""
        if not self.find():
            return rules.GitState()
        branch = self._checked_out()
        address = self._address()
        unpushed, unpulled = self._difference()
        return rules.GitState(
            is_repo=True,
            branch=branch,
            remote=None if address is None else rules.without_credentials(address),
            has_credentials=address is not None and self._has_credentials(address),
            uncommitted_changes=len(self._changed()),
            unpushed_commits=unpushed,
            unpulled_commits=unpulled,
            last_commit=self._last_commit(),
            problem=self._blocked() or (_SECRET_IN_CONFIG if self._config_has_secret() else None),
        )

    def _blocked(self) -> str | None:
        """Return why nothing can be committed at present."""
        for name, reason in _UNFINISHED.items():
            if self._git_path(name).exists():
                return reason
        if self._git_path("index.lock").exists():
            return "index.lock exists: another git is at work, or one was killed and has left it"
        return None if self._checked_out() is not None else "no branch is checked out (detached HEAD)"

    def _changed(self) -> list[str]:
        """Return the files that are to be committed. What is a link here would be one on other machines, too."""
        shown = ("--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all")
        found = self._run("status", *shown).stdout
        return sorted(
            path
            for state, path in ((entry[:2], entry[3:]) for entry in _names(found))
            if rules.is_versioned(path)
            and not (self._workspace / path).is_symlink()
            and (path != rules.CONFIG_FILE or self._commits_config(is_new=state == "??"))
        )

    def _commits_config(self, *, is_new: bool) -> bool:
        """Return whether agent.yaml is committed: where there is a remote, only once a person has added it."""
        return not (is_new and self._address() is not None) and not self._config_has_secret()

    def _config_has_secret(self) -> bool:
        from signet_actors.domain.redaction.scan import Redactor  # noqa: PLC0415 - retention itself redacts nothing

        try:
            text = read_regular(self._workspace / rules.CONFIG_FILE, _MAX_CONFIG_BYTES).decode()
        except FileNotFoundError:
            return False
        except (OSError, ValueError, ConfigError):  # it is not known what is in it
            return True
        return Redactor().clean(text)[0] != text

    def _write_block(self, name: str, block: Sequence[str]) -> None:
        """Keep our block in a file of ``info``, which is not part of any commit and precedes what is."""
        path = self._git_path(name)
        try:
            before = read_regular(path, _MAX_CONFIG_BYTES).decode(errors="surrogateescape") if path.exists() else ""
            after = rules.with_block(before, block)
            if after != before:
                path.parent.mkdir(exist_ok=True)
                replace_file(path, after.encode(errors="surrogateescape"))
        except OSError as error:
            raise GitProblem(f"{name} cannot be written: {error.strerror}") from None
        except ConfigError as error:
            raise GitProblem(f"{name} cannot be read: {error}") from None

    def _exchanged_branch(self, *, checked_out: bool) -> str:
        """Return the branch to pull or push. Raises GitProblem if that is not possible."""
        if not self.find():
            raise GitProblem(NO_REPOSITORY)
        if self._address() is None:
            raise GitProblem(f"the repository has no remote {self._remote}")
        for push in ((), ("--push",)):
            if any(
                map(self._is_inside, (self._text("remote", "get-url", "--all", *push, self._remote) or "").split("\n"))
            ):
                raise GitProblem(f"the remote {self._remote} is inside the workspace, where its hooks may be anybody's")
        present = self._checked_out()
        branch = self._branch or present
        if branch is None:
            raise GitProblem("no branch is checked out (detached HEAD)")
        reason = self._blocked() if checked_out else None
        if checked_out and branch != present:
            reason = f"the branch {branch} is not checked out"
        if reason is not None:
            raise GitProblem(reason)
        return branch

    def _checked_out(self) -> str | None:
        return self._text("symbolic-ref", "--quiet", "--short", "HEAD")

    def _address(self) -> str | None:
        """Return where a push to the configured remote goes."""
        return self._text("remote", "get-url", "--push", "--", self._remote)

    def _is_inside(self, address: str) -> bool:
        """Return whether the address is a path in the workspace."""
        path = address.removeprefix("file://")
        if "://" in path or ":" in path.partition("/")[0]:
            return False
        workspace = os.path.realpath(self._workspace)
        return Path(os.path.realpath(os.path.join(workspace, path))).is_relative_to(workspace)

    def _has_credentials(self, address: str) -> bool:
        """Return whether git needs none for the address, or knows where to find some."""
        if not address.startswith(("http://", "https://")):
            return True
        if rules.without_credentials(address) != address:
            return True
        return bool(self._text("config", "--get-urlmatch", "credential.helper", address))

    def _difference(self) -> tuple[int | None, int | None]:
        """Return how many commits the branch has more than the remote had, and fewer; None if that is not known."""
        branch = self._branch or self._checked_out()
        if branch is None:
            return None, None
        counted = self._text(
            *("rev-list", "--left-right", "--count"), f"refs/heads/{branch}...refs/remotes/{self._remote}/{branch}"
        )
        more, _, fewer = (counted or "").partition("\t")
        return (int(more), int(fewer)) if more and fewer else (None, None)

    def _last_commit(self) -> rules.LastCommit | None:
        fields = (self._text("log", "-1", "--no-show-signature", "--format=%h%n%cI%n%an%n%s") or "").split("\n")
        return rules.LastCommit(*map(_printable, fields)) if len(fields) == 4 else None

    def _git_path(self, name: str) -> Path:
        found = self._run("rev-parse", "--git-path", name).stdout.removesuffix(b"\n")
        return self._workspace / os.fsdecode(found)

    def _text(self, *arguments: str) -> str | None:
        """Return what git prints, None if it fails."""
        done = self._run(*arguments, check=False)
        return None if done.returncode else done.stdout.decode(errors="replace").strip("\n") or None

    def _run(
        self,
        *arguments: str,
        given: bytes = b"",
        check: bool = True,
        limit_s: float = LOCAL_S,
        options: Sequence[str] = (),
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git in the workspace. Raises GitProblem if it fails, unless ``check`` is False, or takes too long."""
        configured = [part for option in (*_OPTIONS, *options) for part in ("-c", option)]
        command = ["git", "--no-pager", *configured, *arguments]
        if self._without_programs is None:
            self._without_programs = {}  # while they are listed, which runs none
            listed = self._run("config", "--show-scope", "-z", "--get-regexp", rules.PROGRAMS, check=False)
            self._without_programs = rules.without_programs(_names(listed.stdout))
            if listed.returncode not in (0, 1) or self._without_programs is None:
                self._without_programs = None
                raise GitProblem(
                    _last_line(listed.stderr) or "a partial clone, which is not used: git may run programs"
                )
        try:
            process = subprocess.Popen(
                command,
                cwd=self._workspace,
                env={**_environment(), **self._without_programs},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # no terminal that a program could ask on
            )
        except FileNotFoundError:
            raise GitProblem(NO_GIT) from None
        except OSError as error:
            raise GitProblem(f"git cannot be started: {error.strerror}") from None
        try:
            output, errors = process.communicate(given, timeout=limit_s)
        except subprocess.TimeoutExpired:
            _end(process)
            raise GitProblem(f"git {_verb(arguments)} took longer than {limit_s:.0f} s") from None
        except SystemExit:  # the daemon stops; a commit completes
            if limit_s == NETWORK_S:
                _end(process, _STOP_S)
            raise
        if check and process.returncode:
            reason = _last_line(errors) or f"exit code {process.returncode}"
            raise GitProblem(f"git {_verb(arguments)}: {reason}")
        return subprocess.CompletedProcess(command, process.returncode, output, errors)


def main(arguments: list[str]) -> int:
    """Do the work and print the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workspace", type=Path)
    parser.add_argument("action")
    for name in ("--author", "--remote", "--branch"):
        parser.add_argument(name, required=True)
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    die_with_supervisor(os.getppid(), signal.SIGTERM)
    repository = Repository(options.workspace, author=options.author, remote=options.remote, branch=options.branch)
    sys.stdout.buffer.write(msgspec.json.encode(perform(repository, options.action)))
    return 0


def perform(repository: Repository, action: rules.GitAction) -> rules.GitOutcome:
    """Do it, and return the outcome with the state after it."""
    success, message = True, ""
    try:
        if action == "commit":
            return repository.commit()
        if action == "pull":
            message = repository.pull()
        elif action == "push":
            message = repository.push()
        elif action == "sync":
            message = f"{repository.pull()}. {repository.push()}"
    except GitProblem as problem:
        success, message = False, str(problem)
    try:
        state = repository.state()
    except GitProblem as problem:
        state = rules.GitState(problem=str(problem))
    return rules.GitOutcome(state=state, success=success, message=message)


def _environment() -> dict[str, str]:
    """Return the environment for git, without variables that name another repository, author or program."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **kept,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS_REQUIRE": "never",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_EDITOR": "true",
        "GCM_INTERACTIVE": "never",
        "LC_ALL": "C",
    }


def _end(process: subprocess.Popen[bytes], wait_s: float = _END_S) -> None:
    """End git and what it has started; at first so that it can remove its lock files."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        until = time.monotonic() + wait_s
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=max(0.0, until - time.monotonic()))
            return


def _names(listed: bytes) -> list[str]:
    """Return the entries of a list that is separated by NUL."""
    return [os.fsdecode(name) for name in listed.split(b"\0") if name]


def _verb(arguments: Sequence[str]) -> str:
    return next((argument for argument in arguments if not argument.startswith("-")), "")


def _last_line(text: bytes) -> str:
    lines = text.decode(errors="replace").strip().splitlines()
    reported = [line for line in lines if line.startswith(("fatal:", "error:", "remote: error"))] or lines
    return (
        _printable(rules.without_credentials(reported[-1].partition(": ")[2] or reported[-1]))[:300] if reported else ""
    )


def _shown(path: str) -> str:
    return _printable(path.encode(errors="surrogateescape").decode(errors="replace"))


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)
