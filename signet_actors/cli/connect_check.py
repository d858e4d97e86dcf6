"""The check of ``signet connect --check``: run what is installed, and tell what the agent would get.

Source: docs/cli.md "Harnesses"; docs/guides/claude-code.md "Check it".
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from signet_actors.cli.exit_codes import NOT_RUNNING, REFUSED
from signet_actors.cli.harnesses.check import (
    NO_MEMORY,
    HookRun,
    check_session,
    prompt_brings,
    reason_of_silence,
    run_installed,
    stored_canary,
    transcript_problem,
)
from signet_actors.cli.harnesses.identity_files import unread_files
from signet_actors.cli.harnesses.server_check import ServerRun, run_server
from signet_actors.cli.harnesses.server_entry import is_our_server
from signet_actors.cli.presentation import below_home, on_terminal, one_line, print_result, printable, wrapped
from signet_actors.cli.tables import print_wrapped
from signet_actors.errors import DaemonNotRunning, SignetError
from signet_actors.hook.harness_events import STARTS_WITH_PROMPT, is_switched_off

if TYPE_CHECKING:
    from collections.abc import Mapping

    from signet_actors.cli.connection import DaemonClient
    from signet_actors.cli.harnesses.registry import Harness
    from signet_actors.cli.invocation import Invocation

OK, NOTE, FAILED = "✓", "!", "✗"
_QUOTES = re.compile(r"['\"\\]")


@dataclass
class Check:
    """The check of one harness. ``parts`` are the results as JSON; the same is printed line by line, unless quiet."""

    harness: Harness
    file: str
    quiet: bool
    verbose: bool = False
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

    def say(self, mark: str, text: str, *, part: str = "") -> None:
        """Print a line of the check, about one ``part`` of it."""
        if not self.quiet:
            lead = f"{mark} {part:<10}  " if part else f"{mark} "
            print_wrapped(text, lead=lead, indent=len(lead), chop=False)

    def detail(self, text: str, *, lead: str = "    ", is_command: bool = False) -> None:
        """Print lines below the last one, if they are wanted; each line that a terminal breaks keeps its ``lead``.

        The lines of a command that is broken are still one for a shell; one with quotes is not broken.
        """
        if self.verbose and not self.quiet:
            for line in text.splitlines():
                shown = printable(line)
                if on_terminal() and not (is_command and (_QUOTES.search(line) or not line.isascii())):
                    taken, end = (len(lead) + len(" \\"), " \\\n") if is_command else (len(lead), "\n")
                    shown = wrapped(line, taken=taken).replace("\n", end)
                click.echo("\n".join(f"{lead}{part}".rstrip() for part in shown.split("\n")))

    def note(self, text: str) -> None:
        """Add what the user should know, and print it."""
        self.notes.append(text)
        self.say(NOTE, text)

    def fail(self, exit_code: int, problem: str, *, part: str = "") -> None:
        """Print the problem, of the whole check or of a ``part`` that is in ``parts`` already."""
        if not part:
            self.parts["problem"] = problem
        self.exit_code = max(self.exit_code, exit_code)
        self.say(FAILED, problem, part=part)


def check_harness(invocation: Invocation, harness: Harness, *, verbose: bool = False) -> Check:
    """Check one harness, and print what came back unless the output is JSON. Raises ConfigError."""
    environ = {**invocation.environment, **({"SIGNET_DAEMON_URL": invocation.url} if invocation.url else {})}
    file = str(harness.settings(environ).path)
    check = Check(harness, file, quiet=invocation.as_json, verbose=verbose)
    if not check.quiet:
        print_result(f"{harness.title}: {below_home(file, environ)}")
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
        _tell_start(check, started)
        if check.exit_code:
            return check
    _check_memory(invocation, check, session, environ)
    return check


def _tell_start(check: Check, run: HookRun) -> None:
    if run.problem:
        check.fail(REFUSED, run.problem, part="start")
    elif run.message:
        reason = run.message.removeprefix(NO_MEMORY).removeprefix(", because ")
        check.fail(NOT_RUNNING, f"the agent gets no memory: {reason}", part="start")
    elif run.context:
        check.say(OK, f"the agent gets {len(run.context):,} characters", part="start")
    else:
        later = check.harness.name in STARTS_WITH_PROMPT
        check.say(OK, "what it has comes with the first prompt" if later else "nothing for the agent yet", part="start")
    _detail_run(check, run)


def _check_memory(invocation: Invocation, check: Check, session: Mapping[str, str], environ: Mapping[str, str]) -> None:
    """Have a memory asked for by the hook of a prompt and by the tools."""
    harness = check.harness
    found = harness.installed_server(environ)
    entry = found if is_our_server(found) else None
    if entry is None and not harness.events:
        _tell_no_tools(check, found)
        return
    try:
        client = invocation.client(invocation.address_of_programs())
        with stored_canary(client, session["cwd"]) as canary:
            prompted = prompt_brings(canary, harness, session, environ) if harness.events else None
            if prompted is not None and prompted.problem and (reason := reason_of_silence(client, session["cwd"])):
                prompted = replace(prompted, problem=reason)
            kept = _transcript_json(client, harness, session, environ) if harness.events else None
            served = run_server(entry, canary, environ) if entry is not None else None
    except DaemonNotRunning as error:
        check.fail(NOT_RUNNING, f"no memory was asked for: {error.detail}. {error.remedy}")
        return
    except SignetError as error:
        check.fail(REFUSED, f"no memory was asked for, because the daemon refused it: {one_line(error.detail)}")
        return
    if prompted is not None:
        _tell_prompt(check, prompted)
    if kept is not None:
        _tell_transcript(check, kept)
    if served is not None:
        _tell_tools(check, served)
    else:
        _tell_no_tools(check, found)


def _tell_prompt(check: Check, run: HookRun) -> None:
    check.parts["prompt"] = _hook_json(run)
    if run.problem:
        check.fail(REFUSED, f"a memory was stored to be asked for, but {run.problem}", part="prompt")
    else:
        check.say(OK, "a memory that was stored just now comes back", part="prompt")
    _detail_run(check, run)


def _transcript_json(
    client: DaemonClient, harness: Harness, session: Mapping[str, str], environ: Mapping[str, str]
) -> dict[str, Any]:
    """Return where the harness keeps its sessions, and why the daemon would keep none. Raises ConfigError."""
    folder = str(next(iter(harness.noted(environ, None).session_folders), ""))
    told = {name for name in map(harness.event_of, ("session-start", "user-prompt-submit")) if name is not None}
    missing = [name for name in harness.missing_events(environ) if name not in told]
    problem = f"the settings have no hook of Signet for {' and '.join(missing)}; `signet connect {harness.name}`"
    return {
        "folder": folder or None,
        "problem": problem if missing else transcript_problem(client, harness, folder, session) or None,
    }


def _tell_transcript(check: Check, kept: dict[str, Any]) -> None:
    check.parts["transcript"] = kept
    if kept["problem"] is not None:
        problem = one_line(kept["problem"])
        check.fail(REFUSED, f"sessions are not kept: {below_home(problem, os.environ)}", part="transcript")
    elif kept["folder"] is not None:
        check.say(OK, f"sessions in {below_home(kept['folder'], os.environ)} are kept", part="transcript")
    else:
        check.say(OK, "sessions are kept", part="transcript")


def _tell_tools(check: Check, run: ServerRun) -> None:
    problem = one_line(run.problem) if run.problem else None
    check.parts["tools"] = {"readyMs": round(run.ms), "tools": run.tools, "problem": problem}
    if problem is not None:
        check.fail(REFUSED, problem, part="tools")
    else:
        check.say(OK, f"{run.tools} tools; memory_search finds the same memory", part="tools")
        check.detail(f"ready in {run.ms:.0f} ms")


def _tell_no_tools(check: Check, found: Any) -> None:
    """Tell that there is no entry of ours; ``found``: a server of the same name, which the user has added."""
    if found is not None:
        check.parts["tools"] = {"problem": None}
        check.say(NOTE, "not checked: the server named signet is not one of `signet connect`", part="tools")
    elif check.harness.servers is not None:
        problem = f"not installed; `signet connect {check.harness.name}` adds them"
        check.parts["tools"] = {"problem": problem}
        check.fail(REFUSED, problem, part="tools")


def _detail_run(check: Check, run: HookRun) -> None:
    """Print what was run, and what the agent would get."""
    check.detail(below_home(run.command, os.environ), is_command=True)
    if run.ms:
        check.detail(f"answered in {run.ms:.0f} ms")
    check.detail(run.context, lead="    │ ")


def _hook_json(run: HookRun) -> dict[str, Any]:
    return {
        "command": run.command,
        "answeredMs": round(run.ms),
        "context": run.context,
        "problem": run.problem or run.message or None,
    }
