"""The supervisor's machinery: starts the tree, watches it, restarts what dies, drains it.

One thread, one loop, no knowledge of what the children do. A child counts as up when it says Ready on the bus, as
dead when the kernel says so, and as hung when its work loop has been silent for ``heartbeat_ms * liveness``: then it
is killed, because only the kernel's word lets another life begin.

Source: reliability.md appendix A, R9, R10, R19, R21; section 2 rules 10 and 15; Erlang/OTP, one_for_one.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import zmq

from signet_actors.config.schema import Config, RestartBudget
from signet_actors.errors import ConfigError, ExitCode, WorkspaceLocked
from signet_actors.protocol.control import (
    FAILED,
    RESTARTING,
    STARTING,
    STOPPING,
    UP,
    ChildSays,
    ChildState,
    Drain,
    GetTree,
    Heartbeat,
    Leaving,
    Ready,
    Reload,
    Starting,
    TreeChanged,
)
from signet_actors.protocol.header import Header
from signet_actors.runtime.boot import Boot, encode_boot
from signet_actors.runtime.clock import Clock, SystemClock
from signet_actors.runtime.envelope import UNDECODABLE, Speaker, new_counters
from signet_actors.runtime.listener import open_listener
from signet_actors.runtime.log_rotation import rotate_logs
from signet_actors.runtime.logs import configure_logging
from signet_actors.runtime.restart_policy import GiveUp, Policy, Record, after_death
from signet_actors.runtime.sd_notify import Notifier
from signet_actors.runtime.sockets import (
    SUPERVISOR_SOCKET,
    bind_router,
    close_all,
    make_private_directory,
    new_context,
    remove_stale_sockets,
    socket_directory,
)
from signet_actors.runtime.sync_points import sync_point
from signet_actors.runtime.workspace_lock import WorkspaceLock

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

_MS = 1_000_000
_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD})
_FATAL_FOR_ALL = frozenset({ExitCode.CONFIG, ExitCode.PROVIDER_CONFIG, ExitCode.IN_USE})
_RETRY_FAILED_MS = 600_000
_ROTATE_MS = 10_000
_PIPE_BYTES = 48 * 1024
"""Less than an empty pipe takes at once."""
_RESERVE_MS = 300
"""Part of the drain time that is kept for each group that is still to be stopped."""
_UNKILLABLE_MS = 2_000
_LAST_WORDS_MS = 30
"""The reason of an exit travels by another way than the exit itself, and may come a moment later."""


def _one(_config: Config) -> int:
    return 1


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """One line of the tree.

    ``core``   the daemon gives up when the child cannot be kept alive; an optional child ends ``failed`` instead.
    ``count``  how many of it; more than one makes a pool named ``<role>-1`` to ``<role>-N``, of which the rest serves
               while one is away.
    ``pool``   names are numbered even when there is only one.
    ``listens`` the child inherits the listening TCP socket.
    ``standby`` an interpreter that has imported the code stands by for the next life, for children whose import is
               long and whose absence is felt.
    """

    role: str
    module: str
    core: bool
    count: Callable[[Config], int] = _one
    pool: bool = False
    listens: bool = False
    standby: bool = False


@dataclass(slots=True)
class _Child:
    """A name in the tree, over all its lives."""

    spec: ChildSpec
    name: str
    group: int
    state: str = STARTING
    incarnation: int = 0
    process: subprocess.Popen[bytes] | None = None
    record: Record = field(default_factory=Record)
    heard_ns: int = 0
    spoke: bool = False
    ready_ms: int | None = None
    restart_at_ns: int | None = None
    detail: str = ""
    last_words: Leaving | None = None
    killed_because: str = ""
    on_probation: bool = False
    standby: subprocess.Popen[bytes] | None = None
    counters: dict[str, float] = field(default_factory=dict)


class Supervisor:
    """Runs ``tree`` until it is asked to stop or cannot go on; see the module."""

    def __init__(
        self,
        tree: Sequence[ChildSpec],
        config: Config,
        boot: Boot,
        *,
        clock: Clock,
        rng: random.Random,
        log: FilteringBoundLogger,
        listener: socket.socket | None,
        load: Callable[[], Config],
        notifier: Notifier,
        retry_failed_ms: int = _RETRY_FAILED_MS,
    ) -> None:
        self.config = config
        self.counters = new_counters()
        self.on_serving: Callable[[], None] | None = None
        self._boot = boot
        self._clock = clock
        self._rng = rng
        self._log = log
        self._listener = listener
        self._load = load
        self._notifier = notifier
        self._retry_failed_ns = retry_failed_ms * _MS
        self._speaker = Speaker(boot)
        self._decode = msgspec.msgpack.Decoder(ChildSays).decode
        self._children: dict[str, _Child] = {}
        for group, spec in enumerate(tree):
            count = spec.count(config)
            for number in range(1, count + 1):
                name = f"{spec.role}-{number}" if spec.pool or count > 1 else spec.role
                self._children[name] = _Child(spec, name, group)
        self._groups = len(tree)
        self._started_groups = 0
        self._serving = False
        self._changed = False
        self._last_turn = 0
        self._next_rotation = 0
        self._next_watchdog = 0
        self._exit_code: int | None = None
        self._exit_reason = ""
        self._drain_until = 0
        self._drain_group = 0
        self._drain_group_until = 0
        self._forced_at = 0

    @property
    def exit_reason(self) -> str:
        """Why the tree came down, in words; empty when it was asked to."""
        return self._exit_reason

    def run(self) -> int:
        """The daemon's exit code; no child is left when this returns."""
        context = new_context()
        self._bus = bind_router(context, self._boot.socket_dir, SUPERVISOR_SOCKET)
        with _signal_pipe() as signals:
            poller = zmq.Poller()
            poller.register(self._bus, zmq.POLLIN)
            poller.register(signals, zmq.POLLIN)
            self._last_turn = self._clock.monotonic_ns()
            try:
                while not self._finished():
                    self._turn(signals)
                    if not self._finished():
                        poller.poll(self._wait_ms())
            finally:
                self._kill_everything()
                close_all(context, farewell=False)
        return self._exit_code or ExitCode.OK

    # one turn of the loop

    def _turn(self, signals: int) -> None:
        now = self._clock.monotonic_ns()
        self._read_signals(signals)
        self._read_bus()
        self._reap()
        if self._exit_code is None:
            self._check_liveness(now)
            self._start_groups()
            self._restart_due()
            self._check_serving()
        else:
            self._drain_step()
        self._last_turn = now
        if self._changed:
            self._changed = False
            self._broadcast(self._tree())
        self._housekeeping()

    def _wait_ms(self) -> int:
        now = self._clock.monotonic_ns()
        until = min(now + self.config.supervision.heartbeat_ms * _MS, self._next_rotation)
        if self._notifier.watchdog_s is not None:
            until = min(until, self._next_watchdog)
        for child in self._children.values():
            if child.restart_at_ns is not None:
                until = min(until, child.restart_at_ns)
        if self._exit_code is not None:
            until = min(until, self._drain_group_until, now + 50 * _MS)
        return max(0, -(-(until - now) // _MS))

    def _housekeeping(self) -> None:
        now = self._clock.monotonic_ns()
        if now >= self._next_rotation:
            self._next_rotation = now + _ROTATE_MS * _MS
            try:
                rotate_logs(Path(self._boot.workspace) / ".daemon" / "logs", self.config.logging, self._clock.wall_ms())
            except OSError as error:
                self._log.warning("log rotation failed", exc_info=error)
        if self._notifier.watchdog_s is not None and now >= self._next_watchdog:
            self._next_watchdog = now + int(self._notifier.watchdog_s * 1e9)
            self._notifier.notify("WATCHDOG=1", wait_s=0)

    # starting

    def _start_groups(self) -> None:
        """Each group starts when the one before it is ready; an optional child holds nobody up.

        The interpreters of all later groups import their code while the first one starts.
        """
        while self._started_groups < self._groups:
            if self._started_groups and not self._group_ready(self._started_groups - 1):
                return
            for child in self._group(self._started_groups):
                self._launch(child)
            self._started_groups += 1
            if self._started_groups == 1:
                for child in self._children.values():
                    if child.process is None:
                        self._prepare(child)

    def _group(self, group: int) -> list[_Child]:
        return [child for child in self._children.values() if child.group == group]

    def _group_ready(self, group: int) -> bool:
        """True when each core child is up; of a pool, the rest may go ahead of one that died while starting."""
        members = self._group(group)
        waited_for = [child for child in members if child.state != UP and child.spec.core]
        if len(members) > 1 and any(child.state == UP for child in members):
            waited_for = [child for child in waited_for if child.state == STARTING and child.incarnation == 1]
        return not waited_for

    def _check_serving(self) -> None:
        """Once: everything that is needed is up, and systemd and the person at the terminal are told."""
        if self._serving or self._started_groups < self._groups:
            return
        if all(self._group_ready(group) for group in range(self._groups)):
            self._serving = True
            self._log.info("serving")
            self._notifier.notify("READY=1")
            if self.on_serving is not None:
                self.on_serving()

    def _prepare(self, child: _Child) -> None:
        """An interpreter has been started that imports the child's code and then waits for boot data on its stdin.

        It is not yet a life of the child: it has no name, no socket and no heartbeat, and its death is nobody's.
        """
        if child.standby is not None:
            return
        try:
            child.standby = self._interpreter(child, subprocess.PIPE)
        except OSError as error:  # no memory or no processes: the next life starts cold, if it can
            self._log.warning("standby failed", child=child.name, exc_info=error)
            return
        self._log.info("standby prepared", child=child.name, pid=child.standby.pid)

    def _launch(self, child: _Child) -> None:
        """A new life of ``child`` has begun, in the interpreter that stands by or in a fresh one.

        A fresh one reads its boot data from an unlinked file, because a pipe could block here.
        """
        sync_point("supervisor.before_spawn")
        child.incarnation += 1
        child.state = STARTING
        child.spoke = False
        child.ready_ms = None
        child.restart_at_ns = None
        child.last_words = None
        child.killed_because = ""
        child.counters = {}
        child.heard_ns = self._clock.monotonic_ns()
        self._changed = True
        document = encode_boot(self._boot_of(child))
        child.process = self._adopt_standby(child, document)
        if child.process is None:
            try:
                with tempfile.TemporaryFile() as file:
                    file.write(document)
                    file.seek(0)
                    child.process = self._interpreter(child, file.fileno())
            except OSError as error:  # no memory, no processes, no disk: a death before Ready
                self._log.error("spawn failed", child=child.name, exc_info=error)
                self._died(child, f"could not be started: {error.strerror}")
                return
        self._log.info("spawned", child=child.name, child_incarnation=child.incarnation, pid=child.process.pid)
        sync_point("supervisor.after_spawn_before_ready")

    def _adopt_standby(self, child: _Child, document: bytes) -> subprocess.Popen[bytes] | None:
        """The interpreter that stood by, now with its boot data; None when there is none fit for it."""
        process, child.standby = child.standby, None
        if process is None:
            return None
        assert process.stdin is not None
        if process.poll() is None and len(document) <= _PIPE_BYTES:
            with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
                pipe.write(document)
            return process
        child.standby = process
        self._dismiss_standby(child)
        return None

    def _dismiss_standby(self, child: _Child) -> None:
        process, child.standby = child.standby, None
        if process is None:
            return
        process.kill()
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(_UNKILLABLE_MS / 1000)
        except subprocess.TimeoutExpired:
            self._log.critical("standby cannot be killed", child=child.name, pid=process.pid)

    def _interpreter(self, child: _Child, stdin: int) -> subprocess.Popen[bytes]:
        """A fresh interpreter for the child's module; never a fork of this process, and never the current directory.

        Signals are blocked around it and stay blocked in the child until it has said what it does about them, so
        that none is lost or kills it half born.
        """
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", child.spec.module], stdin=stdin, pass_fds=self._inherited(child)
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _inherited(self, child: _Child) -> tuple[int, ...]:
        return (self._listener.fileno(),) if child.spec.listens and self._listener is not None else ()

    def _boot_of(self, child: _Child) -> Boot:
        return Boot(
            name=child.name,
            role=child.spec.role,
            incarnation=child.incarnation,
            boot_id=self._boot.boot_id,
            supervisor_pid=os.getpid(),
            workspace=self._boot.workspace,
            socket_dir=self._boot.socket_dir,
            config=self.config,
            listen_fds=self._inherited(child),
            console=self._boot.console,
        )

    # watching

    def _check_liveness(self, now: int) -> None:
        """A child that has been silent for too long is dead; SIGCHLD then says when it may be born again.

        When this loop itself was held up (the machine slept, the process was stopped), silence proves nothing.
        """
        limits = self.config.supervision
        held_up = now - self._last_turn > 2 * limits.heartbeat_ms * _MS
        for child in self._children.values():
            if child.process is None or child.killed_because:
                continue
            if held_up:
                child.heard_ns = now
            if child.ready_ms is None:
                allowed, why = limits.start_timeout_ms, "was not ready in time"
            else:
                allowed, why = limits.heartbeat_ms * limits.liveness, "went silent"
            if now - child.heard_ns > allowed * _MS:
                self.counters["hb_missed"] += 1
                self._log.error("silent child killed", child=child.name, silent_ms=(now - child.heard_ns) // _MS)
                child.killed_because = why
                child.state = RESTARTING
                child.detail = why
                self._changed = True
                child.process.kill()

    def _reap(self) -> None:
        """Every child that has exited is known to have; only our own children are waited for."""
        for child in self._children.values():
            if child.standby is not None and child.standby.poll() is not None:
                self._dismiss_standby(child)
            if child.process is None:
                continue
            code = child.process.poll()
            if code is not None:
                if code > 0 and child.last_words is None and self._bus.poll(_LAST_WORDS_MS):
                    self._read_bus()
                child.process = None
                self._exited(child, code)

    def _exited(self, child: _Child, code: int) -> None:
        sync_point("supervisor.on_child_exit")
        words = child.last_words.detail if child.last_words is not None else ""
        if child.killed_because:
            how = child.killed_because
        elif code < 0:
            how = f"died of {signal.Signals(-code).name}"
        else:
            how = f"exited with {code}"
        cause = f"{how}: {words}" if words else how
        self._changed = True
        if self._exit_code is not None:
            child.state = STOPPING
            child.detail = cause
            self._log.info("child stopped", child=child.name, cause=cause)
            return
        self._log.error("child died", child=child.name, child_incarnation=child.incarnation, cause=cause)
        if code in _FATAL_FOR_ALL:
            child.state = FAILED
            child.detail = cause
            self._stop(code, f"{child.name}: {words or how}")
            return
        self._died(child, cause)

    def _died(self, child: _Child, cause: str) -> None:
        now_ms = self._clock.monotonic_ns() // _MS
        limits = self.config.supervision
        budget = getattr(limits.budgets, child.spec.role, RestartBudget())
        policy = Policy(
            budget.restarts, budget.window_ms, limits.backoff_min_ms, limits.backoff_max_ms, limits.settled_ms
        )
        decision = after_death(policy, child.record, now_ms=now_ms, ready_at_ms=child.ready_ms, rng=self._rng)
        early = decision.record.in_a_row > 0
        child.record = decision.record
        child.detail = cause
        self._changed = True
        if isinstance(decision, GiveUp) or (child.on_probation and early):
            self._over_budget(child, cause)
            return
        child.on_probation = False
        child.state = RESTARTING
        child.restart_at_ns = (now_ms + decision.delay_ms) * _MS
        self._log.info("child will be restarted", child=child.name, delay_ms=decision.delay_ms)

    def _over_budget(self, child: _Child, cause: str) -> None:
        """A core child ends the daemon, unless a sibling of its pool serves; an optional one waits ten minutes."""
        siblings = [other for other in self._group(child.group) if other is not child and other.state == UP]
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
        for child in self._children.values():
            if child.process is None and child.restart_at_ns is not None and now >= child.restart_at_ns:
                sync_point("supervisor.before_restart")
                self._launch(child)

    # the bus

    def _read_bus(self) -> None:
        while True:
            try:
                parts = self._bus.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self.counters["received"] += 1
            child = self._children.get(parts[0].decode(errors="replace"))
            try:
                header = self._speaker.read_header(parts[1])
                if (
                    self._speaker.is_foreign(header)
                    or child is None
                    or header.sender != child.name
                    or header.incarnation != child.incarnation
                ):
                    self.counters["foreign"] += 1
                    self._log.warning("foreign message refused", sender=header.sender)
                    continue
                said = self._decode(parts[2])
            except (*UNDECODABLE, IndexError) as error:
                self.counters["decode_error"] += 1
                self._log.warning("child not understood", error=type(error).__name__)
                continue
            self._heard(child, header, said)

    def _heard(self, child: _Child, header: Header, said: Any) -> None:
        child.heard_ns = self._clock.monotonic_ns()
        if not child.spoke:
            child.spoke = True
            self._send(child, self._speaker.tell(self._tree()))
        match said:
            case Starting(detail):
                if detail and detail != child.detail:
                    child.detail = detail
                    self._changed = True
            case Ready(detail):
                if child.ready_ms is None and child.process is not None and not child.killed_because:
                    child.ready_ms = child.heard_ns // _MS
                    child.state = UP if self._exit_code is None else STOPPING
                    child.detail = detail
                    self._changed = True
                    self._log.info("child is up", child=child.name, child_incarnation=child.incarnation)
                    if child.spec.standby and self._exit_code is None:
                        self._prepare(child)
            case Heartbeat(counters):
                child.counters = counters
            case Leaving():
                child.last_words = said
            case GetTree():
                self._send(child, self._speaker.answer(header, self._tree()))

    def _tree(self) -> TreeChanged:
        return TreeChanged(
            [
                ChildState(
                    name=child.name,
                    role=child.spec.role,
                    state=child.state,
                    incarnation=child.incarnation,
                    restarts=max(0, child.incarnation - 1),
                    pid=child.process.pid if child.process is not None else None,
                    detail=child.detail,
                    core=child.spec.core,
                    counters=child.counters,
                )
                for child in self._children.values()
            ]
        )

    def _broadcast(self, body: msgspec.Struct) -> None:
        for child in self._children.values():
            if child.process is not None and child.spoke:
                self._send(child, self._speaker.tell(body))

    def _send(self, child: _Child, parts: list[bytes]) -> bool:
        try:
            self._bus.send_multipart([child.name.encode(), *parts], zmq.NOBLOCK)
        except zmq.ZMQError:
            self.counters["unroutable"] += 1
            return False
        self.counters["sent"] += 1
        return True

    # signals, reload

    def _read_signals(self, signals: int) -> None:
        try:
            numbers = os.read(signals, 256)
        except BlockingIOError:
            return
        for number in numbers:
            if number in {signal.SIGTERM, signal.SIGINT}:
                self._stop_requested(signal.Signals(number).name)
            elif number == signal.SIGHUP:
                self._reload()

    def _stop_requested(self, name: str) -> None:
        sync_point("supervisor.on_sigterm")
        if self._exit_code is None:
            self._log.info("stopping", signal=name)
            self._stop(ExitCode.OK, "")
        elif not self._forced_at:
            self._log.warning("stop forced", signal=name)
            self._force()

    def _reload(self) -> None:
        """The new configuration is in force everywhere, or the old one is and the log says what is wrong."""
        try:
            loaded = self._load()
        except ConfigError as error:
            for problem in error.detail.splitlines():
                self._log.error("configuration refused", problem=problem)
            return
        if (loaded.gateway.host, loaded.gateway.port) != (self._requested.host, self._requested.port):
            self._log.warning("a new host or port takes effect at the next start")
        if loaded.searcher.processes != self.config.searcher.processes:
            self._log.warning("a new number of searchers takes effect at the next start")
        self.config = with_address(loaded, self.config.gateway.host, self.config.gateway.port)
        self._broadcast(Reload(msgspec.json.encode(self.config).decode()))
        self._log.info("configuration reloaded")

    @property
    def _requested(self) -> Any:
        return self._boot.config.gateway

    # draining

    def _stop(self, code: int, reason: str) -> None:
        """The tree comes down from the edge inwards; whatever is still there at the end of the time is killed."""
        if self._exit_code is not None:
            return
        self._exit_code = code
        self._exit_reason = reason
        if reason:
            self._log.critical("giving up", code=code, reason=reason)
        self._notifier.notify("STOPPING=1")
        self._drain_until = self._clock.monotonic_ns() + self.config.supervision.drain_ms * _MS
        self._drain_group = self._groups
        for child in self._children.values():
            child.restart_at_ns = None
            self._dismiss_standby(child)
        self._next_drain_group()

    def _next_drain_group(self) -> None:
        now = self._clock.monotonic_ns()
        while self._drain_group > 0:
            self._drain_group -= 1
            living = [child for child in self._group(self._drain_group) if child.process is not None]
            if not living:
                continue
            sync_point("supervisor.mid_shutdown")
            grace = max(0, self._drain_until - now - _RESERVE_MS * _MS * self._drain_group)
            self._drain_group_until = now + grace
            for child in living:
                child.state = STOPPING
                self._changed = True
                if not child.spoke or not self._send(child, self._speaker.tell(Drain(grace // _MS))):
                    self._kill(child)
            return

    def _drain_step(self) -> None:
        now = self._clock.monotonic_ns()
        if self._forced_at or now >= self._drain_group_until:
            for child in self._group(self._drain_group):
                self._kill(child)
        if all(child.process is None for child in self._group(self._drain_group)):
            self._next_drain_group()

    def _kill(self, child: _Child) -> None:
        if child.process is not None and not child.killed_because:
            child.killed_because = "was killed at the end of its time"
            child.process.kill()

    def _force(self) -> None:
        self._forced_at = self._clock.monotonic_ns()
        for child in self._children.values():
            self._kill(child)

    def _finished(self) -> bool:
        return self._exit_code is not None and all(child.process is None for child in self._children.values())

    def _kill_everything(self) -> None:
        """Also when this loop itself failed: no child is left, or the log names it."""
        for child in self._children.values():
            self._dismiss_standby(child)
            if child.process is None:
                continue
            child.process.kill()
            try:
                child.process.wait(_UNKILLABLE_MS / 1000)
            except subprocess.TimeoutExpired:
                self._log.critical("child cannot be killed", child=child.name, pid=child.process.pid)


def with_address(config: Config, host: str, port: int) -> Config:
    """``config`` with the address that the daemon really listens on."""
    gateway = msgspec.structs.replace(config.gateway, host=host, port=port)
    return msgspec.structs.replace(config, gateway=gateway)


@contextlib.contextmanager
def _signal_pipe() -> Iterator[int]:
    """The reading end of a pipe into which the number of each signal that arrives is written as one byte."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    before_fd = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
    try:
        yield reader
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before_fd)
        os.close(reader)
        os.close(writer)


def run_supervisor(
    tree: Sequence[ChildSpec],
    workspace: Path,
    load: Callable[[], Config],
    *,
    port: int | None = None,
    console: bool = False,
    retry_failed_ms: int = _RETRY_FAILED_MS,
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
) -> int:
    """The daemon's exit code, after a whole life of it on ``workspace``.

    ``load`` reads the configuration (again at each SIGHUP); ``port`` overrides the configured one, 0 = any free one.
    Nothing is bound, removed or started before the configuration is valid and the workspace lock is held.
    """
    os.umask(0o077)
    try:
        config = load()
        workspace = Path(os.path.realpath(workspace))
        make_private_directory(workspace)
        state = workspace / ".daemon"
        make_private_directory(state)
        make_private_directory(state / "logs")
    except ConfigError as error:
        say(error.detail)
        return ExitCode.CONFIG
    except OSError as error:
        say(f"the workspace {workspace} cannot be used: {error}")
        return ExitCode.CONFIG
    lock = WorkspaceLock(state / "lock")
    try:
        lock.acquire()
    except WorkspaceLocked as error:
        say(error.detail)
        return ExitCode.IN_USE
    try:
        return _life(tree, workspace, config, load, port, console, retry_failed_ms, say)
    except ConfigError as error:
        say(error.detail)
        return ExitCode.CONFIG
    finally:
        for name in ("pid", "address"):
            (state / name).unlink(missing_ok=True)
        lock.release()


def _life(
    tree: Sequence[ChildSpec],
    workspace: Path,
    config: Config,
    load: Callable[[], Config],
    port: int | None,
    console: bool,
    retry_failed_ms: int,
    say: Callable[[str], None],
) -> int:
    clock = SystemClock()
    sockets = socket_directory(workspace)
    make_private_directory(sockets)
    remove_stale_sockets(sockets)
    boot = Boot(
        name="supervisor",
        role="supervisor",
        incarnation=1,
        boot_id=secrets.token_hex(8),
        supervisor_pid=os.getpid(),
        workspace=str(workspace),
        socket_dir=str(sockets),
        config=config,
        console=console,
    )
    log = configure_logging(boot)
    edge = config.gateway
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(
            open_listener(edge.host, edge.port if port is None else port, edge.listen_backlog)
        )
        bound = listener.getsockname()[1]
        running = with_address(config, edge.host, bound)
        address = {"host": edge.host, "port": bound, "pid": os.getpid()}
        _write_private(workspace / ".daemon" / "pid", f"{os.getpid()}\n".encode())
        _write_private(workspace / ".daemon" / "address", msgspec.json.encode(address) + b"\n")
        log.info("listening", host=edge.host, port=bound, pid=os.getpid())
        supervisor = Supervisor(
            tree,
            running,
            boot,
            clock=clock,
            rng=random.Random(),
            log=log,
            listener=listener,
            load=load,
            notifier=Notifier(os.environ),
            retry_failed_ms=retry_failed_ms,
        )
        shown = f"[{edge.host}]" if ":" in edge.host else edge.host
        supervisor.on_serving = lambda: say(f"Signet listens on http://{shown}:{bound} (workspace {workspace})")
        code = supervisor.run()
        if supervisor.exit_reason:
            say(supervisor.exit_reason)
        log.info("stopped", code=code)
        return code


def _write_private(path: Path, content: bytes) -> None:
    """``path`` holds ``content`` whole or not at all, readable by us alone."""
    written = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    written.replace(path)
