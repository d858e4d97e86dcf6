"""Decide when a crashed child is started again, and when it is given up: pure functions.

Only early crashes count: before Ready, or within ``settled_ms`` of it. A child that had served longer is restarted at
once and its series of crashes ends. Early crashes wait longer and longer, with jitter, until the budget is used up.

Source: docs/reliability.md R9 and "Supervision policy".
"""

from __future__ import annotations

import random
from dataclasses import dataclass

_JITTER = 0.25


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """At most ``restarts`` counted restarts within ``window_ms``, with exponential backoff."""

    restarts: int
    window_ms: int
    backoff_min_ms: int
    backoff_max_ms: int
    settled_ms: int


@dataclass(frozen=True, slots=True)
class CrashHistory:
    """A child's early crashes: their times within the window, and how many occurred in a row."""

    crashes_ms: tuple[int, ...] = ()
    in_a_row: int = 0


@dataclass(frozen=True, slots=True)
class Restart:
    """Start the child again after ``delay_ms``."""

    history: CrashHistory
    delay_ms: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The budget is used up: ``crashes`` early crashes lie within the window."""

    history: CrashHistory
    crashes: int


def decide_restart(
    policy: RestartPolicy, history: CrashHistory, *, now_ms: int, ready_at_ms: int | None, rng: random.Random
) -> Restart | GiveUp:
    """Return what to do after an exit at ``now_ms``; ``ready_at_ms`` None = the child never became ready."""
    window = tuple(at for at in history.crashes_ms if now_ms - at < policy.window_ms)
    if ready_at_ms is not None and now_ms - ready_at_ms >= policy.settled_ms:
        return Restart(CrashHistory(window, 0), 0)
    crashes = (*window, now_ms)
    in_a_row = history.in_a_row + 1
    counted = CrashHistory(crashes, in_a_row)
    if len(crashes) > policy.restarts:
        return GiveUp(counted, len(crashes))
    return Restart(counted, backoff_ms(policy, in_a_row, rng))


def backoff_ms(policy: RestartPolicy, in_a_row: int, rng: random.Random) -> int:
    """Return the delay of restart number ``in_a_row``: it doubles from minimum to maximum, plus up to 25 % jitter."""
    exponent = min(in_a_row - 1, 30)
    plain = min(policy.backoff_max_ms, policy.backoff_min_ms << exponent)
    return min(policy.backoff_max_ms, plain + int(plain * _JITTER * rng.random()))
