"""One session of the past, as ``signet backfill`` sends it to the daemon.

Source: docs/guides/backfill.md.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from signet_actors.domain.timestamps import iso

if TYPE_CHECKING:
    from collections.abc import Callable

Message: TypeAlias = "dict[str, Any]"
"""What one side said: ``role``, ``content`` and, if it is known, ``timestamp`` (ISO)."""


@dataclass(frozen=True)
class PastSession:
    """A session: which one, how long and how old it is, and its messages.

    ``path`` is its file if the daemon can read that itself. ``project`` is the directory that it worked in.
    """

    source: str
    key: str
    size: int
    modified_ms: int
    messages: Callable[[], list[Message]]
    project: str | None = None
    path: Path | None = None

    @property
    def name(self) -> str:
        return f"{self.source} {self.key}"

    @property
    def stamp(self) -> str:
        """What changes when the session goes on."""
        return f"{self.size}:{self.modified_ms}"

    @property
    def modified_at(self) -> str:
        return iso(self.modified_ms)

    def is_below(self, directory: Path) -> bool:
        """Return whether the session worked in the directory or below it."""
        if self.project is None:
            return False
        real = os.path.realpath(self.project)
        return Path(self.project).is_relative_to(directory) or Path(real).is_relative_to(directory)


class Unreadable(Exception):
    """A session, or a file with sessions, that cannot be read; the text names it and says why."""
