"""Concurrent recalls and remembers in a typical proportion: four in five requests are recalls."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final

from bench.closed_loops import Answered
from bench.cpu_usage import CpuUsage
from bench.figures import spread
from bench.loaded_daemon import LoadedDaemon, must_have_worked

RECALL_SHARE: Final = 0.8
REQUESTS_PER_S: Final = 2_500
"""More than can be answered, so that the requests do not end before the phase."""


class Mixed:
    """``requests`` in the order in which they are sent; ``recalls`` marks those that are recalls."""

    def __init__(self, subject: LoadedDaemon, seconds: float, seed: int) -> None:
        count = int(seconds * REQUESTS_PER_S)
        rng = random.Random(seed)
        self.recalls = [rng.random() < RECALL_SHARE for _ in range(count)]
        recalls = iter(subject.recalls(sum(self.recalls)))
        remembers = iter(subject.remembers(count - sum(self.recalls)))
        self.requests: Sequence[bytes] = [next(recalls if recall else remembers) for recall in self.recalls]

    def split(self, answered: Answered) -> tuple[list[float], list[float]]:
        """Return the latencies of the recalls and those of the remembers."""
        recalls: list[float] = []
        remembers: list[float] = []
        for at, latency_ms in zip(answered.at, answered.latencies_ms, strict=True):
            (recalls if self.recalls[at] else remembers).append(latency_ms)
        return recalls, remembers


def measure_mixed(subject: LoadedDaemon, clients: int, seconds: float, seed: int) -> dict[str, Any]:
    """Return the figures of one phase, with ``/health`` requested at fixed times; raises DaemonFailed."""
    mixed = Mixed(subject, seconds, seed)
    usage = CpuUsage(subject.daemon.processes())
    answered, health = Answered(), Answered()
    with usage.measured():
        subject.load(mixed.requests, clients, seconds, answered, health)
    must_have_worked(answered, "mixed load")
    recalls, remembers = mixed.split(answered)
    count = len(answered.latencies_ms)
    subject.say(f"mixed load, {clients} clients: {count} requests in {usage.wall_s:.1f} s")
    return {
        "clients": clients,
        "per_s": round(count / usage.wall_s, 1),
        "recall_ms": spread(recalls),
        "remember_ms": spread(remembers),
        "health_ms": spread(health.latencies_ms),
        "cpu_ms_per_request": usage.each(count),
        "refused": answered.refused,
    }
