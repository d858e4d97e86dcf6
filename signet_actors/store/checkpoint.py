"""When the write-ahead log is folded back into the database, as a pure rule and the call that does it.

Only the writer's connection checkpoints, after a batch. Nothing below ``PASSIVE_FRAMES`` new pages; PASSIVE above,
which waits for nobody; RESTART beyond ``RESTART_BYTES``, waiting ``RESTART_BUSY_MS`` for readers, and when they were
in the way not again for ``RESTART_PAUSE_MS``. Beyond ``END_SNAPSHOTS_BYTES`` the readers are asked to end their
snapshots, and beyond ``KILL_READERS_BYTES`` those that did not are killed: that bounds the log, and no commit ever
waits for longer than ``RESTART_BUSY_MS``. The log has entered a new level before a pause of the last one is over: then
that pause is.

Readers are asked twice, with a FULL checkpoint between: those that begin anew before the log is folded back whole
read from the log again, and would be in the way of beginning it anew; those that begin afterwards read the database
alone.

Source: docs/reliability.md R14 and "The writer's loop".
Departs: readers are killed from 48 MB on, not at 64, so that the log is still below 64 when they are gone.
"""

from __future__ import annotations

from enum import IntEnum
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


class Pressure(IntEnum):
    """What readers are told before the log is folded back; the later, the harder."""

    NONE = 0
    END_SNAPSHOTS = 1
    KILL_READERS = 2


class Plan(NamedTuple):
    """``mode``: passive or restart; ``busy_ms``: how long to wait for readers; ``pause_ms``: when they were in the way
    all the same, how long not to try again at this pressure."""

    mode: str
    busy_ms: int
    pause_ms: int = 0
    pressure: Pressure = Pressure.NONE


def plan_checkpoint(frames: int, *, tried: int, resting: Pressure | None) -> Plan | None:
    """What to do about a log of ``frames`` pages that had ``tried`` pages at the last attempt.

    ``resting``: readers were in the way of an attempt at this pressure a moment ago.
    """
    size = frames * PAGE_BYTES
    pressure = Pressure((size > END_SNAPSHOTS_BYTES) + (size > KILL_READERS_BYTES))
    if size > RESTART_BYTES and (resting is None or pressure > resting):
        pause_ms = RESTART_PAUSE_MS if pressure is Pressure.NONE else URGENT_PAUSE_MS
        return Plan("restart", RESTART_BUSY_MS, pause_ms, pressure)
    return Plan("passive", 0) if frames - tried > PASSIVE_FRAMES else None


def checkpoint(connection: apsw.Connection, mode: str) -> tuple[int, int]:
    """``(frames in the log, frames folded back)`` after a checkpoint; readers in the way are not an error."""
    sync_point("writer.before_checkpoint")
    modes = {
        "passive": apsw.SQLITE_CHECKPOINT_PASSIVE,
        "full": apsw.SQLITE_CHECKPOINT_FULL,
        "restart": apsw.SQLITE_CHECKPOINT_RESTART,
        "truncate": apsw.SQLITE_CHECKPOINT_TRUNCATE,
    }
    try:
        if mode in {"restart", "truncate"}:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            sync_point("writer.mid_checkpoint")
        return connection.wal_checkpoint(mode=modes[mode])
    except apsw.BusyError:
        return (-1, -1)
