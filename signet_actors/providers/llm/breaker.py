"""A circuit breaker, without I/O: the time is an argument.

Closed: every call passes; consecutive failures open the circuit. Open: no call passes until the pause is over.
Half-open: one call, the probe, passes; its success closes the circuit, its failure opens it again for twice as long, up
to a bound. A ``Retry-After`` of the provider opens the circuit at once. Each permit carries the epoch in which it was
given; results of older epochs are ignored, so a slow call from before a pause neither fails the probe nor ends a pause.

Source: docs/decisions.md 14; docs/reliability.md R11.
"""

from __future__ import annotations

from dataclasses import dataclass

from signet_actors.domain.providers import CircuitState


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """``failures`` in a row open the circuit, first for ``cooldown_ms`` and at most for ``max_cooldown_ms``."""

    failures: int = 5
    cooldown_ms: int = 10_000
    max_cooldown_ms: int = 300_000


@dataclass(frozen=True, slots=True)
class Permit:
    """Permission for one call; ``probe`` marks the half-open call. Return it exactly once, however the call ends."""

    epoch: int
    probe: bool


class CircuitBreaker:
    """The circuit breaker of one provider. Not thread-safe. Times are milliseconds of a monotonic clock."""

    def __init__(self, policy: BreakerPolicy) -> None:
        self._policy = policy
        self.epoch = 0
        self._failures = 0
        self._open_until_ms: int | None = None
        self._cooldown_ms = policy.cooldown_ms
        self.probing = False

    def state(self, now_ms: int) -> CircuitState:
        """Return the state: open until the pause is over, then half-open until a probe has ended."""
        if self._open_until_ms is None:
            return CircuitState.CLOSED
        return CircuitState.OPEN if now_ms < self._open_until_ms else CircuitState.HALF_OPEN

    def waits_ms(self, now_ms: int) -> int:
        """Return how long until the pause is over; 0 if it is over, also while a probe is in flight."""
        return 0 if self._open_until_ms is None else max(0, self._open_until_ms - now_ms)

    def admit(self, now_ms: int) -> Permit | None:
        """Return a permit for one call, or None if no call may be made."""
        match self.state(now_ms):
            case CircuitState.CLOSED:
                return Permit(self.epoch, probe=False)
            case CircuitState.HALF_OPEN if not self.probing:
                self.probing = True
                return Permit(self.epoch, probe=True)
            case _:
                return None

    def succeeded(self, permit: Permit) -> None:
        """Record that the call succeeded."""
        if permit.epoch != self.epoch:
            return
        self._failures = 0
        if permit.probe:
            self.epoch += 1
            self.probing = False
            self._open_until_ms = None
            self._cooldown_ms = self._policy.cooldown_ms

    def failed(self, permit: Permit, now_ms: int, *, retry_after_ms: int | None = None) -> None:
        """Record that the call failed because of the provider."""
        if permit.epoch != self.epoch:
            return
        self._failures += 1
        if permit.probe:
            self._cooldown_ms = min(self._policy.max_cooldown_ms, self._cooldown_ms * 2)
        if permit.probe or retry_after_ms is not None or self._failures >= self._policy.failures:
            self.epoch += 1
            self._failures = 0
            self.probing = False
            self._open_until_ms = now_ms + max(self._cooldown_ms, retry_after_ms or 0)

    def abandoned(self, permit: Permit) -> None:
        """Record that the call was cancelled or never made, which says nothing about the provider."""
        if permit.epoch == self.epoch and permit.probe:
            self.probing = False
