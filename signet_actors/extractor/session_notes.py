"""Write a note into the workspace without replacing a file that is there.

Source: architecture.txt "summary_jobs"; docs/decisions.md 28.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from signet_actors.runtime.file_draft import FileDraft
from signet_actors.runtime.fsync import fsync_path

MAX_SAME_NAME: Final = 1_000
_SUFFIX: Final = ".md"


def write_note(directory: Path, name: str, content: bytes) -> str:
    """Write ``content`` under ``name``, or with a number behind it; return the name of the file.

    The file appears complete, can be read by its owner only, and replaces nothing. One that has this content already,
    written by an interrupted attempt, is the result. Raises OSError.
    """
    for number in range(1, MAX_SAME_NAME + 1):
        path = directory / f"{name}{'' if number == 1 else f'-{number}'}{_SUFFIX}"
        if _has(path, content):
            return path.name
        if os.path.lexists(path):
            continue
        with FileDraft(path, f".{path.name}.new") as draft:
            draft.file.write(content)
            draft.sync()
            try:
                os.link(draft.path, path, follow_symlinks=False)
            except FileExistsError:
                continue
        fsync_path(directory)
        return path.name
    raise FileExistsError(f"{MAX_SAME_NAME} files have this name")


def _has(path: Path, content: bytes) -> bool:
    """Return whether the file has this content; a link is never followed."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    with os.fdopen(handle, "rb") as file:
        return file.read(len(content) + 1) == content
