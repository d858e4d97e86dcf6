"""When the write-ahead log is folded back into the database, as a pure rule and the call that does it.

Only the writer's connection checkpoints, after a batch. Nothing below ``PASSIVE_FRAMES`` new pages; PASSIVE above,
which waits for nobody; RESTART beyond ``RESTART_BYTES``, waiting ``RESTART_BUSY_MS`` for readers, and when they were
in the way not again for ``RESTART_PAUSE_MS``. Beyond ``END_SNAPSHOTS_BYTES`` the readers are asked to end their
snapshots first, and beyond ``KILL_READERS_BYTES`` those that did not are killed: that bounds the log, and no commit
ever waits for longer than ``RESTART_BUSY_MS``.

Source: reliability.md R14 and appendix B.
Departs: readers are killed from 48 MB on, not at 64, so that the log is still below 64 when they are gone.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import apsw

from signet_actors.runtime.sync_points import sync_point

PAGE_BYTES = 4096
PASSIVE_FRAMES = 1000
RESTART_BYTES = 8 << 20
RESTART_BUSY_MS = 250
RESTART_PAUSE_MS = 1000
END_SNAPSHOTS_BYTES = 32 << 20
KILL_READERS_BYTES = 48 << 20
URGENT_PAUSE_MS = 250


class Pressure(Enum):
    """What readers are told before the log is folded back."""

    NONE = "none"
    END_SNAPSHOTS = "end snapshots"
    KILL_READERS = "kill readers"


class Plan(NamedTuple):
    """``mode``: passive or restart; ``busy_ms``: how long to wait for readers; ``pause_ms``: when they were in the way
    all the same, how long not to try again."""

    mode: str
    busy_ms: int
    pause_ms: int = 0
    pressure: Pressure = Pressure.NONE


def wanted(frames: int, *, tried: int, paused: bool) -> Plan | None:
    """What to do about a log of ``frames`` pages that had ``tried`` pages at the last attempt.

    ``paused`` while readers were in the way a moment ago.
    """
    size = frames * PAGE_BYTES
    if size > RESTART_BYTES and not paused:
        if size > KILL_READERS_BYTES:
            return Plan("restart", RESTART_BUSY_MS, URGENT_PAUSE_MS, Pressure.KILL_READERS)
        if size > END_SNAPSHOTS_BYTES:
            return Plan("restart", RESTART_BUSY_MS, URGENT_PAUSE_MS, Pressure.END_SNAPSHOTS)
        return Plan("restart", RESTART_BUSY_MS, RESTART_PAUSE_MS)
    return Plan("passive", 0) if frames - tried > PASSIVE_FRAMES else None


def checkpoint(connection: apsw.Connection, mode: str) -> tuple[int, int]:
    """``(frames in the log, frames folded back)`` after a checkpoint; readers in the way are not an error."""
    sync_point("writer.before_checkpoint")
    modes = {
        "passive": apsw.SQLITE_CHECKPOINT_PASSIVE,
        "restart": apsw.SQLITE_CHECKPOINT_RESTART,
        "truncate": apsw.SQLITE_CHECKPOINT_TRUNCATE,
    }
    try:
        if mode != "passive":
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            sync_point("writer.mid_checkpoint")
        return connection.wal_checkpoint(mode=modes[mode])
    except apsw.BusyError:
        return (-1, -1)
