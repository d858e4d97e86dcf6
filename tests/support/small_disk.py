"""A small disk for a directory: a tmpfs in a private mount namespace, which disappears with the process at the latest.

Source: docs/reliability.md R4.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_CLONE_NEWNS = 0x00020000
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def small_disk(directory: Path, size: int) -> Iterator[Path]:
    """Make ``directory`` a disk of ``size`` bytes for this thread and the processes that it starts.

    Skips the test if mounting is not permitted.
    """
    if os.geteuid() != 0:
        pytest.skip("a small disk needs the right to mount: run as root")
    here = Path.cwd()
    outside = os.open("/proc/thread-self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            _call("unshare", _CLONE_NEWNS)
            _call("mount", b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
            directory.mkdir(mode=0o700, exist_ok=True)
            _call("mount", b"tmpfs", os.fsencode(directory), b"tmpfs", 0, f"size={size},mode=0700".encode())
        except OSError as error:
            pytest.skip(f"a small disk cannot be mounted here: {error}")
        yield directory
    finally:
        _call("setns", outside, _CLONE_NEWNS)
        os.chdir(here)
        os.close(outside)


def _call(name: str, *arguments: int | bytes | None) -> None:
    call = getattr(_libc, name)
    if name == "mount":
        source, target, kind, flags, data = arguments
        result = call(source, target, kind, ctypes.c_ulong(flags), data)  # type: ignore[arg-type]
    else:
        result = call(*arguments)
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def fill(path: Path) -> None:
    """Fill the disk of ``path`` by writing to ``path``."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        for size in (1 << 20, 1 << 16, 1 << 12):
            try:
                while os.write(descriptor, bytes(size)) == size:
                    pass
            except OSError:
                continue
    finally:
        os.close(descriptor)
