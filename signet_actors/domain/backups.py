"""Names of backups, and the choice of backups to delete. Pure, because several packages read the same directory.

A file gets such a name only after it was verified. The name contains the time of the copy (UTC, milliseconds) and its
schema version, so the newest backup can be found without opening any file.

Source: docs/reliability.md R17 and R18.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, NamedTuple

SPARE_BYTES: Final = 64 << 20
"""Disk space that a backup must leave free, so that a backup never stops the writes."""

CLOCK_TOLERANCE_MS: Final = 3_600_000

_PATTERN: Final = re.compile(r"memories-(\d{8}T\d{6})(\d{3})Z-schema-(\d{1,6})\.db")


class BackupName(NamedTuple):
    """``made_ms``: wall clock, milliseconds since the epoch."""

    made_ms: int
    schema: int
    name: str

    def is_ahead_of(self, now_ms: int) -> bool:
        """Return whether the time is in the future, more than a small correction of the clock explains."""
        return self.made_ms > now_ms + CLOCK_TOLERANCE_MS


def backup_name(made_ms: int, schema: int) -> str:
    """Return the file name of a backup made at ``made_ms``."""
    seconds, ms = divmod(made_ms, 1000)
    return f"memories-{datetime.fromtimestamp(seconds, UTC):%Y%m%dT%H%M%S}{ms:03d}Z-schema-{schema}.db"


def parse_backup_name(name: str) -> BackupName | None:
    """Return the parts of a backup's name, or None for any other file name."""
    found = _PATTERN.fullmatch(name)
    if found is None:
        return None
    try:
        moment = datetime.strptime(found[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return BackupName(int(moment.timestamp()) * 1000 + int(found[2]), int(found[3]), name)


def newest_first(names: Iterable[str], *, now_ms: int | None = None) -> list[BackupName]:
    """Return the backups among the names, newest first.

    With ``now_ms``, those whose names are in the future come last: the clock was wrong when they were made.
    """
    found = sorted((found for found in map(parse_backup_name, names) if found is not None), reverse=True)
    return found if now_ms is None else sorted(found, key=lambda backup: backup.is_ahead_of(now_ms))


def surplus(names: Iterable[str], keep: int, *, made: str, now_ms: int) -> list[str]:
    """Return the names of the backups beyond the ``keep`` newest. ``made`` always counts as the newest.

    If the clock went back, the backup made just now has the oldest time in its name. Those whose names are in the
    future count as the oldest: else the backups of a spell with a wrong clock would outlive all others.
    """
    others = [found.name for found in newest_first(names, now_ms=now_ms) if found.name != made]
    return others[max(0, keep - 1) :]
