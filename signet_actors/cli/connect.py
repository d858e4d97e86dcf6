"""The commands connect and disconnect: have the programs that run agents call Signet by themselves.

Source: docs/guides/claude-code.md, docs/guides/codex.md, docs/cli.md "Harnesses".
"""

from __future__ import annotations

import json
import os
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import click

from signet_actors.cli.connect_check import check_harness
from signet_actors.cli.harnesses.agent_workspaces import directory_of
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
from signet_actors.cli.harnesses.settings_file import Change
from signet_actors.cli.installed_program import gone_program, installed_program, is_program, other_program
from signet_actors.cli.invocation import HarnessName, Invocation, command
from signet_actors.cli.presentation import (
    below_home,
    counted,
    print_json,
    print_message,
    print_result,
    printable,
    require_confirmation,
)
from signet_actors.cli.tables import Column, print_records
from signet_actors.errors import ConfigError
from signet_actors.hook.harness_events import HOOKS
from signet_actors.hook.spool import Spool
from signet_actors.runtime.connected_harnesses import OPENCLAW, agents_of
from signet_actors.runtime.identity_files import is_directory_name

NAMES = tuple(harness.name for harness in HARNESSES)
PAST_SESSIONS = ("claude-code", "codex", "gemini", "qwen", "opencode")
"""Harnesses whose past sessions `signet backfill` reads."""
OWN_MEMORIES = {"claude-code": "claude-memory", "codex": "codex-memory", "openclaw": "openclaw"}
"""Harnesses that note memories by themselves, and the format of `signet import` that reads these."""
GENERIC = "generic"
CONNECTED, DIFFERENT, NOT_CONNECTED = "connected", "connected, by another command", "not connected"
NO_TOOLS = "no memory tools, because {reason}; install Signet again"


@command(agent=True)
@click.argument("harness", metavar="[HARNESS]", required=False, type=HarnessName((*NAMES, GENERIC)))
@click.option("--dry-run", is_flag=True, help="Print the change as a diff, and change nothing.")
@click.option("--check", is_flag=True, help="Run what is installed, and say whether the agent gets its memories.")
@click.option("--verbose", "-v", is_flag=True, help="With --check: what was run, and what the agent would get.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before the connection of another installation is replaced.")
@click.option(
    "--command", "given", metavar="PATH", help="The program to install (default: signet-hook of this signet)."
)
@click.option(
    "--plugin",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Make a plugin to install instead ({', '.join(INSTALL)}); change no settings.",
)
def connect(
    invocation: Invocation,
    harness: str | None,
    dry_run: bool,
    check: bool,
    verbose: bool,
    yes: bool,
    given: str | None,
    plugin: Path | None,
) -> None:
    """Have a program that runs agents call Signet by itself.

    Adds Signet's hooks and its memory tools to the program's settings, as far as it supports them, and changes nothing
    else in them. Without HARNESS, lists the programs, by what each is found on this machine, and their state; with
    --check, checks all that are connected.

    HARNESS is claude-code, codex, gemini, cursor, vscode, windsurf, opencode or openclaw; `generic` prints what any
    other program needs.
    """
    chosen = [found for found in HARNESSES if found.name == harness]
    if plugin is not None:
        if harness not in INSTALL or dry_run or check or given:
            raise click.UsageError(f"--plugin goes with one of {', '.join(INSTALL)}, and with --agent and --workspace")
        _make_plugin(invocation, harness, plugin.absolute())
    elif harness == GENERIC:
        _print_generic(invocation, given)
    elif check:
        _check(invocation, chosen, verbose=verbose)
    elif chosen and dry_run:
        _print_diff(invocation, chosen[0], _planned(invocation, chosen[0], given)[0], [])
    elif chosen:
        _connect(invocation, chosen[0], given, yes=yes)
    elif dry_run or given:
        raise click.UsageError(f"name a harness: {', '.join(NAMES)}")
    else:
        _list(invocation)


