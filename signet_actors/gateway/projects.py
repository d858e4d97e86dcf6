"""The project that a directory belongs to: all directories and worktrees of one git repository are one project.

Agents name the directory in which they run. It is replaced by the main working tree of its repository, so that memories
are found in every subdirectory and in every worktree, in both directions. The files are read without git: ``.git`` of a
worktree names the repository's directory, which names the worktree (gitrepository-layout). Any other name of a project
is kept.

Source: docs/decisions.md 62.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from signet_actors.config.regular_file import read_regular
from signet_actors.errors import ConfigError
from signet_actors.runtime.clock import Clock

FRESH_MS: Final = 60_000
"""So long an answer of the file system is used again."""
WAIT_S: Final = 0.5
"""A file system that takes longer is not waited for; the directory then counts as its own project."""
PAUSE_MS: Final = 10_000
"""After that no directory is looked up for so long, so that lookups do not pile up."""
MAX_KNOWN: Final = 1_024
_MAX_FILE_BYTES: Final = 4_096
_MAX_LEVELS: Final = 64


class Projects:
    """Finds the project of a directory, without holding the event loop. A lookup is remembered for a minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._paused_until_ms = 0
        self._known: OrderedDict[str, tuple[str, int]] = OrderedDict()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="projects")

    async def project_of(self, name: str) -> str:
        """Return the project of the directory ``name``; ``name`` itself if it is no directory of a repository here."""
        if not os.path.isabs(name) or "\0" in name:
            return name
        known = self._known.get(name)
        now_ms = self._clock.monotonic_ns() // 1_000_000
        if known is not None and now_ms < known[1]:
            return known[0]
        if now_ms < self._paused_until_ms:
            return name if known is None else known[0]
        lookup = asyncio.get_running_loop().run_in_executor(self._thread, main_working_tree, name)
        try:
            project = await asyncio.wait_for(lookup, WAIT_S)
        except TimeoutError:
            self._paused_until_ms = now_ms + PAUSE_MS
            return name if known is None else known[0]
        self._known[name] = (project, now_ms + FRESH_MS)
        self._known.move_to_end(name)
        while len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        return project


def main_working_tree(directory: str) -> str:
    """Return the main working tree of the repository that ``directory`` is in; ``directory`` itself if it is in none.

    A repository in the home directory or at the root of the file system does not count: it holds settings, and every
    other directory is in it.
    """
    here = Path(directory)
    try:
        if not here.is_dir():
            return directory
        excluded = {Path.home(), Path(here.anchor)}
        for place in (here, *here.parents)[:_MAX_LEVELS]:
            if place not in excluded and (place / ".git").exists():
                return os.path.realpath(_main_of(place))
    except (OSError, RuntimeError):  # RuntimeError: there is no home directory
        pass
    return directory


def _main_of(tree: Path) -> Path:
    """Return the main working tree of a working tree; ``tree`` itself for a submodule and what cannot be read."""
    git = tree / ".git"
    if git.is_dir():
        return tree
    try:
        return _linked_from(git) or tree
    except (OSError, ConfigError, ValueError):  # ValueError: a NUL in a path
        return tree


def _linked_from(git: Path) -> Path | None:
    """Return the main working tree of the repository that has ``git`` among its worktrees; None for another file.

    A directory cannot join a project by itself: the repository must name it, too.
    """
    own = git.parent / _first_line(git).partition("gitdir: ")[2]
    common = Path(os.path.realpath(own / _first_line(own / "commondir")))
    if Path(os.path.realpath(own)).parent != common / "worktrees":
        return None
    if os.path.realpath(own / _first_line(own / "gitdir")) != os.path.realpath(git):
        return None
    return common.parent if common.name == ".git" else common


def _first_line(path: Path) -> str:
    """Return the first line of a small file. A FIFO is not waited for. Raises OSError and ConfigError."""
    return os.fsdecode(read_regular(path, _MAX_FILE_BYTES, follow=True).split(b"\n")[0].strip())
