"""The project that a directory belongs to: all directories and worktrees of one git repository are one project.

Agents name the directory in which they run. It is replaced by the main working tree of its repository, so that memories
are found in every subdirectory and in every worktree, in both directions. The files are read without git: ``.git`` of a
worktree names the repository's directory, which names the worktree (gitrepository-layout). ``projects.joined`` gives a
directory another project, and ``projects.only`` says where hooks work. A directory counts by where it really is, not
by how it is spelled; one that is gone still belongs to the repository around it. Any other name of a project is kept.

Source: docs/decisions.md 62.
"""

from __future__ import annotations

import asyncio
import ntpath
import os
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from signet_actors.config.regular_file import read_regular
from signet_actors.config.schema import ProjectsConfig
from signet_actors.errors import ConfigError
from signet_actors.runtime.clock import Clock

T = TypeVar("T")

FRESH_MS: Final = 60_000
"""So long an answer of the file system is used again."""
WAIT_S: Final = 0.5
"""A file system that takes longer is not waited for; the directory then counts as its own project."""
PAUSE_MS: Final = 10_000
"""After that no directory is looked up for so long, so that lookups do not pile up."""
MAX_KNOWN: Final = 1_024
_MAX_FILE_BYTES: Final = 4_096
_MAX_LEVELS: Final = 64
_LONG_PATH: Final = "\\\\?\\"
"""How Windows begins a path that may be long."""


class Place(NamedTuple):
    """What a directory stands for. ``is_chosen``: hooks work there, because ``projects.only`` is empty or has it."""

    project: str
    is_chosen: bool


class Projects:
    """Finds the project of a directory, without holding the event loop. A lookup is remembered for a minute."""

    def __init__(self, clock: Clock, settings: ProjectsConfig | None = None) -> None:
        self._clock = clock
        self._settings = settings or ProjectsConfig()
        self._paused_until_ms = 0
        self._known: OrderedDict[str, tuple[Place, int]] = OrderedDict()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="projects")

    def configure(self, settings: ProjectsConfig) -> None:
        """Use ``settings`` for what is looked up from now on."""
        if settings != self._settings:
            self._settings = settings
            self._known.clear()

    @property
    def only_some(self) -> bool:
        """Whether hooks work in some directories only."""
        return bool(self._settings.only)

    async def project_of(self, name: str) -> str:
        """Return the project of the directory ``name``; any other name as it is, in its one spelling."""
        return (await self.place_of(name)).project

    async def place_of(self, name: str) -> Place:
        """Return the project of the directory ``name``, and whether hooks work there.

        Outside of repositories that is the directory itself, without symbolic links, unless the configuration joins it
        to another one.
        """
        settings = self._settings
        path = spelled(name)
        if not os.path.isabs(path) or "\0" in path:
            return Place(path, not settings.only)
        known = self._known.get(name)
        now_ms = self._clock.monotonic_ns() // 1_000_000
        if known is not None and now_ms < known[1]:
            return known[0]
        place = await self.read(partial(_place, path, settings))
        if place is None:
            return _unread_place(path, settings) if known is None else known[0]
        if settings is not self._settings:  # it was changed meanwhile
            return place
        self._known[name] = (place, now_ms + FRESH_MS)
        self._known.move_to_end(name)
        while len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        return place

    async def to_keep(self, began_in: str | None) -> str | None:
        """Return the project of what is stored in a session that began in the directory.

        None for the home directory and the root of the file system, in which programs run for no project.
        """
        if began_in is None:
            return None
        project = await self.project_of(began_in)
        home = await self.read(partial(_real, spelled("~")))
        return None if project in (home and spelled(home), os.sep) else project

    async def read(self, work: Callable[[], T]) -> T | None:
        """Return what ``work`` reads from the file system; None while that does not answer in time."""
        now_ms = self._clock.monotonic_ns() // 1_000_000
        if now_ms < self._paused_until_ms:
            return None
        try:
            return await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(self._thread, work), WAIT_S)
        except TimeoutError:
            self._paused_until_ms = now_ms + PAUSE_MS
            return None