def _connect(invocation: Invocation, harness: Harness, given: str | None, *, yes: bool) -> None:
    changes, problem = connect_harness(invocation, harness, given, yes=yes)
    needed = [change for change in changes if change.is_needed]
    if problem:
        print_message(f"! {harness.title} will read memories but cannot store any: it gets {problem}.")
    if not harness.found_by(invocation.environ):
        print_message(
            f"{harness.title} is not on this machine (no `{harness.program}` on PATH); it is connected anyway."
        )
    told = f"Connected {harness.title}: {_parts(harness, problem)} ({_paths(needed)})"
    if not needed:
        path = below_home(harness.settings(invocation.environ).path)
        told = f"{harness.title} is connected already ({path})"
    invocation.print_done(_changed(harness, CONNECTED, needed), f"✓ {told}")
    if needed:
        print_message(harness.after_connect)
        print_message(f"`signet connect {harness.name} --check` shows whether it works.")
        if harness.name in PAST_SESSIONS:
            print_message(f"`signet backfill {harness.name} --dry-run` shows the past sessions that you can bring in.")
        if harness.name in OWN_MEMORIES:
            print_message(f"`signet import --from {OWN_MEMORIES[harness.name]}` stores what it has noted by itself.")
    for note in (*harness.notes(invocation.environ), *_workspaces(invocation, harness)[1]):
        print_message(printable(note))


def connect_harness(
    invocation: Invocation, harness: Harness, given: str | None, *, yes: bool
) -> tuple[list[Change], str]:
    """Connect the harness; return the changes of its files, and why it has no memory tools, empty if it has.

    Asks before the connection of another installation is replaced, unless the program is ``given``. Raises ConfigError,
    and RequestRefused for the answer no.
    """
    changes, problem = _planned(invocation, harness, given)
    replaced = [] if given or yes else harness.installed_programs(invocation.environ)
    other = other_program(replaced, invocation.environ)
    if other:
        require_confirmation(
            f"{harness.title} is connected by another installation ({other}); replace it?",
            f"{harness.title} is connected as before",
        )
    for change in changes:
        change.apply()
    note_connected(invocation, harness, invocation.agent)
    return changes, problem


def _planned(invocation: Invocation, harness: Harness, given: str | None) -> tuple[list[Change], str]:
    """Return the changes that connect the harness, and why it gets no memory tools. Raises ConfigError."""
    command = _command(invocation, given)
    server, reason = _server(command)
    problem = "" if server is not None else NO_TOOLS.format(reason=reason)
    if problem and not harness.events:
        raise ConfigError(f"{harness.title} gets {problem}")
    return harness.connecting(invocation.environ, command, server, _workspaces(invocation, harness)[0]), problem


def _workspaces(invocation: Invocation, harness: Harness) -> tuple[dict[str, str], list[str]]:
    """Return the workspaces that OpenClaw's agents get, by name, and a sentence for each agent that keeps its own."""
    from signet_actors.config.load import load_config  # noqa: PLC0415 - only for OpenClaw

    if harness.name != OPENCLAW:
        return {}, []
    names = set(agents_of(invocation.workspace))
    with suppress(ConfigError):  # another command tells what is wrong with it
        names |= {agent.name for agent in load_config(invocation.workspace, invocation.settings).config.agents.roster}
    wanted = {name: directory_of(invocation.workspace, name) for name in sorted(names) if is_directory_name(name)}
    left = harness.kept_workspaces(invocation.environ, wanted)
    told = [
        f"OpenClaw's agent {name} keeps its workspace {place}. To have what Signet knows of it, set {wanted[name]}."
        for name, place in left.items()
    ]
    return {name: path for name, path in wanted.items() if name not in left}, told


def _parts(harness: Harness, problem: str) -> str:
    return " and ".join([*(["hooks"] if harness.events else []), *(["memory tools"] if not problem else [])])


