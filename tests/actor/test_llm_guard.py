"""The guard around a provider: slots, breaker, budget and deadlines over real HTTP, with a clock that the test sets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar, cast

import pytest

from signet_actors.domain.extraction.answers import AnswerFormat
from signet_actors.domain.providers import CircuitState
from signet_actors.errors import ProviderError, ProviderErrorKind, Unavailable
from signet_actors.providers.llm.breaker import BreakerPolicy
from signet_actors.providers.llm.guarded import (
    Budget,
    BudgetExhausted,
    GuardedProvider,
    GuardLimits,
    ProviderRetired,
    Reservation,
)
from signet_actors.providers.llm.ollama import OllamaProvider
from signet_actors.providers.llm.provider import Availability, Generated, Reported
from tests.support.bus_client_harness import soon
from tests.support.scripted_provider import Act, Fault, ScriptedProvider

HANG_GUARD_S = 30.0
POLICY = BreakerPolicy(failures=3, cooldown_ms=10_000, max_cooldown_ms=40_000)
T = TypeVar("T")


@dataclass
class HandClock:
    """Time that only the test moves."""

    now_ms: int = 1_000_000

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic_ns(self) -> int:
        return self.now_ms * 1_000_000


@dataclass
class ScriptedBudget:
    """A budget that grants until ``refuses_for_ms`` is set, and records its calls."""

    refuses_for_ms: int | None = None
    reserved: list[int] = field(default_factory=list)
    settled: list[tuple[Reservation, Generated | None]] = field(default_factory=list)
    given_back: list[Reservation] = field(default_factory=list)
    closed: bool = False

    async def reserve(self, *, tokens: int) -> Reservation | BudgetExhausted:
        self.reserved.append(tokens)
        if self.refuses_for_ms is not None:
            return BudgetExhausted(self.refuses_for_ms)
        return Reservation(f"day {len(self.reserved)}", tokens)

    async def settle(self, reservation: Reservation, spent: Generated | None, **_: float) -> None:
        self.settled.append((reservation, spent))

    async def give_back(self, reservation: Reservation) -> None:
        self.given_back.append(reservation)

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def server() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as running:
        yield running
        running.await_quiet()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


def using(
    server: ScriptedProvider,
    clock: HandClock,
    work: Callable[[GuardedProvider], Awaitable[T]],
    *,
    concurrency: int = 2,
    budget: Budget | None = None,
) -> T:
    async def scenario() -> T:
        guarded = GuardedProvider(OllamaProvider(server.url), clock, GuardLimits(concurrency, POLICY), budget)
        try:
            async with asyncio.timeout(HANG_GUARD_S):
                return await work(guarded)
        finally:
            await guarded.close()

    return asyncio.run(scenario())


async def failure(guarded: GuardedProvider, timeout_ms: int = 500) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await guarded.generate("p", timeout_ms=timeout_ms)
    return caught.value


async def opened(guarded: GuardedProvider, server: ScriptedProvider, fault: Fault = "http_500") -> None:
    server.then(*[fault] * POLICY.failures)
    for _ in range(POLICY.failures):
        await failure(guarded)


def test_a_good_call_is_counted(server: ScriptedProvider, clock: HandClock) -> None:
    async def work(guarded: GuardedProvider) -> None:
        await guarded.generate("p", timeout_ms=5000)
        report = guarded.report()
        assert (report.name, report.model, report.circuit, report.waits_ms) == (
            "ollama",
            "qwen3:4b",
            CircuitState.CLOSED,
            0,
        )
        assert (report.calls, report.in_flight, report.tokens_in, report.tokens_out) == (1, 0, 11, 7)
        assert (report.recent.total, report.recent.successes, report.waits_for) == (1, 1, "")

    using(server, clock, work)


def test_consecutive_failures_pause_the_calls_with_reason_and_duration(
    server: ScriptedProvider, clock: HandClock
) -> None:
    async def work(guarded: GuardedProvider) -> None:
        await opened(guarded, server)
        clock.now_ms += 3000
        error = await failure(guarded)
        assert (error.kind, error.costs_attempt) == (ProviderErrorKind.UNAVAILABLE, False)
        assert error.retry_after_ms == guarded.waits_ms == 7000
        assert error.detail.startswith("ollama is paused for another 7 s; the last error was: Ollama answered 500: ")
        assert guarded.report().waits_for == error.detail
        assert guarded.report().errors == {"http": 3}

    using(server, clock, work)
    assert len(server.asked) == POLICY.failures, "a refused call goes nowhere"


def test_after_the_pause_one_probe_finds_the_provider_available(server: ScriptedProvider, clock: HandClock) -> None:
    async def work(guarded: GuardedProvider) -> None:
        await opened(guarded, server)
        clock.now_ms += POLICY.cooldown_ms
        assert guarded.waits_ms == 0
        await guarded.generate("p", timeout_ms=5000)
        assert guarded.report().circuit is CircuitState.CLOSED

    using(server, clock, work)


def test_during_the_probe_other_calls_are_refused_without_costing_an_attempt(
    server: ScriptedProvider, clock: HandClock
) -> None:
    async def work(guarded: GuardedProvider) -> None:
        await opened(guarded, server)
        clock.now_ms += POLICY.cooldown_ms
        server.then("hang")
        probe = asyncio.ensure_future(guarded.generate("p", timeout_ms=60_000))
        await asyncio.to_thread(server.await_asked, POLICY.failures + 1)
        error = await failure(guarded)
        assert not error.costs_attempt
        assert "is being retried by another call" in error.detail
        assert guarded.waits_ms > 0, "or whoever leases jobs would ask without a pause"
        probe.cancel()
        await asyncio.gather(probe, return_exceptions=True)
        await guarded.generate("p", timeout_ms=5000)

    using(server, clock, work)


@pytest.mark.parametrize("fault", ["hang", "rst", "http_500", "http_503", "http_429", "wrong_content_type"])
def test_a_long_outage_costs_no_attempt(server: ScriptedProvider, clock: HandClock, fault: Fault) -> None:
    """Let ten minutes pass; the provider then recovers by itself."""

    async def work(guarded: GuardedProvider) -> int:
        server.stuck = fault
        until = clock.now_ms + 600_000
        while clock.now_ms < until:
            error = await failure(guarded, timeout_ms=100)
            assert not error.costs_attempt, error.detail
            assert (error.retry_after_ms or 0) >= guarded.waits_ms, "or nobody knows when to come back"
            clock.now_ms += max(1000, guarded.waits_ms)
        tried = len(server.asked) + server.looks
        server.stuck = None
        clock.now_ms += guarded.waits_ms
        await guarded.generate("p", timeout_ms=5000)
        return tried

    class QuickLook(OllamaProvider):
        async def available(self) -> Availability:
            """The three seconds of a look are not what this is about."""
            try:
                async with asyncio.timeout(0.1):
                    return await super().available()
            except TimeoutError:
                return Availability(False, "no answer")

    async def scenario() -> int:
        guarded = GuardedProvider(QuickLook(server.url), clock, GuardLimits(2, POLICY))
        try:
            async with asyncio.timeout(HANG_GUARD_S):
                return await work(guarded)
        finally:
            await guarded.close()

    assert asyncio.run(scenario()) <= 25, "a provider that is down is left alone"


@pytest.mark.parametrize("fault", ["hang", "slow_drip", "rst", "http_500", "empty"])
def test_a_prompt_that_always_fails_at_a_healthy_provider_costs_an_attempt(
    server: ScriptedProvider, clock: HandClock, fault: Fault
) -> None:
    server.then(fault)
    error = using(server, clock, failure)
    assert error.costs_attempt


def test_a_crash_of_the_provider_costs_no_attempt_until_it_is_available_again(
    server: ScriptedProvider, clock: HandClock
) -> None:
    server.then("die")
    error = using(server, clock, failure)
    assert error.kind is ProviderErrorKind.UNAVAILABLE


def test_a_rate_limit_pauses_the_calls_for_its_retry_time(server: ScriptedProvider, clock: HandClock) -> None:
    server.then(Act("http_429", retry_after="120"))

    async def work(guarded: GuardedProvider) -> None:
        error = await failure(guarded)
        assert error.kind is ProviderErrorKind.RATE_LIMITED
        assert guarded.waits_ms == 120_000

    using(server, clock, work)


def test_concurrent_calls_are_limited(server: ScriptedProvider, clock: HandClock) -> None:
    async def work(guarded: GuardedProvider) -> None:
        await asyncio.gather(*(guarded.generate("p", timeout_ms=20_000) for _ in range(20)))

    using(server, clock, work, concurrency=3)
    assert server.most_at_once <= 3
    assert len(server.asked) == 20


def test_a_call_without_a_slot_in_time_is_refused_without_costing_an_attempt(
    server: ScriptedProvider, clock: HandClock
) -> None:
    server.then("hang")

    async def work(guarded: GuardedProvider) -> None:
        first = asyncio.ensure_future(guarded.generate("p", timeout_ms=60_000))
        await asyncio.to_thread(server.await_asked, 1)
        error = await failure(guarded, timeout_ms=50)
        assert (error.kind, error.costs_attempt) == (ProviderErrorKind.UNAVAILABLE, False)
        assert "busy" in error.detail
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await guarded.generate("p", timeout_ms=5000)

    using(server, clock, work, concurrency=1)


def test_the_number_of_waiting_calls_is_limited(server: ScriptedProvider, clock: HandClock) -> None:
    server.stuck = "hang"

    async def work(guarded: GuardedProvider) -> None:
        calls = [asyncio.ensure_future(guarded.generate("p", timeout_ms=60_000)) for _ in range(40)]
        await asyncio.to_thread(server.await_asked, 1)
        done = [call for call in calls if call.done()]
        assert len(done) == 40 - 1 - 32
        assert all("already has" in str(call.exception()) for call in done)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    using(server, clock, work, concurrency=1)


def test_a_waiting_call_is_not_sent_after_the_circuit_opened(server: ScriptedProvider, clock: HandClock) -> None:
    server.stuck = "http_500"

    async def work(guarded: GuardedProvider) -> None:
        ends = await asyncio.gather(
            *(guarded.generate("p", timeout_ms=20_000) for _ in range(10)), return_exceptions=True
        )
        assert all(isinstance(end, ProviderError) for end in ends)

    using(server, clock, work, concurrency=1)
    assert len(server.asked) == POLICY.failures


def test_a_call_beyond_the_daily_budget_is_not_sent(server: ScriptedProvider, clock: HandClock) -> None:
    budget = ScriptedBudget(refuses_for_ms=3_600_000)

    async def work(guarded: GuardedProvider) -> None:
        error = await failure(guarded)
        assert (error.kind, error.costs_attempt) == (ProviderErrorKind.OVER_BUDGET, False)
        assert error.retry_after_ms == guarded.waits_ms == 3_600_000
        assert "its daily limit of calls or tokens" in guarded.report().waits_for
        budget.refuses_for_ms = None
        clock.now_ms += 3_600_000
        await guarded.generate("p", timeout_ms=5000)
        assert guarded.report().waits_for == ""

    using(server, clock, work, budget=budget)
    assert len(server.asked) == 1


ANSWERED = Generated('{"facts": [], "entities": []}', 11, 7, 0, reported=Reported(11, 7))
ESTIMATE = Generated("", 100, 50, estimated=True)


@pytest.mark.parametrize(
    ("fault", "spent"),
    [
        ("ok", ANSWERED),
        ("timeout", ESTIMATE),
        ("cancelled", ESTIMATE),
        ("http_500", ESTIMATE),
        ("cut_off", ESTIMATE),
        ("rst", ESTIMATE),
        ("broken_json", ESTIMATE),
        ("empty", ESTIMATE),
        ("http_429", None),
        ("http_503", None),
        ("http_401", None),
        ("nobody", None),
    ],
)
def test_usage_is_the_actual_tokens_the_estimate_if_cut_off_and_zero_if_rejected(
    server: ScriptedProvider, clock: HandClock, fault: str, spent: Generated | None
) -> None:
    budget = ScriptedBudget()
    act: Fault = "hang" if fault in {"cancelled", "timeout"} else cast("Fault", fault if fault != "nobody" else "ok")
    server.then(act)
    if fault == "nobody":
        server.die()

    async def work(guarded: GuardedProvider) -> None:
        timeout_ms = 200 if fault == "timeout" else 60_000
        task = asyncio.ensure_future(guarded.generate("x" * 400, timeout_ms=timeout_ms, max_tokens=50))
        if fault == "cancelled":
            await asyncio.to_thread(server.await_asked, 1)
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    using(server, clock, work, budget=budget)
    assert budget.reserved == [150]
    assert budget.settled == [(Reservation("day 1", 150), spent)]
    assert budget.closed


def test_each_call_counts_for_the_day_in_which_it_was_admitted(server: ScriptedProvider, clock: HandClock) -> None:
    budget = ScriptedBudget()
    server.then("hang")

    async def work(guarded: GuardedProvider) -> None:
        early = asyncio.ensure_future(guarded.generate("p", timeout_ms=60_000))
        await asyncio.to_thread(server.await_asked, 1)
        await guarded.generate("p", timeout_ms=60_000)
        early.cancel()
        await asyncio.gather(early, return_exceptions=True)

    using(server, clock, work, budget=budget)
    assert [settled.day for settled, _ in budget.settled] == ["day 2", "day 1"]


def test_a_replaced_provider_refuses_waiting_calls_and_finishes_calls_in_flight(
    server: ScriptedProvider, clock: HandClock
) -> None:
    budget = ScriptedBudget()
    server.then("hang")

    async def work(guarded: GuardedProvider) -> None:
        out = asyncio.ensure_future(guarded.generate("p", timeout_ms=60_000))
        await asyncio.to_thread(server.await_asked, 1)
        waiting = [asyncio.ensure_future(guarded.generate("p", timeout_ms=60_000)) for _ in range(5)]
        await asyncio.sleep(0)
        guarded.retire()
        for end in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(end, ProviderRetired)
            assert not end.costs_attempt
        with pytest.raises(ProviderRetired):
            await guarded.generate("p", timeout_ms=60_000)
        wait_drained = asyncio.ensure_future(guarded.wait_drained())
        await asyncio.sleep(0)
        assert not wait_drained.done()
        assert not out.done()
        out.cancel()
        await asyncio.gather(out, return_exceptions=True)
        await wait_drained

    using(server, clock, work, concurrency=1, budget=budget)
    assert len(server.asked) == len(budget.reserved) == 1


class SlowBudget(ScriptedBudget):
    """A budget whose keeper takes as long as the test sets."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = asyncio.Event()

    async def reserve(self, *, tokens: int) -> Reservation | BudgetExhausted:
        reserved = await super().reserve(tokens=tokens)
        await self.answers.wait()
        return reserved


