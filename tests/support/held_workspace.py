"""A workspace as a running daemon leaves it for its clients: its address file, and a lock that is held."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PID = 4711


def write_address(workspace: Path, port: int, *, host: str = "127.0.0.1") -> None:
    """Write the address file of a daemon with the pid ``PID``."""
    (workspace / ".daemon").mkdir(exist_ok=True)
    note = {"host": host, "port": port, "pid": PID}
    (workspace / ".daemon" / "address").write_text(json.dumps(note))


@contextmanager
def held_workspace(workspace: Path, port: int) -> Iterator[None]:
    """Hold the lock of the workspace, whose address file names ``port``, for the duration of a block."""
    write_address(workspace, port)
    descriptor = os.open(workspace / ".daemon" / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{PID}\n".encode())
        yield
    finally:
        os.close(descriptor)
