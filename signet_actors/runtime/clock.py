"""Time and randomness as ports, so that tests and the simulation can supply their own."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from typing import Protocol

_EARLY = 50
"""A timer may fire this part of its period too early."""


class Clock(Protocol):
    """Two clocks: wall time for what people read, monotonic time for deadlines, leases and backoff."""

    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch."""
        ...

    def monotonic_ns(self) -> int:
        """Nanoseconds of a clock that never goes back and is shared by all processes of this boot."""
        ...


class SystemClock:
    """The machine's clocks."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()


def next_heartbeat_ns(now_ns: int, every_ns: int) -> int:
    """The next moment of a beat that all processes share: the monotonic clock's next multiple of ``every_ns``.

    Whoever hears all of them is woken once or twice instead of once for each, and each process finds the interpreter's
    code in the processor's cache. A timer that fired a hair too early is not asked to fire again at once.
    """
    return (now_ns + every_ns // _EARLY) // every_ns * every_ns + every_ns


def iso(wall_ms: int) -> str:
    """``wall_ms`` as ``2026-02-21T10:00:00.000Z``, the one form in which times are stored and compared."""
    moment = datetime.fromtimestamp(wall_ms / 1000, tz=UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{wall_ms % 1000:03d}Z"


def new_id(clock: Clock, rng: random.Random) -> str:
    """A UUIDv7: time-ordered, so that unique indexes grow at their end."""
    ms = clock.wall_ms() & ((1 << 48) - 1)
    value = (ms << 80) | (0x7 << 76) | (rng.getrandbits(12) << 64) | (0b10 << 62) | rng.getrandbits(62)
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
