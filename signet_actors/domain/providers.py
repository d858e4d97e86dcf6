"""What is known about a model provider: which one was chosen and why, and how it has been doing.

Plain data, so that the process that calls a provider can tell the others.

Source: docs/decisions.md 14 and 18; architecture.txt "Provider tracker"; docs/compatibility.md "Health and status"
(``providerResolution``).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

NO_PROVIDER: Final = "none"


class Selection(msgspec.Struct, frozen=True):
    """The provider that answers prompts, and the reason in words.

    ``name`` is ``none`` when nobody does. ``configured`` is what the configuration says. ``available`` is what the
    provider's own check said when the choice was made, ``detail`` its words, with the way out when there is one.
    ``may_cost`` is true when a call may cost money.
    """

    configured: str
    name: str
    model: str
    reason: str
    available: bool
    detail: str
    endpoint: str | None = None
    may_cost: bool = False


class CircuitState(StrEnum):
    """Whether calls are let through: all, none until the pause ends, or a single one that tries."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class OutcomeCounts(msgspec.Struct, frozen=True):
    """How the last calls ended; ``availability_rate`` is 1 when there was none."""

    total: int
    successes: int
    failures: int
    timeouts: int

    @property
    def availability_rate(self) -> float:
        return self.successes / self.total if self.total else 1.0


class DailyLimits(msgspec.Struct, frozen=True):
    """The most calls and tokens of one day; 0 is no limit."""

    calls: int
    tokens: int


class ProviderReport(msgspec.Struct, frozen=True):
    """One provider as the process that calls it sees it, since that process started.

    ``waits_ms`` is how long no call will be made, 0 when one may be made now, and ``waits_for`` says why in words.
    Tokens are the provider's own count, or for command-line providers an estimate by characters. ``cost_microusd``
    sums what providers told; most tell nothing.
    """

    name: str
    model: str
    circuit: CircuitState
    waits_ms: int
    waits_for: str
    recent: OutcomeCounts
    calls: int
    in_flight: int
    tokens_in: int
    tokens_out: int
    cost_microusd: int
    errors: dict[str, int]
    last_error: str


class ModelState(msgspec.Struct, frozen=True):
    """Which provider was chosen and why, how it has been doing, and the caps of its day.

    ``report`` and ``limits`` are None while nobody answers prompts.
    """

    selection: Selection
    report: ProviderReport | None
    limits: DailyLimits | None = None
