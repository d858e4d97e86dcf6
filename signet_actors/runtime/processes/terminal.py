"""Standard error as the daemon writes to it: it never blocks and never fails.

Text is dropped when the terminal is stopped, the pipe has no reader or is full, or the descriptor is closed.
``sys.stderr`` is not used, because data left in its buffer changes the interpreter's exit code.
"""

from __future__ import annotations

import contextlib
import os
import select

STANDARD_ERROR = 2
_PIECE_BYTES = 512
"""A pipe that polls as writable accepts this many bytes without blocking (POSIX ``_POSIX_PIPE_BUF``)."""


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
            os.set_inheritable(descriptor, True)  # as standard streams are


def write_line(text: str) -> bool:
    """Write ``text`` and a newline to standard error without blocking; return whether all of it was written."""
    data = text.encode("utf-8", "backslashreplace") + b"\n"
    with contextlib.suppress(OSError):
        ready = select.poll()
        ready.register(STANDARD_ERROR, select.POLLOUT)
        while data:
            if not any(events & select.POLLOUT for _, events in ready.poll(0)):
                return False
            data = data[os.write(STANDARD_ERROR, data[:_PIECE_BYTES]) :]
        return True
    return False
