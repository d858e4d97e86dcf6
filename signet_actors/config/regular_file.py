"""Open files at paths where another program may have put a FIFO, a device, a link or a directory.

Opening a FIFO or reading a device can block for ever. These functions never block.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from signet_actors.errors import ConfigError

ADVICE = "; remove it"
"""The advice about anything else at the path of one of the daemon's files. Not for a file that the user names."""


def open_regular(path: Path, flags: int, *, follow: bool = False, advice: str = ADVICE) -> int:
    """Return a descriptor of the regular file at ``path``. With ``follow``, a symbolic link is followed.

    A file that is opened for writing must have one name only, because its other name may be another program's file.
    It is truncated, if ``flags`` say so, only after that check.

    Raises ``ConfigError`` if the path is not such a file, ``OSError`` for any other reason.
    """
    try:
        no_link = 0 if follow else os.O_NOFOLLOW
        descriptor = os.open(path, flags & ~os.O_TRUNC | no_link | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno == errno.ENXIO or _is_not_regular(path):  # ENXIO: a socket, or a FIFO opened for writing
            raise _not_regular_error(path, advice) from None
        raise
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise _not_regular_error(path, advice)
    if found.st_nlink > 1 and flags & (os.O_WRONLY | os.O_RDWR):
        os.close(descriptor)
        raise ConfigError(f"{path} has {found.st_nlink} hard links, so the daemon does not write it{advice}")
    if flags & os.O_TRUNC:
        os.ftruncate(descriptor, 0)
    return descriptor


def read_regular(path: Path, limit: int, *, follow: bool = False, advice: str = ADVICE) -> bytes:
    """Return the content of the regular file at ``path``, at most ``limit`` bytes; ``follow`` as in ``open_regular``.

    Raises ``ConfigError`` if the file is not regular or is longer, ``OSError`` for any other reason.
    """
    with os.fdopen(open_regular(path, os.O_RDONLY, follow=follow, advice=advice), "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ConfigError(f"{path} is larger than {limit} bytes{advice}")
    return data


def refuse_irregular(path: Path) -> None:
    """Raise ConfigError if there is something at ``path`` that is not a regular file."""
    if _is_not_regular(path):
        raise _not_regular_error(path, ADVICE)


def _is_not_regular(path: Path) -> bool:
    try:
        return not stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _not_regular_error(path: Path, advice: str) -> ConfigError:
    kind = "not a regular file"
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return ConfigError(f"{path} is {kind}{advice}")
    for is_kind, name in (
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
    ):
        if is_kind(mode):
            kind = name
    return ConfigError(f"{path} is {kind} but must be a regular file{advice}")
