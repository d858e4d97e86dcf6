"""Steps of a backup, which the writer makes beside its other work."""

from __future__ import annotations

import msgspec

from signet_actors.protocol.message import Message, Request


class BackupProgress(Message, frozen=True, tag="writer.backup_progress"):
    """The progress of the copy ``name``.

    ``state``: copying, copied (complete, not verified), failed (``detail`` says why). ``last_seq`` is the highest
    ``memories.seq`` when the copy was complete: a correct copy has the same.
    """

    name: str
    state: str
    pages: int
    remaining: int
    detail: str | None = None
    last_seq: int = 0


class AdvanceBackup(Request[BackupProgress], frozen=True, tag="writer.advance_backup"):
    """Begin the copy ``name``, or report its progress; one that is not asked for within a minute is cancelled."""

    name: str


class BackupVerification(msgspec.Struct, frozen=True):
    """What the writer's ``--verify`` prints as JSON: whether the copy is a backup now, or why not, and its memories.

    ``detail`` says why the check could not be carried out; there are no findings then.
    """

    ok: bool
    findings: list[tuple[str, str]]
    memories: int
    detail: str | None = None
