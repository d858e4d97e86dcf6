"""The signals that the supervisor handles; it reads each one once, from a pipe, in its own loop.

Signal handlers do nothing: Python would run them between any two instructions of the loop.

Source: docs/reliability.md R19.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

HANDLED_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD})


def has_terminal() -> bool:
    """Return whether the process has a controlling terminal; it has none any more when that was closed."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY))
    except OSError:
        return False
    return True


def unblock_all() -> None:
    """Let every signal through: a process inherits the mask of the one that started it, whatever that blocked."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


@contextlib.contextmanager
def signal_pipe() -> Iterator[int]:
    """Yield the reading end of a pipe that receives the number of each signal as one byte."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    before_fd = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    before = {number: signal.signal(number, lambda *_: None) for number in HANDLED_SIGNALS}
    try:
        yield reader
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before_fd)
        os.close(reader)
        os.close(writer)


def read_pending(reader: int) -> bytes:
    """Return the numbers of the signals since the last call, one byte each; never waits."""
    try:
        return os.read(reader, 256)
    except BlockingIOError:
        return b""


@contextlib.contextmanager
def blocked() -> Iterator[None]:
    """Block these signals; a process started inside inherits the block, and lifts it when it has set its handlers."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
