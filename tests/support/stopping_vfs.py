"""A disk that accepts no writes after the n-th, as if the process had been killed there."""

from __future__ import annotations

import apsw


class StoppingVFS(apsw.VFS):
    """Permits the first ``left`` writes and syncs, and fails every later one, as if the process had been killed."""

    def __init__(self, left: int) -> None:
        self.left = left
        super().__init__("stopping", "")

    def xOpen(self, name: object, flags: list[int]) -> StoppingFile:  # noqa: N802 - SQLite's name
        return StoppingFile(self, name, flags)

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise apsw.IOError("stopped")


class StoppingFile(apsw.VFSFile):
    def __init__(self, vfs: StoppingVFS, name: object, flags: list[int]) -> None:
        self.vfs = vfs
        super().__init__("", name, flags)  # type: ignore[arg-type]

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self.vfs.spend()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self.vfs.spend()
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self.vfs.spend()
        super().xTruncate(size)
