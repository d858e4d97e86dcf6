"""Read the file of a transcript: only below allowed roots, only regular files of limited size, following no link.

The roots are the workspace and the folders in which harnesses keep their sessions. Below a root each directory is
opened by its descriptor, so that no symbolic link is followed, and hidden ones are not entered: the daemon's own
secrets are there. Of the workspace only ``transcripts`` is open, and files beside the identity files, because the notes
of other agents are in it, and what is read becomes the caller's. Every function here blocks.

Source: docs/decisions.md 37; docs/security.md "Transcripts".
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from signet_actors.errors import ErrorCode, SignetError
from signet_actors.runtime.connected_harnesses import read_connected

FOLDER: Final = "transcripts"
"""The directory of the workspace for transcripts of programs that keep none in a folder of their own."""
SUFFIXES: Final = (".jsonl", ".json", ".md", ".txt", ".log")
_FINAL: Final = frozenset({errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ENXIO, errno.ENODEV})
"""Errors that a retry would meet again."""
_READ_BYTES: Final = 1 << 20
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class TranscriptRefused(Exception):
    """The transcript is not read; the text says why, without its path."""


class TranscriptMissing(TranscriptRefused):
    """There is no such file."""


def roots(workspace: Path, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the directories below which transcripts are read; the workspace last, as it may contain others.

    The environment of a service is not that of a shell, so the folders of connected harnesses are among them.
    """
    home = Path(environ.get("HOME") or Path.home())
    codex = Path(environ.get("CODEX_HOME") or home / ".codex")
    qwen = Path(environ.get("QWEN_RUNTIME_DIR") or environ.get("QWEN_HOME") or home / ".qwen")
    return (
        Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "projects",
        codex / "sessions",
        codex / "archived_sessions",
        Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "opencode" / "storage",
        home / ".gemini" / "tmp",
        qwen / "projects",
        qwen / "tmp",
        home / ".cursor" / "projects",
        *(folder for row in read_connected(workspace) for folder in row.session_folders),
        workspace,
    )


def read_transcript_file(
    path: str,
    allowed: tuple[Path, ...],
    max_bytes: int,
    *,
    workspace: Path | None = None,
    whole: bool = True,
    start: int = 0,
) -> bytes:
    """Return the content of the file. Raises TranscriptRefused, and SignetError if a retry may succeed.

    ``workspace``: of this directory only transcripts are read, whichever root leads to it. ``whole``: a longer file is
    refused; else ``max_bytes`` are read from ``start`` on.
    """
    root, parts = _below(path, allowed)
    if workspace is not None and _is_private(os.path.realpath(root), parts, os.path.realpath(workspace)):
        raise TranscriptRefused(f"transcriptPath names a file of the workspace that is not below {FOLDER}")
    try:
        directory = os.open(root, _DIRECTORY & ~os.O_NOFOLLOW)
        try:
            for part in parts[:-1]:
                inner = os.open(part, _DIRECTORY, dir_fd=directory)
                os.close(directory)
                directory = inner
            descriptor = os.open(parts[-1], _FILE, dir_fd=directory)
        finally:
            os.close(directory)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise TranscriptRefused("transcriptPath leads through a symbolic link or a file") from error
        if error.errno in _FINAL:
            refused = TranscriptMissing if error.errno == errno.ENOENT else TranscriptRefused
            raise refused(f"transcriptPath cannot be opened: {error.strerror}") from error
        raise _unread(error) from error
    try:
        return _content(descriptor, max_bytes, whole=whole, start=start)
    except OSError as error:
        raise _unread(error) from error
    finally:
        os.close(descriptor)


def _unread(error: OSError) -> SignetError:
    """Return the failure for an error that a retry may not meet."""
    return SignetError(f"The transcript was not read: {error.strerror}", code=ErrorCode.NOT_APPLIED)


def _content(descriptor: int, max_bytes: int, *, whole: bool, start: int) -> bytes:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise TranscriptRefused("transcriptPath is not a regular file")
    if not whole:
        return os.pread(descriptor, max_bytes, start)
    if found.st_size > max_bytes:
        raise TranscriptRefused(_too_long(found.st_size, max_bytes))
    content = bytearray()
    while block := os.read(descriptor, _READ_BYTES):
        content += block
        if len(content) > max_bytes:
            raise TranscriptRefused(_too_long(len(content), max_bytes))
    return bytes(content)


def _too_long(size: int, max_bytes: int) -> str:
    return f"the transcript has {size} bytes; at most {max_bytes} are read (transcripts.maxFileBytes)"


def _below(path: str, allowed: tuple[Path, ...]) -> tuple[Path, tuple[str, ...]]:
    """Return the allowed root of ``path`` and the names of the path below it. Raises TranscriptRefused."""
    wanted = Path(os.path.expanduser(path) if path.startswith("~/") else path)
    if not wanted.is_absolute() or ".." in wanted.parts or "\0" in path:
        raise TranscriptRefused("transcriptPath must be an absolute path without '..'")
    for root in allowed:
        for form in _forms(root):
            if wanted.is_relative_to(form) and wanted != form:
                return root, _checked(wanted.relative_to(form).parts)
    raise TranscriptRefused("transcriptPath is outside the workspace and the folders of the harnesses")


def _is_private(root: str, parts: tuple[str, ...], workspace: str) -> bool:
    """Return True if the file is one of the workspace, but no transcript. Both directories are named as they are."""
    file = Path(root, *parts)
    if not file.is_relative_to(workspace):
        return False
    if root != workspace and Path(root).is_relative_to(workspace):  # the folder of a harness, named in its variable
        return Path(root).relative_to(workspace).parts[0].casefold() in {"memory", "agents"}
    inner = file.relative_to(workspace).parts
    return inner[0] != FOLDER if len(inner) > 1 else inner[0].casefold().endswith(".md")


def _forms(root: Path) -> Iterator[Path]:
    """Yield the root as it is named and as it is: a caller may know it under both names."""
    yield Path(os.path.abspath(root))
    yield Path(os.path.realpath(root))


def _checked(parts: tuple[str, ...]) -> tuple[str, ...]:
    if any(part.startswith(".") for part in parts):
        raise TranscriptRefused("transcriptPath leads into a hidden directory")
    if not parts[-1].endswith(SUFFIXES):
        raise TranscriptRefused(f"transcriptPath must end with {', '.join(SUFFIXES)}")
    return parts
