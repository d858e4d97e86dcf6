"""The echo tree under a supervisor without backoff, which the checks of restart storms must detect."""

from __future__ import annotations

import random
import runpy

from signet_actors.runtime.supervision import children
from signet_actors.runtime.supervision.restart_policy import CrashHistory, Restart, RestartPolicy


def at_once(
    policy: RestartPolicy, history: CrashHistory, *, now_ms: int, ready_at_ms: int | None, rng: random.Random
) -> Restart:
    return Restart(CrashHistory((), 0), 0)


if __name__ == "__main__":
    children.decide_restart = at_once  # type: ignore[assignment]
    runpy.run_module("tests.support.echo_tree", run_name="__main__")
