"""The command export: write all memories to a file of JSON lines, or to a directory of Markdown.

A file or directory is written under another name, and renamed when it is complete. Anything but a regular file (a
device, a FIFO, a link, a directory) is never replaced, nor are the database and the daemon's files of a workspace.

Source: docs/transfer.md.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import click

from signet_actors.cli.connection import DaemonClient
from signet_actors.cli.invocation import Invocation, command
from signet_actors.cli.presentation import counted, print_bytes, progress_bar, reporting
from signet_actors.config.workspace import Workspace
from signet_actors.errors import SignetError
from signet_actors.runtime.file_draft import FileDraft, fsync_path

PAGE_LINES = 500
STREAM = os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC
"""How a FIFO or a character device is opened."""


@command(agent=True)
@click.argument("file", metavar="FILE|-")
@click.option("--markdown", is_flag=True, help="Write a directory of Markdown, one file a memory, to read and edit.")
@click.option("--scope", metavar="NAME", help="Only memories of this scope (default: all scopes).")
def export(invocation: Invocation, file: str, markdown: bool, scope: str | None) -> None:
    """Write memories to a file of JSON lines, or as Markdown.

    The export contains all memories that the agent may read. Deleted memories and the history are left out; a backup
    contains those.
    """
    client = invocation.client()
    path = Path(file)
    if markdown:
        _export_markdown(invocation, client, path, scope)
        return
    if file == "-" or is_standard_output(path):
        export_lines(client, print_bytes, scope, lambda _: None)
        sys.stdout.flush()
        return
    if is_stream(path):
        with reporting(path, "written", SignetError), open(os.open(path, STREAM), "wb") as out:
            count = export_lines(client, out.write, scope, lambda _: None)
    else:
        refuse_target(path, invocation.workspace)
        count = _export_to_file(client, path, scope)
    invocation.print_done({"exported": count, "file": str(path)}, f"Exported {counted(count, 'memory')} to {path}.")


def _export_markdown(invocation: Invocation, client: DaemonClient, path: Path, scope: str | None) -> None:
    from signet_actors.cli.importers.signet_markdown import MarkdownDirectory  # noqa: PLC0415 - only for Markdown

    refuse_target(path, invocation.workspace, is_directory=True)
    with MarkdownDirectory(path) as directory, progress_bar("exported", None) as advance:

        def write(page: bytes) -> None:
            for text in page.splitlines():
                memory = json.loads(text)
                if "content" in memory:
                    directory.add(memory)

        count = export_lines(client, write, scope, advance)
        directory.finish()
    invocation.print_done({"exported": count, "file": str(path)}, f"Exported {counted(count, 'memory')} to {path}.")


def _export_to_file(client: DaemonClient, path: Path, scope: str | None) -> int:
    """Write the export to a temporary file and rename it to ``path``; raise SignetError if the write fails."""
    with new_output(path) as draft, progress_bar("exported", None) as advance, reporting(path, "written", SignetError):
        count = export_lines(client, draft.file.write, scope, advance)
        draft.sync()
        draft.replace()
        fsync_path(path.parent)
    return count


def export_lines(
    client: DaemonClient, write: Callable[[bytes], object], scope: str | None, advance: Callable[[int], None]
) -> int:
    """Write the header and every memory, page by page; return how many memories there are."""
    count = -1  # do not count the header line
    cursor: str | None = "0"
    while cursor is not None:
        page = client.page("/api/memory/export", after=cursor, limit=PAGE_LINES, scope=scope)
        write(page.raw)
        count += page.raw.count(b"\n")
        advance(count)
        later = page.next_cursor
        if later is not None and not (later.isdecimal() and int(later) > int(cursor)):
            raise page.malformed("the next page is not a later one")
        cursor = page.next_cursor
    return count


_DATABASE_SUFFIXES = ("", "-wal", "-shm", "-journal")
_KINDS = (
    (stat.S_ISLNK, "a symbolic link; give the path of its target"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
)


def refuse_target(path: Path, workspace: Path, *, is_directory: bool = False) -> None:
    """Raise click.UsageError for a path that belongs to a database or a daemon, or for a file that is not regular."""
    try:
        found = path.lstat() if not is_directory and os.path.lexists(path) else None
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
