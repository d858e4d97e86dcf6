"""State of a model provider: which one was selected and why, and how its calls have gone.

Plain data, so that the process that calls a provider can send it to other processes.

Source: docs/decisions.md 14 and 18; architecture.txt "Provider tracker"; docs/compatibility.md "Health and status"
(``providerResolution``).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

import msgspec

NO_PROVIDER: Final = "none"


class Selection(msgspec.Struct, frozen=True):
    """The selected provider and the reason in words.

    ``name`` is ``none`` if no provider was selected. ``configured`` is the configured value. ``available`` and
    ``detail`` are the result of the provider's own check at selection; ``detail`` includes the remedy if there is one.
    ``may_cost`` is true if a call may cost money.
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
    """Whether calls are permitted: all, none until the cooldown ends, or a single trial call."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class OutcomeCounts(msgspec.Struct, frozen=True):
    """Results of the most recent calls. ``availability_rate`` is 1 if there were none."""

    total: int
    successes: int
    failures: int
    timeouts: int

    @property
    def availability_rate(self) -> float:
        return self.successes / self.total if self.total else 1.0


class DailyLimits(msgspec.Struct, frozen=True):
    """Maximum calls and tokens per day; 0 means no limit."""

    calls: int
    tokens: int


class ProviderReport(msgspec.Struct, frozen=True):
    """One provider as seen by the process that calls it, since that process started.

    ``waits_ms`` is the time until the next call is permitted, 0 if it is now; ``waits_for`` gives the reason in words.
    Tokens are the provider's own count, or for command-line providers an estimate from characters. ``cost_microusd``
    sums the costs that providers reported; most report none.
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
    """The selected provider, how its calls have gone, and its daily limits.

    ``report`` and ``limits`` are None while no provider is selected.
    """

    selection: Selection
    report: ProviderReport | None
    limits: DailyLimits | None = None


class UsageStage(msgspec.Struct, frozen=True, rename="camel"):
    """What one call of the model used; null where its provider does not report it. ``targetRef``: provider/model."""

    name: Literal["planning", "synthesis"]
    target_ref: str | None = None
    attempt_count: int = 1
    fallback_count: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_creation_tokens: int | None = None
    total_cost: float | None = None
    total_duration_ms: int | None = None


class AggregateUsage(msgspec.Struct, frozen=True, rename="camel"):
    """What the calls of the model used together, costs in US dollars; null if one of them does not report it."""

    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_creation_tokens: int | None
    total_cost: float | None
    total_duration_ms: int | None
    stages: list[UsageStage]
