"""The lines of the daemon's log files, read without the daemon: the last ones backwards, new ones as they are written.

The last lines are read backwards from the end of the newest file, so that a large log costs nothing. Following
identifies files by inode, so that no line is lost when a file is renamed or a new one starts.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

LEVELS: Final = {"debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40, "critical": 50}
LEVEL_NAMES: Final = ("debug", "info", "warning", "error")
"""Levels from which lines can be selected."""
BLOCK_BYTES: Final = 64 * 1024


def log_entry(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a line, None for another line, such as the output of a native crash."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


@dataclass(frozen=True)
class LogFilter:
    """Which lines are wanted: of a level and above, about a process or a request, with a text, of a time (ISO)."""

    level: int = 0
    actor: str | None = None
    trace: str | None = None
    text: str | None = None
    since: str | None = None
    until: str | None = None

    def matches(self, line: bytes) -> bool:
        """Return whether the line passes; one that is no JSON does without a condition on a member."""
        if not line.strip():
            return False
        if self.text is not None and self.text.casefold() not in line.decode("utf-8", "replace").casefold():
            return False
        entry = log_entry(line)
        if entry is None:
            return not any((self.actor, self.trace, self.since, self.until))
        if LEVELS.get(str(entry.get("level")), 20) < self.level:
            return False
        moment = str(entry.get("timestamp", ""))
        if (self.since is not None and moment < self.since) or (self.until is not None and moment > self.until):
            return False
        return self._is_about(entry)

    def _is_about(self, entry: Mapping[str, Any]) -> bool:
        traces = entry.get("traces")
        if self.trace is not None and self.trace not in (
            entry.get("trace"),
            *(traces if isinstance(traces, list) else ()),
        ):
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


def size_of(file: Path) -> int:
    """Return the bytes of the file, 0 if it is gone."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def read_backwards(
    files: list[Path], limits: dict[tuple[int, int], int], most_bytes: int = sys.maxsize
) -> Iterator[bytes]:
    """Yield the lines of the files, last first; a file in ``limits`` (by device and inode) only up to that offset.

    At most ``most_bytes`` are read, and the line in which that ends is left out.
    """
    for file in reversed(files):
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            status = os.fstat(descriptor)
            position = limits.get((status.st_dev, status.st_ino), status.st_size)
            rest: list[bytes] = []
            while position > 0:
                if most_bytes <= 0:
                    return
                size = min(BLOCK_BYTES, position)
                position, most_bytes = position - size, most_bytes - size
                first, *whole = os.pread(descriptor, size, position).split(b"\n")
                if whole:
                    rest.append(whole.pop())
                    yield b"".join(reversed(rest))
                    yield from reversed(whole)
                    rest = []
                rest.append(first)
            yield b"".join(reversed(rest))
        finally:
            os.close(descriptor)


class LogFollower:
    """A reader of the new lines in all log files, known by inode: a renamed one continues at its offset.

    It begins with the line that is not finished yet, or after it if it is longer than ``BLOCK_BYTES``.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[tuple[int, int], int] = {}
        self._in_long_line: set[tuple[int, int]] = set()
        for file in log_files(directory):
            with contextlib.suppress(FileNotFoundError):
                status = file.stat()
                key = status.st_dev, status.st_ino
                unfinished = next(read_backwards([file], {key: status.st_size}, BLOCK_BYTES), None)
                self._read[key] = status.st_size - len(unfinished or b"")
                if unfinished is None and status.st_size:
                    self._in_long_line.add(key)

    def offsets(self) -> dict[tuple[int, int], int]:
        return dict(self._read)

    def new_lines(self, most_bytes: int = sys.maxsize) -> Iterator[bytes]:
        """Yield the complete lines that were added since the last call, file by file.

        At most ``most_bytes`` of each file are read; a longer line is left out.
        """
        for file in log_files(self._directory):
            with contextlib.suppress(FileNotFoundError), file.open("rb") as stream:
                status = os.fstat(stream.fileno())
                key = status.st_dev, status.st_ino
                position = self._read.get(key, 0)
                if status.st_size < position:
                    position = 0  # the file was truncated
                stream.seek(position)
                fresh = stream.read(min(most_bytes, status.st_size - position))
                whole = fresh.rfind(b"\n") + 1
                if not whole and len(fresh) == most_bytes:
                    self._read[key] = position + len(fresh)
                    self._in_long_line.add(key)
                    continue
                self._read[key] = position + whole
                lines = fresh[:whole].splitlines()
                if lines and key in self._in_long_line:
                    self._in_long_line.discard(key)
                    del lines[0]
                yield from lines
