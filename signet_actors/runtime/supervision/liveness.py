"""Which children the supervisor kills: those that are silent, and readers that keep the write-ahead log from shrinking.

Source: docs/reliability.md "Supervision policy", R14.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from signet_actors.config.schema import SupervisionConfig
from signet_actors.protocol.control import RESTARTING, EndSnapshots, WalPressure
from signet_actors.runtime.supervision.children import Child, Children
from signet_actors.runtime.supervision.control_socket import ControlSocket
from signet_actors.runtime.supervision.process_activity import read_activity

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

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
        child.kill_reason = why
        child.state = RESTARTING
        child.detail = why
        child.process.kill()
        killed = True
    return killed


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
            child.kill_reason = "held a snapshot that kept the write-ahead log from shrinking"
            child.state = RESTARTING
            child.detail = child.kill_reason
            log.error("reader_killed", child=child.name, log_bytes=pressure.log_bytes)
            child.process.kill()
            killed = True
        elif control.tell(child.name, EndSnapshots(child.snapshots_asked + 1)):
            child.snapshots_asked += 1
    return killed
