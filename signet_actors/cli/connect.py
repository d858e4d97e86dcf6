"""The commands connect and disconnect: have the programs that run agents call Signet by themselves.

Source: docs/guides/claude-code.md, docs/guides/codex.md, docs/cli.md "Harnesses".
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from signet_actors.cli.connect_check import check_harness
from signet_actors.cli.harnesses.hook_settings import PROGRAM, start_words
from signet_actors.cli.harnesses.identity_files import (
    files_with_identity,
    forget_connected,
    note_connected,
    unread_files,
)
from signet_actors.cli.harnesses.plugins import INSTALL, plugin_files, write_plugin
from signet_actors.cli.harnesses.registry import HARNESSES, Harness
from signet_actors.cli.harnesses.server_entry import NAME
from signet_actors.cli.invocation import agent_option, shared_options
from signet_actors.cli.presentation import (
    below_home,
    counted,
    print_json,
    print_message,
    print_result,
    printable,
)
from signet_actors.cli.tables import Column, print_table
from signet_actors.errors import ConfigError
from signet_actors.hook.harness_events import HOOKS
from signet_actors.hook.spool import Spool

if TYPE_CHECKING:
    from signet_actors.cli.harnesses.settings_file import Change
    from signet_actors.cli.invocation import Invocation

NAMES = tuple(harness.name for harness in HARNESSES)
PAST_SESSIONS = ("claude-code", "codex", "gemini", "qwen", "opencode")
"""Harnesses whose past sessions `signet backfill` reads."""
OWN_MEMORIES = {"claude-code": "claude-memory", "codex": "codex-memory", "openclaw": "openclaw"}
"""Harnesses that note memories by themselves, and the format of `signet import` that reads these."""
GENERIC = "generic"
CONNECTED, DIFFERENT, NOT_CONNECTED = "connected", "connected, by another command", "not connected"
NO_TOOLS = "{title} gets no memory tools: {reason} (docs/guides/mcp.md)."


@click.command()
@click.argument("harness", metavar="[HARNESS]", required=False, type=click.Choice((*NAMES, GENERIC)))
@click.option("--dry-run", is_flag=True, help="Print the change as a diff, and change nothing.")
@click.option("--check", is_flag=True, help="Run what is installed, and show what the agent would get.")
@click.option(
    "--command", "given", metavar="PATH", help="The program to install (default: signet-hook of this signet)."
)
@click.option(
    "--plugin",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Make a plugin to install instead ({', '.join(INSTALL)}); change no settings.",
)
@agent_option
@shared_options
@click.pass_obj
def connect(
    invocation: Invocation,
    harness: str | None,
    dry_run: bool,
    check: bool,
    given: str | None,
    plugin: Path | None,
    agent: str | None,
) -> None:
    """Have a program that runs agents call Signet by itself.

    Adds Signet's hooks and its memory tools to the program's settings, as far as it supports them, and changes nothing
    else in them. Without HARNESS, lists the programs that are on this machine and their state; with --check, checks all
    that are connected.

    HARNESS is claude-code, codex, gemini, cursor, vscode, windsurf, opencode or openclaw; `generic` prints what any
    other program needs.
    """
    chosen = [found for found in HARNESSES if found.name == harness]
    if plugin is not None:
        if harness not in INSTALL or dry_run or check or given:
            raise click.UsageError(f"--plugin goes with one of {', '.join(INSTALL)}, and with --agent and --workspace")
        _make_plugin(invocation, harness, plugin.absolute(), agent)
    elif harness == GENERIC:
        _print_generic(invocation, given, agent)
    elif check:
        _check(invocation, chosen)
    elif chosen:
        connect_one(invocation, chosen[0], given, agent, dry_run=dry_run)
    elif dry_run or given:
        raise click.UsageError(f"name a harness: {', '.join(NAMES)}")
    else:
        _list(invocation)


def connect_one(
    invocation: Invocation, harness: Harness, given: str | None, agent: str | None, *, dry_run: bool = False
) -> None:
    """Connect the harness, and print what was done. Raises ConfigError."""
    command = _command(invocation, given, agent)
    server, reason = _server(command)
    if server is None and not harness.events:
        raise ConfigError(NO_TOOLS.format(title=harness.title, reason=reason).rstrip("."))
    changes = harness.connecting(invocation.environ, command, server)
    if dry_run:
        _print_diff(invocation, harness, changes, [])
        return
    if not harness.is_found(invocation.environ):
        print_message(f"{harness.title} was not found on this machine; its settings are written anyway.")
    for change in changes:
        change.apply()
    needed = [change for change in changes if change.is_needed]
    if invocation.as_json:
        _print_changed(harness, CONNECTED, needed)
    elif needed:
        print_result(f"Connected {harness.title}: {_paths(needed)}.")
    else:
        path = printable(str(harness.settings(invocation.environ).path))
        print_result(f"{harness.title} is connected already ({path}).")
    if needed:
        print_message(harness.after_connect)
        print_message(f"`signet connect {harness.name} --check` shows whether it works.")
        if harness.name in PAST_SESSIONS:
            print_message(f"`signet backfill {harness.name} --dry-run` shows the past sessions that you can bring in.")
        if harness.name in OWN_MEMORIES:
            print_message(f"`signet import --from {OWN_MEMORIES[harness.name]}` stores what it has noted by itself.")
    if server is None:
        print_message(NO_TOOLS.format(title=harness.title, reason=reason))
    for note in harness.notes(invocation.environ):
        print_message(note)
    note_connected(invocation, harness, agent)


@click.command()
@click.argument("harness", metavar="HARNESS", type=click.Choice(NAMES))
@click.option("--dry-run", is_flag=True, help="Print the change as a diff, and change nothing.")
@shared_options
@click.pass_obj
def disconnect(invocation: Invocation, harness: str, dry_run: bool) -> None:
    """Remove Signet from the settings of a program.

    This removes its hooks, its memory tools and its identity files. If nothing else has changed a file since
    `signet connect`, it has its former content again, byte for byte. HARNESS is a name as in `signet connect`.
    """
    chosen = next(found for found in HARNESSES if found.name == harness)
    changes = chosen.disconnecting(invocation.environ)
    if dry_run:
        _print_diff(invocation, chosen, changes, files_with_identity(invocation, chosen))
        return
    needed = [change for change in changes if change.is_needed]
    if not needed and not invocation.as_json:
        print_result(f"{chosen.title} is not connected.")
    for change in reversed(changes):  # the first one made the directory
        if change.is_needed:
            change.apply()
        elif change.file.former() is not None:
            print_message(
                f"Settings from before a former connection are still in {printable(str(change.file.backup))}."
            )
    if invocation.as_json:
        _print_changed(chosen, NOT_CONNECTED, needed)
    elif needed:
        print_result(f"Disconnected {chosen.title}: {_paths(needed)}.")
    forget_connected(invocation, chosen)


def _paths(changes: list[Change]) -> str:
    return ", ".join(printable(str(change.file.path)) for change in changes)


def _print_changed(harness: Harness, state: str, changes: list[Change]) -> None:
    print_json({"harness": harness.name, "state": state, "changed": [str(change.file.path) for change in changes]})


def _print_diff(invocation: Invocation, harness: Harness, changes: list[Change], files: list[Path]) -> None:
    """Print what would change; ``files`` have identity files that would be taken out."""
    if invocation.as_json:
        rows = [{"file": str(change.file.path), "diff": change.diff()} for change in changes if change.is_needed]
        print_json({"harness": harness.name, "changes": rows, "identityFiles": [str(path) for path in files]})
        return
    if not any(change.is_needed for change in changes):
        print_result("Nothing would change.")
    for change in changes:
        click.echo(printable(change.diff()), nl=False)
    for path in files:
        print_result(f"The identity files in {printable(str(path))} would be taken out.")


def _make_plugin(invocation: Invocation, name: str, directory: Path, agent: str | None) -> None:
    """Make the plugin, and print how it is installed. Raises ConfigError."""
    options = ["--agent", agent] if agent else []
    if invocation.workspace_option:
        options += ["--workspace", str(invocation.workspace)]
    write_plugin(directory, plugin_files(name, options))
    if invocation.as_json:
        print_json({"harness": name, "plugin": str(directory)})
    else:
        print_result(f"Made the plugin {printable(str(directory))}.")
    print_message(printable(INSTALL[name].format(directory=shlex.quote(str(directory)))))
    print_message("It runs `signet` (and `signet-hook`, if it has hooks), which must be on the program's PATH.")
    for harness in HARNESSES:
        if harness.name == name and state_of(harness, invocation) in (CONNECTED, DIFFERENT):
            print_message(
                f"{harness.title} is connected by its settings, too: `signet disconnect {name}`, or all runs twice."
            )


def _print_generic(invocation: Invocation, given: str | None, agent: str | None) -> None:
    """Print the entry for a program that is not listed, and how it calls the hooks."""
    command = _command(invocation, given, agent)
    server, reason = _server(command)
    start, words = start_words(command[0]), [*(server or ()), *command[1:]]
    entry = {"mcpServers": {NAME: {"command": words[0], "args": words[1:]}}} if server else None
    if invocation.as_json:
        print_json({"server": entry, "hooks": {name: [*start, name, *command[1:]] for name in HOOKS}})
        return
    if entry is None:
        print_message(NO_TOOLS.format(title="A program", reason=reason))
    else:
        print_result(printable(json.dumps(entry, indent=2, ensure_ascii=False)))
        print_message("Programs that speak MCP read an entry like this one.")
    hook = printable(shlex.join([*start, "session-start", *command[1:]]))
    print_message(f"Any program may call a hook as a command, for example {hook}")


def _server(command: list[str]) -> tuple[list[str] | None, str]:
    """Return the command of the MCP server beside this hook program; None and the reason if there is none."""
    program = os.path.join(os.path.dirname(command[0]), NAME)
    if not os.access(program, os.X_OK) or os.path.isdir(program):
        return None, f"{program} is not there"
    return [program, "mcp"], ""


def _command(invocation: Invocation, given: str | None, agent: str | None, *, must_exist: bool = True) -> list[str]:
    """Return the hook program, with the options that its environment may lack. Raises ConfigError."""
    program = os.path.abspath(given) if given else _installed_program(invocation)
    if must_exist and (not os.access(program, os.X_OK) or os.path.isdir(program)):
        raise ConfigError(f"{program} is not a program; install Signet, or name it with --command")
    if must_exist and os.path.basename(program) != PROGRAM:
        raise ConfigError(f"{program} is not named {PROGRAM}, by which `signet disconnect` finds its entries")
    try:
        "".join(start_words(program)).encode()
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


def state_of(harness: Harness, invocation: Invocation) -> str:
    """Return whether the harness is connected, in words, or why that cannot be told."""
    try:
        command = _command(invocation, None, None, must_exist=False)
        changes = harness.connecting(invocation.environ, command, _server(command)[0])
        if not harness.is_connected(invocation.environ):
            return NOT_CONNECTED
    except ConfigError as error:
        return error.detail
    return DIFFERENT if any(change.is_needed for change in changes) else CONNECTED


def _list(invocation: Invocation) -> None:
    rows = [
        (
            found.name,
            "yes" if found.is_found(invocation.environ) else "no",
            state_of(found, invocation),
            str(found.settings(invocation.environ).path),
        )
        for found in HARNESSES
    ]
    if invocation.as_json:
        names = ("harness", "found", "state", "file")
        print_json({"harnesses": [dict(zip(names, row, strict=True)) for row in rows]})
        return
    print_table(
        ("harness", "found", Column("state", wrap=True), Column("file", drop=1, wrap=True)),
        [(*row, below_home(path, invocation.environ)) for *row, path in rows],
    )
    for found in HARNESSES:
        try:
            notes = found.notes(invocation.environ)
        except ConfigError:  # it is in the table
            continue
        notes += unread_files(invocation.workspace, found, invocation.environ)
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
        chosen = [found for found in HARNESSES if state_of(found, invocation) in (CONNECTED, DIFFERENT)]
        if not chosen:
            raise ConfigError(f"nothing is connected; connect one of {', '.join(NAMES)} first")
    checks = [check_harness(invocation, harness) for harness in chosen]
    if invocation.as_json:
        print_json({"harnesses": [check.as_json for check in checks]})
    click.get_current_context().exit(max(check.exit_code for check in checks))
