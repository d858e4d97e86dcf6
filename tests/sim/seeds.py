"""Run many seeds on every core, report the failures; the command line of both simulations.

A seed gives the same run in any process, so a list of seeds can be split among processes. A failing seed, or one in
which the simulation itself raises, is reported with its smallest list of faults and the command that replays it.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from tests.sim.faults import Fault

MOST_FAILURES = 10
"""The number of failing seeds that are reported in full."""
_AT_ONCE = 4
_COLLECT_AFTER = 16
_TELL_AFTER = 500


@dataclass
class Run:
    """The result of a seed; ``wrong`` is empty if there was no violation, ``seen`` counts events."""

    seed: int
    faults: list[Fault]
    trace: str = ""
    wrong: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    virtual_s: float = 0.0
    settled_s: float = 0.0
    """The time from the last fault until everything had recovered."""
    jobs: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """By the content of the memory: status, attempts, releases, error and end (ISO) of its extract job."""


class Simulate(Protocol):
    """Runs a seed, with its own faults or with the given ones."""

    def __call__(self, seed: int, faults: list[Fault] | None = None) -> Run: ...


@dataclass(frozen=True)
class SeedResult:
    """The summary of one seed; ``story`` is empty if there was no violation."""

    seed: int
    trace: str
    story: str
    seen: Counter[str]
    virtual_s: float


def smallest(run: Run, simulate: Simulate) -> list[Fault]:
    """Return the smallest list of faults with which the run still fails."""
    faults = list(run.faults)
    step = max(1, len(faults) // 2)
    while step:
        start = 0
        while start < len(faults):
            fewer = faults[:start] + faults[start + step :]
            if simulate(run.seed, fewer).wrong:
                faults = fewer
            else:
                start += step
        step //= 2
    return faults


def story(run: Run, simulate: Simulate, module: str) -> str:
    """Return the violations and how to replay them; for a run with extra parameters only its faults."""
    lines = [f"seed {run.seed}: {len(run.wrong)} broken promises", *(f"  {text[:400]}" for text in run.wrong[:8])]
    if simulate(run.seed).trace != run.trace:
        return "\n".join([*lines, "faults:", *(f"  {fault}" for fault in run.faults)])
    lines += ["smallest list of faults:", *(f"  {fault}" for fault in smallest(run, simulate))]
    return "\n".join([*lines, _replay(run.seed, module)])


def play(seeds: Iterable[int], simulate: Simulate, module: str, jobs: int) -> Iterator[SeedResult]:
    """Run the seeds in ``jobs`` processes (in this process if 1), and yield the results in their order."""
    one = partial(_played, simulate, module)
    if jobs == 1:
        with _collected_seldom():
            yield from map(one, seeds)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_settle) as pool:
        try:
            yield from pool.map(one, seeds, chunksize=_AT_ONCE)
        finally:
            pool.shutdown(cancel_futures=True)


def main(simulate: Simulate, module: str) -> int:
    """Run the command line; the exit code is 1 if a seed fails."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("--seed", type=int, help="this one alone")
    parser.add_argument("--seeds", type=int, default=100, help="so many")
    parser.add_argument("--first", type=int, default=1, help="from this one on")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="in so many processes")
    options = parser.parse_args()
    one = options.seed is not None
    seeds = [options.seed] if one else range(options.first, options.first + options.seeds)
    began, virtual_s, played, failed = time.perf_counter(), 0.0, 0, 0
    seen: Counter[str] = Counter()
    for told in play(seeds, simulate, module, 1 if one else max(1, options.jobs)):
        played += 1
        virtual_s += told.virtual_s
        seen += told.seen
        if told.story:
            failed += 1
            sys.stdout.write(told.story + "\n")
            sys.stdout.flush()
            if failed == MOST_FAILURES:
                break
        if played % _TELL_AFTER == 0:
            sys.stderr.write(f"{played} seeds after {time.perf_counter() - began:.0f} s, {failed} failed\n")
    took = time.perf_counter() - began
    verdict = f"{failed} of {played} seeds failed" if failed else f"{played} seeds kept every promise"
    sys.stdout.write(
        f"{verdict}: {virtual_s:.0f} virtual seconds in {took:.1f} s, {played / took:.1f} seeds/s, {dict(seen)}\n"
    )
    return 1 if failed else 0


def _played(simulate: Callable[[int], Run], module: str, seed: int) -> SeedResult:
    if not gc.isenabled() and seed % _COLLECT_AFTER == 0:
        gc.collect()
    try:
        run = simulate(seed)
        return SeedResult(seed, run.trace, story(run, simulate, module) if run.wrong else "", run.seen, run.virtual_s)
    except Exception:  # noqa: BLE001 - the other seeds continue, and the report of this one has the traceback
        return SeedResult(seed, "", f"seed {seed}: {traceback.format_exc()}\n{_replay(seed, module)}", Counter(), 0.0)


def _replay(seed: int, module: str) -> str:
    return f"replay: python -m {module} --seed {seed}"


def _settle() -> None:
    """Exclude everything that was imported from garbage collection."""
    gc.freeze()
    gc.disable()


@contextmanager
def _collected_seldom() -> Iterator[None]:
    _settle()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
