"""Numbers of a whole database: its live memories, its last one, and its size."""

from __future__ import annotations

from typing import Final

import apsw

_LIVE_MEMORIES: Final = "SELECT count(*) FROM memories WHERE is_deleted = 0"
_LAST_SEQ: Final = "SELECT coalesce(max(seq), 0) FROM memories"


def live_memories(connection: apsw.Connection) -> int:
    """Return the number of memories that are not deleted."""
    return int(connection.execute(_LIVE_MEMORIES).get)


def last_memory_seq(connection: apsw.Connection) -> int:
    """Return the highest ``seq`` of a memory, 0 if there is none."""
    return int(connection.execute(_LAST_SEQ).get)


def database_bytes(connection: apsw.Connection) -> int:
    """Return the size of the database without its log."""
    return int(connection.pragma("page_count")) * int(connection.pragma("page_size"))
