"""Have the Markdown of the workspace committed five seconds after a change, and commits exchanged with a remote.

The times and sizes of the files are compared, like those of the identity files (``workspace_files.py``); git itself
runs in a process of its own only. Nothing is committed or sent unless the configuration or a request asks for it.

Source: architecture.txt "How It Works" (5 s debounced git commit); docs/guides/identity.md "Former versions with git".
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from signet_actors.config.git_schema import GitConfig
from signet_actors.config.schema import Config
from signet_actors.domain.timestamps import iso
from signet_actors.domain.workspace_git import GitAction, GitExchange, GitOutcome, GitState, is_versioned
from signet_actors.protocol.retention import GitDone
from signet_actors.retention.work_process import Work
from signet_actors.retention.workspace_git import WorkspaceGit
from signet_actors.runtime.clock import Clock

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

POLL_MS: Final = 1000
RUNNING_POLL_MS: Final = 50
BRIEF_MS: Final = 5000
"""The process is looked at often for so long."""
DEBOUNCE_MS: Final = 5000
FIRST_RETRY_MS: Final = 10_000
LAST_RETRY_MS: Final = 300_000
SLOW_MS: Final = 120_000
MAX_FILES: Final = 10_000
MAX_WAITING: Final = 32
IDLE_SHARE: Final = 200
"""After a look at the files the duty rests for so many times as long as that took."""

Answer = Callable[[GitDone], object]
_FileState = tuple[int, int, int]


class GitCommits:
    """The duty. ``runs`` counts the processes."""

    def __init__(
        self,
        clock: Clock,
        log: FilteringBoundLogger,
        config: Config,
        workspace: Path,
        begin: Callable[[Path, GitAction, GitConfig], Work[GitOutcome]] = WorkspaceGit,
    ) -> None:
        self._clock = clock
        self._log = log
        self._config = config.git
        self._workspace = workspace
        self._begin = begin
        self._process: Work[GitOutcome] | None = None
        self._action: GitAction = "status"
        self._answers: list[Answer] = []
        self._begun_ns = 0
        self._waiting: deque[tuple[GitAction, Answer]] = deque()
        self._seen: dict[str, _FileState] | None = None
        self._look_ns = 0
        self._commit_ns: int | None = None
        self._sync_ns = clock.monotonic_ns()
        self._failures = 0
        self._logged: dict[str, str] = {}
        self._last: GitOutcome | None = None
        self._exchange: GitExchange | None = None
        self.runs = 0
        self.due_ns = clock.monotonic_ns()

    @property
    def running(self) -> bool:
        return self._process is not None

    def reload(self, config: Config) -> None:
        if config.git != self._config:
            self._config = config.git
            self._seen, self._commit_ns = None, None
            self._sync_ns = self.due_ns = self._clock.monotonic_ns()

    def request(self, action: GitAction, answer: Answer) -> None:
        """Do ``action`` next, and give its outcome to ``answer``.

        A status that is requested during an exchange of commits is answered at once, if an outcome is known.
        """
        if len(self._waiting) >= MAX_WAITING:
            answer(self._refused("too many requests wait"))
        elif action == "status" and self._last is not None and self._exchanging:
            answer(self._done(self._last))
        else:
            self._waiting.append((action, answer))
            self.due_ns = self._clock.monotonic_ns()

    def step(self) -> None:
        """Look for changes, and start a process or look whether it has ended."""
        now_ns = self._clock.monotonic_ns()
        if self._process is not None:
            self._look(self._process, now_ns)
        if self._commits and now_ns >= self._look_ns:
            self._look_for_changes(now_ns)
        if self._process is None:
            self._start_next(now_ns)
        is_brief = self._process is not None and now_ns - self._begun_ns < BRIEF_MS * 1_000_000
        self.due_ns = now_ns + (RUNNING_POLL_MS if is_brief else POLL_MS) * 1_000_000

    def stop(self) -> None:
        """Stop waiting for the process; a git that runs completes by itself, and what is not committed is later."""
        if self._process is not None:
            self._process.stop()
            self._process = None
        stopped = self._refused("the daemon is stopping")
        for answer in (*self._answers, *(answer for _, answer in self._waiting)):
            answer(stopped)
        self._answers = []
        self._waiting.clear()

    @property
    def _exchanging(self) -> bool:
        return self.running and self._action not in {"status", "commit"}

    @property
    def _commits(self) -> bool:
        return self._config.enabled and self._config.auto_commit

    def _look_for_changes(self, now_ns: int) -> None:
        found = _states(self._workspace)
        cost_ns = self._clock.monotonic_ns() - now_ns
        self._look_ns = now_ns + max(POLL_MS * 1_000_000, IDLE_SHARE * cost_ns)
        if found != self._seen:
            self._seen = found
            self._commit_ns = now_ns + DEBOUNCE_MS * 1_000_000

    def _start_next(self, now_ns: int) -> None:
        """Start what was requested, else what is due."""
        if self._waiting:
            action, _ = self._waiting[0]
            self._answers = [answer for each, answer in self._waiting if each == action]
            self._waiting = deque((each, answer) for each, answer in self._waiting if each != action)
        elif self._commits and self._commit_ns is not None and now_ns >= self._commit_ns:
            action, self._commit_ns = "commit", None
        elif self._config.enabled and self._config.auto_sync and now_ns >= self._sync_ns:
            action = "sync"
            self._sync_ns = now_ns + self._config.sync_interval * 1_000_000_000
        else:
            return
        self._action, self._begun_ns = action, now_ns
        try:
            self._process = self._begin(self._workspace, action, self._config)
        except OSError as error:
            self._end(GitOutcome(success=False, message=f"the process cannot be started: {error.strerror}"), now_ns)

    def _look(self, process: Work[GitOutcome], now_ns: int) -> None:
        outcome = process.poll()
        if outcome is not None:
            self._process = None
            self._end(outcome, now_ns)
        elif now_ns - self._begun_ns > SLOW_MS * 1_000_000:
            self._report(self._action, "git or a file system does not answer; nothing is committed until it does")

    def _end(self, outcome: GitOutcome, now_ns: int) -> None:
        self.runs += 1
        self._last = outcome
        if self._action == "commit":
            self._end_commit(outcome, now_ns)
        elif self._action != "status":
            self._exchange = GitExchange(self._action, iso(self._clock.wall_ms()), outcome.success, outcome.message)
            if not self._answers:
                self._report(self._action, "" if outcome.success else outcome.message)
        answers, self._answers = self._answers, []
        for answer in answers:
            answer(self._done(outcome))

    def _end_commit(self, outcome: GitOutcome, now_ns: int) -> None:
        self._report("commit", "" if outcome.success else outcome.message)
        if outcome.committed:
            self._log.info("workspace_committed", files=outcome.committed)
        if outcome.success:
            self._failures = 0
            return
        wait_ms = min(FIRST_RETRY_MS << min(self._failures, 10), LAST_RETRY_MS)
        self._failures += 1
        if self._commit_ns is None:
            self._commit_ns = now_ns + wait_ms * 1_000_000

    def _report(self, action: str, reason: str) -> None:
        """Log the reason, if it is not the one that was logged last."""
        if reason and self._logged.get(action) != reason:
            self._log.warning("git_postponed", action=action, reason=reason)
        self._logged[action] = reason

    def _refused(self, reason: str) -> GitDone:
        state = GitState() if self._last is None else self._last.state
        return self._done(GitOutcome(success=False, message=reason, state=state))

    def _done(self, outcome: GitOutcome) -> GitDone:
        postponed = self._logged.get("commit") if self._commits else None
        return GitDone(
            state=outcome.state,
            success=outcome.success,
            message=outcome.message,
            last_exchange=self._exchange,
            problem=outcome.state.problem or postponed or None,
        )


def _states(workspace: Path) -> dict[str, _FileState]:
    """Return the state of each file that would be committed, by its path in the workspace."""
    found: dict[str, _FileState] = {}
    waiting = [""]
    seen = 0
    while waiting:
        directory = waiting.pop()
        try:
            with os.scandir(workspace / directory) as entries:
                for entry in entries:
                    seen += 1
                    if seen > MAX_FILES:
                        return found
                    path = f"{directory}{entry.name}"
                    if is_versioned(f"{path}/any.md") and entry.is_dir(follow_symlinks=False):
                        waiting.append(f"{path}/")
                    elif is_versioned(path):
                        status = entry.stat(follow_symlinks=False)
                        found[path] = (status.st_ino, status.st_size, status.st_mtime_ns)
        except OSError:
            continue
    return found
