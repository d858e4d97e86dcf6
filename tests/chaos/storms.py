"""Check what the supervisor logged about a child that keeps crashing: the real supervisor passes, one without backoff
does not.

Source: docs/reliability.md R9.
"""

from __future__ import annotations

import itertools

from tests.support.echo_daemon import Daemon
from tests.support.log_tail import seconds

MOST_IN_A_MINUTE = 15


def storm_problems(running: Daemon, child: str) -> list[str]:
    """Return what is wrong with the number of starts of ``child`` and the waits between them."""
    born = [seconds(line["timestamp"]) for line in running.events("spawned", child=child)]
    waits = [line["delay_ms"] for line in running.events("child_restart_scheduled", child=child)]
    found = []
    most = max((sum(first <= at < first + 60 for at in born) for first in born), default=0)
    if most > MOST_IN_A_MINUTE:
        found.append(f"{most} starts within a minute")
    early = [wait for wait in waits if wait > 0]
    if len(early) < len(waits) and len(waits) >= MOST_IN_A_MINUTE:
        found.append(f"{len(waits) - len(early)} of {len(waits)} restarts without a wait")
    if any(later < earlier for earlier, later in itertools.pairwise(early)):
        found.append(f"the waits do not grow: {early}")
    return found
