"""Checkpoints of the write-ahead log: the rule that decides when to run one, and the call.

Only the writer checkpoints, after a batch: PASSIVE (never waits) above ``PASSIVE_FRAMES`` new pages, RESTART above
``RESTART_BYTES``, which waits at most ``RESTART_BUSY_MS`` for readers. Above ``END_SNAPSHOTS_BYTES`` readers must end
their snapshots, above ``KILL_READERS_BYTES`` readers that did not are killed. This bounds the log, and a commit never
waits longer than ``RESTART_BUSY_MS``. More: store/DESIGN.md "The write-ahead log".

Source: docs/reliability.md R14 and "The writer's loop".
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

import apsw

from signet_actors.runtime.sync_points import sync_point
from signet_actors.store.sqlite.errors import quota_as_full_disk

PAGE_BYTES = 4096
PASSIVE_FRAMES = 1000
RESTART_BYTES = 8 << 20
RESTART_BUSY_MS = 250
RESTART_PAUSE_MS = 1000
END_SNAPSHOTS_BYTES = 32 << 20
KILL_READERS_BYTES = 48 << 20
URGENT_PAUSE_MS = 250


class Pressure(IntEnum):
    """What the readers must do before the checkpoint; a higher level is stricter."""

    NONE = 0
    END_SNAPSHOTS = 1
    KILL_READERS = 2


class Plan(NamedTuple):
    """A checkpoint to run: ``mode`` is passive or restart, ``busy_ms`` is how long to wait for readers.

    If readers still block it, do not try again at this pressure for ``pause_ms``.
    """

    mode: str
    busy_ms: int
    pause_ms: int = 0
    pressure: Pressure = Pressure.NONE


def watch_log(connection: apsw.Connection, callback: Callable[[int], None]) -> None:
    """Call ``callback`` with the length of the log in pages after each commit of the connection."""

    def committed(_connection: apsw.Connection, _database: str, frames: int) -> int:
        callback(frames)
        return apsw.SQLITE_OK

    connection.set_wal_hook(committed)


def plan_checkpoint(frames: int, *, tried: int, resting: Pressure | None) -> Plan | None:
    """Return the checkpoint to run on a log of ``frames`` pages that had ``tried`` pages at the last attempt.

    ``resting``: None, or the pressure of an attempt that readers blocked a moment ago. During the pause that follows,
    only a higher pressure makes another attempt.
    """
    size = frames * PAGE_BYTES
    pressure = Pressure((size > END_SNAPSHOTS_BYTES) + (size > KILL_READERS_BYTES))
    if size > RESTART_BYTES and (resting is None or pressure > resting):
        pause_ms = RESTART_PAUSE_MS if pressure is Pressure.NONE else URGENT_PAUSE_MS
        return Plan("restart", RESTART_BUSY_MS, pause_ms, pressure)
    return Plan("passive", 0) if frames - tried > PASSIVE_FRAMES else None


def checkpoint(connection: apsw.Connection, mode: str) -> tuple[int, int]:
    """Run a checkpoint; return ``(frames in the log, frames checkpointed)``, (-1, -1) if readers blocked it."""
    sync_point("writer.before_checkpoint")
    modes = {
        "passive": apsw.SQLITE_CHECKPOINT_PASSIVE,
        "full": apsw.SQLITE_CHECKPOINT_FULL,
        "restart": apsw.SQLITE_CHECKPOINT_RESTART,
        "truncate": apsw.SQLITE_CHECKPOINT_TRUNCATE,
    }
    try:
        with quota_as_full_disk(connection):
            if mode in {"restart", "truncate"}:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
                sync_point("writer.mid_checkpoint")
            return connection.wal_checkpoint(mode=modes[mode])
    except apsw.BusyError:
        return (-1, -1)
