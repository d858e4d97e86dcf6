"""Named points in the code at which a test can kill, stop, fail or delay this process.

In production the table is empty and a point costs one dictionary lookup. ``SIGNET_SYNC_POINTS`` fills it, for example
``writer.before_commit=kill@3/1;searcher.snapshot_open=sleep:200``; ``_parse`` describes the syntax. If
``SIGNET_SYNC_POINTS_FIRED`` names a file, each firing is first appended to it as a line
``name action pid incarnation``.

Source: docs/reliability.md "Sync points".
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

NAMES = (
    "supervisor.before_spawn",
    "supervisor.after_spawn_before_ready",
    "supervisor.on_child_exit",
    "supervisor.before_restart",
    "supervisor.on_sigterm",
    "supervisor.mid_shutdown",
    "gateway.accepted",
    "gateway.header_read",
    "gateway.body_half",
    "gateway.validated",
    "gateway.sent_to_writer",
    "gateway.sent_to_retention",
    "gateway.reply_received",
    "gateway.before_response",
    "gateway.mid_response",
    "writer.dequeued",
    "writer.after_begin",
    "writer.mid_batch",
    "writer.before_commit",
    "writer.after_commit",
    "writer.after_first_reply",
    "writer.before_checkpoint",
    "writer.mid_checkpoint",
    "writer.mid_migration",
    "writer.mid_backup",
    "searcher.dequeued",
    "searcher.snapshot_open",
    "searcher.fts_done",
    "searcher.vec_done",
    "searcher.before_reply",
    "retention.dequeued",
    "retention.note_deleted",
    "extractor.leased",
    "extractor.prompt_sent",
    "extractor.parsed",
    "extractor.embed_done",
    "extractor.apply_sent",
    "extractor.part_summarized",
    "extractor.classified",
    "extractor.summarized",
    "extractor.note_written",
    "decider.prompt_sent",
    "maintenance.between_steps",
    "maintenance.mid_step",
    "backup.before_rename",
    "restore.copied",
    "restore.before_decision",
    "restore.decided",
    "restore.moved_aside",
    "restore.installed",
    "restore.before_end",
    "fs.note_tmp_written",
    "fs.note_renamed",
    "fs.memory_file_written",
    "fs.memory_file_replaced",
)
"""Every sync point of the code; a test compares.

Departs: ``writer.mid_checkpoint`` lies between copying the pages back and resetting the log, because a checkpoint is
one call of SQLite; the power-loss images test crashes inside it.
"""

_ACTIONS = frozenset({"kill", "stop", "raise", "sleep"})


@dataclass(slots=True)
class _Armed:
    action: str
    argument: str
    hit: int | None  # None = every hit
    incarnation: int | None  # None = every incarnation
    seen: int = 0


def _parse(text: str) -> dict[str, list[_Armed]]:
    """Return the actions by name, from entries ``name=action``, separated by semicolons.

    After the action follow, optionally, ``@`` and the hit on which it fires (default 1; ``@*`` = every hit), and ``/``
    and the incarnation of the child (default all; each counts its own hits). Actions: ``kill`` (SIGKILL), ``stop:MS``
    (SIGSTOP; another process sends SIGCONT), ``raise:ERRNO`` (OSError), ``sleep:MS``. Raises ValueError for an unknown
    name or action, so the process does not start.
    """
    armed: dict[str, list[_Armed]] = {}
    for entry in filter(None, (part.strip() for part in text.split(";"))):
        name, _, spec = entry.partition("=")
        if name not in NAMES:
            raise ValueError(f"unknown sync point {name!r} in {entry!r}; there are: {', '.join(NAMES)}")
        spec, _, incarnation = spec.partition("/")
        spec, _, hit = spec.partition("@")
        action, _, argument = spec.partition(":")
        if action not in _ACTIONS:
            raise ValueError(f"unknown sync point action {action!r} in {entry!r}")
        one = _Armed(
            action, argument, None if hit == "*" else int(hit or "1"), int(incarnation) if incarnation else None
        )
        armed.setdefault(name, []).append(one)
    return armed


_armed: dict[str, list[_Armed]] = _parse(os.environ.get("SIGNET_SYNC_POINTS", ""))
_incarnation = 1
_watcher: Callable[[str], None] | None = None


def arm(text: str) -> None:
    """Replace the table; for tests that run in this process."""
    parsed = _parse(text)
    _armed.clear()
    _armed.update(parsed)


def watch(watcher: Callable[[str], None] | None) -> None:
    """Call ``watcher`` with the name of every point; for a simulation that runs several actors in one process."""
    global _watcher  # noqa: PLW0603 - process-wide, like the table
    _watcher = watcher


def begin_incarnation(incarnation: int) -> None:
    """Set the incarnation of this process, for entries that name one."""
    global _incarnation  # noqa: PLW0603 - a process has one incarnation
    _incarnation = incarnation


def sync_point(name: str) -> None:
    """Do what the table says for ``name``; nothing in production."""
    if _watcher is not None:
        _watcher(name)
    entries = _armed.get(name)
    if entries is not None:
        for entry in entries:
            _hit(name, entry)


def _hit(name: str, entry: _Armed) -> None:
    if entry.incarnation is not None and entry.incarnation != _incarnation:
        return
    entry.seen += 1
    if entry.hit is not None and entry.seen != entry.hit:
        return
    fired_file = os.environ.get("SIGNET_SYNC_POINTS_FIRED")
    if fired_file:
        line = f"{name} {entry.action} {os.getpid()} {_incarnation}\n".encode()
        descriptor = os.open(fired_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)
    if entry.action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif entry.action == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif entry.action == "raise":
        code = getattr(errno, entry.argument or "EIO")
        raise OSError(code, f"sync point {name}")
    else:
        time.sleep(int(entry.argument) / 1000)
