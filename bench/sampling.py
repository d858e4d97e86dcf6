"""A sampling profiler of CPU time: a signal every few milliseconds of CPU time records the stack.

``ITIMER_PROF`` counts the CPU time of the whole process, so waiting is not sampled; a sample is taken at the next
bytecode boundary, so time in C counts for the Python line that called it. The overhead is below one per cent; a tracing
profiler would double the cost of small functions.

A sampled process is a child of the daemon with another module name (``bench.sampled_writer`` and so on). SIGUSR1
restarts the count; on a drain the process writes its counts as JSON into ``$BENCH_PROFILE_DIR``.
"""

from __future__ import annotations

import os
import runpy
import signal
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Final

import msgspec

DIRECTORY_VARIABLE: Final = "BENCH_PROFILE_DIR"
INTERVAL_S: Final = 0.004
MAX_DEPTH: Final = 60

Where = tuple[str, str]


class Profile(msgspec.Struct):
    """Samples of one process: by function, and by function including its callees. Keys: ``file:function``."""

    name: str
    samples: int
    itself: dict[str, int]
    below: dict[str, int]


class Sampler:
    """Counts samples while it runs."""

    def __init__(self) -> None:
        self.samples = 0
        self.itself: Counter[Where] = Counter()
        self.below: Counter[Where] = Counter()

    def start(self) -> None:
        """Start sampling."""
        signal.signal(signal.SIGUSR1, self._begin_anew)
        signal.signal(signal.SIGPROF, self._sample)
        signal.siginterrupt(signal.SIGPROF, False)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)

    def stop(self) -> None:
        """Stop sampling."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)

    def profile(self, name: str) -> Profile:
        """Return the counts."""
        return Profile(name, self.samples, _named(self.itself), _named(self.below))

    def _begin_anew(self, _number: int, _frame: FrameType | None) -> None:
        self.samples = 0
        self.itself.clear()
        self.below.clear()

    def _sample(self, _number: int, frame: FrameType | None) -> None:
        self.samples += 1
        seen: set[Where] = set()
        depth = 0
        while frame is not None and depth < MAX_DEPTH:
            code = frame.f_code
            where = (code.co_filename, code.co_qualname)
            if depth == 0:
                self.itself[where] += 1
            seen.add(where)
            frame = frame.f_back
            depth += 1
        self.below.update(seen)


def run_sampled(module: str) -> None:
    """Run ``module`` like ``python -m``, and write its profile; raises its SystemExit."""
    sampler = Sampler()
    sampler.start()
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        sampler.stop()
        directory = Path(os.environ[DIRECTORY_VARIABLE])
        name = module.rpartition(".")[2]
        path = directory / f"{name}-{os.getpid()}.json"
        path.write_bytes(msgspec.json.encode(sampler.profile(name)))


def short(filename: str) -> str:
    """Return the file's path from its package on."""
    for mark in ("/site-packages/", "/signet_actors/", "/lib/"):
        before, found, rest = filename.rpartition(mark)
        if found and before is not None:
            return rest
    return filename


def _named(counts: Counter[Where]) -> dict[str, int]:
    named: Counter[str] = Counter()
    for (filename, function), count in counts.items():
        named[f"{short(filename)}:{function}"] += count
    return dict(named.most_common())
