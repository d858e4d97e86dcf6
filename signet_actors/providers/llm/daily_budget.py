"""The day's calls and tokens of a provider, counted by the writer, so that they outlive every process.

With a limit each call is reserved before it is made: what was reserved by a process that died stays counted, so that a
cap may be kept too well, and is never broken. Without one, calls are only added up, some at a time.

Source: decisions.md 18.
"""

from __future__ import annotations

import asyncio
from typing import Final

from signet_actors.domain.providers import DailyLimits
from signet_actors.errors import SignetError
from signet_actors.protocol.pipeline import RecordUsage, ReserveCalls
from signet_actors.providers.llm.provider import Generated
from signet_actors.runtime.async_actor import AsyncRef
from signet_actors.runtime.clock import Clock

_DAY_MS: Final = 86_400_000
_LOOK_AGAIN_MS: Final = 300_000
"""Limits may be raised at any time."""
_WRITER_AWAY_MS: Final = 1000
_ANSWER_MS: Final = 5000
_ADD_UP_S: Final = 1.0


class DailyBudget:
    """A ``Budget`` kept by the writer. ``close`` hands in what was added up."""

    def __init__(self, writer: AsyncRef, clock: Clock, provider: str, model: str, limits: DailyLimits) -> None:
        self._writer = writer
        self._clock = clock
        self._provider = provider
        self._model = model
        self._limits = limits
        self._limited = bool(limits.calls or limits.tokens)
        self._day = ""
        self._calls = 0
        self._tokens_in = 0
        self._tokens_out = 0
        self._cost_microusd = 0
        self._handing_in: asyncio.Task[None] | None = None

    async def reserve(self, *, calls: int, tokens: int) -> int | None:
        if not self._limited:
            self._calls += calls
            return None
        try:
            reserved = await self._writer.ask(
                ReserveCalls(
                    self._provider,
                    calls,
                    tokens,
                    self._limits.calls or None,
                    self._limits.tokens or None,
                    self._model,
                ),
                timeout_ms=_ANSWER_MS,
            )
        except SignetError:
            return _WRITER_AWAY_MS
        self._day = reserved.day
        if reserved.granted:
            return None
        return min(_LOOK_AGAIN_MS, _DAY_MS - self._clock.wall_ms() % _DAY_MS)

    async def settle(self, *, reserved_tokens: int, spent: Generated | None) -> None:
        if self._limited:
            await self._record(self._day, spent, reserved_tokens)
            return
        if spent is not None:
            self._tokens_in += spent.tokens_in
            self._tokens_out += spent.tokens_out
            self._cost_microusd += spent.cost_microusd or 0
        if self._handing_in is None or self._handing_in.done():
            self._handing_in = asyncio.get_running_loop().create_task(self._hand_in_soon())

    async def close(self) -> None:
        """What was added up is with the writer, or lost with it."""
        if self._handing_in is not None:
            self._handing_in.cancel()
            await asyncio.wait({self._handing_in})
        await self._hand_in()

    async def _hand_in_soon(self) -> None:
        await asyncio.sleep(_ADD_UP_S)
        await self._hand_in()

    async def _hand_in(self) -> None:
        """The sums so far are counted; where the writer is away they wait for the next time."""
        calls, tokens_in, tokens_out, cost = self._calls, self._tokens_in, self._tokens_out, self._cost_microusd
        if not calls:
            return
        try:
            counted = await self._writer.ask(
                ReserveCalls(self._provider, calls, model=self._model), timeout_ms=_ANSWER_MS
            )
        except SignetError:
            return
        self._calls -= calls
        self._tokens_in -= tokens_in
        self._tokens_out -= tokens_out
        self._cost_microusd -= cost
        await self._record(counted.day, Generated("", tokens_in, tokens_out, cost), 0)

    async def _record(self, day: str, spent: Generated | None, reserved_tokens: int) -> None:
        """Best effort: what is not recorded stays reserved, so a cap still holds."""
        try:
            await self._writer.ask(
                RecordUsage(
                    self._provider,
                    self._model,
                    day,
                    tokens_in=spent.tokens_in if spent else 0,
                    tokens_out=spent.tokens_out if spent else 0,
                    cost_microusd=(spent.cost_microusd or 0) if spent else 0,
                    reserved_tokens=reserved_tokens,
                ),
                timeout_ms=_ANSWER_MS,
            )
        except SignetError:
            return
