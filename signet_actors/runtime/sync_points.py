"""Named points in the code where a test can make this process die, stop, fail or wait.

In production the table is empty and a point costs one dictionary lookup. ``SIGNET_SYNC_POINTS`` fills it:
``writer.before_commit=kill@3;searcher.snapshot_open=sleep:200`` - the action, then optionally the hit on which
it fires (default 1; ``@*`` fires on every hit).

Actions: ``kill`` (SIGKILL to self), ``stop:MS`` (SIGSTOP to self; somebody else sends SIGCONT), ``raise:ERRNO``
(OSError), ``sleep:MS``.

Source: reliability.md appendix C.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from dataclasses import dataclass


@dataclass(slots=True)
class _Armed:
    action: str
    argument: str
    hit: int | None  # None = every hit
    seen: int = 0


def _parse(text: str) -> dict[str, _Armed]:
    armed: dict[str, _Armed] = {}
    for entry in filter(None, (part.strip() for part in text.split(";"))):
        name, _, spec = entry.partition("=")
        spec, _, hit = spec.partition("@")
        action, _, argument = spec.partition(":")
        if action not in {"kill", "stop", "raise", "sleep"}:
            raise ValueError(f"unknown sync point action {action!r} in {entry!r}")
        armed[name] = _Armed(action, argument, None if hit == "*" else int(hit or "1"))
    return armed


_armed: dict[str, _Armed] = _parse(os.environ.get("SIGNET_SYNC_POINTS", ""))


def arm(text: str) -> None:
    """Replace the table; for tests that run in this process."""
    _armed.clear()
    _armed.update(_parse(text))


def sync_point(name: str) -> None:
    """Do what the table says for ``name``; nothing in production."""
    if not _armed:
        return
    entry = _armed.get(name)
    if entry is None:
        return
    entry.seen += 1
    if entry.hit is not None and entry.seen != entry.hit:
        return
    if entry.action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif entry.action == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif entry.action == "raise":
        code = getattr(errno, entry.argument or "EIO")
        raise OSError(code, f"sync point {name}")
    else:
        time.sleep(int(entry.argument) / 1000)
