"""The faults of a run, as data: the same list replays the same run, and a shorter list is a smaller case."""

from __future__ import annotations

import random
from dataclasses import dataclass

ROLES = ("writer", "retention", "gateway", "extractor-1", "extractor-2")
POINTS = (
    "writer.after_begin",
    "writer.mid_batch",
    "writer.before_commit",
    "writer.after_commit",
    "writer.after_first_reply",
    "writer.before_checkpoint",
)
EIO_POINTS = POINTS[:4]
"""Sync points at which the disk can fail; after a reply nothing is written."""
SAFE_AFTER_S = 14.0
"""Faults end before this time; then everything must recover without help."""


@dataclass(frozen=True, order=True)
class Fault:
    """``kind``: kill (process ``target``), stop (``target`` for ``amount`` s), point (kill at the ``amount``-th pass of
    sync point ``target``), eio (the same, but the disk fails), cut (all frames of ``target`` are lost for ``amount``
    s), clock (the wall clock jumps by ``amount`` ms).
    """

    at_s: float
    kind: str
    target: str
    amount: float = 0.0


@dataclass(frozen=True)
class Weather:
    """The delays of messages, the shares that are lost or delivered twice, and the time a process spends on a message.

    Delays and times in seconds, as lower and upper bound.
    """

    delay_s: tuple[float, float]
    lost: float
    doubled: float
    work_s: tuple[float, float]


def weather_of(rng: random.Random) -> Weather:
    """Return the weather of a seed. Half of the seeds lose no message, and, independently, half duplicate none."""
    return Weather(
        delay_s=(0.0001, rng.choice((0.0005, 0.005, 0.05))),
        lost=rng.choice((0.0, 0.0, 0.01, 0.05)),
        doubled=rng.choice((0.0, 0.0, 0.01, 0.05)),
        work_s=(0.0002, rng.choice((0.001, 0.02, 0.2))),
    )


def faults_of(rng: random.Random) -> list[Fault]:
    """Return up to a dozen faults, of a random half of the kinds."""
    kinds = rng.sample(("kill", "stop", "point", "eio"), rng.randint(1, 4))
    faults = []
    for _ in range(rng.randint(2, 12)):
        at_s, kind = round(rng.uniform(1.0, SAFE_AFTER_S - 4), 4), rng.choice(kinds)
        if kind == "kill":
            faults.append(Fault(at_s, kind, rng.choice(ROLES)))
        elif kind == "stop":
            faults.append(Fault(at_s, kind, rng.choice(ROLES), round(rng.uniform(0.1, 4.0), 4)))
        else:
            points = EIO_POINTS if kind == "eio" else POINTS
            faults.append(Fault(at_s, kind, rng.choice(points), rng.randint(1, 30)))
    return sorted(faults)
