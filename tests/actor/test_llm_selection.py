"""The selection of a language model provider for every configuration and state of the machine, and its reason."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from signet_actors.config.pipeline_schema import BreakerConfig, ExtractionConfig, ExtractionProvider
from signet_actors.domain.providers import DailyLimits, Selection
from signet_actors.errors import ProviderError, ProviderErrorKind
from signet_actors.providers.llm.breaker import BreakerPolicy
from signet_actors.providers.llm.guarded import GuardLimits
from signet_actors.providers.llm.ollama import OllamaProvider
from signet_actors.providers.llm.select import daily_limits, guard_limits, select_provider
from signet_actors.runtime.socket_uids import listener_uids
from tests.support.scripted_provider import FakeCli, Fault, ScriptedProvider

KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def server() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as running:
        yield running
        running.await_quiet()


@pytest.fixture
def cli(tmp_path: Path) -> FakeCli:
    made = FakeCli(tmp_path / "bin")
    made.write("claude", "ok")
    made.write("opencode", "ok")
    return made


@pytest.fixture
def free_port() -> Iterator[int]:
    """Return a port of this machine without a listener during the test."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def selected(config: ExtractionConfig, **environment: str) -> tuple[Selection, bool]:
    """The selection, and whether there is a provider to call."""

    async def scenario() -> tuple[Selection, bool]:
        made = await select_provider(config, environment)
        if made.provider is not None:
            assert (made.provider.name, made.provider.model) == (made.selection.name, made.selection.model)
            await made.provider.close()
        return made.selection, made.provider is not None

    return asyncio.run(scenario())


def test_auto_is_ollama_when_it_answers_and_has_the_model(server: ScriptedProvider) -> None:
    selection, there = selected(ExtractionConfig(endpoint=server.url))
    assert there
    assert selection == Selection(
        configured="auto",
        name="ollama",
        model="qwen3:4b",
        reason="the provider is auto, and Ollama is running and has the model",
        available=True,
        detail=f"Ollama is running at {server.url} and has the model qwen3:4b",
        endpoint=server.url,
        may_cost=False,
    )


@pytest.mark.parametrize("look", ["hang", "http_500", "wrong_content_type", "rst", "huge"])
def test_auto_selects_no_provider_if_ollama_does_not_answer_and_never_a_paid_program(
    server: ScriptedProvider, cli: FakeCli, look: Fault
) -> None:
    server.look = look
    selection, there = selected(
        ExtractionConfig(endpoint=server.url), PATH=str(cli.directory), ANTHROPIC_API_KEY=KEY, OPENAI_API_KEY=KEY
    )
    assert (selection.name, selection.available, there) == ("none", False, False)
    assert selection.reason.startswith("the provider is auto, and Ollama ")
    assert "; " not in selection.reason, "what is the matter, and not yet the way out"
    assert "ollama serve" in selection.detail
    assert cli.calls == []


def test_auto_reports_that_no_server_listens_without_loading_an_http_client(free_port: int) -> None:
    looked = (
        "import asyncio, sys\n"
        "from signet_actors.config.pipeline_schema import ExtractionConfig\n"
        "from signet_actors.providers.llm.select import select_provider\n"
        f"config = ExtractionConfig(endpoint='http://localhost:{free_port}')\n"
        "selection = asyncio.run(select_provider(config, {})).selection\n"
        "print('httpx' in sys.modules, selection.name, selection.detail, sep='|')\n"
    )
    said = subprocess.run([sys.executable, "-c", looked], capture_output=True, text=True, timeout=60, check=True)
    assert said.stdout.strip().split("|") == [
        "False",
        "none",
        (
            f"Ollama cannot be reached at http://localhost:{free_port} (no server listens there); "
            "start it with `ollama serve`, or install it (https://ollama.com) and run `ollama pull qwen3:4b`"
        ),
    ]


