"""Writer, queue, leases and supervisor in virtual time, under kills, stops, failing disks and lossy ways: every seed
keeps every promise, and is the same run each time.

``SIGNET_SIM_SEEDS`` asks for more seeds, ``SIGNET_SIM_FIRST`` for others than the usual ones.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.sim.run import simulate
from tests.sim.seeds import play

FIRST = int(os.environ.get("SIGNET_SIM_FIRST", "1"))
SEEDS = int(os.environ.get("SIGNET_SIM_SEEDS", "40"))
JOBS = 1 if SEEDS < 100 else os.cpu_count() or 1
"""A process more takes as long to start as many seeds."""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_seed_violates_a_guarantee() -> None:
    seen: Counter[str] = Counter()
    for told in play(range(FIRST, FIRST + SEEDS), simulate, "tests.sim.run", JOBS):
        assert not told.story, told.story
        seen += told.seen
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
        assert seen[kind], f"no run ever saw {kind!r}: the simulation is too kind"
    assert seen["incarnations"] > 5 * SEEDS, "hardly anything was ever killed"
    assert seen["resent"] > SEEDS, "hardly anything was ever in flight to a writer that died"


def test_a_seed_is_the_same_run_each_time_and_in_every_process() -> None:
    first = {seed: simulate(seed) for seed in (3, 11)}
    assert first[3].trace != first[11].trace
    second = simulate(3)
    assert (second.trace, second.seen) == (first[3].trace, first[3].seen)
    for told in play(first, simulate, "tests.sim.run", 2):
        assert (told.trace, told.seen) == (first[told.seed].trace, first[told.seed].seen)
