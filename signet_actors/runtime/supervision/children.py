"""The tree: which children there are, in which groups they start, and what is known of each over all its lives.

Knowledge only. What follows from it is decided in ``supervision.py``, and done to processes in ``child_process.py``.

Source: docs/reliability.md "Supervision policy"; Erlang/OTP, child specifications.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from signet_actors.config.schema import Config
from signet_actors.protocol.control import STARTING, UP, ChildState, Exiting, FileIdentity, TreeChanged
from signet_actors.runtime.supervision.child_process import ChildProcess
from signet_actors.runtime.supervision.restart_policy import CrashHistory


def _one(_config: Config) -> int:
    return 1


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """One line of the tree.

    ``core``   the daemon gives up when the child cannot be kept alive; an optional child ends ``failed`` instead.
    ``count``  how many of it (of an optional child also after each reload); more than one makes a pool named
               ``<role>-1`` to ``<role>-N``, of which the rest serves while one is away.
    ``pool``   names are numbered even when there is only one.
    ``reads``  the child holds snapshots of the store, which can keep the write-ahead log from being folded back.
    ``listens`` the child inherits the listening TCP socket.
    ``standby`` an interpreter that has imported the code stands by for the next life, for children whose import is
               long and whose absence is felt.
    ``standby_after_crash`` the same, but only while a death of the child is not long ago: it costs nothing before.
    ``after_crash_of`` the child is wanted only once a child of that role has died, and for ten minutes after the last
               death of either.
    ``environ`` what its environment has beside the supervisor's own.
    """

    role: str
    module: str
    core: bool
    count: Callable[[Config], int] = _one
    pool: bool = False
    reads: bool = False
    listens: bool = False
    standby: bool = False
    standby_after_crash: bool = False
    after_crash_of: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Child:
    """A name in the tree, over all its lives.

    ``config`` the configuration that this life was last given;
    ``last_seen_ns`` when it was last heard, or started; ``has_reported`` whether this life has said anything yet;
    ``restart_at_ns`` when its next life is due, None = not known; ``kill_reason`` is empty unless the supervisor
    killed this life; ``snapshots_asked`` and ``snapshots_ended`` the last request to end its snapshots that it was told
    and that it has followed; ``on_probation`` one more early death of this optional child means waiting again;
    ``standby_due`` this life has not yet had an interpreter start to stand by for the next; ``wanted`` while the
    configuration in force has a use for it; ``stop_deadline_ns`` this life has been asked to leave because none had,
    and is killed then; ``earlier_incarnations`` those that had ended when it was last wanted anew; ``files`` the
    temporary files that it has opened in this life or the last one. Times are on the monotonic clock.
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
    standby_due: bool = False
    wanted: bool = True
    stop_deadline_ns: int | None = None
    earlier_incarnations: int = 0
    counters: dict[str, float] = field(default_factory=dict)
    files: list[FileIdentity] = field(default_factory=list)

    def begin_incarnation(self, now_ns: int, config: Config) -> None:
        """Nothing is known of this child's life but that it is a new one, born with ``config``."""
        self.incarnation += 1
        self.config = config
        self.state = STARTING
        self.has_reported = False
        self.ready_ms = None
        self.restart_at_ns = None
        self.standby_due = False
        self.stop_deadline_ns = None
        self.exit_notice = None
        self.kill_reason = ""
        self.snapshots_asked = self.snapshots_ended = 0
        self.counters = {}
        self.last_seen_ns = now_ns


class Children:
    """Every child of a tree, in start order; iterates over those that are wanted or still there."""

    def __init__(
        self, tree: Sequence[ChildSpec], config: Config, make_process: Callable[[ChildSpec, str], ChildProcess]
    ) -> None:
        self.group_count = len(tree)
        self._tree = tree
        self._make_process = make_process
        self._by_name: dict[str, Child] = {}
        self._crashed_roles: set[str] = set()
        """Roles of which a child has died lately, where another role is wanted for that."""
        self.warning = ""
        """What is wrong with the daemon as a whole while it goes on."""
        self.failure = ""
        """Why the daemon cannot go on."""
        for group, spec in enumerate(tree):
            for name in self._names(spec, config):
                self._by_name[name] = Child(spec, name, group, make_process(spec, name))

    def __iter__(self) -> Iterator[Child]:
        return (child for child in tuple(self._by_name.values()) if child.wanted or child.process.exists)

    def reconfigure(self, config: Config) -> list[Child]:
        """Of each optional role as many children are wanted as ``config`` says; the answer is those that were not
        before, and have a life to begin when their former one, if it is still there, has ended.

        Core children stay as they are: they are what everybody else counts on.
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
        """Return whether a death in ``role`` makes other children wanted, which ``follow`` then finds."""
        called = role not in self._crashed_roles and any(spec.after_crash_of == role for spec in self._tree)
        if called:
            self._crashed_roles.add(role)
        return called

    def forget_crashes(self, alive_since_ns: int) -> bool:
        """Forget the deaths after which all concerned have served since; return whether there were any."""
        over = {
            role
            for role in self._crashed_roles
            if all(
                child.state == UP and child.ready_ms is not None and child.ready_ms * 1_000_000 < alive_since_ns
                for child in self
                if role in {child.spec.role, child.spec.after_crash_of}
            )
        }
        self._crashed_roles -= over
        return bool(over)

    def stopping(self) -> list[Child]:
        """Those who have a life and no use any more, the outermost group only: whoever asks leaves first."""
        unwanted = [child for child in self if not child.wanted or child.stop_deadline_ns is not None]
        outermost = max((child.group for child in unwanted), default=0)
        return [child for child in unwanted if child.group == outermost and child.process.exists]

    def __getitem__(self, name: str) -> Child:
        return self._by_name[name]

    def group(self, group: int) -> list[Child]:
        """The children of one line of the tree."""
        return [child for child in self if child.group == group]

    def group_is_ready(self, group: int) -> bool:
        """True when each core child is up; of a pool, the rest may go ahead of one that died while starting."""
        members = self.group(group)
        waited_for = [child for child in members if child.state != UP and child.spec.core]
        if len(members) > 1 and any(child.state == UP for child in members):
            waited_for = [child for child in waited_for if child.state == STARTING and child.incarnation == 1]
        return not waited_for

    def all_ready(self) -> bool:
        """True when everything that is needed is up; an optional child is not."""
        return all(self.group_is_ready(group) for group in range(self.group_count))

    def incarnations(self) -> dict[str, int]:
        """The present incarnation of each name, or the last one: what it said before it left may be read later."""
        return {name: child.incarnation for name, child in self._by_name.items()}

    def reachable(self) -> list[str]:
        """The names of those who can be told something: they exist and have spoken."""
        return [child.name for child in self if child.process.exists and child.has_reported]

    def _names(self, spec: ChildSpec, config: Config) -> list[str]:
        if spec.after_crash_of and spec.after_crash_of not in self._crashed_roles:
            return []
        count = spec.count(config)
        if spec.pool or count > 1:
            return [f"{spec.role}-{number}" for number in range(1, count + 1)]
        return [spec.role] * count

    def states(self) -> TreeChanged:
        """The whole tree as everybody may see it."""
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
            self.warning,
            self.failure,
        )
