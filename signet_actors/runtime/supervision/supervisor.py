"""The supervisor's loop and its policy: starts the tree in order, watches it, restarts what dies, brings it down.

One thread, one loop, no knowledge of what the children do. A child counts as up when it says Ready on the bus, as
dead when the kernel says so, and as hung when its work loop has been silent for ``heartbeat_ms * liveness``: then it
is killed, because only the kernel's word lets another life begin.

Source: docs/reliability.md "Supervision policy", R9, R19 and R21; docs/messaging.md rule 10; Erlang/OTP, one_for_one.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

import msgspec

from signet_actors.config.schema import Config, RestartBudget
from signet_actors.errors import ConfigError, ExitCode
from signet_actors.protocol.control import (
    FAILED,
    RESTARTING,
    STARTING,
    STOPPING,
    UP,
    Drain,
    EndSnapshots,
    Exiting,
    FilesOpened,
    GetTree,
    Heartbeat,
    Ready,
    Reload,
    SnapshotsEnded,
    Starting,
    TreeChanged,
    WalPressure,
)
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.logging.configuration import set_level
from signet_actors.runtime.logging.rotation import rotate_logs
from signet_actors.runtime.processes.child_context import ChildContext, encode_context, warmup_payload
from signet_actors.runtime.processes.signals import read_pending
from signet_actors.runtime.supervision.child_process import ChildProcess
from signet_actors.runtime.supervision.children import Child, Children, ChildSpec
from signet_actors.runtime.supervision.control_socket import ControlMessage, ControlSocket
from signet_actors.runtime.supervision.daemon_files import DaemonFiles
from signet_actors.runtime.supervision.drain import TreeDrain
from signet_actors.runtime.supervision.file_watch import FileWatch
from signet_actors.runtime.supervision.listener import with_address
from signet_actors.runtime.supervision.restart_policy import GiveUp, RestartPolicy, decide_restart
from signet_actors.runtime.supervision.sd_notify import Notifier
from signet_actors.runtime.sync_points import sync_point

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

RETRY_FAILED_MS = 600_000
"""An optional child that was given up is tried again after so long."""

STANDBY_AFTER_CRASH_MS = 600_000
"""So long after a death an interpreter stands by for the next one, of a child that has none before."""

_MS = 1_000_000
_FATAL_EXIT_CODES = frozenset({ExitCode.CONFIG, ExitCode.PROVIDER_CONFIG, ExitCode.IN_USE})
_ROTATE_MS = 10_000
LATE_START_MS = 1000
"""So long the daemon serves before what it can serve without is started."""
_FAILURE_REPORT_MS = 1000
"""So long health tells why the daemon cannot go on before it stops."""
_EXIT_NOTICE_WAIT_MS = 30
"""The reason of an exit travels by another way than the exit itself, and may come a moment later."""


class Supervisor:
    """Runs ``tree`` until it is asked to stop or cannot go on; see the module.

    ``run`` is the whole life; a simulation takes it apart into ``turn`` and ``wait_ms``, on processes of its own.
    """

    def __init__(
        self,
        tree: Sequence[ChildSpec],
        config: Config,
        boot: ChildContext,
        *,
        control: ControlSocket,
        counters: dict[str, int],
        clock: Clock,
        rng: random.Random,
        log: FilteringBoundLogger,
        listen_fds: tuple[int, ...],
        load: Callable[[], Config],
        notifier: Notifier,
        retry_failed_ms: int = RETRY_FAILED_MS,
        make_process: Callable[[ChildSpec, str], ChildProcess] | None = None,
        daemon_files: DaemonFiles | None = None,
    ) -> None:
        self.config = config
        self.counters = counters
        self.on_serving: Callable[[], None] | None = None
        self._boot = boot
        self._control = control
        self._clock = clock
        self._rng = rng
        self._log = log
        self._load = load
        self._notifier = notifier
        self._retry_failed_ns = retry_failed_ms * _MS

        def real_process(spec: ChildSpec, name: str) -> ChildProcess:
            return ChildProcess(name, spec.module, listen_fds if spec.listens else (), log, spec.environ)

        self._children = Children(tree, config, make_process or real_process)
        self._files = FileWatch(self._children, daemon_files, log)
        self._started_groups = 0
        self._last_core_group = max((child.group for child in self._children if child.spec.core), default=0)
        self._serving = False
        self._late_start_ns = 0
        self._changed = False
        self._last_pass_ns = 0
        self._next_rotation = 0
        self._next_path_check = 0
        self._next_watchdog = 0
        self._next_extension = 0
        self._exit_code = int(ExitCode.OK)
        self._exit_reason = ""
        self._drain: TreeDrain | None = None
        self._failed_ns: int | None = None

    @property
    def exit_reason(self) -> str:
        """Why the tree came down, in words; empty when it was asked to."""
        return self._exit_reason

    def states(self) -> TreeChanged:
        """The tree as it is now."""
        return self._children.states()

    def run(self, signals: int) -> int:
        """The daemon's exit code; no child is left when this returns. ``signals`` is the end of a ``signal_pipe``."""
        self._control.wake_on(signals)
        self._last_pass_ns = self._clock.monotonic_ns()
        try:
            while not self.finished:
                self.run_once(signals)
                if not self.finished:
                    self._control.wait(self.wait_ms())
        finally:
            # Also when this loop itself failed.
            for child in self._children:
                child.process.terminate()
        return self._exit_code

    # one turn of the loop

    def run_once(self, signals: int) -> None:
        """Everything that has happened has been acted upon."""
        now = self._clock.monotonic_ns()
        self._read_signals(signals)
        self._read_messages()
        self._reap()
        if self._drain is None:
            self._check_files(now)
        if self._drain is None:
            self._check_liveness(now)
            self._start_groups()
            self._restart_due()
            self._stop_unneeded(now)
            self._check_serving()
        elif self._drain.step():
            self._changed = True
        self._last_pass_ns = now
        if self._changed:
            self._changed = False
            self._broadcast(self._children.states())
        if self._drain is None:
            self._spawn_standbys()  # after the news, which others wait for
        self._housekeeping()

    def wait_ms(self) -> int:
        """How long the next turn may be away if nothing happens."""
        now = self._clock.monotonic_ns()
        until = min(now + self.config.supervision.heartbeat_ms * _MS, self._next_rotation)
        if self._notifier.watchdog_s is not None:
            until = min(until, self._next_watchdog)
        for child in self._children:
            for due_ns in (child.restart_at_ns, child.stop_deadline_ns):
                if due_ns is not None and not (child.process.exists and child.kill_reason):
                    until = min(until, due_ns)
        if self._serving and self._started_groups < self._children.group_count and self._late_start_ns > now:
            until = min(until, self._late_start_ns)
        if self._drain is not None:
            until = min(until, now + 50 * _MS)  # whom the kernel keeps is not missing the sooner for being looked at
            if self._drain.due_ns > now:
                until = min(until, self._drain.due_ns)
        return max(0, -(-(until - now) // _MS))

    def _housekeeping(self) -> None:
        now = self._clock.monotonic_ns()
        if now >= self._next_path_check:
            self._next_path_check = now + self.config.supervision.heartbeat_ms * _MS
            if self._control.reclaim_path():
                self._log.error("socket path lost", socket="supervisor")
        if now >= self._next_rotation:
            self._next_rotation = now + _ROTATE_MS * _MS
            try:
                rotate_logs(Path(self._boot.workspace) / ".daemon" / "logs", self.config.logging, self._clock.wall_ms())
            except OSError as error:
                self._log.warning("log rotation failed", exc_info=error)
            self._kill_unneeded_standbys(now)
        if self._notifier.watchdog_s is not None and now >= self._next_watchdog:
            self._next_watchdog = now + int(self._notifier.watchdog_s * 1e9)
            self._notifier.notify("WATCHDOG=1", wait_s=0)

    def _check_files(self, now: int) -> None:
        """Stop when a file that the daemon has opened is missing, a moment after health has begun to tell so."""
        if self._failed_ns is not None:
            if now - self._failed_ns >= _FAILURE_REPORT_MS * _MS:
                self._stop(ExitCode.IO_ERROR, self._children.failure)
            return
        missing, changed = self._files.check(now)
        self._changed = self._changed or changed
        if missing is not None:
            self._fail(missing)

    def _fail(self, reason: str) -> None:
        """The daemon cannot go on; nothing is started any more, and it stops in a moment. The first reason counts."""
        if self._failed_ns is None:
            self._failed_ns = self._clock.monotonic_ns()
            self._children.failure = reason
            self._changed = True
            self._log.critical("daemon_failed", detail=reason)

    # starting

    def _start_groups(self) -> None:
        """Each group starts when the one before it is ready; an optional child holds nobody up.

        The interpreters of all groups that serving waits for import their code while the first one starts. Those behind
        the last core group start when the daemon has served for a moment: the first requests have the cores.
        """
        while self._started_groups < self._children.group_count:
            if self._started_groups and not self._children.group_is_ready(self._started_groups - 1):
                return
            late = self._started_groups > self._last_core_group
            if late and (not self._serving or self._clock.monotonic_ns() < self._late_start_ns):
                return
            for child in self._children.group(self._started_groups):
                self._launch(child)
            if self._failed_ns is not None:
                return
            self._started_groups += 1
            if self._started_groups == 1:
                for child in self._children:
                    if child.group <= self._last_core_group and not child.process.exists:
                        self._spawn_standby(child)

    def _check_serving(self) -> None:
        """Once: everything that is needed is up, and systemd and the person at the terminal are told."""
        if self._serving or self._started_groups <= self._last_core_group:
            return
        if self._children.all_ready():
            self._serving = True
            self._late_start_ns = self._clock.monotonic_ns() + LATE_START_MS * _MS
            self._log.info("serving")
            self._notifier.notify("READY=1")
            if self.on_serving is not None:
                self.on_serving()

    def _spawn_standbys(self) -> None:
        """Once in each life, and not while anybody waits for another birth, which would be slowed down by it."""
        due = [child for child in self._children if child.standby_due and child.state == UP]
        if not due or not self._serving or not self._children.all_ready():
            return
        for child in due:
            child.standby_due = False
            self._spawn_standby(child)

    def _kill_unneeded_standbys(self, now: int) -> None:
        """A standby that a death was the reason for is not kept when no other death has followed for a while."""
        for child in self._children:
            lived_ns = 0 if child.ready_ms is None else now - child.ready_ms * _MS
            if child.spec.standby_after_crash and lived_ns > STANDBY_AFTER_CRASH_MS * _MS:
                child.process.kill_standby()
        if self._children.forget_crashes(now - STANDBY_AFTER_CRASH_MS * _MS):
            self._apply_child_set()

    def _launch(self, child: Child) -> None:
        """A new life of ``child`` has begun, or the failure to begin it counts as a death before Ready."""
        if self._drain is not None or self._failed_ns is not None or not self._may_launch():
            return
        child.begin_incarnation(self._clock.monotonic_ns(), self.config)
        self._changed = True
        try:
            sync_point("supervisor.before_spawn")
            child.process.launch(encode_context(self._context_for(child)))
        except OSError as error:  # no memory, no processes, no disk
            self._log.error("spawn failed", child=child.name, exc_info=error)
            self._restart_or_give_up(child, f"could not be started: {error.strerror}")
            return
        self._log.info("spawned", child=child.name, child_incarnation=child.incarnation, pid=child.process.pid)
        sync_point("supervisor.after_spawn_before_ready")

    def _may_launch(self) -> bool:
        """Return whether a new process would find the database that the others have; where not, stop."""
        missing = self._files.missing()
        if missing is not None:
            self._fail(missing)
        return missing is None

    def _context_for(self, child: Child) -> ChildContext:
        return ChildContext(
            name=child.name,
            role=child.spec.role,
            incarnation=child.incarnation,
            boot_id=self._boot.boot_id,
            supervisor_pid=os.getpid(),
            workspace=self._boot.workspace,
            socket_dir=self._boot.socket_dir,
            config=self.config,
            listen_fds=child.process.inherited,
            console=self._boot.console,
            started_at_ms=self._boot.started_at_ms,
            bus_key=self._boot.bus_key,
            files=self._files.lasting,
        )

    # watching

    def _check_liveness(self, now: int) -> None:
        """A child that has been silent for too long is dead; SIGCHLD then says when it may be born again.

        When this loop itself was held up (the machine slept, the process was stopped), silence proves nothing.
        """
        limits = self.config.supervision
        held_up = now - self._last_pass_ns > 2 * limits.heartbeat_ms * _MS
        for child in self._children:
            if not child.process.exists or child.kill_reason:
                continue
            if held_up:
                child.last_seen_ns = now
            if child.exit_notice is not None:
                # It has message its last words, and what it would still do nobody waits for.
                allowed, why = limits.heartbeat_ms * limits.liveness, "was killed"
            elif child.ready_ms is None:
                allowed, why = limits.start_timeout_ms, "was not ready in time"
            else:
                allowed, why = limits.heartbeat_ms * limits.liveness, "went silent"
            if now - child.last_seen_ns > allowed * _MS:
                silent_ms = (now - child.last_seen_ns) // _MS
                if child.exit_notice is not None:
                    self._log.warning("leaving child killed", child=child.name, silent_ms=silent_ms)
                else:
                    self.counters["hb_missed"] += 1
                    self._log.error("silent child killed", child=child.name, silent_ms=silent_ms)
                child.kill_reason = why
                child.state = RESTARTING
                child.detail = why
                self._changed = True
                child.process.kill()

    def _reap(self) -> None:
        """Every child that has exited is known to have; only our own children are waited for."""
        for child in self._children:
            code = child.process.reap()
            if code is not None:
                if code > 0 and child.exit_notice is None and self._control.poll(_EXIT_NOTICE_WAIT_MS):
                    self._read_messages()
                child.process.clear()
                self._on_exit(child, code)

    def _on_exit(self, child: Child, code: int) -> None:
        sync_point("supervisor.on_child_exit")
        words = child.exit_notice.detail if child.exit_notice is not None else ""
        if child.kill_reason:
            how = child.kill_reason
        elif code < 0:
            how = f"died of {signal.Signals(-code).name}"
        else:
            how = f"exited with {code}"
        if code < 0 and child.exit_notice is not None:
            code = child.exit_notice.code  # however its process ended, it had left
            how = f"{how} while leaving with {code}"
        cause = f"{how}: {words}" if words else how
        self._changed = True
        if self._drain is not None or child.stop_deadline_ns is not None or not child.wanted:
            child.state = STOPPING
            child.detail = cause
            child.stop_deadline_ns = None
            self._log.info("child stopped", child=child.name, cause=cause)
            if self._drain is None and child.wanted:  # again, since it was asked to leave
                self._start_soon(child)
            return
        self._log.error("child died", child=child.name, child_incarnation=child.incarnation, cause=cause)
        if code in _FATAL_EXIT_CODES:
            child.state = FAILED
            child.detail = cause
            self._stop(code, f"{child.name}: {words or how}")
            return
        if (missing := self._files.missing(exited=child)) is not None:
            child.state = FAILED
            child.detail = cause
            self._fail(missing)
            return
        if self._children.note_crash(child.spec.role):
            self._apply_child_set()
        self._restart_or_give_up(child, cause)

    def _restart_or_give_up(self, child: Child, cause: str) -> None:
        now_ms = self._clock.monotonic_ns() // _MS
        limits = self.config.supervision
        budget = getattr(limits.budgets, child.spec.role, RestartBudget())
        policy = RestartPolicy(
            budget.restarts, budget.window_ms, limits.backoff_min_ms, limits.backoff_max_ms, limits.settled_ms
        )
        decision = decide_restart(policy, child.crash_history, now_ms=now_ms, ready_at_ms=child.ready_ms, rng=self._rng)
        early = decision.history.in_a_row > 0
        child.crash_history = decision.history
        child.detail = cause
        self._changed = True
        if isinstance(decision, GiveUp) or (child.on_probation and early):
            self._over_budget(child, cause)
            return
        child.on_probation = False
        child.state = RESTARTING
        child.restart_at_ns = (now_ms + decision.delay_ms) * _MS
        self._log.info("child will be restarted", child=child.name, delay_ms=decision.delay_ms)

    def _over_budget(self, child: Child, cause: str) -> None:
        """A core child ends the daemon, unless a sibling of its pool serves; an optional one waits ten minutes."""
        siblings = [other for other in self._children.group(child.group) if other is not child and other.state == UP]
        if child.spec.core and not siblings:
            child.state = FAILED
            self._stop(ExitCode.GIVE_UP, f"{child.name} cannot be kept alive: {cause}")
            return
        child.state = FAILED
        child.on_probation = True
        child.restart_at_ns = self._clock.monotonic_ns() + self._retry_failed_ns
        self._log.error("child given up for now", child=child.name, cause=cause)

    def _restart_due(self) -> None:
        now = self._clock.monotonic_ns()
        for child in self._children:
            if not child.process.exists and child.restart_at_ns is not None and now >= child.restart_at_ns:
                sync_point("supervisor.before_restart")
                self._launch(child)

    def _start_soon(self, child: Child) -> None:
        """A first life, for which nobody is to blame, begins in this turn or the next.

        One that a death is the reason for lets the next life of the one that died start first.
        """
        child.state = STARTING
        child.detail = ""
        wait_ms = LATE_START_MS if child.spec.after_crash_of else 0
        child.restart_at_ns = self._clock.monotonic_ns() + wait_ms * _MS
        self._changed = True

    def _stop_unneeded(self, now: int) -> None:
        """Those whom the configuration has no use for are on their way out; who takes too long is killed."""
        for child in self._children.stopping():
            if child.stop_deadline_ns is None:
                drain_ms = self.config.supervision.drain_ms
                child.stop_deadline_ns = now + drain_ms * _MS
                child.state = STOPPING
                child.detail = "not needed any more"
                child.process.kill_standby()
                self._changed = True
                self._log.info("child is not needed any more", child=child.name)
                if child.ready_ms is not None and self._control.tell(child.name, Drain(drain_ms)):
                    continue
            elif now < child.stop_deadline_ns:
                continue
            if not child.kill_reason:
                child.kill_reason = "was killed instead of leaving"
                child.process.kill()

    # reachable and telling

    def _read_messages(self) -> None:
        for message in self._control.read(self._children.incarnations()):
            self._on_message(self._children[message.name], message)

    def _on_message(self, child: Child, message: ControlMessage) -> None:
        child.last_seen_ns = self._clock.monotonic_ns()
        if not self._serving and child.ready_ms is None:
            self._extend_start()
        if not child.has_reported:
            child.has_reported = True
            self._control.tell(child.name, self._children.states())
        self._send_config(child)
        match message.body:
            case Starting(detail):
                if detail and detail != child.detail:
                    child.detail = detail
                    self._changed = True
            case Ready(detail):
                self._on_ready(child, detail)
            case Heartbeat(counters):
                child.counters = counters
                if child.spec.listens:  # it tells the outside how the tree is, so it must know that we still know
                    self._control.tell(child.name, self._children.states())
            case Exiting():
                child.exit_notice = message.body
            case GetTree():
                self._control.answer(message, self._children.states())
            case WalPressure():
                self._relieve_wal(message.body)
            case SnapshotsEnded(asked):
                child.snapshots_ended = asked
            case FilesOpened():
                self._files.record_opened(child, message.body)
            case _:
                assert_never(message.body)

    def _extend_start(self) -> None:
        """A child is getting on with its start: the service manager waits for the daemon as long as we do."""
        now, allowed_ms = self._clock.monotonic_ns(), self.config.supervision.start_timeout_ms
        if now >= self._next_extension:
            self._next_extension = now + allowed_ms * _MS // 4
            self._notifier.notify(f"EXTEND_TIMEOUT_USEC={2 * allowed_ms * 1000}", wait_s=0)

    def _on_ready(self, child: Child, detail: str) -> None:
        """The child serves; once in a life, and never of one that has been condemned."""
        if child.ready_ms is not None or not child.process.exists or child.kill_reason:
            return
        child.ready_ms = child.last_seen_ns // _MS
        child.state = UP if self._drain is None and child.stop_deadline_ns is None else STOPPING
        child.detail = detail
        self._changed = True
        self._log.info("child is up", child=child.name, child_incarnation=child.incarnation)
        child.standby_due = child.spec.standby or (
            child.spec.standby_after_crash and child.incarnation > child.earlier_incarnations + 1
        )

    def _spawn_standby(self, child: Child) -> None:
        """An interpreter prepares itself for the next life of ``child``, as it would be now."""
        child.process.spawn_standby(warmup_payload(self._context_for(child)))

    def _relieve_wal(self, pressure: WalPressure) -> None:
        """Readers have been asked to end their snapshots; if it is severe, those that did not when asked are dead.

        A reader that turns follows within milliseconds, one that hangs is found out by its silence: this is for one
        that does neither. Only a reader that somebody else runs can still be in the way after that.
        """
        for child in self._children:
            if not (child.spec.reads and child.process.exists and child.has_reported) or child.kill_reason:
                continue
            if pressure.severe and child.snapshots_ended < child.snapshots_asked:
                child.kill_reason = "held a snapshot against the write-ahead log"
                child.state = RESTARTING
                child.detail = child.kill_reason
                self._changed = True
                self._log.error("reader killed", child=child.name, log_bytes=pressure.log_bytes)
                child.process.kill()
            elif self._control.tell(child.name, EndSnapshots(child.snapshots_asked + 1)):
                child.snapshots_asked += 1

    def _broadcast(self, body: msgspec.Struct) -> None:
        self._control.broadcast(self._children.reachable(), body)

    # signals, reload, the end

    def _read_signals(self, signals: int) -> None:
        for number in read_pending(signals):
            if number in {signal.SIGTERM, signal.SIGINT}:
                self._stop_requested(signal.Signals(number).name)
            elif number == signal.SIGHUP:
                self._reload()

    def _stop_requested(self, name: str) -> None:
        sync_point("supervisor.on_sigterm")
        if self._drain is None:
            self._log.info("stopping", signal=name)
            self._stop(ExitCode.OK, "")
        elif not self._drain.forced:
            self._log.warning("stop forced", signal=name)
            self._drain.force()

    def _reload(self) -> None:
        """The new configuration is in force everywhere, or the old one is and the log says what is wrong."""
        try:
            loaded = self._load()
        except ConfigError as error:
            for problem in error.detail.splitlines():
                self._log.error("configuration refused", problem=problem)
            return
        requested = self._boot.config.gateway
        if (loaded.gateway.host, loaded.gateway.port) != (requested.host, requested.port):
            self._log.warning("a new host or port takes effect at the next start")
        if loaded.searcher.processes != self.config.searcher.processes:
            self._log.warning("a new number of searchers takes effect at the next start")
        self.config = with_address(loaded, self.config.gateway.host, self.config.gateway.port)
        set_level(self.config.logging)
        if self._drain is None:
            self._apply_child_set()
        now = self._clock.monotonic_ns()
        for child in self._children:
            child.last_seen_ns = now  # how long it has been silent says nothing where it could be silent for longer
            if child.process.exists and child.has_reported:
                self._send_config(child)
        self._log.info("configuration reloaded")

    def _apply_child_set(self) -> None:
        """The optional children are those that the configuration in force asks for, or will be within a moment."""
        for child in self._children.reconfigure(self.config):
            self._log.info("child is needed now", child=child.name)
            self._changed = True
            if child.group < self._started_groups and not child.process.exists:
                self._start_soon(child)  # the others begin with their group, or when their former life has ended

    def _send_config(self, child: Child) -> None:
        """The child has been told the configuration in force, unless it was born with it or told before.

        Whoever could not be told (it had not spoken yet, its queue was full) is told at its next word.
        """
        if child.config is not self.config and self._control.tell(
            child.name, Reload(msgspec.json.encode(self.config).decode())
        ):
            child.config = self.config

    def _stop(self, code: int, reason: str) -> None:
        """The tree is being drained, and the daemon's exit code is known; the first reason counts."""
        if self._drain is not None:
            return
        self._exit_code = code
        self._exit_reason = reason
        if reason:
            self._log.critical("giving up", code=code, reason=reason)
            self._children.failure = reason
            self._broadcast(self._children.states())
        self._notifier.notify("STOPPING=1")
        self._drain = TreeDrain(self._children, self._control, self._clock, self.config.supervision.drain_ms)
        self._drain.begin()
        self._changed = True

    @property
    def finished(self) -> bool:
        """The tree has come down, and no child is left."""
        return self._drain is not None and not any(child.process.exists for child in self._children)
