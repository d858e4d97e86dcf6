"""Seeds of a simulation, many and on every core: what is told of a run, and the command line of both simulations.

A seed is one run wherever it is played, so a list of seeds can be split among processes. A seed that fails, or in which
the simulation itself breaks, is told with its smallest list of faults and the command that replays it.
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
"""So many failing seeds are told; where everything fails, more say nothing new."""
_AT_ONCE = 4
_COLLECT_AFTER = 16
_TELL_AFTER = 500


@dataclass
class Run:
    """What came of a seed; ``wrong`` is empty when every promise was kept, ``seen`` counts what happened."""

    seed: int
    faults: list[Fault]
    trace: str = ""
    wrong: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    virtual_s: float = 0.0
    settled_s: float = 0.0
    """How long after the last fault everything had come right."""
    jobs: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """By the content of the memory: status, attempts, releases, error and end (ISO) of its extract job."""


class Simulate(Protocol):
    """Plays a seed, with its own faults or with those."""

    def __call__(self, seed: int, faults: list[Fault] | None = None) -> Run: ...


@dataclass(frozen=True)
class Told:
    """What one seed adds to the whole; ``story`` is empty when it kept every promise."""

    seed: int
    trace: str
    story: str
    seen: Counter[str]
    virtual_s: float


def smallest(run: Run, simulate: Simulate) -> list[Fault]:
    """The faults of a failing run without those that it also fails without."""
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
    """What failed, and how to see it again. A run that was more than its seed has only its faults told."""
    lines = [f"seed {run.seed}: {len(run.wrong)} broken promises", *(f"  {text[:400]}" for text in run.wrong[:8])]
    if simulate(run.seed).trace != run.trace:
        return "\n".join([*lines, "faults:", *(f"  {fault}" for fault in run.faults)])
    lines += ["smallest list of faults:", *(f"  {fault}" for fault in smallest(run, simulate))]
    return "\n".join([*lines, _replay(run.seed, module)])


def play(seeds: Iterable[int], simulate: Simulate, module: str, jobs: int) -> Iterator[Told]:
    """What came of each seed, in their order, from ``jobs`` processes; this one alone where that is 1."""
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
    """The command line: exit code 1 when a seed fails."""
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


def _played(simulate: Callable[[int], Run], module: str, seed: int) -> Told:
    if not gc.isenabled() and seed % _COLLECT_AFTER == 0:
        gc.collect()
    try:
        run = simulate(seed)
        return Told(seed, run.trace, story(run, simulate, module) if run.wrong else "", run.seen, run.virtual_s)
    except Exception:  # noqa: BLE001 - the other seeds go on, and whoever reads of this one sees all of it
        return Told(seed, "", f"seed {seed}: {traceback.format_exc()}\n{_replay(seed, module)}", Counter(), 0.0)


def _replay(seed: int, module: str) -> str:
    return f"replay: python -m {module} --seed {seed}"


def _settle() -> None:
    """What a process has imported stays, and is not looked through for garbage again and again."""
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
