"""Replace a file: write a new one beside it, sync it, rename it, sync the directory.

A reader, and a start after a crash, finds the former content or the new one, never a part.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Self, cast


class FileDraft:
    """A new file beside ``target``, readable by its owner only, which ``replace`` renames to ``target``.

    It is removed at the end of the block unless it was renamed. A leftover draft is removed too, but only a regular
    file. Every method raises OSError.
    """

    def __init__(self, target: Path, name: str | None = None) -> None:
        self.target = target
        self.path = target.with_name(name or f"{target.name}.new")
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(self.path.lstat().st_mode):
                raise FileExistsError(errno.EEXIST, "it is not a regular file; remove it", str(self.path))
            self.path.unlink()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self.file = cast("BinaryIO", os.fdopen(os.open(self.path, flags, 0o600), "wb"))
        self._renamed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self.file.close()
        if not self._renamed:
            with contextlib.suppress(OSError):
                self.path.unlink()

    def copy_mode(self) -> None:
        """Give the draft the mode and the group of the present ``target``, if there is one."""
        with contextlib.suppress(FileNotFoundError):
            found = self.target.stat()
            os.fchown(self.file.fileno(), -1, found.st_gid)
            os.fchmod(self.file.fileno(), stat.S_IMODE(found.st_mode))

    def sync(self) -> None:
        """Write what was buffered, and flush the content to disk."""
        self.file.flush()
        os.fsync(self.file.fileno())

    def replace(self) -> None:
        """Rename the draft to ``target``. The rename survives a power cut after ``fsync_path`` of the directory."""
        self.file.close()
        self.path.replace(self.target)
        self._renamed = True


def replace_file(target: Path, content: bytes, *, durable: bool = True, keep_mode: bool = False) -> None:
    """Replace the content of ``target``, or create it. Not ``durable``: a power cut may undo the change.

    With ``keep_mode`` the mode and the group stay; otherwise only the owner can read the new file.

    Raises OSError; ``target`` is unchanged then, unless only the last sync of the directory failed.
    """
    with FileDraft(target) as draft:
        draft.file.write(content)
        if keep_mode:
            draft.copy_mode()
        if durable:
            draft.sync()
        draft.replace()
    if durable:
        fsync_path(target.parent)


def fsync_path(path: Path) -> None:
    """Flush the file's content, or a directory's entries, to disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
