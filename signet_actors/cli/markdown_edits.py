"""Edits of exported Markdown: a file whose memory the daemon has changes this memory, unless both have changed.

Source: docs/transfer.md "Markdown to read and edit".
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from signet_actors.cli.connection import memory_path
from signet_actors.cli.exit_codes import EXIT_CODES
from signet_actors.cli.importers.signet_markdown import FILE
from signet_actors.cli.markdown_files import MARK, digest, editable, mark_as_imported
from signet_actors.errors import RequestRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    from signet_actors.cli.connection import DaemonClient
    from signet_actors.cli.importers.source import Line

REASON: Final = "edited as Markdown"
_FIXED: Final = ("project", "who", "scope", "visibility", "createdAt")


@dataclass
class MarkdownEdits:
    """The files whose memories the daemon has. ``export`` returns the lines of an export of now."""

    client: DaemonClient
    agent: str | None
    export: Callable[[], bytes]
    changed: int = 0
    unchanged: int = 0
    refusals: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    _taken: list[tuple[Path, str | None, Line, Line]] = field(default_factory=list)

    def take(self, memory: Line) -> bool:
        """Take the file if the daemon has its memory, and return True; else the line is left to the import."""
        path, mark = Path(memory.pop(FILE)), memory.pop(MARK, None)
        stored = self._stored.get(memory.get("id") or "")
        if stored is not None:
            self._taken.append((path, mark, memory, stored))
        return stored is not None

    def apply(self) -> None:
        """Change the memories of the files that were edited."""
        for path, mark, memory, stored in self._taken:
            self._apply(path, mark, memory, stored)

    def _apply(self, path: Path, mark: str | None, memory: Line, stored: Line) -> None:
        self.warnings += [
            f"{path}: `{name}` is left as it is; only the text, type, tags, importance and pinned can be changed"
            for name in _FIXED
            if memory.get(name) != stored.get(name)
        ]
        if digest(memory) == mark or editable(memory) == editable(stored):
            self.unchanged += 1
        elif digest(stored) != mark:
            self._refuse(path, "its memory has changed since the export; nothing was changed")
        else:
            self._change(path, memory, stored)

    def _change(self, path: Path, memory: Line, stored: Line) -> None:
        before = editable(stored)
        edits = {name: value for name, value in editable(memory).items() if value is not None and value != before[name]}
        if not edits:
            self.unchanged += 1
            return
        target = memory_path(stored["id"])
        try:
            version = self.client.get(target, agentId=self.agent).body["version"]
            body = {**edits, "reason": REASON, "if_version": version, "agentId": self.agent}
            self.client.send("PATCH", target, body).confirm("status", "updated", "no_changes")
        except RequestRefused as error:
            if error.code in EXIT_CODES:  # try the whole import again
                raise
            self._refuse(path, error.detail)
            return
        self.changed += 1
        try:
            mark_as_imported(path, memory)
        except OSError as error:
            self.warnings.append(f"{path} cannot be marked as imported ({error.strerror}); export it again to edit it")

    def _refuse(self, path: Path, reason: str) -> None:
        self.refusals.append({"source": str(path), "error": reason})

    @cached_property
    def _stored(self) -> dict[str, Line]:
        """The memories that the agent may read, by their ids."""
        found = (json.loads(line) for line in self.export().splitlines())
        return {memory["id"]: memory for memory in found if "id" in memory}
