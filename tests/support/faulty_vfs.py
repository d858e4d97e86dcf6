"""A failing disk: the n-th read, write, sync or truncation of a connection fails, once or from then on.

Errors are raised as SQLite's own file layer reports them: no space in a write is ``SQLITE_FULL``, the rest an
``SQLITE_IOERR_*``. The one difference to a real disk is on the safe side: apsw also reports errors that SQLite itself
would ignore (a log that cannot be truncated to its limit).

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
_DEFAULT = apsw.vfs_names()[0]
"""Named, because a faulty disk may be made the default itself."""


class Fault(NamedTuple):
    """The ``nth`` operation of ``kind`` fails with ``error`` (EIO or ENOSPC). With ``stays``, every later one fails
    too.
    """

    kind: str
    nth: int
    error: str = "EIO"
    stays: bool = False


class FaultyVFS(apsw.VFS):
    """The default VFS with at most one armed fault. Counts the operations of each kind while a fault is armed."""

    def __init__(self) -> None:
        self.name = f"faulty-{next(_names)}"
        self.fault: Fault | None = None
        self.seen = dict.fromkeys(KINDS, 0)
        self.fired = 0
        super().__init__(self.name, _DEFAULT)

    def arm(self, fault: Fault | None) -> None:
        """Arm ``fault``, counting operations from now; None disarms."""
        self.fault = fault
        self.seen = dict.fromkeys(KINDS, 0)
        self.fired = 0

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802 - SQLite's names
        return _FaultyFile(self, name, flags)

    def operation(self, kind: str) -> None:
        """Raise if this operation is the one that fails."""
        fault = self.fault
        if fault is None:
            return
        self.seen[kind] += 1
        # A full disk accepts no writes but can still sync. A broken disk can do neither.
        same = kind == fault.kind or (fault.stays and fault.error == "EIO" and kind != "read")
        if not same or not (self.seen[fault.kind] >= fault.nth if fault.stays else self.seen[kind] == fault.nth):
            return
        self.fired += 1
        if kind == "write" and fault.error == "ENOSPC":
            raise apsw.FullError("no space left")
        error: Any = apsw.IOError(f"{kind} failed")
        error.extendedresult = _CODES[kind]
        raise error


class _FaultyFile(apsw.VFSFile):
    def __init__(self, disk: FaultyVFS, name: Any, flags: list[int]) -> None:
        super().__init__(_DEFAULT, name, flags)
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
