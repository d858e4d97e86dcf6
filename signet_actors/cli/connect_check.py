"""The check of ``signet connect --check``: run what is installed, and tell what the agent would get.

Source: docs/cli.md "Harnesses"; docs/guides/claude-code.md "Check it".
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from signet_actors.cli.exit_codes import NOT_RUNNING, REFUSED
from signet_actors.cli.harnesses.check import (
    HookRun,
    check_session,
    prompt_brings,
    reason_of_silence,
    run_installed,
    stored_canary,
)
from signet_actors.cli.harnesses.identity_files import unread_files
from signet_actors.cli.harnesses.server_check import ServerRun, run_server
from signet_actors.cli.harnesses.server_entry import is_our_server
from signet_actors.cli.presentation import one_line, print_result, printable
from signet_actors.errors import DaemonNotRunning, SignetError
from signet_actors.hook.harness_events import STARTS_WITH_PROMPT, is_switched_off

if TYPE_CHECKING:
    from collections.abc import Mapping

    from signet_actors.cli.harnesses.registry import Harness
    from signet_actors.cli.invocation import Invocation

SHOWN_CHARS = 300


@dataclass
class Check:
    """The check of one harness. ``parts`` are the results as JSON; the same is printed line by line, unless quiet."""

    harness: Harness
    file: str
    quiet: bool
    exit_code: int = 0
    notes: list[str] = field(default_factory=list)
    parts: dict[str, Any] = field(default_factory=dict)

    @property
    def as_json(self) -> dict[str, Any]:
        """The check as ``--json`` prints it."""
        return {
            "harness": self.harness.name,
            "file": self.file,
            "ok": self.exit_code == 0,
            "exitCode": self.exit_code,
            "notes": self.notes,
            **self.parts,
        }

    def say(self, text: str) -> None:
        """Print a line of the check."""
        if not self.quiet:
            print_result(f"  {text}")

    def note(self, text: str) -> None:
        """Add what the user should know, and print it."""
        self.notes.append(text)
        self.say(printable(text))

    def fail(self, exit_code: int, problem: str, *, part: str = "") -> None:
        """Print the problem, of the whole check or of a ``part`` that is in ``parts`` already."""
        if not part:
            self.parts["problem"] = problem
        self.exit_code = max(self.exit_code, exit_code)
        self.say(f"{part}: {problem}" if part else problem)


def check_harness(invocation: Invocation, harness: Harness) -> Check:
    """Check one harness, and print what came back unless the output is JSON. Raises ConfigError."""
    environ = {**invocation.environment, **({"SIGNET_DAEMON_URL": invocation.url} if invocation.url else {})}
    check = Check(harness, str(harness.settings(environ).path), quiet=invocation.as_json)
    if not check.quiet:
        print_result(f"{harness.title}: {printable(check.file)}")
    for note in (*harness.checked_notes(environ), *unread_files(invocation.workspace, harness, environ)):
        check.note(note)
    if is_switched_off(environ):
        check.note("SIGNET_NO_HOOKS or SIGNET_BYPASS is set here, so every hook is silent and the tools are off.")
    if environ.get("SIGNET_DAEMON_URL"):
        check.note(f"daemon: {environ['SIGNET_DAEMON_URL']}, as SIGNET_DAEMON_URL or --url names it")
    session = check_session(environ)
    if harness.events:
        started = run_installed(harness, "session-start", {**session, "source": "startup"}, environ)
        check.parts["sessionStart"] = _hook_json(started)
        comes_later = harness.name in STARTS_WITH_PROMPT and not (started.problem or started.context)
        later = f"answered in {started.ms:.0f} ms; what it has for the agent comes with the first prompt"
        check.say(f"session start: {later if comes_later else _in_words(started)}")
        if started.problem or started.message:
            check.exit_code = REFUSED if started.problem else NOT_RUNNING
            return check
    _check_memory(invocation, check, session, environ)
    return check


def _check_memory(invocation: Invocation, check: Check, session: Mapping[str, str], environ: Mapping[str, str]) -> None:
    """Have a memory asked for by the hook of a prompt and by the tools."""
    harness = check.harness
    entry = harness.installed_server(environ)
    entry = entry if is_our_server(entry) else None
    if entry is None and not harness.events:
        problem = f"{harness.title} has no MCP server that `signet connect` added"
        check.parts["tools"] = {"problem": problem}
        check.fail(REFUSED, problem, part="tools")
        return
    try:
        client = invocation.client(invocation.address_of_programs())
        with stored_canary(client, session["cwd"]) as canary:
            prompted = prompt_brings(canary, harness, session, environ) if harness.events else None
            if prompted is not None and prompted.problem and (reason := reason_of_silence(client, session["cwd"])):
                prompted = replace(prompted, problem=reason)
            served = run_server(entry, canary, environ) if entry is not None else None
    except DaemonNotRunning as error:
        check.fail(NOT_RUNNING, f"a memory was not asked for, because {error.detail}")
        return
    except SignetError as error:
        check.fail(REFUSED, f"a memory was not asked for, because the daemon refused it: {one_line(error.detail)}")
        return
    if prompted is not None:
        _tell_prompt(check, prompted)
    if served is not None:
        _tell_tools(check, served)
    if not check.exit_code:
        check.say(f"{harness.title}'s agent gets what Signet remembers.")


def _tell_prompt(check: Check, run: HookRun) -> None:
    check.parts["prompt"] = _hook_json(run)
    if run.problem:
        check.fail(REFUSED, f"a memory was stored to be asked for, but {run.problem}", part="prompt")
    else:
        check.say(f"prompt: a memory was stored, asked for, and forgotten again; {_in_words(run)}")


def _tell_tools(check: Check, run: ServerRun) -> None:
    problem = one_line(run.problem) if run.problem else None
    check.parts["tools"] = {"readyMs": round(run.ms), "tools": run.tools, "problem": problem}
    if problem is not None:
        check.fail(REFUSED, problem, part="tools")
    else:
        check.say(
            f"tools: the server was ready in {run.ms:.0f} ms and offers {run.tools}; memory_search found the memory"
        )


def _hook_json(run: HookRun) -> dict[str, Any]:
    return {
        "command": run.command,
        "answeredMs": round(run.ms),
        "context": run.context,
        "problem": run.problem or run.message or None,
    }


def _in_words(run: HookRun) -> str:
    if run.problem:
        return f"{run.command}: {run.problem}"
    if not run.context:
        return f"answered in {run.ms:.0f} ms; nothing for the agent"
    shown = one_line(run.context, SHOWN_CHARS)
    return f"answered in {run.ms:.0f} ms; the agent gets {len(run.context):,} characters: {shown}"
