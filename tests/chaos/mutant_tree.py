"""The echo tree under a supervisor that restarts at once and for ever: what the checks of storms must catch."""

from __future__ import annotations

import random
import runpy

from signet_actors.runtime.supervision.restart_policy import Policy, Record, Restart
from signet_actors.runtime.supervision.supervisor import supervisor


def at_once(policy: Policy, record: Record, *, now_ms: int, ready_at_ms: int | None, rng: random.Random) -> Restart:
    return Restart(Record((), 0), 0)


if __name__ == "__main__":
    supervisor.after_death = at_once  # type: ignore[assignment]
    runpy.run_module("tests.support.echo_tree", run_name="__main__")