def spelled(name: str) -> str:
    """Return the name of a project in its one spelling, as far as the file system need not be asked.

    Letters are composed (NFC). ``~`` is the home directory. A path of Windows, which is never one of this machine, has
    a capital drive letter and no needless parts. Slashes at the end of any other name are left out.
    """
    name = unicodedata.normalize("NFC", name)
    if name.startswith("\\\\") or (name[:1].isalpha() and name[1:3] in (":\\", ":/")):
        path = name.removeprefix(_LONG_PATH) if not name.startswith(_LONG_PATH + "UNC") else "\\" + name[7:]
        drive, rest = ntpath.splitdrive(ntpath.normpath(path))
        is_letter = len(drive) == len("C:")
        return drive.upper() + (rest or "\\") if is_letter else drive + rest.rstrip("\\")
    if name == "~" or name.startswith("~/"):
        name = os.path.expanduser(name)
    return ("/" + name.strip("/") if os.path.isabs(name) else name.rstrip("/")) or name


def _place(path: str, settings: ProjectsConfig) -> Place:
    """Return what the directory stands for, by the file system and the settings."""
    in_repository = settings.identity == "repository"
    here = _real(path)
    project = main_working_tree(here) if in_repository else here
    directories = set(map(spelled, (os.path.normpath(path), here, project)))
    joined = _joined(directories, settings, real=True)
    if joined is not None:
        project = _real(joined) if os.path.isabs(joined) else joined
        project = main_working_tree(project) if in_repository and os.path.isabs(project) else project
    project = spelled(project)
    return Place(project, _is_chosen({*directories, project}, settings, real=True))


def _real(path: str) -> str:
    """Return where the directory really is. Its name may be decomposed (NFD) on the disk, as macOS leaves it."""
    try:
        decomposed = unicodedata.normalize("NFD", path)
        return os.path.realpath(path if os.path.lexists(path) or not os.path.lexists(decomposed) else decomposed)
    except (OSError, ValueError):  # ValueError: a character that no file name can have
        return os.path.normpath(path)


def _unread_place(path: str, settings: ProjectsConfig) -> Place:
    """Return the same by the names alone, while the file system does not answer."""
    path = os.path.normpath(path)
    return Place(_joined({path}, settings, real=False) or path, _is_chosen({path}, settings, real=False))


def _joined(directories: Iterable[str], settings: ProjectsConfig, *, real: bool) -> str | None:
    """Return the project that ``projects.joined`` gives one of the directories; the row of the deepest one counts."""
    rows = [
        (len(outer), row.project)
        for row in settings.joined
        for outer in _spellings(row.directory, real=real)
        if any(_is_within(directory, outer) for directory in directories)
    ]
    return os.path.expanduser(max(rows, key=lambda row: row[0])[1]) if rows else None


def _is_chosen(directories: Iterable[str], settings: ProjectsConfig, *, real: bool) -> bool:
    chosen = [outer for named in settings.only for outer in _spellings(named, real=real)]
    return not settings.only or any(_is_within(directory, outer) for directory in directories for outer in chosen)


def _spellings(directory: str, *, real: bool) -> set[str]:
    """Return the directory of the configuration as a path, and with ``real`` also the one without symbolic links."""
    path = os.path.normpath(spelled(directory))
    return {path, spelled(_real(path))} if real else {path}


def _is_within(directory: str, outer: str) -> bool:
    """Return whether ``directory`` is ``outer`` or below it, by the names."""
    path = os.path.normpath(directory)
    return path == outer or path.startswith(outer.rstrip("/") + "/")


def main_working_tree(directory: str) -> str:
    """Return the main working tree of the repository that ``directory`` is in; ``directory`` itself if it is in none.

    The directory need not exist any more. A repository in the home directory or at the root of the file system does not
    count: it holds settings, and every other directory is in it.
    """
    here = Path(directory)
    try:
        home = Path.home()
        excluded = {home, home.resolve(), Path(here.anchor)}
        for place in (here, *here.parents)[:_MAX_LEVELS]:
            if place not in excluded and (place / ".git").exists():
                return os.path.realpath(_main_of(place))
    except (OSError, RuntimeError, ValueError):  # RuntimeError: there is no home directory
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
