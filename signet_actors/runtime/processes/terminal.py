"""Standard error as the daemon writes to it: never blocked by it, never failed by it.

A terminal that is stopped, a pipe whose reader is gone or does not read, a closed descriptor: the text is dropped.
``sys.stderr`` is not used, because what its buffer cannot get rid of changes the exit code of the interpreter.
"""

from __future__ import annotations

import contextlib
import os
import select

STANDARD_ERROR = 2
_PIECE_BYTES = 512
"""POSIX promises that a pipe which polls as writable takes so many bytes at once (``_POSIX_PIPE_BUF``)."""


def open_standard_streams() -> None:
    """Open descriptors 0 to 2 on ``/dev/null`` where they are closed, so that no file of ours gets these numbers."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != descriptor:
                os.dup2(null, descriptor)
                os.close(null)


def write_line(text: str, descriptor: int = STANDARD_ERROR) -> bool:
    """Write ``text`` and a line end as far as the reader takes it at once; True if all of it was taken."""
    data = text.encode("utf-8", "backslashreplace") + b"\n"
    with contextlib.suppress(OSError):
        ready = select.poll()
        ready.register(descriptor, select.POLLOUT)
        while data:
            if not any(events & select.POLLOUT for _, events in ready.poll(0)):
                return False
            data = data[os.write(descriptor, data[:_PIECE_BYTES]) :]
        return True
    return False


def say(text: str) -> None:
    """Tell the person at the terminal."""
    write_line(text)
