"""When the write-ahead log is folded back into the database, as a pure rule and the call that does it.

Only the writer's connection checkpoints. Policy: nothing below ``PASSIVE_FRAMES``; PASSIVE when the queue is empty;
RESTART, waiting at most ``RESTART_BUSY_MS`` for readers, beyond ``RESTART_BYTES`` whatever the load.

Source: reliability.md R14 and appendix B.
"""

from __future__ import annotations

import apsw

from signet_actors.runtime.sync_points import sync_point

PAGE_BYTES = 4096
PASSIVE_FRAMES = 1000
RESTART_BYTES = 8 << 20
RESTART_BUSY_MS = 250


def wanted(frames: int, *, idle: bool) -> str | None:
    """``passive``, ``restart`` or None for a log of ``frames`` pages."""
    if frames * PAGE_BYTES > RESTART_BYTES:
        return "restart"
    if frames > PASSIVE_FRAMES and idle:
        return "passive"
    return None


def checkpoint(connection: apsw.Connection, mode: str) -> tuple[int, int]:
    """``(frames in the log, frames folded back)`` after a checkpoint; readers in the way are not an error."""
    sync_point("writer.before_checkpoint")
    modes = {
        "passive": apsw.SQLITE_CHECKPOINT_PASSIVE,
        "restart": apsw.SQLITE_CHECKPOINT_RESTART,
        "truncate": apsw.SQLITE_CHECKPOINT_TRUNCATE,
    }
    try:
        return connection.wal_checkpoint(mode=modes[mode])
    except apsw.BusyError:
        return (-1, -1)
