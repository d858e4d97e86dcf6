"""Writer, queue, leases and supervisor in virtual time, under kills, stops, failing disks and lossy ways: every seed
keeps every promise, and is the same run each time.

``SIGNET_SIM_SEEDS`` asks for more seeds, ``SIGNET_SIM_FIRST`` for others than the usual ones.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.sim.run import simulate, story

FIRST = int(os.environ.get("SIGNET_SIM_FIRST", "1"))
SEEDS = int(os.environ.get("SIGNET_SIM_SEEDS", "100"))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_seed_breaks_a_promise() -> None:
    answers: Counter[str] = Counter()
    lives = resent = 0
    for seed in range(FIRST, FIRST + SEEDS):
        run = simulate(seed)
        assert not run.wrong, story(run)
        answers += run.answers
        lives += run.lives
        resent += run.resent
    for kind in (
        "remembered",
        "ModifyMemory",
        "ForgetMemory",
        "RecoverMemory",
        "refused",
        "unknown",
        "fenced",
        "applied",
        "released",
    ):
        assert answers[kind], f"no run ever saw {kind!r}: the simulation is too kind"
    assert lives > 5 * SEEDS, "hardly anything was ever killed"
    assert resent > SEEDS, "hardly anything was ever in flight to a writer that died"


@pytest.mark.parametrize("seed", [3, 11])
def test_a_seed_is_the_same_run_each_time(seed: int) -> None:
    first, second = simulate(seed), simulate(seed)
    assert first.trace == second.trace
    assert first.answers == second.answers
    assert simulate(seed + 1).trace != first.trace
