"""Watch the identity files, and have the files of harnesses brought up to date two seconds after a change.

The times and sizes of a few files in the workspace are compared once a second: that works on every file system, for
every way in which an editor saves, and needs no library. The files of harnesses, which may be on a file system that
hangs, are touched by a process of its own only.

Source: architecture.txt "How It Works" (2 s debounced sync), "Multi-Agent Support"; docs/guides/identity.md.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from signet_actors.config.schema import Config
from signet_actors.config.workspace import Workspace
from signet_actors.retention.work_process import Work
from signet_actors.retention.workspace_sync import SyncResult, WorkspaceSync
from signet_actors.runtime import connected_harnesses
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.identity_files import LASTING_FILES, OWN_FILES

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

POLL_MS: Final = 1000
RUNNING_POLL_MS: Final = 50
BRIEF_MS: Final = 5000
"""The process is looked at often for so long."""
DEBOUNCE_MS: Final = 2000
RETRY_MS: Final = 60_000
"""The wait until files that could not be written are tried again."""
LONGEST_MS: Final = 40_000
"""The process ends by itself before that."""


class _FileState(NamedTuple):
    path: str
    inode: int
    size: int
    mtime_ns: int


class WorkspaceFiles:
    """The duty. ``last`` is the result of the last run, ``runs`` counts them."""

    def __init__(
        self,
        clock: Clock,
        log: FilteringBoundLogger,
        config: Config,
        workspace: Path,
        begin: Callable[..., Work[SyncResult]] = WorkspaceSync,
    ) -> None:
        self._clock = clock
        self._log = log
        self._enabled = config.harness_files.sync
        self._agents = _named_agents(config)
        self._workspace = workspace
        self._begin = begin
        self._process: Work[SyncResult] | None = None
        self._begun_ns = 0
        self._connected: tuple[connected_harnesses.ConnectedHarness, ...] = ()
        self._noted: _FileState | None = None
        self._seen: tuple[_FileState | None, ...] = ()
        self._wanted = False
        self._sync_ns: int | None = None
        self._problems: dict[str, str] = {}
        self.last = SyncResult()
        self.runs = 0
        self.due_ns = clock.monotonic_ns()

    @property
    def running(self) -> bool:
        return self._process is not None

    def reload(self, config: Config) -> None:
        settings = config.harness_files.sync, _named_agents(config)
        if settings != (self._enabled, self._agents):
            self._enabled, self._agents = settings
            self.sync_now()

    def sync_now(self) -> int:
        """Bring the files up to date at once; return the value that ``runs`` has when that is done."""
        self._wanted = True
        self.due_ns = self._clock.monotonic_ns()
        return self.runs + (2 if self.running else 1)

    def step(self) -> None:
        """Look for changes, and start the process or look whether it has ended."""
        now_ns = self._clock.monotonic_ns()
        if self._process is not None:
            self._look(self._process, now_ns)
        if self._process is None:
            states = self._states()
            if states != self._seen:
                self._seen = states
                self._sync_ns = now_ns + DEBOUNCE_MS * 1_000_000 if self._connected else None
            if self._wanted or (self._sync_ns is not None and now_ns >= self._sync_ns):
                self._start(now_ns)
        is_brief = self._process is not None and now_ns - self._begun_ns < BRIEF_MS * 1_000_000
        self.due_ns = now_ns + (RUNNING_POLL_MS if is_brief else POLL_MS) * 1_000_000

    def stop(self) -> None:
        """End the process if it runs. A file is replaced in one step, so it has its former content or the new one."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _start(self, now_ns: int) -> None:
        self._wanted, self._sync_ns = False, None
        if not self._connected:
            self._end(SyncResult(), now_ns)
            return
        try:
            self._process = self._begin(self._workspace, harness_files=self._enabled, agents=self._agents)
        except OSError as error:
            self._end(SyncResult(problems={"": f"the process cannot be started: {error.strerror}"}), now_ns)
        self._begun_ns = now_ns

    def _look(self, process: Work[SyncResult], now_ns: int) -> None:
        result = process.poll()
        if result is not None:
            self._process = None
            self._end(result, now_ns)
        elif now_ns - self._begun_ns > LONGEST_MS * 1_000_000 and "" not in self._problems:
            why = "a file system does not answer; nothing is written until it does"
            self._report({**self._problems, "": why})

    def _end(self, result: SyncResult, now_ns: int) -> None:
        self.last = result
        self.runs += 1
        if result.written:
            self._log.info("harness_files_written", files=result.written)
        self._report(result.problems)
        if result.problems and self._sync_ns is None:
            self._sync_ns = now_ns + RETRY_MS * 1_000_000

    def _report(self, problems: dict[str, str]) -> None:
        """Log what is new."""
        for path, reason in problems.items():
            if self._problems.get(path) != reason:
                self._log.warning("harness_file_not_written", file=path, reason=reason)
        self._problems = dict(problems)

    def _states(self) -> tuple[_FileState | None, ...]:
        """Return the state of every file on which the files of harnesses depend; only one while none is connected."""
        workspace = Workspace(self._workspace)
        noted = _state(workspace.harnesses_file)
        if noted != self._noted:
            self._noted = noted
            self._connected = connected_harnesses.read_connected(self._workspace)
        if not self._connected:
            return (noted,)
        agents = {row.agent for row in self._connected}
        if any(row.harness == connected_harnesses.OPENCLAW for row in self._connected):
            agents |= set(connected_harnesses.agents_of(self._workspace))
        paths = [self._workspace / file.name for file in LASTING_FILES]
        paths += [workspace.agents_dir / agent / name for agent in sorted(agents) for name in OWN_FILES]
        return (noted, *map(_state, paths))


def _named_agents(config: Config) -> tuple[str, ...]:
    """Return the agents that the configuration names, as many as are looked at."""
    return tuple(entry.name for entry in config.agents.roster)[: connected_harnesses.MAX_AGENTS]


def _state(path: Path) -> _FileState | None:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return _FileState(str(path), found.st_ino, found.st_size, found.st_mtime_ns)
