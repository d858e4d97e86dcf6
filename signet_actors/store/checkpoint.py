"""When the write-ahead log is folded back into the database, as a pure rule and the call that does it.

Only the writer's connection checkpoints, after a batch. Nothing below ``PASSIVE_FRAMES`` new pages; PASSIVE above,
which waits for nobody; RESTART beyond ``RESTART_BYTES``, waiting ``RESTART_BUSY_MS`` for readers, and when they were in
the way not again for ``RESTART_PAUSE_MS``; beyond ``LAST_BYTES`` it waits as long as a reader can last, because
snapshots have a deadline: that bounds the log.

Source: reliability.md R14 and appendix B.
Departs: at 32 MB the writer waits the readers out instead of asking them to end their snapshots.
"""

from __future__ import annotations

from typing import NamedTuple

import apsw

from signet_actors.runtime.sync_points import sync_point

PAGE_BYTES = 4096
PASSIVE_FRAMES = 1000
RESTART_BYTES = 8 << 20
RESTART_BUSY_MS = 250
RESTART_PAUSE_MS = 1000
LAST_BYTES = 32 << 20


class Plan(NamedTuple):
    """``mode``: passive or restart; ``busy_ms``: how long to wait for readers."""

    mode: str
    busy_ms: int


def wanted(frames: int, *, folded: int, paused: bool, read_timeout_ms: int) -> Plan | None:
    """What to do about a log of ``frames`` pages, ``folded`` of them already in the database.

    ``paused`` while readers were in the way a moment ago.
    """
    size = frames * PAGE_BYTES
    if size > LAST_BYTES:
        return Plan("restart", 2 * read_timeout_ms + 500)
    if size > RESTART_BYTES and not paused:
        return Plan("restart", RESTART_BUSY_MS)
    return Plan("passive", 0) if frames - folded > PASSIVE_FRAMES else None


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
