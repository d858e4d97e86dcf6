"""Stop the tree from the outermost group inwards, in bounded time.

Groups stop in the reverse of their start order, so that clients stop before the servers they call. Each group may use
the remaining time, less a reserve for the groups after it; then it is killed.

Source: docs/reliability.md R19, "Supervision policy".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signet_actors.config.schema import Config
from signet_actors.protocol.control import STOPPING, Drain
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.supervision.children import Child, Children
from signet_actors.runtime.supervision.control_socket import ControlSocket
from signet_actors.runtime.sync_points import sync_point

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

_MS = 1_000_000
_RESERVE_MS = 300
"""Time kept for each group that is still to be stopped."""
_LATE = "was killed because it did not stop in time"
_SIGNAL = "was killed because a second signal asked for it"


class TreeDrain:
    """Stops ``children`` in ``drain_ms``; at ``due_ns`` the current group is killed. ``forced``: all have been."""

    def __init__(self, children: Children, control: ControlSocket, clock: Clock, drain_ms: int) -> None:
        self.due_ns = 0
        self.forced = False
        self._children = children
        self._control = control
        self._clock = clock
        self._until = clock.monotonic_ns() + drain_ms * _MS
        self._group = children.group_count

    def begin(self) -> None:
        """Cancel all restarts, and ask the outermost group to stop."""
        for child in self._children:
            child.restart_at_ns = None
        self._next_group()

    def step(self) -> bool:
        """Return True when the current group has exited (the next one, if any, is then asked to stop)."""
        members = self._children.group(self._group)
        if self.forced or self._clock.monotonic_ns() >= self.due_ns:
            for child in members:
                _kill(child, _SIGNAL if self.forced else _LATE)
        if any(child.process.exists for child in members):
            return False
        self._next_group()
        return True

    def force(self) -> None:
        """Kill every child."""
        self.forced = True
        for child in self._children:
            _kill(child, _SIGNAL)

    def _next_group(self) -> None:
        now = self._clock.monotonic_ns()
        while self._group > 0:
            self._group -= 1
            living = [child for child in self._children.group(self._group) if child.process.exists]
            if not living:
                continue
            sync_point("supervisor.mid_shutdown")
            grace = max(0, self._until - now - _RESERVE_MS * _MS * self._group)
            self.due_ns = now + grace
            for child in living:
                child.state = STOPPING
                if not child.has_reported or not self._control.tell(child.name, Drain(grace // _MS)):
                    _kill(child, _LATE)
            return


def _kill(child: Child, why: str) -> None:
    if child.process.exists and not child.kill_reason:
        child.kill(why)


def drain_unneeded(
    children: Children, now: int, config: Config, control: ControlSocket, log: FilteringBoundLogger
) -> bool:
    """Drain the children that the configuration no longer needs, kill the late ones; return whether a state changed."""
    changed = False
    for child in children.stopping():
        if child.stop_deadline_ns is None:
            drain_ms = config.supervision.drain_ms
            child.stop_deadline_ns = now + drain_ms * _MS
            child.state = STOPPING
            child.detail = "no longer needed"
            changed = True
            log.info("child_no_longer_needed", child=child.name)
            if child.ready_ms is not None and control.tell(child.name, Drain(drain_ms)):
                continue
        elif now < child.stop_deadline_ns:
            continue
        if not child.kill_reason:
            child.kill(_LATE)
    return changed
