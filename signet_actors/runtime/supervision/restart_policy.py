"""When a child that died is started again, and when it is given up: pure arithmetic.

Only an early death counts (before Ready, or within ``settled_ms`` of it): a child that had served longer is started
again at once, with a clean slate. Early crashes wait longer and longer, with jitter, until the budget is used up.

Source: docs/reliability.md R9 and "Supervision policy".
"""

from __future__ import annotations

import random
from dataclasses import dataclass

_JITTER = 0.25


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """At most ``restarts`` counted restarts within ``window_ms``, at growing distances."""

    restarts: int
    window_ms: int
    backoff_min_ms: int
    backoff_max_ms: int
    settled_ms: int


@dataclass(frozen=True, slots=True)
class CrashHistory:
    """A child's early crashes: when (those within the window), and how many in a row."""

    crashes_ms: tuple[int, ...] = ()
    in_a_row: int = 0


@dataclass(frozen=True, slots=True)
class Restart:
    """Start it again after ``delay_ms``."""

    history: CrashHistory
    delay_ms: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The budget is used up; ``crashes`` counted ones lie within the window."""

    history: CrashHistory
    crashes: int


def decide_restart(
    policy: RestartPolicy, history: CrashHistory, *, now_ms: int, ready_at_ms: int | None, rng: random.Random
) -> Restart | GiveUp:
    """What to do about a death at ``now_ms``; ``ready_at_ms`` None = it never became ready."""
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
    """The wait before restart number ``in_a_row``: doubles from the least to the greatest, plus up to a quarter."""
    exponent = min(in_a_row - 1, 30)
    plain = min(policy.backoff_max_ms, policy.backoff_min_ms << exponent)
    return min(policy.backoff_max_ms, plain + int(plain * _JITTER * rng.random()))
