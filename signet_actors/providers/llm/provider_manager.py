"""Manages the language model provider of a process: selects it, selects again when needed, replaces and closes it.

Without a provider, the process selects again every minute, because a server may be started or a model pulled at any
time; meanwhile everything that needs no model works. When a new provider is selected, calls that still wait for a slot
at the former one move to the new one. The former one is closed when its last call in flight has ended.

Source: docs/decisions.md 14 and 18.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from signet_actors.config.pipeline_schema import ExtractionConfig
from signet_actors.domain.extraction.answers import AnswerFormat
from signet_actors.domain.providers import NO_PROVIDER, DailyLimits, ModelState, Selection
from signet_actors.errors import ProviderError, ProviderErrorKind
from signet_actors.providers.llm.daily_budget import DailyBudget
from signet_actors.providers.llm.guarded import GuardedProvider, ProviderRetired
from signet_actors.providers.llm.provider import Generated
from signet_actors.providers.llm.select import Selected, daily_limits, guard_limits, select_provider
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.processes.async_actor import AsyncRef

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

RESELECT_MS: Final = 60_000
RETIRE_TIMEOUT_MS: Final = 330_000
"""Longest wait for calls in flight at a replaced provider: a call may take five minutes, plus the time to cancel it."""


class ProviderManager:
    """Selects and owns the provider. ``changed`` is called whenever the availability of calls may have changed."""

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
        self.guarded: GuardedProvider | None = None
        self._limits: DailyLimits | None = None
        self._retiring: dict[asyncio.Task[None], GuardedProvider] = {}
        self._closed = False
        self._selection = Selection(
            configured=config.provider,
            name=NO_PROVIDER,
            model=config.model,
            reason="the provider is being selected",
            available=False,
            detail="",
        )
        self._reselect = asyncio.Event()
        self._last_success_ns = -1
        self._schema_refused = False

    async def run(self) -> None:
        """Select a provider, and again after each change of configuration and while there is none, until ``close``."""
        while not self._closed:
            self._reselect.clear()
            config = self._config
            selected = await select_provider(config, self._environment)
            if self._closed or config is not self._config:
                if selected.provider is not None:
                    await selected.provider.close()
                continue
            self._switch_to(config, selected)
            wait_s = RESELECT_MS / 1000 if self.guarded is None and config.provider != "none" else None
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._reselect.wait()

    def reconfigure(self, config: ExtractionConfig) -> None:
        """Select again from ``config`` if it has changed, or to retry schemas that the server has refused."""
        if config != self._config or self._schema_refused:
            self._config = config
            self._reselect.set()

    async def generate(
        self, prompt: str, *, timeout_ms: int, max_tokens: int | None = None, answer: AnswerFormat | None = None
    ) -> Generated:
        """Call the selected provider; see ``LlmProvider.generate``. Raises UNAVAILABLE if there is none."""
        while (guarded := self.guarded) is not None:
            asked_structured = guarded.structured
            try:
                generated = await guarded.generate(prompt, timeout_ms=timeout_ms, max_tokens=max_tokens, answer=answer)
            except ProviderRetired:
                continue
            except ProviderError:
                self._changed()
                raise
            self._last_success_ns = self._clock.monotonic_ns()
            if asked_structured and not guarded.structured and not self._schema_refused:
                self._schema_refused = True
                self._log.warning(
                    "structured_output_refused",
                    name=guarded.name,
                    model=guarded.model,
                    reason="asked without from now on",
                )
            return generated
        raise ProviderError(ProviderErrorKind.UNAVAILABLE, self._selection.reason, retry_after_ms=RESELECT_MS)

    @property
    def name(self) -> str:
        """The provider's name, ``none`` if there is none."""
        return self._selection.name

    @property
    def model(self) -> str:
        return self._selection.model

    def waits(self) -> tuple[str, int | None] | None:
        """Return why no call can be made now and for how many ms (None: until a change); None if one can be made."""
        if self.guarded is None:
            return self._selection.reason, None
        wait_ms = self.guarded.waits_ms
        if not wait_ms:
            return None
        return self.guarded.report().waits_for or f"{self.name} is being checked", wait_ms

    @property
    def trying(self) -> bool:
        return self.guarded is not None and self.guarded.report().circuit == "half_open"

    def healthy_since(self, moment_ns: int) -> bool:
        """Return True if a call has succeeded after ``moment_ns`` (monotonic)."""
        return self._last_success_ns > moment_ns

    def state(self) -> ModelState:
        """Return the state for the status page."""
        if self.guarded is None:
            return ModelState(self._selection, None)
        return ModelState(self._selection, self.guarded.report(), self._limits)

    async def close(self) -> None:
        """Stop selecting, and close all providers with their sockets, processes and tasks."""
        self._closed = True
        self._reselect.set()
        present, self.guarded = self.guarded, None
        retiring = dict(self._retiring)
        for task in retiring:
            task.cancel()
        if retiring:
            await asyncio.wait(retiring)
        # Close them all, even twice: a retire task that was cancelled before it started has closed nothing.
        for guarded in (*retiring.values(), *([present] if present else [])):
            guarded.retire()
            await guarded.close()

    def _switch_to(self, config: ExtractionConfig, selected: Selected) -> None:
        """Send new calls to ``selected``; calls in flight finish at the former provider."""
        former, self.guarded, self._limits = self.guarded, None, None
        self._schema_refused = False
        provider = selected.provider
        if provider is not None:
            limits = self._limits = daily_limits(config, selected.selection)
            budget = DailyBudget(self._writer, self._clock, provider.name, provider.model, limits)
            self.guarded = GuardedProvider(provider, self._clock, guard_limits(config), budget)
        if selected.selection != self._selection:
            self._selection = selected.selection
            said = selected.selection
            self._log.info(
                "provider_selected", name=said.name, model=said.model, reason=said.reason, available=said.available
            )
        if former is not None:
            former.retire()
            task = asyncio.get_running_loop().create_task(self._retire(former))
            self._retiring[task] = former
            task.add_done_callback(lambda ended: self._retiring.pop(ended, None))
        self._changed()

    async def _retire(self, former: GuardedProvider) -> None:
        """Close a former provider when its last call has ended, after a timeout, or when this manager closes."""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(RETIRE_TIMEOUT_MS / 1000):
                    await former.wait_drained()
        finally:
            await former.close()
            self._log.info("previous_provider_closed", name=former.name, model=former.model)
