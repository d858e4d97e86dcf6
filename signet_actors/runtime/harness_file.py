"""Put the identity files into a file of another program, and take them out again.

Only a regular file of this user, with one name and in a directory without links, is written, in one step. Before the
first change its content is kept beside it, or a note that there was no file, until the block is taken out.

Source: docs/guides/identity.md "In the files of harnesses".
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from signet_actors.config.regular_file import read_regular
from signet_actors.domain.identity_block import DamagedMarks, block_in, with_block, without_block
from signet_actors.errors import ConfigError
from signet_actors.runtime.file_draft import FileDraft, fsync_path, replace_file

BACKUP_ENDING: Final = ".before-signet"
MISSING_ENDING: Final = ".missing-before-signet"
MAX_BYTES: Final = 4 << 20
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class NotOurs(Exception):
    """The file is not written. The text says why."""


def found_block(path: Path) -> bytes:
    """Return the block in the file, empty if there is none. Raises NotOurs if the file is not one that is written."""
    try:
        return block_in(_content(path) or b"", _former(path))
    except DamagedMarks as error:
        raise NotOurs(str(error)) from None


def put_block(path: Path, block: bytes) -> bool:
    """Give the file this block, or none if it is empty; return whether anything changed. Raises NotOurs."""
    try:
        return _put(path, block) if block else _remove(path)
    except DamagedMarks as error:
        raise NotOurs(str(error)) from None
    except OSError as error:
        raise NotOurs(error.strerror or str(error)) from None


def _put(path: Path, block: bytes) -> bool:
    before, former = _content(path), _former(path)
    after = with_block(before or b"", block, former)
    present = block_in(before or b"", former)
    if present == block:
        return False
    if not present:
        _keep_former(path, before)
    _replace(path, before, after)
    return True


def _remove(path: Path) -> bool:
    before, former = _content(path), _former(path)
    if before is None or not block_in(before, former):
        return False
    after = without_block(before, former)
    note = path.with_name(path.name + MISSING_ENDING)
    if not after.removeprefix(BYTE_ORDER_MARK).strip() and note.exists():
        if _content(path) != before:
            raise NotOurs("it is being changed by another program")
        path.unlink(missing_ok=True)
    else:
        _replace(path, before, after)
    for kept in (note, path.with_name(path.name + BACKUP_ENDING)):
        kept.unlink(missing_ok=True)
    return True


def _content(path: Path) -> bytes | None:
    """Return the content, None if there is no file. Raises NotOurs if it is not a file that is written."""
    directory = path.parent
    try:
        if os.path.realpath(directory) != str(directory):
            raise NotOurs("its directory is reached through a symbolic link")
        status = directory.stat()
        if status.st_uid != os.geteuid():
            raise NotOurs("its directory belongs to another user")
        try:
            found = path.lstat()
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(found.st_mode):
            raise NotOurs("it is a symbolic link")
        if found.st_uid != os.geteuid():
            raise NotOurs("it belongs to another user")
        if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
            raise NotOurs("it has several hard links")
        return read_regular(path, MAX_BYTES, advice="")
    except FileNotFoundError:
        raise NotOurs("its directory is missing") from None
    except OSError as error:
        raise NotOurs(error.strerror or str(error)) from None
    except ConfigError as error:
        raise NotOurs(error.detail) from None


def _former(path: Path) -> bytes | None:
    """Return the content before the first change; None if that is not known."""
    if path.with_name(path.name + MISSING_ENDING).exists():
        return b""
    try:
        return read_regular(path.with_name(path.name + BACKUP_ENDING), MAX_BYTES)
    except (OSError, ConfigError):
        return None


def _keep_former(path: Path, content: bytes | None) -> None:
    note, backup = (path.with_name(path.name + ending) for ending in (MISSING_ENDING, BACKUP_ENDING))
    if content is None:
        replace_file(note, b"")
        return
    replace_file(backup, content)
    backup.chmod(stat.S_IMODE(path.stat().st_mode))
    note.unlink(missing_ok=True)


def _replace(path: Path, before: bytes | None, after: bytes) -> None:
    """Replace the content; its mode stays, and a new file is readable by its owner only. Raises NotOurs, OSError."""
    with FileDraft(path, f".{path.name}.signet-draft") as draft:
        draft.file.write(after)
        draft.copy_mode()
        draft.sync()
        if _content(path) != before:
            raise NotOurs("it is being changed by another program")
        draft.replace()
    fsync_path(path.parent)
