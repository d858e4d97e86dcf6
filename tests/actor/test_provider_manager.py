"""Changes of the provider of a process: the effect on waiting calls and on calls in flight."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog

from signet_actors.config.pipeline_schema import ExtractionConfig
from signet_actors.errors import ProviderError, ProviderErrorKind
from signet_actors.protocol.pipeline import CallsReserved, RecordUsage, UsageRecorded
from signet_actors.providers.llm import provider_manager as chosen_module
from signet_actors.providers.llm.provider import Generated
from signet_actors.providers.llm.provider_manager import ProviderManager
from signet_actors.runtime.clock import SystemClock
from tests.support.bus_client_harness import soon
from tests.support.scripted_provider import CLIENT_WAIT_S, Act, Asked, FakeCli, ScriptedProvider, kill_all

HANG_GUARD_S = 60.0
LONG_MS = 60_000


class Writer:
    """Records its calls."""

    def __init__(self) -> None:
        self.recorded: list[RecordUsage] = []

    async def ask(self, request: Any, *, timeout_ms: int) -> UsageRecorded:
        assert timeout_ms > 0
        await asyncio.sleep(0)
        assert isinstance(request, RecordUsage), "no limit, so nothing is reserved"
        self.recorded.append(request)
        return UsageRecorded()

    @property
    def calls(self) -> int:
        return sum(record.calls for record in self.recorded)


class AnyWriter(Writer):
    """Grants whatever is reserved."""

    async def ask(self, request: Any, *, timeout_ms: int) -> Any:
        if isinstance(request, RecordUsage):
            return await super().ask(request, timeout_ms=timeout_ms)
        return CallsReserved(True, "2026-01-01", 1, 1)


class Gate:
    """A script that holds every generation until it is opened."""

    def __init__(self, text: str) -> None:
        self.open = threading.Event()
        self.text = text

    def __call__(self, asked: Asked) -> Act:
        assert self.open.wait(CLIENT_WAIT_S)
        return Act("ok", self.text)


@pytest.fixture
def first() -> Iterator[ScriptedProvider]:
    with ScriptedProvider(text="first") as running:
        yield running
        running.await_quiet()


@pytest.fixture
def second() -> Iterator[ScriptedProvider]:
    with ScriptedProvider(text="second") as running:
        yield running
        running.await_quiet()


def at(server: ScriptedProvider, **more: Any) -> ExtractionConfig:
    return msgspec.structs.replace(ExtractionConfig(provider="ollama", endpoint=server.url), **more)


@asynccontextmanager
async def kept(config: ExtractionConfig, writer: Any, **environment: str) -> AsyncIterator[ProviderManager]:
    """A provider that is looked after; when this ends, no task but the test's own is left."""
    chosen = ProviderManager(config, SystemClock(), structlog.get_logger(), writer, environment=environment)
    keeper = asyncio.ensure_future(chosen.run())
    try:
        async with asyncio.timeout(HANG_GUARD_S):
            await soon(lambda: chosen.state().selection.reason != "the provider is being selected")
            yield chosen
            await chosen.close()
            await keeper
            assert asyncio.all_tasks() == {asyncio.current_task()}
    finally:
        keeper.cancel()


def calling(chosen: ProviderManager, prompt: str = "p") -> asyncio.Future[Generated]:
    return asyncio.ensure_future(chosen.generate(prompt, timeout_ms=LONG_MS))


def test_after_a_change_waiting_calls_use_the_new_provider_and_calls_in_flight_the_old_one(
    first: ScriptedProvider, second: ScriptedProvider
) -> None:
    gate = first.script = Gate("first")
    writer = Writer()

    async def scenario() -> None:
        async with kept(at(first, concurrency=1), writer) as chosen:
            out = calling(chosen, "out")
            await asyncio.to_thread(first.await_asked, 1)
            waiting = [calling(chosen, f"waiting {number}") for number in range(4)]
            await asyncio.sleep(0)
            chosen.reconfigure(at(second, concurrency=1))
            assert [answer.text for answer in await asyncio.gather(*waiting)] == ["second"] * 4
            assert not out.done()
            gate.open.set()
            assert (await out).text == "first"
            await asyncio.to_thread(first.await_quiet)
            await soon(lambda: writer.calls >= 1)
            assert chosen.state().selection.endpoint == second.url

    asyncio.run(scenario())
    assert first.prompts == ["out"]
    assert writer.calls == 5, "what the former's last call took is counted, too"


