"""The daily budget of calls and tokens of a provider, counted durably by the writer.

With a limit, each call is reserved at the writer before it is made, so concurrent calls never exceed the cap on calls;
reservations of a crashed process stay counted. Tokens are reserved by estimate, so the last calls of a day may exceed
their cap. Without a limit, usage is added up here and sent now and then. A call counts for the UTC day in which it was
admitted, by the writer's clock (which never goes back) under a limit, else by our clock.

Source: docs/decisions.md 18.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Final

from signet_actors.domain.providers import DailyLimits
from signet_actors.domain.timestamps import iso
from signet_actors.errors import SignetError
from signet_actors.protocol.pipeline import RecordUsage, ReserveCalls
from signet_actors.providers.llm.guarded import BudgetExhausted, Reservation
from signet_actors.providers.llm.provider import Generated
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.processes.async_actor import AsyncRef

_DAY_MS: Final = 86_400_000
_RECHECK_MS: Final = 300_000
"""How soon to check an exhausted budget again, because limits may be raised at any time."""
_REPLY_TIMEOUT_MS: Final = 5000
_FLUSH_INTERVAL_S: Final = 1.0
_FLUSH_ATTEMPTS: Final = 30
"""After this many failed attempts, the usage is sent again only after the next call."""


class DailyBudget:
    """A ``Budget`` that the writer keeps. For one event loop."""

    def __init__(self, writer: AsyncRef, clock: Clock, provider: str, model: str, limits: DailyLimits) -> None:
        self._writer = writer
        self._clock = clock
        self._provider = provider
        self._model = model
        self._limits = limits
        self._limited = bool(limits.calls or limits.tokens)
        self._unflushed: dict[str, Counter[str]] = {}
        """Usage of each day that the writer has not counted yet, by the names of ``RecordUsage``."""
        self._flush_task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    async def reserve(self, *, tokens: int) -> Reservation | BudgetExhausted:
        """See ``Budget.reserve``. If the writer does not reply, it may have counted the call nevertheless."""
        if not self._limited:
            return Reservation(iso(self._clock.wall_ms())[:10], tokens)
        limits = self._limits
        reserved = await self._writer.ask(
            ReserveCalls(self._provider, 1, tokens, limits.calls or None, limits.tokens or None, self._model),
            timeout_ms=_REPLY_TIMEOUT_MS,
        )
        if reserved.granted:
            return Reservation(reserved.day, tokens)
        return BudgetExhausted(min(_RECHECK_MS, _DAY_MS - self._clock.wall_ms() % _DAY_MS))

    async def settle(
        self, reservation: Reservation, spent: Generated | None, *, failed: bool = False, took_ms: int = 0
    ) -> None:
        took = spent or Generated("", 0, 0)
        cost = took.cost_microusd or 0
        used = {"tokens_in": took.tokens_in, "tokens_out": took.tokens_out, "cost_microusd": cost}
        used |= {"failures": int(failed), "took_ms": took_ms}
        if self._limited:
            await self._record(reservation.day, **used, reserved_tokens=reservation.tokens)
            return
        self._add(reservation.day, {"calls": 1, **used})
        if not self._closing.is_set() and (self._flush_task is None or self._flush_task.done()):
            self._flush_task = asyncio.get_running_loop().create_task(self._flush_periodically())

    async def give_back(self, reservation: Reservation) -> None:
        if self._limited:
            await self._record(reservation.day, reserved_tokens=reservation.tokens, unused_calls=1)

    async def close(self) -> None:
        """Send the remaining usage to the writer, once, and end the flush task."""
        self._closing.set()
        if self._flush_task is not None:
            await asyncio.wait({self._flush_task})
        await self._flush()

    async def _flush_periodically(self) -> None:
        """Send usage to the writer at intervals until it succeeds, at most ``_FLUSH_ATTEMPTS`` times."""
        for _ in range(_FLUSH_ATTEMPTS):
            try:
                async with asyncio.timeout(_FLUSH_INTERVAL_S):
                    await self._closing.wait()
            except TimeoutError:
                await self._flush()
            if not self._unflushed or self._closing.is_set():
                return

    async def _flush(self) -> None:
        """Send the usage so far to the writer; after an unknown outcome send it again, rather than count too little."""
        for day in sorted(self._unflushed):
            sums = self._unflushed.pop(day)
            try:
                await self._record(day, **sums)
            except SignetError:
                self._add(day, sums)
                return
            except BaseException:  # cancelled: the next ``close`` sends it
                self._add(day, sums)
                raise

    def _add(self, day: str, usage: Mapping[str, int]) -> None:
        self._unflushed.setdefault(day, Counter()).update(usage)

    async def _record(self, day: str, **usage: int) -> None:
        await self._writer.ask(RecordUsage(self._provider, self._model, day, **usage), timeout_ms=_REPLY_TIMEOUT_MS)
