"""Interfaces for time and randomness, so that tests and the simulation can supply their own."""

from __future__ import annotations

import random
import time
from typing import Protocol

_EARLY = 50
"""A timer may fire early by one part in this many of its period."""


class Clock(Protocol):
    """Wall time for what people read; monotonic time for deadlines, leases and backoff."""

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""

    def monotonic_ns(self) -> int:
        """Return nanoseconds of a clock that never goes back and is shared by all processes of this machine boot."""


class SystemClock:
    """The machine's clocks."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()


def next_heartbeat_ns(now_ns: int, every_ns: int) -> int:
    """Return the time of the next heartbeat: the monotonic clock's next multiple of ``every_ns``, for all processes.

    Simultaneous heartbeats wake the supervisor once or twice instead of once per process, and each process finds the
    interpreter's code in the CPU cache. A timer that fires slightly early does not fire again at once.
    """
    return (now_ns + every_ns // _EARLY) // every_ns * every_ns + every_ns


def new_id(clock: Clock, rng: random.Random) -> str:
    """Return a UUIDv7: time-ordered, so that unique indexes grow at their end."""
    ms = clock.wall_ms() & ((1 << 48) - 1)
    value = (ms << 80) | (0x7 << 76) | (rng.getrandbits(12) << 64) | (0b10 << 62) | rng.getrandbits(62)
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
