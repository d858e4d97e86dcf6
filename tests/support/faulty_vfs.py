"""A disk that fails: the n-th read, write, sync or truncation under a connection fails, once or from then on.

An error is raised as SQLite's own layer for files would report it: no space in a write is ``SQLITE_FULL``, the
rest an ``SQLITE_IOERR_*``. One difference to a real disk is on the safe side: apsw reports also those errors that
SQLite itself would pass over in silence (a log that cannot be cut back to its limit).

Source: docs/reliability.md R3; sqlite.org/testing.html "I/O error testing".
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import apsw

KINDS = ("read", "write", "sync", "truncate")
_CODES = {
    "read": apsw.SQLITE_IOERR_READ,
    "write": apsw.SQLITE_IOERR_WRITE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
}
_names = itertools.count()


class Fault(NamedTuple):
    """The ``nth`` operation of ``kind`` fails with ``error`` (EIO or ENOSPC); ``stays``: every later one too."""

    kind: str
    nth: int
    error: str = "EIO"
    stays: bool = False


class FaultyVFS(apsw.VFS):
    """The default VFS with at most one armed fault; counts the operations of each kind while a fault is armed."""

    def __init__(self) -> None:
        self.name = f"faulty-{next(_names)}"
        self.fault: Fault | None = None
        self.seen = dict.fromkeys(KINDS, 0)
        self.fired = 0
        super().__init__(self.name, "")

    def arm(self, fault: Fault | None) -> None:
        """From now on ``fault`` holds, counted from here; None is a sound disk."""
        self.fault = fault
        self.seen = dict.fromkeys(KINDS, 0)
        self.fired = 0

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802 - SQLite's names
        return _FaultyFile(self, name, flags)

    def operation(self, kind: str) -> None:
        """Raises when this operation is the one that fails."""
        fault = self.fault
        if fault is None:
            return
        self.seen[kind] += 1
        # A disk that stays full takes no write, and still syncs; one that stays broken does neither.
        same = kind == fault.kind or (fault.stays and fault.error == "EIO" and kind != "read")
        if not same or not (self.seen[fault.kind] >= fault.nth if fault.stays else self.seen[kind] == fault.nth):
            return
        self.fired += 1
        if kind == "write" and fault.error == "ENOSPC":
            raise apsw.FullError("no space left")
        error = apsw.IOError(f"{kind} failed")
        error.extendedresult = _CODES[kind]
        raise error


class _FaultyFile(apsw.VFSFile):
    def __init__(self, disk: FaultyVFS, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._disk.operation("read")
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.operation("write")
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._disk.operation("truncate")
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.operation("sync")
        super().xSync(flags)
