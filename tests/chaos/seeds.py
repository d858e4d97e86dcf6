"""The seed of this run of the chaos tests, and the share of them that runs.

``SIGNET_CHAOS_SEED`` repeats a run; by default the seed is derived from the commit, so that each commit tests other
faults and the same commit the same ones. ``SIGNET_CHAOS_FULL=1`` runs everything.
"""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import zlib
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tests.support.bus_harness import REPOSITORY

T = TypeVar("T")


def _of_the_commit() -> int:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, check=False)
    return zlib.crc32(done.stdout)


SEED = int(os.environ.get("SIGNET_CHAOS_SEED") or _of_the_commit())
FULL = os.environ.get("SIGNET_CHAOS_FULL") == "1"


def share(cases: Iterable[T], count: int) -> list[T]:
    """Return all cases in a full run, else ``count`` of them, chosen by the seed."""
    every = list(cases)
    if FULL:
        return every
    picked = set(random.Random(SEED).sample(range(len(every)), count))
    return [case for index, case in enumerate(every) if index in picked]


def every_nth(cases: Iterable[T], nth: int) -> Iterator[T]:
    """Return all cases in a full run, else every ``nth``, from one on that is chosen by the seed."""
    return iter(cases) if FULL else itertools.islice(cases, SEED % nth, None, nth)
