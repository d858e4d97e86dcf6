"""Follow the daemon's log: which processes run, since when, and why others exited.

Source: the events that ``runtime/supervision/supervisor.py`` writes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.support.bus_harness import eventually


@dataclass
class ChildIncarnation:
    """The latest incarnation of a child. ``up_at`` (seconds since the epoch) is None until it is ready."""

    pid: int
    incarnation: int
    up_at: float | None = None


class LogTail:
    """Reads the lines appended since the last call. ``incarnations`` is the latest one of each child by name."""

    def __init__(self, workspace: Path) -> None:
        self.incarnations: dict[str, ChildIncarnation] = {}
        self.lines: list[dict[str, Any]] = []
        self._directory = workspace / ".daemon" / "logs"
        self._read: dict[Path, int] = {}

    def look(self) -> list[dict[str, Any]]:
        """Read and return the new lines, in the order of each file."""
        new = list(self._new_lines())
        for line in new:
            match line:
                case {"event": "spawned", "child": name, "pid": pid, "child_incarnation": incarnation}:
                    self.incarnations[name] = ChildIncarnation(pid, incarnation)
                case {"event": "child_up", "child": name, "timestamp": text}:
                    self.incarnations[name].up_at = seconds(text)
                case {"event": "child_exited", "child": name} if name in self.incarnations:
                    self.incarnations[name].up_at = None
        self.lines += new
        return new

    def forget_incarnations(self) -> None:
        """Forget the incarnations: everything logged so far belongs to another daemon."""
        self.look()
        self.incarnations.clear()

    def replaced(self, dead: dict[str, int], *, within_s: float = 60) -> float:
        """Wait until these children run again as new processes; return when (epoch seconds) the last became ready."""

        def last() -> float | None:
            self.look()
            ups = [
                life.up_at if life.pid != dead[name] else None
                for name, life in self.incarnations.items()
                if name in dead
            ]
            return None if None in ups else max(up for up in ups if up is not None)

        return eventually(last, within_s=within_s, what=f"{sorted(dead)} replaced")  # type: ignore[no-any-return]

    def incarnation(self, name: str, incarnation: int, *, within_s: float = 60) -> ChildIncarnation:
        """Wait until the child is ready in this or a later incarnation, and return its state."""

        def reached() -> ChildIncarnation | None:
            self.look()
            life = self.incarnations.get(name)
            return life if life is not None and life.up_at is not None and life.incarnation >= incarnation else None

        return eventually(reached, within_s=within_s, what=f"{name} in life {incarnation}")  # type: ignore[no-any-return]

    def events(self, event: str, **facts: Any) -> list[dict[str, Any]]:
        self.look()
        return [
            line
            for line in self.lines
            if line.get("event") == event and all(line.get(key) == value for key, value in facts.items())
        ]

    def _new_lines(self) -> Iterator[dict[str, Any]]:
        for path in sorted(self._directory.glob("*.log*")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                whole, newline, _ = file.read().rpartition(b"\n")
            if not newline:
                continue
            self._read[path] = self._read.get(path, 0) + len(whole) + 1
            for line in whole.splitlines():
                try:
                    yield json.loads(line)
                except ValueError:  # cut off because the process exited while writing it
                    continue


def seconds(timestamp: str) -> float:
    """Return a log line's timestamp as seconds since the epoch."""
    return datetime.fromisoformat(timestamp).timestamp()


def wall() -> float:
    """Return the current time, comparable with the log's timestamps."""
    return time.time()