@pytest.mark.parametrize("at", ["reservation", "check"])
def test_an_unsent_call_of_a_replaced_provider_is_never_sent(
    server: ScriptedProvider, clock: HandClock, at: str
) -> None:
    budget = SlowBudget()
    budget.answers.set()

    async def work(guarded: GuardedProvider) -> None:
        if at == "check":
            await opened(guarded, server)
            clock.now_ms += POLICY.cooldown_ms
            server.look = "slow_drip"
            server.drip_s = 0.001
        else:
            budget.answers.clear()
        looks, reserved, asked = server.looks, len(budget.reserved), len(server.asked)
        late = asyncio.ensure_future(guarded.generate("p", timeout_ms=60_000))
        await soon(lambda: server.looks > looks or len(budget.reserved) > reserved)
        guarded.retire()
        budget.answers.set()
        with pytest.raises(ProviderRetired):
            await late
        await guarded.wait_drained()
        assert len(server.asked) == asked
        assert len(budget.settled) == asked, "of the calls that went out"
        assert [reservation.tokens for reservation in budget.given_back] == budget.reserved[asked:]

    using(server, clock, work, budget=budget)


class BrokenBudget(ScriptedBudget):
    """A budget whose keeper restarts at the wrong moment."""

    def __init__(self, *, at: str) -> None:
        super().__init__()
        self.at = at

    async def reserve(self, *, tokens: int) -> Reservation | BudgetExhausted:
        if self.at == "reserve":
            raise Unavailable("away")
        return await super().reserve(tokens=tokens)

    async def settle(self, reservation: Reservation, spent: Generated | None, **_: float) -> None:
        raise Unavailable("away")


