"""The command logs: print the daemon's JSON log in readable form, directly from the files, without the daemon."""

from __future__ import annotations

import json
import time
from typing import Any

import click

from signet_actors.cli.invocation import Invocation, command
from signet_actors.cli.presentation import clock_text, in_colour, one_line, print_bytes, print_message
from signet_actors.cli.tables import print_wrapped
from signet_actors.config.workspace import Workspace
from signet_actors.runtime.logging.log_files import (
    LEVEL_NAMES,
    LEVELS,
    LogFilter,
    LogFollower,
    log_entry,
    log_files,
    read_backwards,
)

COLOURS = {"debug": "bright_black", "warn": "yellow", "warning": "yellow", "error": "red", "critical": "red"}
LEADING_FIELDS = ("timestamp", "level", "event", "actor", "incarnation")
POLL_S = 0.2


@command()
@click.option("--follow", "-f", is_flag=True, help="Then print new lines until Ctrl-C.")
@click.option(
    "--lines", "-n", type=click.IntRange(0), default=50, show_default=True, help="Maximum number of matching lines."
)
@click.option("--level", type=click.Choice(LEVEL_NAMES), help="This level and above.")
@click.option("--actor", metavar="NAME", help="Only lines by or about this process (`searcher`: all of them).")
@click.option("--trace", metavar="ID", help="Only lines of the request with this trace id.")
def logs(
    invocation: Invocation, follow: bool, lines: int, level: str | None, actor: str | None, trace: str | None
) -> None:
    """Show the daemon's log, or follow it.

    Works without a daemon. With --json the lines are printed as they are in the file.
    """
    directory = Workspace(invocation.workspace).log_dir
    log_filter = LogFilter(LEVELS[level] if level else 0, actor, trace)
    followed = LogFollower(directory) if follow else None  # first, so that no line is missed in between
    files = log_files(directory)
    if not files and not follow:
        print_message(f"There is no log in {directory} yet.")
        return
    found: list[bytes] = []
    for line in read_backwards(files, followed.offsets() if followed else {}):
        if len(found) >= lines:
            break
        if log_filter.matches(line):
            found.append(line)
    for line in reversed(found):
        _print(line, as_json=invocation.as_json)
    if followed is None:
        if not found and lines:
            print_message(f"No line of the log in {directory} matches.")
        return
    while True:
        for line in followed.new_lines():
            if log_filter.matches(line):
                _print(line, as_json=invocation.as_json)
        time.sleep(POLL_S)


def _print(line: bytes, *, as_json: bool) -> None:
    entry = None if as_json else log_entry(line)
    if entry is None:
        if as_json:
            print_bytes(line + b"\n")
        else:
            click.echo(one_line(line.decode(errors="replace")))
        return
    level = str(entry.get("level", ""))
    colour = in_colour()

    def styled(text: str, **style: Any) -> str:
        return click.style(text, **style) if colour else text

    details = " ".join(
        f"{one_line(name)}={one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))}"
        for name, value in entry.items()
        if name not in LEADING_FIELDS and name != "stack"
    )
    lead = (
        styled(one_line(clock_text(entry.get("timestamp"))), dim=True),
        styled(f"{one_line(level):<8}", fg=COLOURS.get(level)),
        styled(f"{one_line(entry.get('actor')):<12}", fg="cyan"),
    )
    print_wrapped(f"{one_line(entry.get('event'))} {details}", lead=f"{' '.join(lead)} ", indent=4)
    for frame in entry.get("stack") or []:
        print_wrapped(str(frame), lead="    ", indent=6)
