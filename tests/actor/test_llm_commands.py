"""Models that run as command-line programs: their calls, their exits, and the cleanup of their processes."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from signet_actors.errors import ProviderError, ProviderErrorKind
from signet_actors.providers.llm.cli_provider import ClaudeCodeProvider, CliProvider, OpencodeProvider
from signet_actors.providers.llm.provider import Generated
from tests.support.open_files import open_files
from tests.support.scripted_provider import CliFault, FakeCli, kill_all

ANSWER = '{"facts": [], "entities": []}'
SECRET = "sk-ant-0123456789-secret"
HANG_GUARD_S = 30.0
SHORT_MS = 1500
T = TypeVar("T")

Maker = Callable[[FakeCli], CliProvider]


def environment(cli: FakeCli) -> dict[str, str]:
    return {
        "PATH": str(cli.directory),
        "HOME": "/home/somebody",
        "ANTHROPIC_API_KEY": SECRET,
        "OPENAI_API_KEY": SECRET,
        "SIGNET_WORKSPACE": "/somewhere",
        "LANG": "C.UTF-8",
    }


PROGRAMS: dict[str, Maker] = {
    "claude": lambda cli: ClaudeCodeProvider("", environment=environment(cli)),
    "opencode": lambda cli: OpencodeProvider("local/qwen3", environment=environment(cli)),
}


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[FakeCli]:
    made = FakeCli(tmp_path / "bin")
    yield made
    left = made.living()
    kill_all(left)
    assert left == [], "processes of the test are left"


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def using(provider: CliProvider, work: Callable[[CliProvider], Awaitable[T]]) -> T:
    async def life() -> T:
        try:
            async with asyncio.timeout(HANG_GUARD_S):
                return await work(provider)
        finally:
            await provider.close()

    return asyncio.run(life())


def generated(provider: CliProvider, prompt: str = "What?", timeout_ms: int = 20_000) -> Generated:
    return using(provider, lambda it: it.generate(prompt, timeout_ms=timeout_ms))


def made(cli: FakeCli, program: str, fault: CliFault) -> CliProvider:
    cli.write(program, fault, text=ANSWER)
    return PROGRAMS[program](cli)


def failure(provider: CliProvider, timeout_ms: int = 20_000) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        generated(provider, timeout_ms=timeout_ms)
    assert "\n" not in caught.value.detail
    return caught.value


def test_an_error_output_that_repeats_the_prompt_is_not_quoted(cli: FakeCli, program: str) -> None:
    provider = made(cli, program, "exit_1")
    for prompt, quoted in (("It ends so because because because", False), ("The code word is Wolverine", True)):
        with pytest.raises(ProviderError) as caught:
            generated(provider, prompt)
        assert ("because" in caught.value.detail) is quoted
        assert "ended with exit code 1" in caught.value.detail


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_the_answer_is_the_output_and_its_tokens_are_estimated(cli: FakeCli, program: str) -> None:
    answer = generated(made(cli, program, "ok"), "x" * 400)
    assert (answer.text, answer.tokens_in, answer.estimated, answer.cost_microusd) == (ANSWER, 100, True, None)


def test_the_prompt_is_passed_by_stdin_and_never_as_an_argument(cli: FakeCli, program: str) -> None:
    """Longer than any argument may be, and beginning with what looks like an option."""
    prompt = "--help\n" + "数据库 ünïcode 🙂 " * 40_000
    answer = generated(made(cli, program, "echo"), prompt)
    assert answer.text == prompt.strip()
    (call,) = cli.calls
    assert call["stdin"] == prompt
    assert not any("help" in argument for argument in call["argv"])


def test_claude_code_is_called_as_documented_without_tools_hooks_or_servers(cli: FakeCli) -> None:
    generated(made(cli, "claude", "ok"))
    (call,) = cli.calls
    argv = call["argv"]
    assert argv[:5] == ["-p", "--model=haiku", "--no-session-persistence", "--output-format", "text"]
    assert argv[5:] == ["--settings", '{"disableAllHooks":true}', "--strict-mcp-config", "--tools", ""]


def test_opencode_is_called_with_its_tools_denied(cli: FakeCli) -> None:
    generated(made(cli, "opencode", "ok"))
    (call,) = cli.calls
    assert call["argv"] == ["run", "--model=local/qwen3", "--title", "signet", "--format", "default"]
    assert '"bash":"deny"' in call["environment"]["OPENCODE_CONFIG_CONTENT"]


def test_opencode_without_a_model_uses_its_default(cli: FakeCli) -> None:
    cli.write("opencode", "ok", text=ANSWER)
    provider = OpencodeProvider("", environment=environment(cli))
    generated(provider)
    assert "--model" not in cli.calls[0]["argv"]
    assert provider.model == "default"


def test_a_program_gets_a_small_environment_and_an_empty_private_directory(cli: FakeCli, program: str) -> None:
    generated(made(cli, program, "ok"))
    (call,) = cli.calls
    seen = call["environment"]
    assert SECRET not in seen.values(), "a key that the configuration does not name"
    assert "SIGNET_WORKSPACE" not in seen
    assert seen["HOME"] == "/home/somebody"
    assert seen["SIGNET_NO_HOOKS"] == seen["SIGNET_BYPASS"] == "1"
    assert call["files"] == []
    assert call["cwd"] not in {os.getcwd(), "/"}
    assert not Path(call["cwd"]).exists(), "closing the provider takes it away"


def test_the_directory_of_a_program_is_private(cli: FakeCli, program: str) -> None:
    provider = made(cli, program, "ok")

    async def work(it: CliProvider) -> int:
        await it.generate("p", timeout_ms=20_000)
        return stat.S_IMODE(os.stat(cli.calls[0]["cwd"]).st_mode)

    assert using(provider, work) == 0o700


def test_only_the_configured_key_is_passed_on(cli: FakeCli) -> None:
    cli.write("claude", "ok", text=ANSWER)
    generated(ClaudeCodeProvider("", environment=environment(cli), key_variable="ANTHROPIC_API_KEY"))
    seen = cli.calls[0]["environment"]
    assert seen["ANTHROPIC_API_KEY"] == SECRET
    assert "OPENAI_API_KEY" not in seen


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("exit_1", ProviderErrorKind.HTTP, "exit code 1: Traceback: key [key] because"),
        ("no_log_in", ProviderErrorKind.REFUSED, "exit code 1: Invalid API key"),
        ("usage_limit", ProviderErrorKind.RATE_LIMITED, "exit code 1: Claude AI usage limit"),
        ("empty", ProviderErrorKind.MALFORMED, "no text"),
        ("huge", ProviderErrorKind.MALFORMED, "more than 4194304 bytes"),
    ],
)
def test_a_failed_program_is_an_error_with_its_cause(
    cli: FakeCli, program: str, fault: CliFault, kind: ProviderErrorKind, words: str
) -> None:
    error = failure(made(cli, program, fault))
    assert error.kind is kind
    assert words in error.detail
    assert error.costs_attempt is (kind in {ProviderErrorKind.HTTP, ProviderErrorKind.MALFORMED})
    assert len(error.detail) < 300
    assert cli.living() == []


@pytest.mark.parametrize("fault", ["hang", "grandchild_then_hang", "daemon"])
def test_a_program_that_times_out_is_killed_with_all_its_processes(cli: FakeCli, program: str, fault: CliFault) -> None:
    """SIGTERM is ignored, and the grandchild has a session of its own."""
    error = failure(made(cli, program, fault), timeout_ms=SHORT_MS)
    assert error.kind is ProviderErrorKind.TIMEOUT
    assert len(cli.pids) == (2 if fault == "grandchild_then_hang" else 1)
    assert cli.living() == [], "ended before the error was raised"


def test_an_answer_counts_although_a_grandchild_keeps_the_pipe_open_and_the_grandchild_is_killed(
    cli: FakeCli, program: str
) -> None:
    assert generated(made(cli, program, "grandchild")).text == ANSWER
    assert len(cli.pids) == 2
    assert cli.living() == []


def test_a_program_that_does_not_read_its_prompt_may_still_answer(cli: FakeCli, program: str) -> None:
    assert generated(made(cli, program, "deaf"), "x" * 1_000_000).text == ANSWER


def test_a_long_error_output_does_not_block_the_program(cli: FakeCli, program: str) -> None:
    assert generated(made(cli, program, "chatty_errors")).text == ANSWER


def test_a_cancelled_call_ends_after_its_program_was_killed(cli: FakeCli, program: str) -> None:
    async def work(provider: CliProvider) -> None:
        task = asyncio.ensure_future(provider.generate("p", timeout_ms=60_000))
        await asyncio.to_thread(cli.await_pids, 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert cli.living() == []

    using(made(cli, program, "grandchild_then_hang"), work)


def test_closing_the_provider_ends_its_calls_with_an_error(cli: FakeCli, program: str) -> None:
    async def work(provider: CliProvider) -> None:
        task = asyncio.ensure_future(provider.generate("p", timeout_ms=60_000))
        await asyncio.to_thread(cli.await_pids, 2)
        await provider.close()
        assert cli.living() == []
        with pytest.raises(ProviderError, match="was stopped"):
            await task

    using(made(cli, program, "grandchild_then_hang"), work)


def test_concurrent_calls_do_not_disturb_each_other(cli: FakeCli, program: str) -> None:
    async def work(provider: CliProvider) -> list[str]:
        calls = [provider.generate(f"prompt {number}", timeout_ms=20_000) for number in range(4)]
        return [answer.text for answer in await asyncio.gather(*calls)]

    assert using(made(cli, program, "echo"), work) == [f"prompt {number}" for number in range(4)]


def test_no_call_leaves_a_file_or_a_thread_open(cli: FakeCli, program: str) -> None:
    async def work(provider: CliProvider) -> None:
        await provider.generate("first", timeout_ms=20_000)
        files = set(open_files(os.getpid()))
        for _ in range(3):
            await provider.generate("again", timeout_ms=20_000)
        assert set(open_files(os.getpid())) == files

    using(made(cli, program, "ok"), work)
    for thread in threading.enumerate():
        if thread.name == "cli-provider":
            thread.join(HANG_GUARD_S)
            assert not thread.is_alive()


def test_a_missing_program_is_unavailable_and_costs_no_attempt(cli: FakeCli, program: str) -> None:
    provider = PROGRAMS[program](cli)
    error = failure(provider)
    assert error.kind is ProviderErrorKind.UNAVAILABLE
    assert error.detail == f"the program {program} is not installed or not on the daemon's PATH"
    found = using(PROGRAMS[program](cli), lambda it: it.available())
    assert (found.ok, found.detail) == (False, error.detail)


def test_a_program_that_is_installed_later_is_found(cli: FakeCli, program: str) -> None:
    async def work(provider: CliProvider) -> str:
        assert not (await provider.available()).ok
        cli.write(program, "ok", text=ANSWER)
        assert (await provider.available()).ok
        return (await provider.generate("p", timeout_ms=20_000)).text

    assert using(PROGRAMS[program](cli), work) == ANSWER


def test_a_file_that_cannot_be_executed_is_an_error_with_an_explanation(cli: FakeCli, program: str) -> None:
    path = cli.write(program, "ok")
    path.write_bytes(b"\x7fELF not really")
    error = failure(PROGRAMS[program](cli))
    assert "exit code 127" in error.detail
    assert "Exec format error" in error.detail


def test_no_process_of_a_call_survives_a_kill_of_the_daemon(cli: FakeCli, program: str) -> None:
    """The process that called is killed with SIGKILL, and can clean up nothing."""
    cli.write(program, "grandchild_then_hang")
    script = textwrap.dedent(
        f"""
        import asyncio
        from tests.actor.test_llm_commands import PROGRAMS
        from tests.support.scripted_provider import FakeCli
        from pathlib import Path
        provider = PROGRAMS[{program!r}](FakeCli(Path({str(cli.directory)!r})))
        asyncio.run(provider.generate("p", timeout_ms=600_000))
        """
    )
    daemon = subprocess.Popen([sys.executable, "-c", script])
    try:
        cli.await_pids(2)
    finally:
        daemon.send_signal(signal.SIGKILL)
        daemon.wait(HANG_GUARD_S)
    cli.await_none_living()
    assert len(cli.pids) == 2


def test_a_killed_reaper_ends_the_program(cli: FakeCli, program: str) -> None:
    async def work(provider: CliProvider) -> None:
        task = asyncio.ensure_future(provider.generate("p", timeout_ms=60_000))
        (pid,) = await asyncio.to_thread(cli.await_pids, 1)
        keeper = parent_of(pid)
        assert keeper != os.getpid()
        os.kill(keeper, signal.SIGKILL)
        with pytest.raises(ProviderError, match="exit code -9"):
            await task
        await asyncio.to_thread(cli.await_none_living)

    using(made(cli, program, "hang"), work)


def test_the_deadline_ends_a_program_with_endless_slow_output(cli: FakeCli) -> None:
    path = cli.write("claude", "ok")
    path.write_text(f"#!{sys.executable} -IS\nimport time\nwhile True: print('.', flush=True); time.sleep(0.05)\n")
    started = time.monotonic()
    error = failure(PROGRAMS["claude"](cli), timeout_ms=SHORT_MS)
    assert error.kind is ProviderErrorKind.TIMEOUT
    assert time.monotonic() - started < HANG_GUARD_S
