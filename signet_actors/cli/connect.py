"""The commands connect and disconnect: have the programs that run agents call Signet by themselves.

Source: docs/guides/claude-code.md, docs/guides/codex.md, docs/cli.md "Harnesses".
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from signet_actors.cli.exit_codes import NOT_RUNNING, REFUSED
from signet_actors.cli.harnesses.check import HookRun, canary_comes_back, run_installed, session_event
from signet_actors.cli.harnesses.hook_settings import PROGRAM, handlers, is_ours
from signet_actors.cli.harnesses.registry import HARNESSES, Harness
from signet_actors.cli.invocation import agent_option, shared_options
from signet_actors.cli.presentation import counted, one_line, print_json, print_message, print_result, printable
from signet_actors.cli.tables import print_table
from signet_actors.errors import ConfigError, DaemonNotRunning, SignetError
from signet_actors.hook.spool import Spool

if TYPE_CHECKING:
    from signet_actors.cli.harnesses.settings_file import Change
    from signet_actors.cli.invocation import Invocation

NAMES = tuple(harness.name for harness in HARNESSES)
PAST_SESSIONS = ("claude-code", "codex", "opencode")
"""Harnesses whose past sessions `signet backfill` reads."""
SHOWN_CHARS = 200
CONNECTED, DIFFERENT, NOT_CONNECTED = "connected", "connected, by another command", "not connected"


@click.command()
@click.argument("harness", required=False, type=click.Choice(NAMES))
@click.option("--dry-run", is_flag=True, help="Print the change as a diff, and change nothing.")
@click.option("--check", is_flag=True, help="Run the installed hooks, and show what the agent would get.")
@click.option(
    "--command", "given", metavar="PATH", help="The program to install (default: signet-hook of this signet)."
)
@agent_option
@shared_options
@click.pass_obj
def connect(
    invocation: Invocation, harness: str | None, dry_run: bool, check: bool, given: str | None, agent: str | None
) -> None:
    """Have a program that runs agents call Signet by itself.

    Adds Signet's hooks to its settings, and changes nothing else in them. Without HARNESS, lists the programs that are
    on this machine and their state; with --check, checks all that are connected.
    """
    chosen = [found for found in HARNESSES if found.name == harness]
    if check:
        _check(invocation, chosen)
        return
    if not chosen:
        if dry_run or given:
            raise click.UsageError(f"name a harness: {', '.join(NAMES)}")
        _list(invocation)
        return
    change = chosen[0].connecting(invocation.environ, _command(invocation, given, agent))
    if dry_run:
        _print_diff(change)
        return
    if not chosen[0].is_found(invocation.environ):
        print_message(f"{chosen[0].title} was not found on this machine; its settings are made all the same.")
    change.apply()
    path = printable(str(change.file.path))
    if change.before == change.after:
        print_result(f"{chosen[0].title} is connected already ({path}).")
    else:
        print_result(f"Connected {chosen[0].title}: {path}.")
        print_message(chosen[0].after_connect)
        print_message(f"`signet connect {chosen[0].name} --check` shows whether it works.")
        if chosen[0].name in PAST_SESSIONS:
            print_message(
                f"`signet backfill {chosen[0].name} --dry-run` shows the past sessions that you can bring in."
            )
    for note in chosen[0].notes(invocation.environ):
        print_message(note)


@click.command()
@click.argument("harness", type=click.Choice(NAMES))
@click.option("--dry-run", is_flag=True, help="Print the change as a diff, and change nothing.")
@shared_options
@click.pass_obj
def disconnect(invocation: Invocation, harness: str, dry_run: bool) -> None:
    """Remove Signet's hooks from the settings of a program.

    If nobody else has changed the file since `signet connect`, it has its former content again, byte for byte.
    """
    chosen = next(found for found in HARNESSES if found.name == harness)
    change = chosen.disconnecting(invocation.environ)
    if dry_run:
        _print_diff(change)
        return
    if not change.is_needed:
        print_result(f"{chosen.title} is not connected.")
        if change.file.former() is not None:
            print_message(
                f"Settings from before a former connection are still in {printable(str(change.file.backup))}."
            )
        return
    change.apply()
    print_result(f"Disconnected {chosen.title}: {printable(str(change.file.path))}.")


def _print_diff(change: Change) -> None:
    if change.before == change.after:
        print_result("Nothing would change.")
    click.echo(printable(change.diff()), nl=False)


def _command(invocation: Invocation, given: str | None, agent: str | None, *, must_exist: bool = True) -> list[str]:
    """Return the hook program, with the options that its environment may lack. Raises ConfigError."""
    program = os.path.abspath(given) if given else _installed_program(invocation)
    if must_exist and (not os.access(program, os.X_OK) or os.path.isdir(program)):
        raise ConfigError(f"{program} is not a program; install Signet, or name it with --command")
    if must_exist and os.path.basename(program) != PROGRAM:
        raise ConfigError(f"{program} is not named {PROGRAM}, by which `signet disconnect` finds its entries")
    try:
        program.encode()
    except UnicodeEncodeError:
        raise ConfigError("the path of signet-hook is not UTF-8 text, which settings files need") from None
    options = ["--agent", agent] if agent else []
    if invocation.workspace_option or invocation.environ.get("SIGNET_WORKSPACE"):
        options += ["--workspace", str(invocation.workspace)]
    return [program, *options]


def _installed_program(invocation: Invocation) -> str:
    """Return ``signet-hook`` beside this interpreter, preferably by its name on PATH, which outlives an upgrade."""
    beside = Path(sys.executable).with_name(PROGRAM)
    found = shutil.which(PROGRAM, path=invocation.environ.get("PATH"))
    if found and (not beside.exists() or os.path.samefile(found, beside)):
        return os.path.abspath(found)
    return str(beside)


def _state(harness: Harness, invocation: Invocation) -> str:
    try:
        change = harness.connecting(invocation.environ, _command(invocation, None, None, must_exist=False))
        ours = any(is_ours(handler) for _, handler in handlers(harness.document(invocation.environ)))
    except ConfigError as error:
        return error.detail
    if change.before == change.after:
        return CONNECTED
    return DIFFERENT if ours else NOT_CONNECTED


def _list(invocation: Invocation) -> None:
    rows = [
        (
            found.name,
            "yes" if found.is_found(invocation.environ) else "no",
            _state(found, invocation),
            str(found.settings(invocation.environ).path),
        )
        for found in HARNESSES
    ]
    if invocation.as_json:
        names = ("harness", "found", "state", "file")
        print_json({"harnesses": [dict(zip(names, row, strict=True)) for row in rows]})
        return
    print_table(("harness", "found", "state", "file"), rows)
    for found in HARNESSES:
        try:
            notes = found.notes(invocation.environ)
        except ConfigError:  # it is in the table
            continue
        for note in notes:
            print_message(note)
    _print_spool(invocation)


def _print_spool(invocation: Invocation) -> None:
    """Print what hooks have left for the daemon, if there is anything."""
    spool = Spool(str(invocation.workspace))
    try:
        waiting, rejected = len(spool.waiting()), len(spool.rejected())
    except OSError:
        return
    if waiting:
        print_message(f"For the daemon {counted(waiting, 'report waits', 'reports wait')} in {spool.directory}.")
    if rejected:
        what = counted(rejected, "report was", "reports were")
        print_message(f"{what} refused by the daemon for good: {spool.directory}/*.rejected. Delete them once read.")


def _check(invocation: Invocation, chosen: list[Harness]) -> None:
    if not chosen:
        chosen = [found for found in HARNESSES if _state(found, invocation) in (CONNECTED, DIFFERENT)]
        if not chosen:
            raise ConfigError(f"nothing is connected; connect one of {', '.join(NAMES)} first")
    codes = [_check_one(invocation, harness) for harness in chosen]
    click.get_current_context().exit(max(codes))


def _check_one(invocation: Invocation, harness: Harness) -> int:
    """Check one harness and print what came back; return the exit code."""
    environ = invocation.environment
    document = harness.document(environ)
    print_result(f"{harness.title}: {printable(str(harness.settings(environ).path))}")
    for note in harness.notes(environ):
        print_result(f"  {note}")
    if "1" in (environ.get("SIGNET_NO_HOOKS"), environ.get("SIGNET_BYPASS")):
        print_result("  SIGNET_NO_HOOKS or SIGNET_BYPASS is 1 here, so every hook is silent.")
    started = run_installed(document, session_event(environ, "SessionStart", source="startup"), environ)
    print_result(f"  session start: {_in_words(started)}")
    if started.problem:
        return REFUSED
    if started.message:
        return NOT_RUNNING
    try:
        prompted = canary_comes_back(invocation.client(), document, environ)
    except DaemonNotRunning as error:
        print_result(f"  prompt: not checked, because {error.detail}")
        return NOT_RUNNING
    except SignetError as error:
        print_result(f"  prompt: not checked, because the daemon refused a memory: {one_line(error.detail)}")
        return REFUSED
    if prompted.problem:
        print_result(f"  prompt: a memory was stored to be asked for, but {prompted.problem}")
        return REFUSED
    print_result(f"  prompt: a memory was stored, asked for, and forgotten again; {_in_words(prompted)}")
    print_result(f"  {harness.title}'s agent gets what Signet remembers.")
    return 0


def _in_words(run: HookRun) -> str:
    if run.problem:
        return f"{run.command}: {run.problem}"
    if not run.context:
        return f"answered in {run.ms:.0f} ms; nothing for the agent"
    shown = one_line(run.context, SHOWN_CHARS)
    return f"answered in {run.ms:.0f} ms; the agent gets {len(run.context):,} characters: {shown}"
