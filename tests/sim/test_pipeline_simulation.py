"""The pipeline in virtual time keeps every promise: see ``tests.sim.pipeline`` for what is real and what is checked.

``SIGNET_SIM_PIPELINE_SEEDS`` asks for more seeds, ``SIGNET_SIM_FIRST`` for others than the usual ones.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from tests.sim.faults import Fault
from tests.sim.pipeline import (
    CALM,
    CLOCK_JUMPS_MS,
    Model,
    config_of,
    expired_leases,
    lost_lease_replies,
    outage,
    poison_jobs,
    simulate,
)
from tests.sim.seeds import Run, play, story

FIRST = int(os.environ.get("SIGNET_SIM_FIRST", "1"))
SEEDS = int(os.environ.get("SIGNET_SIM_PIPELINE_SEEDS", "30"))
JOBS = 1 if SEEDS < 100 else os.cpu_count() or 1
"""A process more takes as long to start as many seeds."""


def told(run: Run) -> str:
    return story(run, simulate, "tests.sim.pipeline")


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_no_seed_of_the_pipeline_violates_a_guarantee() -> None:
    seen: Counter[str] = Counter()
    for one in play(range(FIRST, FIRST + SEEDS), simulate, "tests.sim.pipeline", JOBS):
        assert not one.story, one.story
        seen += one.seen
    for kind in ("remembered", "job completed", "created", "updated", "given back", "tried again", "unknown"):
        assert seen[kind], f"no run ever saw {kind!r}: the simulation is too kind"


def test_a_seed_of_the_pipeline_is_the_same_run_each_time_and_in_every_process() -> None:
    first = {seed: simulate(seed) for seed in (3, 4)}
    assert first[3].trace != first[4].trace
    second = simulate(3)
    assert (second.trace, second.seen) == (first[3].trace, first[3].seen)
    for one in play(first, simulate, "tests.sim.pipeline", 2):
        assert (one.trace, one.seen) == (first[one.seed].trace, first[one.seed].seen)


@pytest.mark.parametrize("how", ["refuses", "hangs", "limits"])
def test_a_model_outage_of_ten_minutes_costs_no_attempt_and_work_resumes(how: str) -> None:
    run = outage(1, how)
    assert not run.wrong, told(run)


@pytest.mark.parametrize("word", ["nightshade", "hemlock"])
def test_a_poison_job_is_dead_after_its_attempts_and_affects_no_other_job(word: str) -> None:
    run = poison_jobs(1, word)
    assert not run.wrong, told(run)


@pytest.mark.parametrize("away", [False, True], ids=["model_there", "model_away"])
def test_a_lost_reply_with_leased_jobs_strands_none_of_them(away: bool) -> None:
    run = lost_lease_replies(1, away=away)
    assert not run.wrong, told(run)


def test_a_worker_with_an_expired_lease_is_fenced_and_duplicates_nothing() -> None:
    run = expired_leases(1)
    assert not run.wrong, told(run)


def test_a_clock_jump_duplicates_and_strands_nothing() -> None:
    jumps = [Fault(1.0 + number / 2, "clock", "", CLOCK_JUMPS_MS[number % 5]) for number in range(16)]
    notes = tuple(f"The service clock {number} uses engine clock-{number}." for number in range(24))
    run = simulate(
        5, jumps, model=Model(takes_s=(0.5, 3.0)), config=config_of(random.Random(5)), weather=CALM, notes=notes
    )
    assert not run.wrong, told(run)
    assert [run.jobs[note][:2] for note in notes] == [("completed", 1)] * len(notes)