def test_an_idle_old_provider_is_closed_at_once(first: ScriptedProvider, second: ScriptedProvider) -> None:
    async def scenario() -> None:
        async with kept(at(first), Writer()) as chosen:
            assert (await calling(chosen)).text == "first"
            assert first.open_connections == 1, "kept for the next call"
            chosen.reconfigure(at(second))
            await asyncio.to_thread(first.await_quiet)
            assert (await calling(chosen)).text == "second"

    asyncio.run(scenario())


def test_after_a_change_to_no_provider_waiting_calls_are_refused_without_costing_an_attempt(
    first: ScriptedProvider,
) -> None:
    first.stuck = "hang"

    async def scenario() -> None:
        async with kept(at(first, concurrency=1), Writer()) as chosen:
            out = calling(chosen)
            await asyncio.to_thread(first.await_asked, 1)
            waiting = calling(chosen)
            await asyncio.sleep(0)
            chosen.reconfigure(ExtractionConfig(provider="none"))
            with pytest.raises(ProviderError, match="provider is none") as caught:
                await waiting
            assert (caught.value.kind, caught.value.costs_attempt) == (ProviderErrorKind.UNAVAILABLE, False)
            assert chosen.waits() == ("memory.pipelineV2.extraction.provider is none", None)
            out.cancel()
            await asyncio.gather(out, return_exceptions=True)
            await asyncio.to_thread(first.await_quiet)

    asyncio.run(scenario())


def test_an_old_provider_with_endless_calls_is_closed_after_a_time(
    first: ScriptedProvider, second: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chosen_module, "RETIRE_TIMEOUT_MS", 50)
    closed = asyncio.Event()

    async def scenario() -> None:
        async with kept(at(first), Writer()) as chosen:
            former = chosen.guarded
            assert former is not None
            monkeypatch.setattr(former, "wait_drained", asyncio.Event().wait)
            close = former.close

            async def noted() -> None:
                await close()
                closed.set()

            monkeypatch.setattr(former, "close", noted)
            chosen.reconfigure(at(second))
            await closed.wait()

    asyncio.run(scenario())


@pytest.mark.parametrize("changes", [1, 5])
def test_of_quick_changes_the_last_one_counts_and_the_others_are_closed(
    first: ScriptedProvider, second: ScriptedProvider, changes: int
) -> None:
    first.stuck = "hang"

    async def scenario() -> None:
        async with kept(at(second), Writer()) as chosen:
            for number in range(changes):
                chosen.reconfigure(at(first, timeout_ms=10_000 + number))
                await asyncio.sleep(0)
            first.stuck = None
            chosen.reconfigure(at(second, model="nomic-embed-text"))
            await soon(lambda: chosen.model == "nomic-embed-text")
            assert (await calling(chosen)).text == "second"

    asyncio.run(scenario())
    assert first.prompts == []


def test_a_close_during_the_selection_closes_both_providers(first: ScriptedProvider, second: ScriptedProvider) -> None:
    second.look = "hang"

    async def scenario() -> None:
        async with kept(at(first), Writer()) as chosen:
            assert (await calling(chosen)).text == "first"
            chosen.reconfigure(at(second))
            await soon(lambda: second.looks == 1)

    asyncio.run(scenario())


def test_a_running_program_of_a_replaced_provider_leaves_no_process_or_directory(
    first: ScriptedProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = FakeCli(tmp_path / "bin")
    cli.write("claude", "hang")
    private = tmp_path / "private"
    private.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(private))
    config = ExtractionConfig(provider="claude-code", daily_call_limit=0)

    async def scenario() -> None:
        async with kept(config, AnyWriter(), PATH=str(cli.directory)) as chosen:
            out = calling(chosen)
            await asyncio.to_thread(cli.await_pids, 1)
            chosen.reconfigure(at(first))
            await soon(lambda: chosen.name == "ollama")
            assert (await calling(chosen)).text == "first"
            assert cli.living(), "its call may still be answered"
            out.cancel()
            await asyncio.gather(out, return_exceptions=True)
            await asyncio.to_thread(cli.await_none_living)
            await soon(lambda: list(private.iterdir()) == [])

    try:
        asyncio.run(scenario())
    finally:
        kill_all(cli.living())
