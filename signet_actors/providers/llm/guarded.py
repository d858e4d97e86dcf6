"""The guard around every provider: concurrency limit, circuit breaker, daily budget, deadline, and statistics.

A call waits for a slot, then needs a permit of the breaker and a reservation of the budget, so a circuit that opens or
a provider that is replaced meanwhile still stops it. After a timeout, a broken connection or an unreadable answer, the
provider's own check decides whether it is unavailable or the job pays (``ProviderError.costs_attempt``). The same check
precedes the probe of a half-open circuit, so a long outage costs no attempts.

Source: docs/decisions.md 14 and 18; docs/reliability.md R11.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, NoReturn, Protocol

from signet_actors.domain.extraction.answers import AnswerFormat
from signet_actors.domain.providers import CircuitState, OutcomeCounts, ProviderReport
from signet_actors.errors import ProviderError, ProviderErrorKind, SignetError
from signet_actors.providers.llm.breaker import BreakerPolicy, CircuitBreaker, Permit
from signet_actors.providers.llm.provider import Availability, Generated, LlmProvider, estimated_tokens
from signet_actors.runtime.clock import Clock

RING_ENTRIES: Final = 100


class CallOutcome(Enum):
    """How one call ended."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"


class CallOutcomes:
    """A ring of the last outcomes with running totals.

    Source: architecture.txt "Provider tracker"; docs/compatibility.md "Diagnostics and pipeline status".
    """

    def __init__(self, capacity: int = RING_ENTRIES) -> None:
        self._entries: deque[CallOutcome] = deque(maxlen=capacity)
        self._totals: Counter[CallOutcome] = Counter()

    def record(self, outcome: CallOutcome) -> None:
        """Add an outcome; if the ring is full, drop the oldest."""
        if len(self._entries) == self._entries.maxlen:
            self._totals[self._entries[0]] -= 1
        self._entries.append(outcome)
        self._totals[outcome] += 1

    @property
    def counts(self) -> OutcomeCounts:
        return OutcomeCounts(
            total=len(self._entries),
            successes=self._totals[CallOutcome.SUCCESS],
            failures=self._totals[CallOutcome.FAILURE],
            timeouts=self._totals[CallOutcome.TIMEOUT],
        )


_NS_A_MS: Final = 1_000_000
_CLEANUP_MS: Final = 10_000
"""Time for a provider to clean up after its deadline; then the call is cancelled."""
_PROBE_POLL_MS: Final = 1000
"""How soon to try again while a probe is in flight."""
_EXPECTED_ANSWER_TOKENS: Final = 512
_MAX_WAITING_PER_SLOT: Final = 32
UNSETTLED: Final = "unsettled"
"""Counted next to the kinds of errors: reservations that could not be settled or given back."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reserved call: the UTC day that it counts for, however long it takes, and the reserved tokens."""

    day: str
    tokens: int


@dataclass(frozen=True, slots=True)
class BudgetExhausted:
    """No call may be made now; try again after ``wait_ms``."""

    wait_ms: int


class Budget(Protocol):
    """A durable count of the day's calls and tokens."""

    async def reserve(self, *, tokens: int) -> Reservation | BudgetExhausted:
        """Reserve one call and ``tokens``, all or nothing. May raise ``SignetError``; then no call may be made."""

    async def settle(
        self, reservation: Reservation, spent: Generated | None, *, failed: bool = False, took_ms: int = 0
    ) -> None:
        """Replace the reservation by the actual usage; ``spent`` is None if the call certainly used nothing.

        May raise ``SignetError``; then the reservation stays counted.
        """

    async def give_back(self, reservation: Reservation) -> None:
        """Cancel the reservation of a call that was never made. May raise ``SignetError``; then it stays counted."""

    async def close(self) -> None:
        """Send all usage that has not been counted yet."""


class ProviderRetired(ProviderError):
    """Another provider has replaced this one. The call was not made; make it there."""


@dataclass(frozen=True, slots=True)
class GuardLimits:
    """The number of concurrent calls and the breaker's policy."""

    concurrency: int = 2
    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)


class _PromptCall(NamedTuple):
    """The arguments of one ``LlmProvider.generate`` call."""

    prompt: str
    timeout_ms: int
    max_tokens: int | None
    answer: AnswerFormat | None


