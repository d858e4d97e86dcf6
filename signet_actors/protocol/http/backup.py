"""Public bodies of the backups. Departs: the reference daemon has no such endpoint; these are ours."""

from __future__ import annotations

import msgspec


class BackupEntry(msgspec.Struct, frozen=True, rename="camel"):
    """A verified backup. ``made_at`` ISO, ``bytes`` of its file."""

    name: str
    made_at: str
    schema_version: int
    bytes: int


class BackupFinding(msgspec.Struct, frozen=True):
    """``kind``: structure, index, content or rows."""

    kind: str
    text: str


class BackupEnd(msgspec.Struct, frozen=True, rename="camel"):
    """How a backup ended. ``findings`` are what its check found wrong with the database."""

    name: str
    success: bool
    message: str
    findings: list[BackupFinding]
    memories: int
    ended_at: str


class BackupReply(msgspec.Struct, frozen=True, rename="camel"):
    """``running`` names the backup in progress, ``phase`` is copying or verifying; ``pages_left`` of ``pages``.

    ``last`` is how the last one of this life of the daemon ended; ``backups`` are on disk, newest first.
    """

    running: str | None
    phase: str | None
    pages: int
    pages_left: int
    last: BackupEnd | None
    backups: list[BackupEntry]
    directory: str
