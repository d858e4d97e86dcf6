"""The provider that answers this process's prompts, over its whole life: chosen, looked for again, changed, closed.

A process that finds nobody looks again every minute, because a server may be started or a model pulled at any time, and
serves on without: everything but what needs a model works.

Source: decisions.md 14 and 18.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from signet_actors.config.schema import ExtractionConfig
from signet_actors.domain.providers import NO_PROVIDER, DailyLimits, ModelState, Selection
from signet_actors.errors import ProviderError, ProviderErrorKind
from signet_actors.providers.llm.daily_budget import DailyBudget
from signet_actors.providers.llm.guarded import GuardedProvider
from signet_actors.providers.llm.provider import Generated
from signet_actors.providers.llm.select import Selected, daily_limits, guard_limits, select_provider
from signet_actors.runtime.async_actor import AsyncRef
from signet_actors.runtime.clock import Clock

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

LOOK_AGAIN_MS: Final = 60_000
_MS: Final = 1_000_000


class ChosenProvider:
    """See the module. ``changed`` is called whenever it may have changed whether a call can be made."""

    def __init__(
        self,
        config: ExtractionConfig,
        clock: Clock,
        log: FilteringBoundLogger,
        writer: AsyncRef,
        *,
        environment: Mapping[str, str] = os.environ,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._config = config
        self._clock = clock
        self._log = log
        self._writer = writer
        self._environment = environment
        self._changed = changed
        self._guarded: GuardedProvider | None = None
        self._budget: DailyBudget | None = None
        self._limits: DailyLimits | None = None
        self._retired: list[GuardedProvider] = []
        self._selection = Selection(
            configured=config.provider,
            name=NO_PROVIDER,
            model=config.model,
            reason="the provider is being looked for",
            available=False,
            detail="",
        )
        self._reselect = asyncio.Event()
        self._last_success_ns = -1

    async def keep(self) -> None:
        """Runs for ever: the choice is that of the newest configuration, and none is looked for again."""
        while True:
            self._reselect.clear()
            config = self._config
            selected = await select_provider(config, self._environment)
            if config is self._config:
                await self._use(config, selected)
            elif selected.provider is not None:
                await selected.provider.close()
            wait_s = LOOK_AGAIN_MS / 1000 if self._guarded is None and self._config.provider != "none" else None
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s if config is self._config else 0):
                    await self._reselect.wait()

    def reconfigure(self, config: ExtractionConfig) -> None:
        """The next choice is made from ``config``, at once if it says anything new."""
        if config != self._config:
            self._config = config
            self._reselect.set()

    async def generate(self, prompt: str, *, timeout_ms: int, max_tokens: int | None = None) -> Generated:
        """As ``LlmProvider.generate``; UNAVAILABLE while nobody answers prompts."""
        guarded = self._guarded
        if guarded is None:
            raise ProviderError(ProviderErrorKind.UNAVAILABLE, self._selection.reason, retry_after_ms=LOOK_AGAIN_MS)
        try:
            answer = await guarded.generate(prompt, timeout_ms=timeout_ms, max_tokens=max_tokens)
        except ProviderError:
            self._changed()
            raise
        self._last_success_ns = self._clock.monotonic_ns()
        return answer

    @property
    def name(self) -> str:
        """The provider's name, ``none`` while there is none."""
        return self._selection.name

    @property
    def model(self) -> str:
        """The model's name."""
        return self._selection.model

    def waits(self) -> tuple[str, int | None] | None:
        """Why no call would be made now, and for how many ms (None: until something changes); None when one would."""
        if self._guarded is None:
            return self._selection.reason, None
        wait_ms = self._guarded.waits_ms
        if not wait_ms:
            return None
        return self._guarded.report().waits_for or f"{self.name} is being tried", wait_ms

    @property
    def trying(self) -> bool:
        """True while the circuit lets a single call through to see whether the provider is back."""
        return self._guarded is not None and self._guarded.report().circuit == "half_open"

    def healthy_since(self, moment_ns: int) -> bool:
        """True when a call was answered after ``moment_ns`` (monotonic)."""
        return self._last_success_ns > moment_ns

    def state(self) -> ModelState:
        """For the status."""
        if self._guarded is None:
            return ModelState(self._selection, None)
        return ModelState(self._selection, self._guarded.report(), self._limits)

    async def close(self) -> None:
        """No socket and no process of any provider is left."""
        for guarded in (*self._retired, *([self._guarded] if self._guarded else [])):
            await guarded.close()
        self._guarded, self._retired = None, []
        if self._budget is not None:
            await self._budget.close()
            self._budget = None

    async def _use(self, config: ExtractionConfig, selected: Selected) -> None:
        """Calls from now on go to ``selected``; those in flight end where they began."""
        former, self._guarded = self._guarded, None
        if former is not None:
            self._retired.append(former)
        if selected.provider is not None:
            provider = selected.provider
            if self._budget is not None:
                await self._budget.close()
            limits = self._limits = daily_limits(config, selected.selection)
            self._budget = DailyBudget(self._writer, self._clock, provider.name, provider.model, limits)
            self._guarded = GuardedProvider(provider, self._clock, guard_limits(config), self._budget)
        if selected.selection != self._selection:
            self._selection = selected.selection
            said = selected.selection
            self._log.info("provider", name=said.name, model=said.model, reason=said.reason, available=said.available)
        for retired in [one for one in self._retired if one.report().in_flight == 0]:
            self._retired.remove(retired)
            await retired.close()
        self._changed()
