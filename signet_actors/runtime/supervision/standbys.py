"""Standby processes: interpreters with the code of a child already imported, which makes its next start short.

Source: docs/reliability.md R9; docs/operations.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from signet_actors.protocol.control import UP
from signet_actors.runtime.processes.child_context import ChildContext, warmup_payload
from signet_actors.runtime.supervision.children import Child, Children

STANDBY_AFTER_CRASH_MS: Final = 600_000
"""How long a standby process is kept after a crash, for children that have none otherwise."""

_MS: Final = 1_000_000


class Standbys:
    """The standby processes of ``children``. ``context_for`` returns the present context of a child."""

    def __init__(self, children: Children, context_for: Callable[[Child], ChildContext]) -> None:
        self._children = children
        self._context_for = context_for

    def spawn(self, child: Child) -> None:
        """Start a standby process for ``child`` with the present configuration."""
        child.process.spawn_standby(warmup_payload(self._context_for(child)))

    def spawn_due(self) -> None:
        """Start the standby processes that are due, unless a child is starting: they would slow it down."""
        due = [child for child in self._children if child.standby_due and child.state == UP]
        if not due or not self._children.all_ready():
            return
        for child in due:
            child.standby_due = False
            self.spawn(child)

    def drop_after_crash(self, now: int) -> bool:
        """Kill standby processes that were started because of a crash, when no other crash has followed.

        Return True if the set of children that the configuration and the crashes call for may have changed.
        """
        for child in self._children:
            lived_ns = 0 if child.ready_ms is None else now - child.ready_ms * _MS
            if child.spec.standby_after_crash and lived_ns > STANDBY_AFTER_CRASH_MS * _MS:
                child.process.kill_standby()
        return self._children.forget_crashes(now - STANDBY_AFTER_CRASH_MS * _MS)
