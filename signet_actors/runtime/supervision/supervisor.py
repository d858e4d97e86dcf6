"""The supervisor's loop and policy: start the tree in order, watch it, restart crashed children, shut it down.

One thread, one loop, no knowledge of what the children do. A child is up when its Ready message arrives. It has exited
when the kernel says so. It hangs when it has been silent for ``heartbeat_ms * liveness``; then it is killed.
A child is only started again after the kernel has reported the exit of its former process.

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

from signet_actors.config.schema import Config
from signet_actors.errors import ConfigError, ExitCode, WorkspaceLocked
from signet_actors.protocol import control as messages
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.logging.configuration import set_level
from signet_actors.runtime.processes.child_context import ChildContext, encode_context
from signet_actors.runtime.processes.signals import has_terminal, read_pending
from signet_actors.runtime.supervision.child_process import ChildProcess
from signet_actors.runtime.supervision.children import Child, Children, ChildSpec
from signet_actors.runtime.supervision.control_socket import ControlMessage, ControlSocket
from signet_actors.runtime.supervision.daemon_files import DaemonFiles
from signet_actors.runtime.supervision.drain import TreeDrain, drain_unneeded
from signet_actors.runtime.supervision.file_watch import FileWatch
from signet_actors.runtime.supervision.fork_server import ForkServer, reap_orphans
from signet_actors.runtime.supervision.liveness import kill_silent, relieve_wal
from signet_actors.runtime.supervision.reload import Reloader
from signet_actors.runtime.supervision.restart_policy import GiveUp
from signet_actors.runtime.supervision.sd_notify import Notifier
from signet_actors.runtime.supervision.upkeep import Upkeep
from signet_actors.runtime.sync_points import sync_point

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

RETRY_FAILED_MS = 600_000
"""How long until a child that exceeded its budget, and without which the daemon runs, is tried again."""

_MS = 1_000_000
_FATAL_EXIT_CODES = frozenset({ExitCode.CONFIG, ExitCode.PROVIDER_CONFIG, ExitCode.IN_USE})
LATE_START_MS = 1000
"""How long the daemon serves before the groups after the last core group start."""
_FAILURE_REPORT_MS = 1000
"""How long health reports a fatal failure before the daemon stops."""
QUIET_AFTER_CRASH_MS = 600_000
"""How long without a crash until a child that runs because of one (``ChildSpec.after_crash_of``) is not needed."""
_FORK_SERVER_POLL_MS = 10
_EXIT_NOTICE_WAIT_MS = 30
"""How long to wait for an exit notice: it arrives through another channel than the exit itself."""


class Supervisor:
    """Runs ``tree`` until it is asked to stop or cannot go on.

    ``run`` does everything; a simulation calls ``run_once`` and ``wait_ms`` instead, with simulated processes.
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
        ends_with_terminal: bool = False,
    ) -> None:
        self.config = config
        self._ends_with_terminal = ends_with_terminal
        self.counters = counters
        self.on_serving: Callable[[], object] | None = None
        self._boot = boot
        self._control = control
        self._clock = clock
        self._rng = rng
        self._log = log
        self._notifier = notifier
        self._retry_failed_ns = retry_failed_ms * _MS

        self._fork_server = None if make_process is not None else ForkServer([spec.module for spec in tree], log)

        def real_process(spec: ChildSpec, name: str) -> ChildProcess:
            listeners = listen_fds if spec.listens else ()
            return ChildProcess(name, spec.module, listeners, log, spec.environ, self._fork_server)

        self._children = Children(tree, config, make_process or real_process)
        self._files = FileWatch(self._children, daemon_files, log)
        self._reloader = Reloader(load, boot.config, Path(boot.workspace), self._children, log)
        self._started_groups = 0
        self._last_core_group = max((child.group for child in self._children if child.spec.core), default=0)
        self._serving = False
        self._late_start_ns = 0
        self._changed = False
        self._last_pass_ns = 0
        self._upkeep = Upkeep(Path(boot.workspace), control, notifier, clock, log)
        self._exit_code = int(ExitCode.OK)
        self.exit_reason = ""
        """Why the tree stopped, as text; empty when it was asked to."""
        self._drain: TreeDrain | None = None
        self._failed_ns: int | None = None

    def states(self) -> messages.TreeChanged:
        return self._children.states()

    def run(self, signals: int) -> int:
        """Run until the tree has stopped and no child is left; return the exit code. ``signals``: a ``signal_pipe``."""
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
            if self._fork_server is not None:
                self._fork_server.stop()
        return self._exit_code

    def run_once(self, signals: int) -> None:
        """Handle everything that has happened since the last call; never waits."""
        now = self._clock.monotonic_ns()
        self._read_signals(signals)
        self._read_messages()
        self._reap()
        if self._drain is None:
            if self._fork_server is not None:
                self._fork_server.start()
            self._check_files(now)
            if self._reloader.file_changed(now):
                self._reload()
        if self._drain is None:
            delayed = now - self._last_pass_ns > 2 * self.config.supervision.heartbeat_ms * _MS
            self._changed |= kill_silent(
                self._children, now, self.config.supervision, self._log, self.counters, loop_was_delayed=delayed
            )
            self._start_groups()
            self._restart_due()
            self._changed |= drain_unneeded(self._children, now, self.config, self._control, self._log)
            self._check_serving()
        elif self._drain.step():
            self._changed = True
        self._last_pass_ns = now
        if self._changed:
            self._changed = False
            self._control.broadcast(self._children.reachable(), self._children.states())
        quiet_since = now - QUIET_AFTER_CRASH_MS * _MS
        if self._upkeep.run(self.config) and self._drain is None and self._children.forget_crashes(quiet_since):
            self._apply_child_set()

    def wait_ms(self) -> int:
        """Return how long ``run`` may wait for events before the next call of ``run_once``."""
        now = self._clock.monotonic_ns()
        until = min(now + self.config.supervision.heartbeat_ms * _MS, self._upkeep.next_rotation_ns)
        if self._notifier.watchdog_s is not None:
            until = min(until, self._upkeep.next_watchdog_ns)
        until = min([until, *self._children.due_times_ns()])
        if self._waits_for_fork_server():
            until = min(until, now + _FORK_SERVER_POLL_MS * _MS)
        if self._serving and self._started_groups < self._children.group_count and self._late_start_ns > now:
            until = min(until, self._late_start_ns)
        if self._drain is not None:
            until = min(until, now + 50 * _MS)  # polling faster would not speed up an exit
            if self._drain.due_ns > now:
                until = min(until, self._drain.due_ns)
        return max(0, -(-(until - now) // _MS))

    def _check_files(self, now: int) -> None:
        """Stop when a file that the daemon opened is missing, after health has reported it for a moment."""
        if self._failed_ns is not None:
            if now - self._failed_ns >= _FAILURE_REPORT_MS * _MS:
                self._stop(ExitCode.IO_ERROR, self._children.failure)
            return
        missing, changed = self._files.check(now)
        self._changed = self._changed or changed
        if missing is not None:
            self._fail(missing)

    def _fail(self, reason: str) -> None:
        """Record a fatal failure: nothing is started any more, and the daemon stops soon. Only the first one counts."""
        if self._failed_ns is None:
            self._failed_ns = self._clock.monotonic_ns()
            self._children.failure = reason
            self._changed = True
            self._log.critical("daemon_failed", detail=reason)

    def _start_groups(self) -> None:
        """Start each group when the one before it is ready; optional children delay no group.

        The first one waits for the fork server. Groups after the last core one start after the daemon has served for a
        moment, so that the first requests have the CPU cores.
        """
        if self._waits_for_fork_server():
            return
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

    def _waits_for_fork_server(self) -> bool:
        return self._started_groups == 0 and self._fork_server is not None and self._fork_server.is_starting

    def _check_serving(self) -> None:
        """Report once that everything needed is up: to systemd, the log and the terminal."""
        if self._serving or self._started_groups <= self._last_core_group:
            return
        if self._children.all_ready():
            self._serving = True
            self._late_start_ns = self._clock.monotonic_ns() + LATE_START_MS * _MS
            self._log.info("serving")
            self._notifier.notify("READY=1")
            if self.on_serving is not None:
                self.on_serving()

    def _launch(self, child: Child) -> None:
        """Start a process of ``child``; a failure to start counts as an early crash."""
        if self._drain is not None or self._failed_ns is not None or not self._may_launch():
            return
        child.begin_incarnation(self._clock.monotonic_ns(), self.config)
        self._changed = True
        try:
            sync_point("supervisor.before_spawn")
            child.process.launch(encode_context(self._context_for(child)))
        except OSError as error:  # no memory, no processes, no disk
            self._log.error("spawn_failed", child=child.name, exc_info=error)
            self._restart_or_give_up(child, f"could not be started: {error.strerror}")
            return
        self._log.info("spawned", child=child.name, child_incarnation=child.incarnation, pid=child.process.pid)
        sync_point("supervisor.after_spawn_before_ready")

    def _may_launch(self) -> bool:
        """Return whether a new process would open the same database files as the others; if not, fail."""
        missing = self._files.missing()
        if missing is not None:
            self._fail(missing)
        return missing is None

    def _context_for(self, child: Child) -> ChildContext:
        return msgspec.structs.replace(
            self._boot,
            name=child.name,
            role=child.spec.role,
            incarnation=child.incarnation,
            supervisor_pid=os.getpid(),
            config=self.config,
            listen_fds=child.process.inherited,
            files=self._files.lasting,
        )

    def _reap(self) -> None:
        """Handle the exits of children; waits for no other processes."""
        for child in self._children:
            code = child.process.reap()
            if code is not None:
                if code > 0 and child.exit_notice is None and self._control.poll(_EXIT_NOTICE_WAIT_MS):
                    self._read_messages()
                child.process.clear()
                self._on_exit(child, code)
        if self._fork_server is not None:
            reap_orphans({self._fork_server.pid, *(child.process.pid for child in self._children)})

    def _on_exit(self, child: Child, code: int) -> None:
        sync_point("supervisor.on_child_exit")
        code, notice, cause = child.exit_cause(code)
        self._changed = True
        if self._drain is not None or child.stop_deadline_ns is not None or not child.wanted:
            child.state = messages.STOPPING
            child.detail = cause
            child.stop_deadline_ns = None
            self._log.info("child_stopped", child=child.name, cause=cause)
            if self._drain is None and child.wanted:  # needed again since it was asked to stop
                self._start_soon(child)
            return
        self._log.error("child_exited", child=child.name, child_incarnation=child.incarnation, cause=cause)
        if code in _FATAL_EXIT_CODES:
            child.state = messages.FAILED
            child.detail = cause
            self._stop(code, f"{child.name}: {notice or cause}")
            return
        if (missing := self._files.missing(exited=child)) is not None:
            child.state = messages.FAILED
            child.detail = cause
            self._fail(missing)
            return
        if self._children.note_crash(child.spec.role):
            self._apply_child_set()
        self._restart_or_give_up(child, cause)

    def _restart_or_give_up(self, child: Child, cause: str) -> None:
        now_ms = self._clock.monotonic_ns() // _MS
        decision = child.decide_restart(self.config.supervision, now_ms=now_ms, rng=self._rng)
        early = decision.history.in_a_row > 0
        child.crash_history = decision.history
        child.detail = cause
        self._changed = True
        if isinstance(decision, GiveUp) or (child.on_probation and early):
            self._over_budget(child, cause)
            return
        child.on_probation = False
        child.state = messages.RESTARTING
        child.restart_at_ns = (now_ms + decision.delay_ms) * _MS
        self._log.info("child_restart_scheduled", child=child.name, delay_ms=decision.delay_ms)

    def _over_budget(self, child: Child, cause: str) -> None:
        """Stop the daemon for a core child, unless another of its pool is up; else retry the child in ten minutes."""
        siblings = [
            other for other in self._children.group(child.group) if other is not child and other.state == messages.UP
        ]
        if child.spec.core and not siblings:
            child.state = messages.FAILED
            self._stop(ExitCode.GIVE_UP, f"{child.name} keeps failing: {cause}")
            return
        child.state = messages.FAILED
        child.on_probation = True
        child.restart_at_ns = self._clock.monotonic_ns() + self._retry_failed_ns
        self._log.error("child_restart_postponed", child=child.name, cause=cause)

    def _restart_due(self) -> None:
        now = self._clock.monotonic_ns()
        for child in self._children:
            if not child.process.exists and child.restart_at_ns is not None and now >= child.restart_at_ns:
                sync_point("supervisor.before_restart")
                self._launch(child)

    def _start_soon(self, child: Child) -> None:
        """Schedule a first start, no restart; one because of a crash waits for the crashed child."""
        child.state = messages.STARTING
        child.detail = ""
        wait_ms = LATE_START_MS if child.spec.after_crash_of else 0
        child.restart_at_ns = self._clock.monotonic_ns() + wait_ms * _MS
        self._changed = True

    def _read_messages(self) -> None:
        for message in self._control.read(self._children.incarnations()):
            self._on_message(self._children[message.name], message)

    def _on_message(self, child: Child, message: ControlMessage) -> None:
        child.last_seen_ns, child.progress = self._clock.monotonic_ns(), None
        if not self._serving and child.ready_ms is None:
            self._upkeep.extend_start(self._clock.monotonic_ns(), self.config.supervision.start_timeout_ms)
        if not child.has_reported:
            child.has_reported = True
            self._control.tell(child.name, self._children.states())
        self._send_config(child)
        match message.body:
            case messages.Starting(detail):
                if detail and detail != child.detail:
                    child.detail = detail
                    self._changed = True
            case messages.Ready(detail):
                self._on_ready(child, detail)
            case messages.Heartbeat(counters):
                child.counters = counters
                if child.spec.listens:  # it reports health, so it must see that the supervisor is alive
                    self._control.tell(child.name, self._children.states())
            case messages.InCall(call, elapsed_ms):
                if call == "sync":
                    former_s = child.counters.get("sync_seconds", 0.0)
                    child.counters = {**child.counters, "sync_seconds": max(former_s, elapsed_ms / 1000)}
            case messages.Exiting():
                child.exit_notice = message.body
            case messages.GetTree():
                self._control.answer(message, self._children.states())
            case messages.WalPressure():
                self._changed |= relieve_wal(self._children, message.body, self._control, self._log)
            case messages.SnapshotsEnded(asked):
                child.snapshots_ended = asked
            case messages.FilesOpened():
                self._record_opened(child, message.body)
            case _:
                assert_never(message.body)

    def _record_opened(self, child: Child, files: messages.FilesOpened) -> None:
        """Watch the files that ``child`` opened; stop if another daemon has locked the database."""
        try:
            self._files.record_opened(child, files)
        except WorkspaceLocked as error:
            self._stop(ExitCode.IN_USE, error.detail)
        except ConfigError as error:
            self._stop(ExitCode.CONFIG, error.detail)

    def _on_ready(self, child: Child, detail: str) -> None:
        """Mark the child as up: once per incarnation, and never after it was killed."""
        if child.ready_ms is not None or not child.process.exists or child.kill_reason:
            return
        child.ready_ms = child.last_seen_ns // _MS
        child.state = messages.UP if self._drain is None and child.stop_deadline_ns is None else messages.STOPPING
        child.detail = detail
        self._changed = True
        self._log.info("child_up", child=child.name, child_incarnation=child.incarnation)

    def _read_signals(self, signals: int) -> None:
        for number in read_pending(signals):
            if number in {signal.SIGTERM, signal.SIGINT}:
                self._stop_requested(signal.Signals(number).name)
            elif number == signal.SIGHUP and self._ends_with_terminal and not has_terminal():
                if self._drain is None:  # the shell repeats the signal, which forces nothing
                    self._stop_requested("SIGHUP")
            elif number == signal.SIGHUP:
                self._reload()

    def _stop_requested(self, name: str) -> None:
        sync_point("supervisor.on_sigterm")
        if self._drain is None:
            self._log.info("stopping", signal=name)
            self._stop(ExitCode.OK, "")
        elif not self._drain.forced:
            self._log.warning("stop_forced", signal=name)
            self._drain.force()

    def _reload(self) -> None:
        """Load the configuration and apply it everywhere, or keep the old one and tell what is wrong."""
        self._changed = True
        loaded = self._reloader.load_again(self.config)
        if loaded is None:
            return
        self.config = loaded
        set_level(self.config.logging)
        if self._drain is None:
            self._apply_child_set()
        now = self._clock.monotonic_ns()
        for child in self._children:
            child.last_seen_ns = now  # the former limits may have allowed a longer silence
            if child.process.exists and child.has_reported:
                self._send_config(child)
        self._log.info("configuration_reloaded")

    def _apply_child_set(self) -> None:
        """Start and stop optional children as the current configuration requires."""
        for child in self._children.reconfigure(self.config):
            self._log.info("child_needed", child=child.name)
            self._changed = True
            if child.group < self._started_groups and not child.process.exists:
                self._start_soon(child)  # the others start with their group, or after their former process has exited

    def _send_config(self, child: Child) -> None:
        """Send the configuration unless the child has it; if that fails, again with its next message."""
        if child.config is not self.config and self._control.tell(
            child.name, messages.Reload(msgspec.json.encode(self.config).decode())
        ):
            child.config = self.config

    def _stop(self, code: int, reason: str) -> None:
        """Begin to drain the tree. Only the first call counts: it sets the exit code and the reason."""
        if self._drain is not None:
            return
        self._exit_code = code
        self.exit_reason = reason
        if reason:
            self._log.critical("stopping_after_failure", code=code, reason=reason)
            self._children.failure = reason
            self._control.broadcast(self._children.reachable(), self._children.states())
        self._notifier.notify("STOPPING=1")
        self._drain = TreeDrain(self._children, self._control, self._clock, self.config.supervision.drain_ms)
        self._drain.begin()
        self._changed = True

    @property
    def finished(self) -> bool:
        """True when the tree was stopped and no child process is left."""
        return self._drain is not None and not any(child.process.exists for child in self._children)
