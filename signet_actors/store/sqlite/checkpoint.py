"""Copying the write-ahead log into the database; ``writer/wal_checkpointer.py`` decides when."""

from __future__ import annotations

import apsw

from signet_actors.runtime.sync_points import sync_point
from signet_actors.store.sqlite.errors import raise_if_out_of_space

PAGE_BYTES = 4096


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
        if mode in {"restart", "truncate"}:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            sync_point("writer.mid_checkpoint")
        return connection.wal_checkpoint(mode=modes[mode])
    except apsw.BusyError:
        return (-1, -1)
    except apsw.IOError as error:
        raise_if_out_of_space(connection, error)
        raise