@command()
@click.argument("harness", metavar="HARNESS", type=HarnessName(NAMES))
@click.option("--dry-run", is_flag=True, help="Print the change as a diff, and change nothing.")
def disconnect(invocation: Invocation, harness: str, dry_run: bool) -> None:
    """Remove Signet from the settings of a program.

    This removes its hooks, its memory tools and its identity files. If nothing else has changed a file since
    `signet connect`, it has its former content again, byte for byte. HARNESS is a name as in `signet connect`.
    """
    chosen = next(found for found in HARNESSES if found.name == harness)
    if dry_run:
        changes = chosen.disconnecting(invocation.environ)
        _print_diff(invocation, chosen, changes, files_with_identity(invocation, chosen))
        return
    needed = disconnect_harness(invocation, chosen)
    told = f"Disconnected {chosen.title} ({_paths(needed)})" if needed else f"{chosen.title} is not connected"
    invocation.print_done(_changed(chosen, NOT_CONNECTED, needed), f"✓ {told}")


def disconnect_harness(invocation: Invocation, harness: Harness) -> list[Change]:
    """Remove Signet from the files of the harness; return the changes. Raises ConfigError."""
    changes = harness.disconnecting(invocation.environ)
    for change in reversed(changes):  # the first one made the directory
        if change.is_needed:
            change.apply()
        elif change.file.former() is not None:
            print_message(
                f"Settings from before a former connection are still in {printable(str(change.file.backup))}."
            )
    forget_connected(invocation, harness)
    return [change for change in changes if change.is_needed]


def _paths(changes: list[Change]) -> str:
    return ", ".join(below_home(change.file.path) for change in changes)


def _changed(harness: Harness, state: str, changes: list[Change]) -> dict[str, Any]:
    return {"harness": harness.name, "state": state, "changed": [str(change.file.path) for change in changes]}


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


def _make_plugin(invocation: Invocation, name: str, directory: Path) -> None:
    options = ["--agent", invocation.agent] if invocation.agent else []
    if invocation.workspace_option:
        options += ["--workspace", str(invocation.workspace)]
    write_plugin(directory, plugin_files(name, options))
    invocation.print_done({"harness": name, "plugin": str(directory)}, f"Made the plugin {printable(str(directory))}.")
    print_message(printable(INSTALL[name].format(directory=shlex.quote(str(directory)))))
    print_message("It runs `signet` (and `signet-hook`, if it has hooks), which must be on the program's PATH.")
    for harness in HARNESSES:
        if harness.name == name and is_connected(harness, invocation):
            print_message(
                f"{harness.title} is connected by its settings, too: `signet disconnect {name}`, or all runs twice."
            )


def _print_generic(invocation: Invocation, given: str | None) -> None:
    """Print the entry for a program that is not listed, and how it calls the hooks."""
    command = _command(invocation, given)
    server, reason = _server(command)
    start, words = start_words(command[0]), [*(server or ()), *command[1:]]
    entry = {"mcpServers": {NAME: {"command": words[0], "args": words[1:]}}} if server else None
    if invocation.as_json:
        print_json({"server": entry, "hooks": {name: [*start, name, *command[1:]] for name in HOOKS}})
        return
    if entry is None:
        print_message(f"! There are {NO_TOOLS.format(reason=reason)}.")
    else:
        print_result(printable(json.dumps(entry, indent=2, ensure_ascii=False)))
        print_message("Programs that speak MCP read an entry like this one.")
    hook = printable(shlex.join([*start, "session-start", *command[1:]]))
    print_message(f"Any program may call a hook as a command, for example {hook}")


def _server(command: list[str]) -> tuple[list[str] | None, str]:
    """Return the command of the MCP server beside this hook program; None and the reason if there is none."""
    program = os.path.join(os.path.dirname(command[0]), NAME)
    if not is_program(program):
        return None, f"{program} does not exist"
    return [*start_words(program), "mcp"], ""


