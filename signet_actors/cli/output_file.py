"""Write files to a path that the user chose.

A regular file may be replaced once the new content is complete. Anything else (a device, a FIFO, a link, a directory)
is never replaced, nor are the database and the daemon's files of a workspace.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import click

from signet_actors.config.workspace import Workspace
from signet_actors.runtime.file_draft import FileDraft

if TYPE_CHECKING:
    from pathlib import Path

_DATABASE_SUFFIXES = ("", "-wal", "-shm", "-journal")
_KINDS = (
    (stat.S_ISLNK, "a symbolic link; give the path of its target"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
)


def refuse_target(path: Path, workspace: Path) -> None:
    """Raise click.UsageError for a path that is not a regular file, or that belongs to a database or a daemon."""
    try:
        found = _lstat(path)
        if found is not None and not stat.S_ISREG(found.st_mode):
            kind = next((name for is_kind, name in _KINDS if is_kind(found.st_mode)), "a device")
            raise click.UsageError(f"cannot write {path}: it is {kind}")
        owner = _workspace_containing(path, workspace)
        if owner is None and found is not None and _is_database(found, Workspace(workspace)):
            owner = workspace
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise click.UsageError(f"cannot write {path}: {reason}") from error
    if owner is not None:
        raise click.UsageError(f"cannot write {path}: it belongs to the workspace {owner}; choose another path")


def refuse_inside_workspace(path: Path, workspace: Path) -> None:
    """Raise click.UsageError for a path among a daemon's own files."""
    try:
        owner = _workspace_containing(path, workspace)
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise click.UsageError(f"cannot write {path}: {reason}") from error
    if owner is not None:
        raise click.UsageError(f"cannot write {path}: it belongs to the workspace {owner}; choose another path")


def new_output(path: Path) -> FileDraft:
    """Return a new ``PATH.partial`` for the content of ``path``; raise click.UsageError if it cannot be created."""
    try:
        return FileDraft(path, f"{path.name}.partial")
    except OSError as error:
        raise click.UsageError(f"cannot write {error.filename}: {error.strerror}") from error


def is_stream(path: Path) -> bool:
    """Return whether ``path`` is, or links to, a FIFO or a character device, which can be written to directly."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def is_standard_output(path: Path) -> bool:
    """Return whether ``path`` names this process's standard output, such as ``/dev/stdout``."""
    try:
        return path.is_symlink() and os.path.samestat(path.stat(), os.fstat(1))
    except OSError:
        return False


def _lstat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _workspace_containing(path: Path, workspace: Path) -> Path | None:
    """Return the workspace whose ``memory`` or ``.daemon`` directory contains ``path``; None if there is none."""
    own = Workspace(workspace)
    own_directories = [found for place in (own.memory_dir, own.daemon_dir) if (found := _stat(place)) is not None]
    parent = path.parent.resolve()
    for directory in (parent, *parent.parents):
        found = _stat(directory)
        if found is None:
            continue
        if any(os.path.samestat(found, other) for other in own_directories):
            return workspace
        places = Workspace(directory.parent)
        if directory in (places.memory_dir, places.daemon_dir) and places.lock_file.exists():
            return directory.parent
    return None


def _is_database(found: os.stat_result, workspace: Workspace) -> bool:
    """Return whether ``found`` is a file of the database, possibly under another name (a hard link)."""
    names = (workspace.database.with_name(workspace.database.name + suffix) for suffix in _DATABASE_SUFFIXES)
    return any(other is not None and os.path.samestat(found, other) for other in map(_stat, names))


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