class GuardedProvider:
    """A provider that guards ``inner``. For one event loop."""

    def __init__(
        self, inner: LlmProvider, clock: Clock, limits: GuardLimits | None = None, budget: Budget | None = None
    ) -> None:
        limits = limits or GuardLimits()
        self._inner = inner
        self._clock = clock
        self._budget = budget
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._max_waiting = limits.concurrency * _MAX_WAITING_PER_SLOT
        self._waiting = 0
        self._breaker = CircuitBreaker(limits.breaker)
        self._ring = CallOutcomes()
        self._errors: Counter[str] = Counter()
        self._calls = 0
        self._in_flight = 0
        self._tokens_in = 0
        self._tokens_out = 0
        self._cost_microusd = 0
        self._last_error = ""
        self._budget_until_ms = 0
        self._active = 0
        self._retired = False
        self._drained = asyncio.Event()
        self._drained.set()

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def model(self) -> str:
        return self._inner.model

    @property
    def endpoint(self) -> str | None:
        return self._inner.endpoint

    @property
    def waits_ms(self) -> int:
        """Time for which no job that needs this provider should be leased; 0 if a call may be made now."""
        now = self._now_ms()
        probe_ms = _PROBE_POLL_MS if self._breaker.probing else 0
        return max(self._breaker.waits_ms(now), self._budget_until_ms - now, probe_ms)

    @property
    def structured(self) -> bool:
        return self._inner.structured

    async def generate(
        self, prompt: str, *, timeout_ms: int, max_tokens: int | None = None, answer: AnswerFormat | None = None
    ) -> Generated:
        """See ``LlmProvider.generate``. The deadline starts when the call is sent.

        Waiting for a slot takes at most ``timeout_ms`` too. Raises ``ProviderRetired`` if the provider is replaced
        before the call is sent.
        """
        self._active += 1
        self._drained.clear()
        try:
            await self._acquire_slot(timeout_ms)
            try:
                return await self._call_in_slot(_PromptCall(prompt, timeout_ms, max_tokens, answer))
            finally:
                self._slots.release()
        finally:
            self._active -= 1
            if not self._active:
                self._drained.set()

    def retire(self) -> None:
        """Send no more calls: waiting calls raise ``ProviderRetired``; calls in flight finish normally."""
        if not self._retired:
            self._retired = True
            for _ in range(self._waiting):
                self._slots.release()

    async def wait_drained(self) -> None:
        """Wait until no call is waiting or in flight; deadlines bound the wait."""
        await self._drained.wait()

    async def available(self) -> Availability:
        return await self._inner.available()

    async def close(self) -> None:
        """Close the provider, then the budget, even if the first raises."""
        try:
            await self._inner.close()
        finally:
            if self._budget is not None:
                await self._budget.close()

    def report(self) -> ProviderReport:
        """Return the statistics for ``signet providers`` and ``/api/status``."""
        now = self._now_ms()
        return ProviderReport(
            name=self.name,
            model=self.model,
            circuit=self._breaker.state(now),
            waits_ms=self.waits_ms,
            waits_for=self._waits_for(now),
            recent=self._ring.counts,
            calls=self._calls,
            in_flight=self._in_flight,
            tokens_in=self._tokens_in,
            tokens_out=self._tokens_out,
            cost_microusd=self._cost_microusd,
            errors=dict(self._errors),
            last_error=self._last_error,
        )

    async def _call_in_slot(self, ask: _PromptCall) -> Generated:
        self._check_not_retired()
        permit = self._admit()
        estimate = Generated(
            "",
            estimated_tokens(ask.prompt),
            _EXPECTED_ANSWER_TOKENS if ask.max_tokens is None else ask.max_tokens,
            estimated=True,
        )
        reservation: Reservation | None = None
        try:
            if permit.probe:
                await self._check_before_probe(permit)
                self._check_not_retired()
            if self._budget is not None:
                reservation = await self._reserve(self._budget, estimate.tokens_in + estimate.tokens_out)
                if self._retired:
                    await self._settle(self._budget.give_back(reservation))
                self._check_not_retired()
        except BaseException:
            self._breaker.abandoned(permit)
            raise
        return await self._call(permit, ask, estimate, reservation)

    def _check_not_retired(self) -> None:
        if self._retired:
            raise ProviderRetired(
                ProviderErrorKind.UNAVAILABLE, f"{self.name} has been replaced by another provider", retry_after_ms=1
            )

    async def _acquire_slot(self, timeout_ms: int) -> None:
        self._check_not_retired()
        if self._slots.locked() and self._waiting >= self._max_waiting:
            raise self._unavailable(f"already has {self._waiting} waiting calls", retry_after_ms=timeout_ms)
        self._waiting += 1
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._slots.acquire()
        except TimeoutError:
            raise self._unavailable("is busy with other calls", retry_after_ms=timeout_ms) from None
        finally:
            self._waiting -= 1

    def _admit(self) -> Permit:
        now = self._now_ms()
        permit = self._breaker.admit(now)
        if permit is None:
            raise self._unavailable(
                self._pause_reason(now), retry_after_ms=max(self._breaker.waits_ms(now), _PROBE_POLL_MS)
            )
        return permit

    async def _check_before_probe(self, permit: Permit) -> None:
        found = await self._inner.available()
        if not found.ok:
            self._last_error = found.detail
            now = self._now_ms()
            self._breaker.failed(permit, now)
            raise self._unavailable(self._pause_reason(now), retry_after_ms=self._breaker.waits_ms(now))

    async def _reserve(self, budget: Budget, tokens: int) -> Reservation:
        try:
            reserved = await budget.reserve(tokens=tokens)
        except SignetError as error:
            # The writer cannot count the call, so it might exceed the limit.
            raise self._unavailable(
                f"is not called because the call cannot be counted against the daily limit: {error.detail}",
                retry_after_ms=1000,
            ) from error
        if isinstance(reserved, Reservation):
            self._budget_until_ms = 0
            return reserved
        self._budget_until_ms = self._now_ms() + reserved.wait_ms
        self._errors[ProviderErrorKind.OVER_BUDGET] += 1
        raise ProviderError(
            ProviderErrorKind.OVER_BUDGET,
            f"{self.name} has reached its daily limit of calls or tokens",
            retry_after_ms=reserved.wait_ms,
        )

    async def _call(
        self, permit: Permit, ask: _PromptCall, estimate: Generated, reservation: Reservation | None
    ) -> Generated:
        spent: Generated | None = estimate  # a call that timed out, broke off or was cancelled may be charged
        self._calls += 1
        self._in_flight += 1
        began_ms, failed = self._now_ms(), True
        try:
            async with asyncio.timeout((ask.timeout_ms + _CLEANUP_MS) / 1000):
                answer = spent = await self._inner.generate(
                    ask.prompt, timeout_ms=ask.timeout_ms, max_tokens=ask.max_tokens, answer=ask.answer
                )
            failed = False
            self._breaker.succeeded(permit)
        except ProviderError as error:
            if _cost_nothing(error):
                spent = None
            await self._record_failure(permit, error)
        except TimeoutError:
            await self._record_failure(
                permit,
                ProviderError(ProviderErrorKind.TIMEOUT, f"{self.name} did not respond within {ask.timeout_ms} ms"),
            )
        except BaseException:
            # Cancellation says nothing about the provider.
            self._breaker.abandoned(permit)
            raise
        finally:
            self._in_flight -= 1
            if self._budget is not None and reservation is not None:
                took_ms = max(0, self._now_ms() - began_ms)
                await self._settle(self._budget.settle(reservation, spent, failed=failed, took_ms=took_ms))
        self._ring.record(CallOutcome.SUCCESS)
        self._tokens_in += answer.tokens_in
        self._tokens_out += answer.tokens_out
        self._cost_microusd += answer.cost_microusd or 0
        return answer

    async def _settle(self, correction: Awaitable[None]) -> None:
        """Correct the day's count. If that fails, the reservation stays counted and the answer is still returned."""
        try:
            await correction
        except SignetError as error:
            self._errors[UNSETTLED] += 1
            self._last_error = f"the daily usage was not corrected: {error.detail}"

    async def _record_failure(self, permit: Permit, error: ProviderError) -> NoReturn:
        """Record the failure and raise it as UNAVAILABLE if the provider's own check fails too."""
        timed_out = error.kind is ProviderErrorKind.TIMEOUT
        self._ring.record(CallOutcome.TIMEOUT if timed_out else CallOutcome.FAILURE)
        self._errors[error.kind] += 1
        self._last_error = error.detail
        self._breaker.failed(permit, self._now_ms(), retry_after_ms=_retry_after_ms_of(error))
        away = error.costs_attempt and not (await self._inner.available()).ok
        raise ProviderError(
            ProviderErrorKind.UNAVAILABLE if away else error.kind,
            error.detail,
            retry_after_ms=max(error.retry_after_ms or 0, self.waits_ms) or None,
            status=error.status,
        ) from error

    def _unavailable(self, words: str, *, retry_after_ms: int) -> ProviderError:
        return ProviderError(
            ProviderErrorKind.UNAVAILABLE, f"{self.name} {words}", retry_after_ms=max(1, retry_after_ms)
        )

    def _pause_reason(self, now_ms: int) -> str:
        if self._breaker.state(now_ms) is CircuitState.HALF_OPEN:
            return f"is being retried by another call; the last error was: {self._last_error}"
        wait_s = -(-self._breaker.waits_ms(now_ms) // 1000)
        return f"is paused for another {wait_s} s; the last error was: {self._last_error}"

    def _waits_for(self, now_ms: int) -> str:
        if self._breaker.state(now_ms) is not CircuitState.CLOSED:
            return f"{self.name} {self._pause_reason(now_ms)}"
        if self._budget_until_ms > now_ms:
            limits = "extraction.dailyCallLimit, dailyTokenLimit"
            return f"{self.name} has reached its daily limit of calls or tokens ({limits})"
        return ""

    def _now_ms(self) -> int:
        return self._clock.monotonic_ns() // _NS_A_MS


_PASSED_ON_STATUSES: Final = frozenset({502, 504})
"""Statuses that a proxy returns after it has forwarded the call."""


def _cost_nothing(error: ProviderError) -> bool:
    """Return True only if the model cannot have started: the server was not reached or rejected the request."""
    return not error.costs_attempt and error.status not in _PASSED_ON_STATUSES


def _retry_after_ms_of(error: ProviderError) -> int | None:
    """Return the pause that the provider requested; at least a second if it only reports a rate limit."""
    if error.kind is ProviderErrorKind.RATE_LIMITED:
        return error.retry_after_ms or 1000
    return error.retry_after_ms
