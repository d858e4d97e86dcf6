"""Models of command-line programs, Claude Code and opencode: find the program, run it, and interpret how it ended.

Source: memory-pipeline.txt "Provider Abstraction" (ClaudeCodeProvider), "Configuration Reference"
(extraction.provider); docs/decisions.md 18 and 19; opencode's manual, "CLI" and "Config".
Departs: the prompt is passed by stdin, not as an argument (see ``cli_process``); tools, hooks, MCP servers, sharing and
updates are switched off, because the text of a memory must not trigger actions, and because this daemon's own hooks
would turn each answer into new memories. The timeout is ``extraction.timeout``, as for all providers, not 60 s. No
option prevents that opencode stores a session for each call, so ``signet backfill`` and the plugin leave these out.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from signet_actors.domain.extraction.answers import AnswerFormat
from signet_actors.domain.transcripts.opencode import OWN_DIRECTORY, OWN_TITLE
from signet_actors.errors import ProviderError, ProviderErrorKind
from signet_actors.providers.llm.cli_process import CliCommand, CliOutcome, Ending, clean_environment, run_cli
from signet_actors.providers.llm.provider import MAX_ANSWER_BYTES, Availability, Generated, estimated_tokens
from signet_actors.providers.log_sanitizing import drop_if_echoed, sanitize

_QUOTED_BYTES: Final = 4096
_CANNOT_RUN: Final = frozenset({126, 127})
_UNAUTHORIZED: Final = re.compile(r"(?i)log ?in|logged|api key|authenticat|unauthori[sz]ed|credit|billing|forbidden")
_RATE_LIMITED: Final = re.compile(r"(?i)(usage|rate|session|weekly|hour) limit|limit reached|quota|overloaded|too many")
_CLAUDE_MODEL: Final = "haiku"
_CLAUDE_SETTINGS: Final = '{"disableAllHooks":true}'
_OPENCODE_CONFIG: Final = (
    '{"permission":{"*":"deny","edit":"deny","bash":"deny","webfetch":"deny"},"share":"disabled","autoupdate":false}'
)


class CliProvider:
    """One model of one command-line agent. Each call is a process in an empty, private directory.

    ``program`` is searched at each call, because it may be installed, updated or removed while the daemon runs.
    ``key_variable`` names the only variable with a key that is passed on; without it the program uses its own log-in.
    """

    endpoint: Final = None
    structured: Final = False

    def __init__(
        self,
        name: str,
        program: str,
        model: str,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        key_variable: str = "",
        settings: Mapping[str, str] | None = None,
        passed_on: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.model = model
        self._program = program
        self._arguments = tuple(arguments)
        self._search_path = environment.get("PATH")
        also = (*passed_on, key_variable) if key_variable else tuple(passed_on)
        self._environment = {**clean_environment(environment, also=also), **(settings or {})}
        self._secret = environment.get(key_variable, "") if key_variable else ""
        self._key_variable = key_variable
        self._directory: Path | None = None
        self._running: set[asyncio.Task[CliOutcome]] = set()

    async def generate(
        self, prompt: str, *, timeout_ms: int, max_tokens: int | None = None, answer: AnswerFormat | None = None
    ) -> Generated:
        """See ``LlmProvider.generate``. The programs have no options for ``max_tokens`` and ``answer``."""
        del max_tokens, answer
        path = shutil.which(self._program, path=self._search_path)
        if path is None:
            raise ProviderError(ProviderErrorKind.UNAVAILABLE, self._not_found())
        command = CliCommand(path, self._arguments, self._environment, self._own_directory(), MAX_ANSWER_BYTES)
        task = asyncio.ensure_future(run_cli(command, prompt.encode("utf-8", "replace"), timeout_ms=timeout_ms))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            outcome = await task
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if caller is not None and caller.cancelling():
                raise
            raise ProviderError(ProviderErrorKind.UNAVAILABLE, f"{self._program} was stopped") from None
        except OSError as error:
            raise ProviderError(
                ProviderErrorKind.UNAVAILABLE, f"{self._program} cannot be started ({error.strerror})"
            ) from error
        return self._generated(prompt, outcome, timeout_ms)

    async def available(self) -> Availability:
        """Check that the program is installed; more cannot be checked without a paid call."""
        path = shutil.which(self._program, path=self._search_path)
        if path is None:
            return Availability(False, self._not_found())
        if self._key_variable and not self._secret:
            return Availability(False, f"the environment variable {self._key_variable} is not set")
        return Availability(True, f"{self._program} is installed; its login is checked by the first call")

    async def close(self) -> None:
        for task in tuple(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        directory, self._directory = self._directory, None
        if directory is not None:
            await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)

    def _generated(self, prompt: str, outcome: CliOutcome, timeout_ms: int) -> Generated:
        match outcome.ending:
            case Ending.TIMED_OUT:
                raise ProviderError(
                    ProviderErrorKind.TIMEOUT, f"{self._program} did not respond within {timeout_ms} ms"
                )
            case Ending.TOO_MUCH:
                raise ProviderError(
                    ProviderErrorKind.MALFORMED, f"{self._program} printed more than {MAX_ANSWER_BYTES} bytes"
                )
            case Ending.STOPPED:
                raise ProviderError(ProviderErrorKind.UNAVAILABLE, f"{self._program} was stopped")
            case Ending.EXITED:
                pass
        if outcome.exit_code != 0:
            # The output may be the beginning of an answer, which must not appear in a log.
            said = sanitize((outcome.errors.strip() or outcome.output)[:_QUOTED_BYTES], self._secret)
            told = drop_if_echoed(said, [prompt])
            raise ProviderError(
                _error_kind(outcome.exit_code, said),
                f"{self._program} ended with exit code {outcome.exit_code}" + (f": {told}" if told else ""),
            )
        text = outcome.output.decode("utf-8", "replace").strip()
        if not text:
            raise ProviderError(ProviderErrorKind.MALFORMED, f"{self._program} returned no text")
        return Generated(text, estimated_tokens(prompt), estimated_tokens(text), estimated=True)

    def _not_found(self) -> str:
        return f"the program {self._program} is not installed or not on the daemon's PATH"

    def _own_directory(self) -> Path:
        """Return an empty, private directory: an agent would read instruction files of a project directory."""
        if self._directory is None or not self._directory.is_dir():
            with contextlib.suppress(OSError):
                self._directory = Path(tempfile.mkdtemp(prefix=OWN_DIRECTORY))
        return self._directory or Path("/")


class ClaudeCodeProvider(CliProvider):
    """One model through ``claude -p``, charged to the user's subscription or key."""

    def __init__(self, model: str, environment: Mapping[str, str], key_variable: str = "") -> None:
        model = model or _CLAUDE_MODEL
        super().__init__(
            "claude-code",
            "claude",
            model,
            (
                *("-p", f"--model={model}", "--no-session-persistence", "--output-format", "text"),
                *("--settings", _CLAUDE_SETTINGS, "--strict-mcp-config", "--tools", ""),
            ),
            environment=environment,
            key_variable=key_variable,
            passed_on=("CLAUDE_CONFIG_DIR",),
            settings={"DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1"},
        )


class OpencodeProvider(CliProvider):
    """One model through ``opencode run``; without a model, the one in opencode's own configuration."""

    def __init__(self, model: str, environment: Mapping[str, str], key_variable: str = "") -> None:
        # A fixed title saves the model call that would generate one, and tells these sessions from a person's.
        chosen = (f"--model={model}",) if model else ()
        super().__init__(
            "opencode",
            "opencode",
            model or "default",
            ("run", *chosen, "--title", OWN_TITLE, "--format", "default"),
            environment=environment,
            key_variable=key_variable,
            passed_on=("OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR"),
            settings={"OPENCODE_CONFIG_CONTENT": _OPENCODE_CONFIG, "OPENCODE_DISABLE_AUTOUPDATE": "1"},
        )


def _error_kind(exit_code: int, said: str) -> ProviderErrorKind:
    """Classify an exit code and its message, so that an expired log-in does not count as a failure of the prompt."""
    if exit_code in _CANNOT_RUN:
        return ProviderErrorKind.UNAVAILABLE
    if _RATE_LIMITED.search(said):
        return ProviderErrorKind.RATE_LIMITED
    return ProviderErrorKind.REFUSED if _UNAUTHORIZED.search(said) else ProviderErrorKind.HTTP