def test_no_call_is_sent_while_usage_cannot_be_counted(server: ScriptedProvider, clock: HandClock) -> None:
    error = using(server, clock, failure, budget=BrokenBudget(at="reserve"))
    assert (error.kind, error.costs_attempt, error.retry_after_ms) == (ProviderErrorKind.UNAVAILABLE, False, 1000)
    assert server.asked == []


def test_an_answer_is_kept_even_if_its_usage_cannot_be_recorded(server: ScriptedProvider, clock: HandClock) -> None:
    async def work(guarded: GuardedProvider) -> None:
        assert (await guarded.generate("p", timeout_ms=5000)).text
        assert guarded.report().errors == {"unsettled": 1}

    using(server, clock, work, budget=BrokenBudget(at="settle"))


def test_a_refused_call_reserves_nothing(server: ScriptedProvider, clock: HandClock) -> None:
    budget = ScriptedBudget()

    async def work(guarded: GuardedProvider) -> None:
        await opened(guarded, server)
        await failure(guarded)

    using(server, clock, work, budget=budget)
    assert len(budget.reserved) == POLICY.failures


def test_a_provider_that_forgets_its_deadline_is_cancelled(clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful:
        name = "forgetful"
        model = "m"
        endpoint = None

        structured = False

        async def generate(
            self, prompt: str, *, timeout_ms: int, max_tokens: int | None = None, answer: AnswerFormat | None = None
        ) -> Generated:
            await asyncio.Event().wait()
            raise AssertionError

        async def available(self) -> Availability:
            return Availability(True, "")

        async def close(self) -> None:
            pass

    monkeypatch.setattr("signet_actors.providers.llm.guarded._CLEANUP_MS", 50)

    async def scenario() -> ProviderError:
        async with asyncio.timeout(HANG_GUARD_S):
            return await failure(GuardedProvider(Forgetful(), clock), timeout_ms=50)

    assert asyncio.run(scenario()).kind is ProviderErrorKind.TIMEOUT
