"""A circuit breaker: calls to a provider that keeps failing are paused, and one call at a time finds out whether it is
back. Pure: the time comes as an argument.

Closed lets every call through; so many failures in a row open it. Open lets none through until the pause is over; then
it is half open and lets a single call through, the probe: its success closes the circuit, its failure opens it again
for twice as long, up to a bound. A provider that says when to come back (``Retry-After``) is believed at once.

Each permit bears the epoch in which it was given. Whatever a call of an older epoch has to say is old news: a slow
failure of before the pause must not count against the probe, nor a slow success end a pause.

Source: docs/decisions.md 14; docs/reliability.md R11.
"""

from __future__ import annotations

from dataclasses import dataclass

from signet_actors.domain.providers import CircuitState

__all__ = ["BreakerPolicy", "CircuitBreaker", "Permit"]


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """``failures`` in a row open the circuit, first for ``cooldown_ms``, at most for ``max_cooldown_ms``."""

    failures: int = 5
    cooldown_ms: int = 10_000
    max_cooldown_ms: int = 300_000


@dataclass(frozen=True, slots=True)
class Permit:
    """One call may be made. ``probe``: it is the one that finds out. To be handed back, once, however it ends."""

    epoch: int
    probe: bool


class CircuitBreaker:
    """The state of one provider. Not thread-safe; times are milliseconds of a clock that never goes back."""

    def __init__(self, policy: BreakerPolicy) -> None:
        self._policy = policy
        self._epoch = 0
        self._failures = 0
        self._open_until_ms: int | None = None
        self._cooldown_ms = policy.cooldown_ms
        self._probing = False

    def state(self, now_ms: int) -> CircuitState:
        """Open until the pause is over, half open from then on until a probe has ended."""
        if self._open_until_ms is None:
            return CircuitState.CLOSED
        return CircuitState.OPEN if now_ms < self._open_until_ms else CircuitState.HALF_OPEN

    def waits_ms(self, now_ms: int) -> int:
        """How long until a call would be let through: 0 now, and 0 too while a probe is out (its end decides)."""
        return 0 if self._open_until_ms is None else max(0, self._open_until_ms - now_ms)

    @property
    def probing(self) -> bool:
        """A probe is out."""
        return self._probing

    def admit(self, now_ms: int) -> Permit | None:
        """Leave for one call, or None."""
        match self.state(now_ms):
            case CircuitState.CLOSED:
                return Permit(self._epoch, probe=False)
            case CircuitState.HALF_OPEN if not self._probing:
                self._probing = True
                return Permit(self._epoch, probe=True)
            case _:
                return None

    def succeeded(self, permit: Permit) -> None:
        """The call was answered."""
        if permit.epoch != self._epoch:
            return
        self._failures = 0
        if permit.probe:
            self._epoch += 1
            self._probing = False
            self._open_until_ms = None
            self._cooldown_ms = self._policy.cooldown_ms

    def failed(self, permit: Permit, now_ms: int, *, retry_after_ms: int | None = None) -> None:
        """The call failed, for a reason that lies with the provider."""
        if permit.epoch != self._epoch:
            return
        self._failures += 1
        if permit.probe:
            self._cooldown_ms = min(self._policy.max_cooldown_ms, self._cooldown_ms * 2)
        if permit.probe or retry_after_ms is not None or self._failures >= self._policy.failures:
            self._epoch += 1
            self._failures = 0
            self._probing = False
            self._open_until_ms = now_ms + max(self._cooldown_ms, retry_after_ms or 0)

    def abandoned(self, permit: Permit) -> None:
        """The call ended without a word about the provider: it was cancelled, or never made."""
        if permit.epoch == self._epoch and permit.probe:
            self._probing = False
