"""The children of the tree: their specification, their start groups and their current state.

Their state, and what an exit means. ``supervisor.py`` decides what to do, ``child_process.py`` acts on processes.

Source: docs/reliability.md "Supervision policy", R9; Erlang/OTP, child specifications.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from signet_actors.config.schema import Config, RestartBudget, SupervisionConfig
from signet_actors.protocol.control import STARTING, UP, ChildState, Exiting, FileIdentity, TreeChanged
from signet_actors.runtime.supervision.child_process import ChildProcess
from signet_actors.runtime.supervision.restart_policy import (
    CrashHistory,
    GiveUp,
    Restart,
    RestartPolicy,
    decide_restart,
)


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """One line of the tree.

    ``core``: the daemon exits when the child exceeds its restart budget; an optional child becomes ``failed`` instead.
    ``count``: how many processes to run (for optional children, evaluated again on each reload). More than one makes a
    pool named ``<role>-1`` to ``<role>-N``; the others serve while one is down.
    ``pool``: number the names even when there is only one.
    ``reads``: the child opens snapshots of the store, which can block a WAL checkpoint.
    ``listens``: the child inherits the listening TCP socket.
    ``after_crash_of``: run the child only after a crash of that role, until both have served without a crash for ten
    minutes.
    ``environ``: variables added to the supervisor's environment.
    """

    role: str
    module: str
    core: bool
    count: Callable[[Config], int] = lambda _config: 1
    pool: bool = False
    reads: bool = False
    listens: bool = False
    after_crash_of: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Child:
    """The state of one named child. Times are on the monotonic clock.

    ``process``: its operating system processes. ``incarnation`` counts its starts; the fields below are of the current
    one unless they say otherwise.
    ``config``: the configuration that it received last.
    ``crash_history``: its early crashes over all incarnations, which the restart policy counts.
    ``last_seen_ns``: when its last message arrived, or when it was started.
    ``has_reported``: it has sent at least one message.
    ``ready_ms``: when it became ready; None before.
    ``restart_at_ns``: when it is due to start; None = not scheduled.
    ``detail``: what it does, or why it is down, as text for people.
    ``exit_notice``: its announcement of its own exit.
    ``kill_reason``: why the supervisor killed it; empty if it did not.
    ``snapshots_asked``, ``snapshots_ended``: the number of the last request to end its snapshots, sent and confirmed.
    ``on_probation``: it has exceeded its budget, but the daemon runs without it: an optional child, or a searcher while
    another one is up. Another early crash makes it wait again. An exit after it ran for long enough ends the probation,
    and so does its being switched off and on again.
    ``wanted``: the current configuration needs it.
    ``stop_deadline_ns``: it is draining because it is no longer needed, and is killed at that time.
    ``earlier_incarnations``: the incarnations before it was last needed again; they do not count as restarts.
    ``counters``: those of its last heartbeat.
    ``progress``: when a silent child was looked at last: the time, and how long it had used or awaited a processor.
    ``files``: the temporary files that it opened in this incarnation or the last one.
    """

    spec: ChildSpec
    name: str
    group: int
    process: ChildProcess
    state: str = STARTING
    incarnation: int = 0
    config: Config | None = None
    crash_history: CrashHistory = field(default_factory=CrashHistory)
    last_seen_ns: int = 0
    has_reported: bool = False
    ready_ms: int | None = None
    restart_at_ns: int | None = None
    detail: str = ""
    exit_notice: Exiting | None = None
    kill_reason: str = ""
    snapshots_asked: int = 0
    snapshots_ended: int = 0
    on_probation: bool = False
    wanted: bool = True
    stop_deadline_ns: int | None = None
    earlier_incarnations: int = 0
    counters: dict[str, float] = field(default_factory=dict)
    progress: tuple[int, float] | None = None
    files: list[FileIdentity] = field(default_factory=list)

    def begin_incarnation(self, now_ns: int, config: Config) -> None:
        """Reset the state for a new process that starts with ``config``."""
        self.incarnation += 1
        self.config = config
        self.state = STARTING
        self.has_reported = False
        self.ready_ms = None
        self.restart_at_ns = None
        self.stop_deadline_ns = None
        self.exit_notice = None
        self.kill_reason = ""
        self.snapshots_asked = self.snapshots_ended = 0
        self.counters = {}
        self.progress = None
        self.last_seen_ns = now_ns

    def exit_cause(self, code: int) -> tuple[int, str, str]:
        """Return the exit code that counts, what the child said of its exit (may be empty), and the cause in words.

        ``code`` is negative for a signal. An announced exit code counts, however the process ended.
        """
        notice = self.exit_notice.detail if self.exit_notice is not None else ""
        if self.kill_reason:
            how = self.kill_reason
        elif code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
        else:
            how = f"exited with {code}"
        if code < 0 and self.exit_notice is not None:
            code = self.exit_notice.code
            how = f"{how} while exiting with {code}"
        return code, notice, f"{how}: {notice}" if notice else how

    def decide_restart(self, limits: SupervisionConfig, *, now_ms: int, rng: random.Random) -> Restart | GiveUp:
        """Return whether and when the child is restarted, by the budget of its role."""
        budget = getattr(limits.budgets, self.spec.role, RestartBudget())
        policy = RestartPolicy(
            budget.restarts, budget.window_ms, limits.backoff_min_ms, limits.backoff_max_ms, limits.settled_ms
        )
        return decide_restart(policy, self.crash_history, now_ms=now_ms, ready_at_ms=self.ready_ms, rng=rng)

    def kill(self, why: str) -> None:
        """Kill the process; ``why`` is what its exit is told by."""
        self.kill_reason = why
        self.process.kill()


class Children:
    """All children of a tree in start order; iterates over those that are wanted or still have a process."""

    def __init__(
        self, tree: Sequence[ChildSpec], config: Config, make_process: Callable[[ChildSpec, str], ChildProcess]
    ) -> None:
        self.group_count = len(tree)
        self._tree = tree
        self._make_process = make_process
        self._by_name: dict[str, Child] = {}
        self._crashed_roles: set[str] = set()
        """Roles that crashed lately, where another role's ``after_crash_of`` names them."""
        self.warning = ""
        """A problem of the whole daemon that does not stop it."""
        self.configuration_warning = ""
        """Why a changed configuration is not in effect."""
        self.failure = ""
        """Why the daemon is about to stop."""
        for group, spec in enumerate(tree):
            for name in self._names(spec, config):
                self._by_name[name] = Child(spec, name, group, make_process(spec, name))

    def __iter__(self) -> Iterator[Child]:
        return (child for child in tuple(self._by_name.values()) if child.wanted or child.process.exists)

    def reconfigure(self, config: Config) -> list[Child]:
        """Update which optional children are wanted; return those that were not wanted before.

        A returned child can start when its former process, if any, has exited. Core children never change while the
        daemon runs.
        """
        new = []
        for group, spec in enumerate(self._tree):
            if spec.core:
                continue
            names = self._names(spec, config)
            for name in names:
                if name not in self._by_name:
                    child = self._by_name[name] = Child(spec, name, group, self._make_process(spec, name), wanted=False)
                if not (child := self._by_name[name]).wanted:
                    child.wanted = True
                    child.earlier_incarnations = child.incarnation
                    child.crash_history, child.on_probation, child.detail = CrashHistory(), False, ""
                    if not child.process.exists:
                        child.state = STARTING
                    new.append(child)
            for child in self.group(group):
                if child.wanted and child.name not in names:
                    child.wanted = False
                    child.restart_at_ns = None
        self._by_name = dict(sorted(self._by_name.items(), key=lambda item: item[1].group))
        return new

    def note_crash(self, role: str) -> bool:
        """Record a crash; return whether it makes other children wanted, which ``reconfigure`` then returns."""
        needed = role not in self._crashed_roles and any(spec.after_crash_of == role for spec in self._tree)
        if needed:
            self._crashed_roles.add(role)
        return needed

    def forget_crashes(self, alive_since_ns: int) -> bool:
        """Forget crashes after which all roles concerned have served since that time; return whether there were any."""
        quiet_roles = {
            role
            for role in self._crashed_roles
            if all(
                child.state == UP and child.ready_ms is not None and child.ready_ms * 1_000_000 < alive_since_ns
                for child in self
                if role in {child.spec.role, child.spec.after_crash_of}
            )
        }
        self._crashed_roles -= quiet_roles
        return bool(quiet_roles)

    def stopping(self) -> list[Child]:
        """Return the running children to stop now: the outermost group of those not wanted (clients before servers)."""
        unwanted = [child for child in self if not child.wanted or child.stop_deadline_ns is not None]
        outermost = max((child.group for child in unwanted), default=0)
        return [child for child in unwanted if child.group == outermost and child.process.exists]

    def __getitem__(self, name: str) -> Child:
        return self._by_name[name]

    def group(self, group: int) -> list[Child]:
        return [child for child in self if child.group == group]

    def group_is_ready(self, group: int) -> bool:
        """Return whether each core child is up; in a pool with one up, only first starts are waited for."""
        members = self.group(group)
        pending = [child for child in members if child.state != UP and child.spec.core]
        if len(members) > 1 and any(child.state == UP for child in members):
            pending = [child for child in pending if child.state == STARTING and child.incarnation == 1]
        return not pending

    def all_ready(self) -> bool:
        return all(self.group_is_ready(group) for group in range(self.group_count))

    def incarnations(self) -> dict[str, int]:
        """Return the latest incarnation of each name. A process may have exited before its last messages are read."""
        return {name: child.incarnation for name, child in self._by_name.items()}

    def reachable(self) -> list[str]:
        """Return the names of the children that can receive messages: they run and have sent one."""
        return [child.name for child in self if child.process.exists and child.has_reported]

    def _names(self, spec: ChildSpec, config: Config) -> list[str]:
        if spec.after_crash_of and spec.after_crash_of not in self._crashed_roles:
            return []
        count = spec.count(config)
        if spec.pool or count > 1:
            return [f"{spec.role}-{number}" for number in range(1, count + 1)]
        return [spec.role] * count

    def due_times_ns(self) -> Iterator[int]:
        """Yield the monotonic times at which a child is to be restarted or killed."""
        for child in self:
            for due_ns in (child.restart_at_ns, child.stop_deadline_ns):
                if due_ns is not None and not (child.process.exists and child.kill_reason):
                    yield due_ns

    def states(self) -> TreeChanged:
        """Return the state of the whole tree, as children receive it."""
        return TreeChanged(
            [
                ChildState(
                    name=child.name,
                    role=child.spec.role,
                    state=child.state,
                    incarnation=child.incarnation,
                    restarts=max(0, child.incarnation - 1 - child.earlier_incarnations),
                    pid=child.process.pid,
                    detail=child.detail,
                    core=child.spec.core,
                    counters=child.counters,
                )
                for child in self
            ],
            "; ".join(filter(None, (self.warning, self.configuration_warning))),
            self.failure,
        )