class ForeignServer:
    """Run a program of another user (uid nobody) that listens at a port and records its requests. Only root can start
    it.
    """

    def __init__(self) -> None:
        os.seteuid(65_534)
        try:
            self._listener = socket.create_server(("127.0.0.1", 0))
        finally:
            os.seteuid(0)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.received = b""
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                while chunk := connection.recv(65_536):
                    self.received += chunk
                    connection.sendall(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    def stop(self) -> bytes:
        """Stop the program, and return all bytes that it was sent."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)
        return self.received


def test_auto_sends_nothing_to_a_server_that_another_user_of_the_machine_runs(server: ScriptedProvider) -> None:
    if os.geteuid() != 0:  # no other user's program can be started: that ours is recognised is all that can be seen
        assert listener_uids(urlsplit(server.url).port or 0) == {os.geteuid()}
        return
    foreign = ForeignServer()
    selection, there = selected(ExtractionConfig(endpoint=foreign.url))
    assert not there
    assert selection.name == "none"
    assert selection.reason == (
        f"the provider is auto, and the program that listens at {foreign.url} belongs to another user (uid 65534)"
    )
    assert "set memory.pipelineV2.extraction.provider to ollama" in selection.detail
    provider = OllamaProvider(foreign.url, named=False)  # as if it had begun to listen after the selection

    async def prompt() -> None:
        try:
            with pytest.raises(ProviderError, match="belongs to another user") as refused:
                await provider.generate("every memory", timeout_ms=5_000)
            assert refused.value.kind is ProviderErrorKind.UNAVAILABLE
            assert not (await provider.available()).ok
        finally:
            await provider.close()

    asyncio.run(prompt())
    assert foreign.stop() == b""


def test_a_server_of_another_user_is_used_if_the_configuration_names_it() -> None:
    if os.geteuid() != 0:
        return
    foreign = ForeignServer()
    selection, there = selected(ExtractionConfig(provider="ollama", endpoint=foreign.url))
    assert there
    assert selection.name == "ollama"
    assert foreign.stop().startswith(b"GET /api/tags ")


def test_auto_says_how_to_get_the_model_that_is_missing(server: ScriptedProvider) -> None:
    server.models = ("llama3.2:latest",)
    selection, _ = selected(ExtractionConfig(endpoint=server.url))
    assert selection.name == "none"
    assert selection.reason == "the provider is auto, and Ollama is running but does not have the model qwen3:4b"
    assert selection.detail.endswith("`ollama pull qwen3:4b`")


def test_auto_takes_the_model_that_the_configuration_names(server: ScriptedProvider) -> None:
    selection, _ = selected(ExtractionConfig(endpoint=server.url, model="nomic-embed-text"))
    assert (selection.name, selection.model) == ("ollama", "nomic-embed-text")


def test_none_selects_no_provider_and_sends_no_request(server: ScriptedProvider) -> None:
    selection, there = selected(ExtractionConfig(provider="none", endpoint=server.url))
    assert (selection.name, there, server.looks) == ("none", False, 0)
    assert "extraction.provider is none" in selection.reason
    assert "ollama pull" in selection.detail


def test_a_configured_provider_is_selected_even_if_unavailable(server: ScriptedProvider) -> None:
    server.die()
    selection, there = selected(ExtractionConfig(provider="ollama", endpoint=server.url))
    assert there
    assert (selection.name, selection.available) == ("ollama", False)
    assert selection.reason == "the configuration sets ollama"
    assert "ollama serve" in selection.detail


@pytest.mark.parametrize(("provider", "model"), [("claude-code", "haiku"), ("opencode", "default")])
def test_a_program_is_selected_if_configured(cli: FakeCli, provider: ExtractionProvider, model: str) -> None:
    selection, there = selected(ExtractionConfig(provider=provider), PATH=str(cli.directory))
    assert there
    assert (selection.name, selection.model, selection.available) == (provider, model, True)
    assert selection.may_cost
    assert cli.calls == [], "looking costs nothing"


@pytest.mark.parametrize("provider", ["claude-code", "opencode"])
def test_a_program_that_is_not_installed_is_reported(tmp_path: Path, provider: ExtractionProvider) -> None:
    selection, there = selected(ExtractionConfig(provider=provider), PATH=str(tmp_path))
    assert there
    assert not selection.available
    assert "is not installed" in selection.detail


def test_a_program_whose_key_is_missing_is_not_available(cli: FakeCli) -> None:
    config = ExtractionConfig(provider="claude-code", api_key_env="SOME_KEY")
    assert not selected(config, PATH=str(cli.directory))[0].available
    assert selected(config, PATH=str(cli.directory), SOME_KEY=KEY)[0].available


def test_an_openai_compatible_server_on_this_machine_costs_nothing(server: ScriptedProvider) -> None:
    selection, there = selected(ExtractionConfig(provider="openai", endpoint=server.url, model="qwen3:4b"))
    assert there
    assert (selection.name, selection.available, selection.may_cost) == ("openai", True, False)
    assert selection.endpoint == f"{server.url}/v1"


def test_an_openai_compatible_server_needs_a_model_and_the_key_that_is_named(server: ScriptedProvider) -> None:
    selection, there = selected(ExtractionConfig(provider="openai", endpoint=server.url))
    assert (selection.name, there) == ("none", False)
    assert "extraction.model" in selection.reason
    selection, there = selected(
        ExtractionConfig(provider="openai", endpoint=server.url, model="m", api_key_env="SOME_KEY")
    )
    assert (selection.name, there) == ("none", False)
    assert "SOME_KEY is not set" in selection.reason


def test_a_key_is_in_no_selection(server: ScriptedProvider) -> None:
    server.look = "http_401"
    config = ExtractionConfig(provider="openai", endpoint=server.url, model="m", api_key_env="SOME_KEY")
    selection, _ = selected(config, SOME_KEY=KEY)
    assert not selection.available
    assert "answered 401" in selection.detail
    assert KEY not in repr(selection)


@pytest.mark.parametrize(
    ("may_cost", "calls", "tokens", "limits"),
    [
        (False, 0, 0, DailyLimits(0, 0)),
        (True, 0, 0, DailyLimits(2000, 2_000_000)),
        (True, 5, 0, DailyLimits(5, 2_000_000)),
        (False, 5, 700, DailyLimits(5, 700)),
    ],
)
def test_providers_that_may_cost_money_have_default_limits(
    may_cost: bool, calls: int, tokens: int, limits: DailyLimits
) -> None:
    selection = Selection("x", "x", "m", "", True, "", may_cost=may_cost)
    assert daily_limits(ExtractionConfig(daily_call_limit=calls, daily_token_limit=tokens), selection) == limits


def test_the_guard_has_the_configured_settings() -> None:
    config = ExtractionConfig(concurrency=7, breaker=BreakerConfig(failures=2, cooldown_ms=1000, max_cooldown_ms=9000))
    assert guard_limits(config) == GuardLimits(7, BreakerPolicy(2, 1000, 9000))
