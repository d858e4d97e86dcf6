"""The daily calls and tokens of a provider in a real database, with a clock that the test sets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signet_actors.domain.providers import DailyLimits
from signet_actors.errors import OutcomeUnknown, SignetError, Unavailable
from signet_actors.protocol.message import Failure
from signet_actors.providers.llm import daily_budget
from signet_actors.providers.llm.daily_budget import DailyBudget
from signet_actors.providers.llm.guarded import BudgetExhausted, Reservation
from signet_actors.providers.llm.provider import Generated
from tests.support.bus_client_harness import soon
from tests.support.pipeline_harness import PipelineHarness

MIDNIGHT_MS = 1_767_312_000_000  # 2026-01-02T00:00:00Z
HOUR_MS = 3_600_000
BEFORE, AFTER = "2026-01-01", "2026-01-02"


class Writer:
    """The real commands on the room's database, a turn of the loop away; ``fails`` is what asks end with instead.

    With ``silent`` the command is carried out and the answer lost.
    """

    def __init__(self, room: PipelineHarness) -> None:
        self.room = room
        self.fails: SignetError | None = None
        self.silent = False

    async def ask(self, request: Any, *, timeout_ms: int) -> Any:
        assert timeout_ms > 0
        await asyncio.sleep(0)
        if self.fails is not None:
            raise self.fails
        answer = self.room.ask(request)
        assert not isinstance(answer, Failure), answer
        await asyncio.sleep(0)
        if self.silent:
            raise OutcomeUnknown
        return answer


@pytest.fixture
def room(tmp_path: Path) -> Iterator[PipelineHarness]:
    room = PipelineHarness(tmp_path)
    room.clock.wall = MIDNIGHT_MS - HOUR_MS
    yield room
    room.close()


def budget(writer: Any, room: PipelineHarness, *, calls: int = 0, tokens: int = 0, model: str = "m") -> DailyBudget:
    return DailyBudget(writer, room.clock, "openai", model, DailyLimits(calls, tokens))


def counted(room: PipelineHarness) -> dict[str, tuple[int, ...]]:
    """By day: calls, tokens in, out, still put aside, cost."""
    rows = room.connection.execute(
        "SELECT day, sum(calls), sum(tokens_in), sum(tokens_out), sum(tokens_reserved), sum(cost_microusd)"
        " FROM provider_usage GROUP BY day"
    )
    return {day: tuple(figures) for day, *figures in rows}


async def granted(days: DailyBudget, tokens: int = 100) -> Reservation:
    reservation = await days.reserve(tokens=tokens)
    assert isinstance(reservation, Reservation)
    return reservation


def test_an_admitted_call_counts_its_estimate_and_then_its_usage(room: PipelineHarness) -> None:
    async def scenario() -> None:
        days = budget(Writer(room), room, calls=5, tokens=1000)
        reservation = await granted(days, 150)
        assert reservation == Reservation(BEFORE, 150)
        assert counted(room) == {BEFORE: (1, 0, 0, 150, 0)}
        await days.settle(reservation, Generated("x", 90, 10, 5))
        assert counted(room) == {BEFORE: (1, 90, 10, 0, 5)}
        turned_away = await granted(days, 150)
        await days.settle(turned_away, None)
        assert counted(room) == {BEFORE: (2, 90, 10, 0, 5)}
        await days.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("limits", [{"calls": 100}, {}], ids=["limited", "without a limit"])
def test_a_returned_reservation_counts_nothing(room: PipelineHarness, limits: dict[str, int]) -> None:
    async def scenario() -> None:
        days = budget(Writer(room), room, **limits)
        made, given_back = await granted(days), await granted(days)
        room.clock.advance(2 * HOUR_MS)
        await days.give_back(given_back)
        await days.settle(made, Generated("made", 1, 2, 10))
        await days.close()

    asyncio.run(scenario())
    assert counted(room) == {BEFORE: (1, 1, 2, 0, 10)}


@pytest.mark.parametrize("limits", [{"calls": 100}, {}], ids=["limited", "without a limit"])
def test_a_call_over_midnight_counts_for_the_day_in_which_it_began(
    room: PipelineHarness, limits: dict[str, int]
) -> None:
    async def scenario() -> None:
        days = budget(Writer(room), room, **limits)
        early = await granted(days)
        room.clock.advance(2 * HOUR_MS)
        late = await granted(days)
        await days.settle(late, Generated("late", 3, 4, 30))
        await days.settle(early, Generated("early", 1, 2, 10))
        await days.close()

    asyncio.run(scenario())
    assert counted(room) == {BEFORE: (1, 1, 2, 0, 10), AFTER: (1, 3, 4, 0, 30)}


def test_calls_of_a_new_day_are_admitted_while_earlier_calls_run(room: PipelineHarness) -> None:
    async def scenario() -> None:
        days = budget(Writer(room), room, calls=2)
        early = [await granted(days), await granted(days)]
        room.clock.advance(HOUR_MS - 1)
        assert await days.reserve(tokens=100) == BudgetExhausted(1)
        room.clock.advance(1)
        assert (await granted(days)).day == AFTER
        for reservation in early:
            await days.settle(reservation, None)
        assert counted(room) == {BEFORE: (2, 0, 0, 0, 0), AFTER: (1, 0, 0, 100, 0)}

    asyncio.run(scenario())


def test_a_clock_that_is_set_back_does_not_reopen_a_day(room: PipelineHarness) -> None:
    async def scenario() -> None:
        days = budget(Writer(room), room, calls=1)
        assert isinstance(await days.reserve(tokens=1), Reservation)
        room.clock.advance(2 * HOUR_MS)
        assert (await granted(days)).day == AFTER
        room.clock.advance(-3 * HOUR_MS)
        assert isinstance(await days.reserve(tokens=1), BudgetExhausted)

    asyncio.run(scenario())


@pytest.mark.parametrize("processes", [1, 2])
def test_concurrent_calls_never_exceed_the_cap_on_calls(room: PipelineHarness, processes: int) -> None:
    async def scenario() -> list[Reservation | BudgetExhausted]:
        each = [budget(Writer(room), room, calls=7, model=f"m{number}") for number in range(processes)]
        return await asyncio.gather(*(each[number % processes].reserve(tokens=10) for number in range(40)))

    answers = asyncio.run(scenario())
    assert sum(isinstance(answer, Reservation) for answer in answers) == 7
    assert counted(room)[BEFORE][0] == 7


def test_concurrent_reservations_never_exceed_the_cap_on_tokens(room: PipelineHarness) -> None:
    async def scenario() -> None:
        days = budget(Writer(room), room, tokens=1000)
        answers = await asyncio.gather(*(days.reserve(tokens=300) for _ in range(10)))
        reserved = [answer for answer in answers if isinstance(answer, Reservation)]
        assert len(reserved) == 3
        await days.settle(reserved[0], Generated("", 250, 50, estimated=True))
        assert isinstance(await days.reserve(tokens=101), BudgetExhausted), (
            "a call that may be paid for gives nothing back"
        )
        await days.settle(reserved[1], None)
        assert isinstance(await days.reserve(tokens=400), Reservation)

    asyncio.run(scenario())
    assert counted(room) == {BEFORE: (4, 250, 50, 700, 0)}


def test_counts_and_reservations_survive_the_process(room: PipelineHarness) -> None:
    async def scenario() -> None:
        for _ in range(2):
            await granted(budget(Writer(room), room, calls=2))
        assert isinstance(await budget(Writer(room), room, calls=2).reserve(tokens=1), BudgetExhausted)

    asyncio.run(scenario())


def test_no_call_is_admitted_while_the_writer_is_down_and_counted_ones_stay_counted(
    room: PipelineHarness,
) -> None:
    async def scenario() -> None:
        writer = Writer(room)
        days = budget(writer, room, calls=2)
        writer.fails = Unavailable("away")
        with pytest.raises(Unavailable):
            await days.reserve(tokens=1)
        writer.fails, writer.silent = None, True
        with pytest.raises(OutcomeUnknown):
            await days.reserve(tokens=1)
        writer.silent = False
        assert isinstance(await days.reserve(tokens=1), Reservation)
        assert isinstance(await days.reserve(tokens=1), BudgetExhausted), "kept too well, and not broken"

    asyncio.run(scenario())


def test_an_unsettled_reservation_stays(room: PipelineHarness) -> None:
    async def scenario() -> None:
        writer = Writer(room)
        days = budget(writer, room, tokens=1000)
        reservation = await granted(days, 600)
        writer.fails = Unavailable("away")
        with pytest.raises(Unavailable):
            await days.settle(reservation, None)
        writer.fails = None
        assert isinstance(await days.reserve(tokens=500), BudgetExhausted)

    asyncio.run(scenario())


def test_without_a_limit_calls_are_counted_afterwards_only(room: PipelineHarness) -> None:
    async def scenario() -> None:
        writer = Writer(room)
        days = budget(writer, room)
        writer.fails = Unavailable("away")
        reservations = [await granted(days) for _ in range(10)]
        writer.fails = None
        assert counted(room) == {}
        for reservation in reservations:
            await days.settle(reservation, Generated("x", 2, 3, 4))
        await days.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())
    assert counted(room) == {BEFORE: (10, 20, 30, 0, 40)}


def test_usage_is_recorded_when_the_writer_is_back_without_another_call(
    room: PipelineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daily_budget, "_FLUSH_INTERVAL_S", 0.01)
    tried = 0

    class Flaky(Writer):
        async def ask(self, request: Any, *, timeout_ms: int) -> Any:
            nonlocal tried
            tried += 1
            return await super().ask(request, timeout_ms=timeout_ms)

    async def scenario() -> None:
        writer = Flaky(room)
        writer.fails = Unavailable("away")
        days = budget(writer, room)
        await days.settle(await granted(days), Generated("x", 2, 3, 4))
        await soon(lambda: tried >= 3)
        writer.fails = None
        await soon(lambda: counted(room) == {BEFORE: (1, 2, 3, 0, 4)})
        await days.close()

    asyncio.run(scenario())
    assert counted(room) == {BEFORE: (1, 2, 3, 0, 4)}


def test_usage_is_not_lost_when_its_report_is_cancelled(room: PipelineHarness) -> None:
    class Stuck(Writer):
        stuck = True

        async def ask(self, request: Any, *, timeout_ms: int) -> Any:
            if self.stuck:
                await asyncio.Event().wait()
            return await super().ask(request, timeout_ms=timeout_ms)

    async def scenario() -> None:
        writer = Stuck(room)
        days = budget(writer, room)
        await days.settle(await granted(days), Generated("x", 1, 2, 3))
        closing = asyncio.ensure_future(days.close())
        await soon(lambda: days._unflushed == {})
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        writer.stuck = False
        await days.close()

    asyncio.run(scenario())
    assert counted(room) == {BEFORE: (1, 1, 2, 0, 3)}
