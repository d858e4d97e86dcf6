"""Which children the supervisor kills: those that are silent, and readers that keep the write-ahead log from shrinking.

Source: docs/reliability.md "Supervision policy", R14.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from signet_actors.config.schema import SupervisionConfig
from signet_actors.protocol.control import RESTARTING, EndSnapshots, WalPressure
from signet_actors.runtime.supervision.children import Child, Children
from signet_actors.runtime.supervision.control_socket import ControlSocket

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


class Activity(NamedTuple):
    """``state``: the kernel's letter, such as ``R`` (running or ready to run). ``cpu_s``: of all its threads.

    ``waited_s``: how long its first thread was ready to run and waited for a processor; 0 if the kernel does not count.
    """

    state: str
    cpu_s: float
    waited_s: float = 0.0

    @property
    def is_stopped(self) -> bool:
        """True if a signal or a debugger has stopped the process."""
        return self.state in {"T", "t"}

    @property
    def waits_for_disk(self) -> bool:
        """True if the process waits in the kernel for a device, and cannot even be killed."""
        return self.state == "D"


def read_activity(pid: int) -> Activity | None:
    """Return the activity of a process, None if the kernel does not tell. Source: proc_pid_stat(5), "schedstat"."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        used_s = (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
        return Activity(fields[0].decode("ascii"), used_s, _waited_s(pid))
    except (OSError, ValueError, IndexError):
        return None


def _waited_s(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_bytes().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


_MS: Final = 1_000_000
_SLOW_FACTOR: Final = 5
"""A silent child that works, waits for a processor, or waits for the disk may be silent for so many times."""
_CHECK_NS: Final = 400 * _MS
_LEAST_SHARE: Final = 0.05
"""Part of the time in which a child that works uses a processor or waits for one, at least."""


def kill_silent(
    children: Children,
    now: int,
    limits: SupervisionConfig,
    log: FilteringBoundLogger,
    counters: dict[str, int],
    *,
    loop_was_delayed: bool,
) -> bool:
    """Kill each child that has been silent for too long; return True if there was one. It is restarted after its exit.

    When the supervisor's own loop was delayed (machine suspended, process stopped), silence proves nothing: timeouts
    start again. A child that works, waits for a processor, or waits for the disk gets more time: to start it again
    would take it longer.
    """
    killed = False
    for child in children:
        if not child.process.exists or child.kill_reason:
            continue
        if loop_was_delayed:
            child.last_seen_ns, child.progress = now, None
        if child.exit_notice is not None:
            # It has announced its exit, and no caller waits for anything that it still does.
            allowed, why = limits.heartbeat_ms * limits.liveness, "was killed"
        elif child.ready_ms is None:
            allowed, why = limits.start_timeout_ms, "was not ready in time"
        else:
            allowed, why = limits.heartbeat_ms * limits.liveness, "stopped sending heartbeats"
        silent_ns, allowed_ns = now - child.last_seen_ns, allowed * _MS
        if silent_ns <= allowed_ns:
            if child.progress is None and 2 * silent_ns > allowed_ns:
                child.progress = _progress(child, now)
            continue
        if _is_slow(child, now, allowed_ns):
            continue
        silent_ms = silent_ns // _MS
        if child.exit_notice is not None:
            log.warning("exiting_child_killed", child=child.name, silent_ms=silent_ms)
        else:
            counters["hb_missed"] += 1
            log.error("unresponsive_child_killed", child=child.name, silent_ms=silent_ms)
        _kill(child, why)
        killed = True
    return killed


def _kill(child: Child, why: str) -> None:
    child.state, child.detail = RESTARTING, why
    child.kill(why)


def _is_slow(child: Child, now: int, allowed_ns: int) -> bool:
    """Return True if a silent child works slowly: it was not stopped, does not sleep, and runs in no endless loop.

    An endless loop uses as much processor time as a child may be silent. A child that sleeps uses none, and waits for
    none. What the child has used and waited is in ``child.progress``, recorded first after half of the time that it
    may be silent; where that was missed, the first check only records it.
    """
    pid, silent_ns = child.process.pid, now - child.last_seen_ns
    activity = None if pid is None or silent_ns > _SLOW_FACTOR * allowed_ns else read_activity(pid)
    reported_s = child.counters.get("cpu_seconds")
    if activity is None or activity.is_stopped or reported_s is None or child.exit_notice is not None:
        return False
    if 1e9 * (activity.cpu_s - reported_s) >= allowed_ns:
        return False
    worked_s = activity.cpu_s + activity.waited_s
    seen_ns, seen_s = child.progress or (now, worked_s)
    if child.progress is not None and now - seen_ns < _CHECK_NS:
        return True
    child.progress = (now, worked_s)
    return activity.waits_for_disk or 1e9 * (worked_s - seen_s) >= _LEAST_SHARE * (now - seen_ns)


def _progress(child: Child, now: int) -> tuple[int, float] | None:
    activity = None if child.process.pid is None else read_activity(child.process.pid)
    return None if activity is None else (now, activity.cpu_s + activity.waited_s)


def relieve_wal(children: Children, pressure: WalPressure, control: ControlSocket, log: FilteringBoundLogger) -> bool:
    """Ask all readers to end their snapshots; if severe, kill those that ignored the last request.

    A working reader complies within milliseconds, and a hanging one is killed for its silence. This is for a reader
    that does neither. Afterwards only a reader outside the daemon can still block the WAL checkpoint. Return True if a
    reader was killed.
    """
    killed = False
    for child in children:
        if not (child.spec.reads and child.process.exists and child.has_reported) or child.kill_reason:
            continue
        if pressure.severe and child.snapshots_ended < child.snapshots_asked:
            _kill(child, "held a snapshot that kept the write-ahead log from shrinking")
            log.error("reader_killed", child=child.name, log_bytes=pressure.log_bytes)
            killed = True
        elif control.tell(child.name, EndSnapshots(child.snapshots_asked + 1)):
            child.snapshots_asked += 1
    return killed
