"""What the exit of a child means: its cause in words, and whether the child is restarted.

Source: docs/reliability.md "Supervision policy", R9.
"""

from __future__ import annotations

import random
import signal

from signet_actors.config.schema import RestartBudget, SupervisionConfig
from signet_actors.runtime.supervision.children import Child
from signet_actors.runtime.supervision.restart_policy import GiveUp, Restart, RestartPolicy, decide_restart


def exit_cause(child: Child, code: int) -> tuple[int, str, str]:
    """Return the exit code that counts, what the child said of its exit (may be empty), and the cause in words.

    ``code`` is negative for a signal. An announced exit code counts, however the process ended.
    """
    notice = child.exit_notice.detail if child.exit_notice is not None else ""
    if child.kill_reason:
        how = child.kill_reason
    elif code < 0:
        how = f"was killed by {signal.Signals(-code).name}"
    else:
        how = f"exited with {code}"
    if code < 0 and child.exit_notice is not None:
        code = child.exit_notice.code
        how = f"{how} while exiting with {code}"
    return code, notice, f"{how}: {notice}" if notice else how


def decide_child_restart(
    child: Child, limits: SupervisionConfig, *, now_ms: int, rng: random.Random
) -> Restart | GiveUp:
    """Return whether and when the child is restarted, by the budget of its role."""
    budget = getattr(limits.budgets, child.spec.role, RestartBudget())
    policy = RestartPolicy(
        budget.restarts, budget.window_ms, limits.backoff_min_ms, limits.backoff_max_ms, limits.settled_ms
    )
    return decide_restart(policy, child.crash_history, now_ms=now_ms, ready_at_ms=child.ready_ms, rng=rng)
