"""Names of backups, and which of them are kept: pure, because several rooms read the same directory.

A file that bears such a name has been verified: it is given the name only afterwards. The name says when the copy was
made (UTC, milliseconds) and of which schema it is, so that the newest can be found without opening any.

Source: docs/reliability.md R17 and R18.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, NamedTuple

SPARE_BYTES: Final = 64 << 20
"""Disk that a backup leaves free: a backup must not be what stops the writes."""

_PATTERN: Final = re.compile(r"memories-(\d{8}T\d{6})(\d{3})Z-schema-(\d{1,6})\.db")


class BackupName(NamedTuple):
    """``made_ms``: wall clock, milliseconds since the epoch."""

    made_ms: int
    schema: int
    name: str


def backup_name(made_ms: int, schema: int) -> str:
    """The file name of a backup made at that time."""
    seconds, ms = divmod(made_ms, 1000)
    return f"memories-{datetime.fromtimestamp(seconds, UTC):%Y%m%dT%H%M%S}{ms:03d}Z-schema-{schema}.db"


def parse_backup_name(name: str) -> BackupName | None:
    """What the name says; None for any other file's name."""
    found = _PATTERN.fullmatch(name)
    if found is None:
        return None
    try:
        moment = datetime.strptime(found[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return BackupName(int(moment.timestamp()) * 1000 + int(found[2]), int(found[3]), name)


def newest_first(names: Iterable[str]) -> list[BackupName]:
    """The backups among the names, the newest first."""
    return sorted((found for found in map(parse_backup_name, names) if found is not None), reverse=True)


def surplus(names: Iterable[str], keep: int, *, made: str) -> list[str]:
    """The names of the backups beyond the ``keep`` newest, of which ``made`` is the newest whatever its name says.

    After a clock has gone back, the one that was made just now bears the oldest time of all.
    """
    return [found.name for found in newest_first(names) if found.name != made][max(0, keep - 1) :]
