"""The signals that the supervisor acts on, each of which it reads once, from a pipe, in its own loop.

Nothing is done in a handler: Python would run it between any two instructions of the loop.

Source: docs/reliability.md R19.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

HANDLED_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD})


@contextlib.contextmanager
def signal_pipe() -> Iterator[int]:
    """The reading end of a pipe into which the number of each signal that arrives is written as one byte."""
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
    """The numbers of the signals that have read_pending since the last reading, one byte each; never waits."""
    try:
        return os.read(reader, 256)
    except BlockingIOError:
        return b""


@contextlib.contextmanager
def blocked() -> Iterator[None]:
    """These signals wait until afterwards; a process that is started inside inherits the block and lifts it itself.

    So none of them is lost on it, and none kills it before it has said what it does about them (``parent.py``).
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