def _command(invocation: Invocation, given: str | None, *, must_exist: bool = True) -> list[str]:
    """Return the hook program, with the options that its environment may lack. Raises ConfigError."""
    program = os.path.abspath(given) if given else installed_program(PROGRAM, invocation.environ)
    if must_exist and not is_program(program):
        raise ConfigError(f"{program} is not a program; install Signet, or name it with --command")
    if must_exist and os.path.basename(program) != PROGRAM:
        raise ConfigError(f"{program} is not named {PROGRAM}, by which `signet disconnect` finds its entries")
    try:
        "".join(start_words(program)).encode()
    except UnicodeEncodeError:
        raise ConfigError("the path of signet-hook is not UTF-8 text, which settings files need") from None
    options = ["--agent", invocation.agent] if invocation.agent else []
    if invocation.workspace_option or invocation.environ.get("SIGNET_WORKSPACE"):
        options += ["--workspace", str(invocation.workspace)]
    return [program, *options]


class Connection(NamedTuple):
    """Whether a harness is connected, in words.

    ``other``: the program of another installation that it calls; ``gone``: one that does not exist.
    """

    text: str
    other: str = ""
    gone: str = ""


def connection_of(harness: Harness, invocation: Invocation) -> Connection:
    """Return whether and how the harness is connected."""
    try:
        command = _command(invocation, None, must_exist=False)
        changes = harness.connecting(invocation.environ, command, _server(command)[0])
        if not harness.is_connected(invocation.environ):
            return Connection(NOT_CONNECTED)
        programs = harness.installed_programs(invocation.environ)
        if gone := gone_program(programs):
            return Connection(f"connected, but {gone} does not exist", gone=gone)
        if other := other_program(programs, invocation.environ):
            return Connection(f"connected, by another installation ({other})", other=other)
        if missing := harness.missing_events(invocation.environ):
            return Connection(f"connected, but no hook runs at {' and '.join(missing)}")
    except ConfigError as error:
        return Connection(error.detail)
    return Connection(DIFFERENT if any(change.is_needed for change in changes) else CONNECTED)


def is_connected(harness: Harness, invocation: Invocation) -> bool:
    """Return whether the harness has entries of ours; False if a file of it cannot be read."""
    try:
        return harness.is_connected(invocation.environ)
    except ConfigError:
        return False


def _list(invocation: Invocation) -> None:
    environ = invocation.environ
    rows = [
        {
            "harness": found.name,
            "found": found.found_by(environ) or "no",
            "state": connection_of(found, invocation).text,
            "file": str(found.settings(environ).path),
        }
        for found in HARNESSES
    ]
    if invocation.as_json:
        print_json({"harnesses": rows})
        return
    columns = ("harness", "found", Column("state", wrap=True), Column("file", "file", below_home, drop=1, wrap=True))
    print_records(columns, rows)
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
    spool = Spool(str(invocation.workspace))
    try:
        waiting, rejected = len(spool.waiting()), len(spool.rejected())
    except OSError:
        return
    if waiting:
        print_message(f"For the daemon {counted(waiting, 'report waits', 'reports wait')} in {spool.directory}.")
    if rejected:
        what = counted(rejected, "report was", "reports were")
        print_message(f"{what} refused by the daemon: {spool.directory}/*.rejected (deleted 7 days later).")


def _check(invocation: Invocation, chosen: list[Harness], *, verbose: bool) -> None:
    if not chosen:
        chosen = [found for found in HARNESSES if is_connected(found, invocation)]
        if not chosen:
            raise ConfigError(f"nothing is connected; connect one of {', '.join(NAMES)} first")
    checks = [check_harness(invocation, harness, verbose=verbose) for harness in chosen]
    if invocation.as_json:
        print_json({"harnesses": [check.as_json for check in checks]})
    click.get_current_context().exit(max(check.exit_code for check in checks))
