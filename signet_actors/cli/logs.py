"""The command logs: print the daemon's JSON log in readable form, directly from the files.

It needs no running daemon. The last lines are read backwards from the end of the newest file, so that a large log
costs nothing. Following identifies files by inode, so that no line is lost when a file is renamed or a new one starts.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from signet_actors.cli.invocation import Invocation, command
from signet_actors.cli.presentation import clock_text, in_colour, json_object, one_line, print_bytes, print_message
from signet_actors.cli.tables import print_wrapped
from signet_actors.config.workspace import Workspace

LEVELS = {"debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40, "critical": 50}
COLOURS = {"debug": "bright_black", "warn": "yellow", "warning": "yellow", "error": "red", "critical": "red"}
LEADING_FIELDS = ("timestamp", "level", "event", "actor", "incarnation")
BLOCK_BYTES = 64 * 1024
POLL_S = 0.2


@command()
@click.option("--follow", "-f", is_flag=True, help="Then print new lines until Ctrl-C.")
@click.option(
    "--lines", "-n", type=click.IntRange(0), default=50, show_default=True, help="Maximum number of matching lines."
)
@click.option("--level", type=click.Choice(["debug", "info", "warning", "error"]), help="This level and above.")
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


@dataclass(frozen=True)
class LogFilter:
    """Which lines the user wants to see."""

    level: int
    actor: str | None
    trace: str | None

    def matches(self, line: bytes) -> bool:
        """Return whether the line passes; one that is no JSON (a native crash) does without an actor and a trace."""
        if not line.strip():
            return False
        entry = json_object(line)
        if entry is None:
            return self.actor is None and self.trace is None
        if LEVELS.get(str(entry.get("level")), 20) < self.level:
            return False
        if self.trace is not None and self.trace not in (entry.get("trace"), *_list(entry.get("traces"))):
            return False
        names = (str(entry.get("actor", "")), str(entry.get("child", "")))  # the supervisor reports how a child ended
        return self.actor is None or any(name == self.actor or name.startswith(f"{self.actor}-") for name in names)


def log_files(directory: Path) -> list[Path]:
    """Return the daemon's log files, oldest change first."""
    dated: list[tuple[float, str, Path]] = []
    for file in directory.glob("daemon-*.log"):
        try:
            status = file.stat()
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            dated.append((status.st_mtime, file.name, file))
    return [file for _, _, file in sorted(dated)]


def read_backwards(files: list[Path], limits: dict[tuple[int, int], int]) -> Iterator[bytes]:
    """Yield the lines of the files, last first; a file in ``limits`` (by device and inode) only up to that offset."""
    for file in reversed(files):
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            status = os.fstat(descriptor)
            position = limits.get((status.st_dev, status.st_ino), status.st_size)
            rest = b""
            while position > 0:
                size = min(BLOCK_BYTES, position)
                position -= size
                block = os.pread(descriptor, size, position) + rest
                rest, *whole = block.split(b"\n")
                yield from reversed(whole)
            yield rest
        finally:
            os.close(descriptor)


class LogFollower:
    """A reader of the new lines in all log files, known by inode: a renamed one continues at its offset."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[tuple[int, int], int] = {}
        for file in log_files(directory):
            status = file.stat()
            key = status.st_dev, status.st_ino
            unfinished = next(read_backwards([file], {key: status.st_size}), b"")
            self._read[key] = status.st_size - len(unfinished)

    def offsets(self) -> dict[tuple[int, int], int]:
        return dict(self._read)

    def new_lines(self) -> Iterator[bytes]:
        """Yield the complete lines that were added since the last call, file by file."""
        for file in log_files(self._directory):
            with contextlib.suppress(FileNotFoundError), file.open("rb") as stream:
                status = os.fstat(stream.fileno())
                key = status.st_dev, status.st_ino
                position = self._read.get(key, 0)
                if status.st_size < position:
                    position = 0  # the file was truncated
                stream.seek(position)
                fresh = stream.read(status.st_size - position)
                whole = fresh.rfind(b"\n") + 1
                self._read[key] = position + whole
                yield from fresh[:whole].splitlines()


def _print(line: bytes, *, as_json: bool) -> None:
    entry = None if as_json else json_object(line)
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


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
