"""Requests that must not be lost, as files in the workspace until the daemon has them.

A request is written before it is sent, so it survives that this program is killed, and removed when the daemon has
answered. It carries an ``idempotencyKey``: sent twice, it acts once. The spool has a bound, and what it has accepted it
never drops; a request that the daemon will never accept is kept as ``NAME.rejected``, the newest up to the bound.

Source: docs/guides/claude-code.md "While the daemon is away"; docs/decisions.md 3, 28.
"""

from __future__ import annotations

import json
import os
import time

from signet_actors.hook.daemon import open_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

DIRECTORY = ("memory", "spool")
"""Below the workspace, beside the database: not in ``.daemon``, which holds only what can be recreated."""
MAX_ENTRIES = 256
MAX_BYTES = 4 << 20
MAX_ENTRY_BYTES = 1 << 20
"""Room for the longest request that the daemon reads, 1,000,000 bytes, and what is noted with it."""
MOST_FAILURES = 3
"""One request that always fails does not hold up the others; with three, the daemon seems to be away.

A refusal that is not about the daemon's state, such as a token that it does not know, does not count.
"""
FINAL_REFUSALS = (400, 413, 422)
"""Statuses by which the daemon says that it will never accept this request."""
_ENDING = ".json"
_DRAFT_ENDING = ".draft"
_REJECTED_ENDING = ".rejected"
_ABANDONED_DRAFT_S = 60


class SpoolFull(Exception):
    """The spool holds as much as it may."""


class Spool:
    """The waiting requests of one workspace. Every method raises OSError if the disk fails."""

    def __init__(self, workspace: str) -> None:
        self.directory = os.path.join(workspace, *DIRECTORY)

    def waiting(self) -> list[str]:
        """Return the names of the waiting requests, oldest first; an empty list if there is no spool."""
        return self._names(_ENDING)

    def rejected(self) -> list[str]:
        """Return the names of the requests that the daemon will never accept."""
        return self._names(_REJECTED_ENDING)

    def _names(self, ending: str) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self.directory) if name.endswith(ending))
        except FileNotFoundError:
            return []

    def put(self, path: str, body: dict[str, Any], *, destination: str = "", harness: str = "generic") -> str:
        """Store the request and return its name. Raises SpoolFull, and OSError.

        ``destination``: the URL of the daemon that it is for; empty for the daemon of the workspace. A reader never
        finds a part: the file is complete and on disk before it gets its name.
        """
        entry = {"path": path, "destination": destination, "harness": harness, "body": body}
        content = json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogatepass")
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        self._refuse_excess(len(content))
        name = f"{time.time_ns():020d}-{os.getpid()}{_ENDING}"
        draft = os.path.join(self.directory, name + _DRAFT_ENDING)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(draft, flags, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.rename(draft, os.path.join(self.directory, name))
        except BaseException:
            os.unlink(draft)
            raise
        return name

    def remove(self, name: str) -> None:
        """Remove a request that the daemon has. Another process may have done so already."""
        try:
            os.unlink(os.path.join(self.directory, name))
        except FileNotFoundError:
            return

    def set_aside(self, name: str) -> None:
        """Rename a request that the daemon will never accept, so that it is not sent again; forget the oldest such."""
        path = os.path.join(self.directory, name)
        try:
            os.rename(path, path + _REJECTED_ENDING)
            used = 0
            for count, rejected in enumerate(reversed(self.rejected())):
                used += os.lstat(os.path.join(self.directory, rejected)).st_size
                if count >= MAX_ENTRIES or (count and used > MAX_BYTES):
                    self.remove(rejected)
        except FileNotFoundError:  # another process may have done so already
            return

    def drain(self, send: Callable[[str, dict[str, Any], str], int], *, most: int, destination: str = "") -> None:
        """Send the oldest requests for this destination, at most ``most``: path, body, and the harness that reported.

        ``send`` returns the status of the answer, 0 if there was none.
        Stops after some requests that the daemon does not accept for now. One that it will never accept is set aside.
        Does nothing while another process drains.
        """
        import fcntl  # noqa: PLC0415 - needed only if something waits

        descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._send_waiting(send, most, destination)
        except BlockingIOError:
            return
        finally:
            os.close(descriptor)

    def _send_waiting(self, send: Callable[[str, dict[str, Any], str], int], most: int, destination: str) -> None:
        failures = sent = 0
        for name in self.waiting():
            try:
                entry = self._read(name)
            except FileNotFoundError:
                continue
            except (OSError, ValueError, KeyError, TypeError, RecursionError):
                self.set_aside(name)
                continue
            if entry["destination"] != destination:
                continue
            if sent == most:
                return
            sent += 1
            status = send(entry["path"], entry["body"], entry["harness"])
            if 200 <= status < 300:
                self.remove(name)
            elif status in FINAL_REFUSALS:
                self.set_aside(name)
            elif status in (0, 429) or status >= 500:
                failures += 1
                if failures == MOST_FAILURES:
                    return

    def _read(self, name: str) -> dict[str, Any]:
        """Return the entry. Raises ValueError and others if the file has another form."""
        with os.fdopen(open_own(os.path.join(self.directory, name)), "rb") as file:
            entry = json.loads(file.read(MAX_ENTRY_BYTES + 1))
        entry = {"destination": "", "harness": "generic", **entry}  # an older release did not note these
        body = entry["body"]
        if not all(isinstance(entry[key], str) for key in ("path", "destination", "harness")):
            raise ValueError("it is not a text")
        if not entry["path"].startswith("/api/hooks/") or not isinstance(body, dict) or not body.get("idempotencyKey"):
            raise ValueError("it is not a request of a hook")
        return entry

    def _refuse_excess(self, size: int) -> None:
        """Raise SpoolFull if a request of this size does not fit. Drafts of killed processes are removed."""
        count = used = 0
        with os.scandir(self.directory) as entries:
            for entry in entries:
                try:
                    found = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if entry.name.endswith(_DRAFT_ENDING) and time.time() - found.st_mtime > _ABANDONED_DRAFT_S:
                    self.remove(entry.name)
                    continue
                if not entry.name.endswith(_REJECTED_ENDING):
                    count += 1
                    used += found.st_size
        if count >= MAX_ENTRIES or used + size > MAX_BYTES or size > MAX_ENTRY_BYTES:
            raise SpoolFull
