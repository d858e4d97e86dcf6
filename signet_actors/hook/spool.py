"""Requests that must not be lost, as files in the workspace until the daemon has them.

A request is written before it is sent, so it survives that this program is killed, and removed when the daemon has
answered. It carries an ``idempotencyKey``: sent twice, it acts once. What a session has said so far replaces what waits
of the same session. The spool has a bound, and what it has accepted it never drops. A request that the daemon cannot
accept is kept as ``NAME.rejected`` for a week, the newest up to the bound; one that it does not want leaves no file. A
name begins with the time at which the request is sent next, so one that fails makes room for those behind it.

While the request that switches memory off for a session waits, nothing more of that session is accepted. What was
accepted before is removed if the user has typed the mark; if only the transcript shows it, the daemon decides.

Source: docs/guides/claude-code.md "While the daemon is away"; docs/decisions.md 3, 28.
"""

from __future__ import annotations

import json
import os
import time

from signet_actors.hook.daemon import PROMPT, open_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

DIRECTORY = ("memory", "spool")
"""Below the workspace, beside the database: not in ``.daemon``, which holds only what can be recreated."""
MAX_ENTRIES = 256
MAX_BYTES = 64 << 20
MAX_ENTRY_BYTES = 4 << 20
"""Room for the longest request that the daemon reads, with the transcript of a session."""
MOST_UNANSWERED = 3
"""After so many requests in a row without an answer the daemon seems to be away."""
MOST_TRIES = 12
"""A request that fails so often is set aside. The pause doubles after each try, so this takes a day and a half."""
FIRST_PAUSE_S = 60
FINAL_REFUSALS = (400, 409, 413, 422)
"""Statuses by which the daemon says that it will never accept this request."""
FAILURES = (0, 500)
"""No answer, or an error that may lie in the request: a try counts. Other refusals tell the daemon's state."""
KEPT_S = 7 * 86_400
"""How long a request that was set aside can be read; it is as the session said it, with its secrets."""
_ENDING = ".json"
_DRAFT_ENDING = ".draft"
REJECTED_ENDING = ".rejected"
_ABANDONED_DRAFT_S = 60
_SWITCH = "off"
"""Begins what in its name tells the switch of a session from other requests."""


class SpoolFull(Exception):
    """The spool holds as much as it may."""


class Spool:
    """The waiting requests of one workspace. Every method raises OSError if the disk fails."""

    def __init__(self, workspace: str) -> None:
        self.directory = os.path.join(workspace, *DIRECTORY)

    def waiting(self) -> list[str]:
        """Return the names of the waiting requests, oldest first; an empty list if there is no spool."""
        return self._names(_ENDING)

    def is_full(self) -> bool:
        """Return whether the next request may not fit, by the number or the size of those that wait."""
        names = self.waiting()
        used = sum(os.lstat(os.path.join(self.directory, name)).st_size for name in names)
        return len(names) >= MAX_ENTRIES or used + MAX_ENTRY_BYTES > MAX_BYTES

    def due(self) -> list[str]:
        """Return the names of the waiting requests that may be sent now."""
        now = time.time_ns()
        longest = (FIRST_PAUSE_S << MOST_TRIES) * 10**9
        return [name for name in self.waiting() if not now < _parsed_name(name)[0] < now + longest]

    def rejected(self) -> list[str]:
        return self._names(REJECTED_ENDING)

    def _names(self, ending: str) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self.directory) if name.endswith(ending))
        except FileNotFoundError:
            return []

    def put(
        self, path: str, body: dict[str, Any], *, destination: str = "", harness: str = "generic", replaces: str = ""
    ) -> str:
        """Store the request and return its name. Raises SpoolFull, and OSError.

        ``replaces``: of what the request is the newest state; what waits with the same value is removed.

        ``destination``: the URL of the daemon that it is for; empty for the daemon of the workspace. A reader never
        finds a part: the file is complete and on disk before it gets its name.
        """
        content = _encoded({"path": path, "destination": destination, "harness": harness, "body": body})
        self._make_directory()
        self._refuse_excess(len(content))
        source = _digest(replaces) if replaces else f"{os.getpid()}"
        name = f"{time.time_ns():020d}-{source}{_ENDING}"
        self._write(name, content, sync=True)
        if replaces:
            for other in self.waiting():
                if other != name and _parsed_name(other)[1] == source:
                    self.remove(other)
        return name

    def _make_directory(self) -> None:
        if not os.path.isdir(self.directory):
            before = os.umask(0o077)  # the mode is for the last directory only
            try:
                os.makedirs(self.directory, mode=0o700, exist_ok=True)
            finally:
                os.umask(before)

    def _write(self, name: str, content: bytes, *, sync: bool) -> None:
        draft = os.path.join(self.directory, f"{name}.{os.getpid()}{_DRAFT_ENDING}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(draft, flags, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                if sync:
                    os.fsync(file.fileno())
            os.rename(draft, os.path.join(self.directory, name))
        except BaseException:
            os.unlink(draft)
            raise

    def switch_off(self, path: str, body: dict[str, Any], *, destination: str, harness: str) -> str:
        """Store the request that switches memory off for its session; return its name.

        With a prompt, nothing else of the session is kept. A transcript may show a mark that no longer counts, so what
        waits stays, and the daemon refuses it if it must.

        It is sent before all that waits, has room however much that is, and is never given up. ``sync`` it if the
        daemon does not confirm it.
        """
        key = body["sessionKey"]
        name = self.switch_of(key) or f"{0:020d}-{_switch_source(key)}{_ENDING}"
        self._make_directory()
        content = _encoded({"path": path, "destination": destination, "harness": harness, "body": body})
        self._write(name, content, sync=False)
        if path.endswith(PROMPT):
            self._forget(key)
        return name

    def sync(self, name: str) -> None:
        """Have a request on the disk, unless the daemon has it already."""
        try:
            descriptor = open_own(os.path.join(self.directory, name))
        except FileNotFoundError:
            return
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def switch_of(self, key: str) -> str | None:
        """Return the name of the waiting request that switches memory off for the session, None if there is none."""
        switches = list(filter(_is_switch, self.waiting()))
        source = _switch_source(key) if switches else ""
        return next((name for name in switches if _parsed_name(name)[1] == source), None)

    def _forget(self, key: str) -> None:
        """Remove all that is kept of the session, also what was set aside, but for its switch."""
        member = _encoded({"sessionKey": key})[1:-1]  # within a text, its quotation marks have a backslash
        for name in os.listdir(self.directory):
            try:
                with os.fdopen(open_own(os.path.join(self.directory, name)), "rb") as file:
                    if not _is_switch(name) and member in file.read():
                        self.remove(name)
            except OSError:  # a directory, a file of another user, or one that another process has removed
                continue

    def remove(self, name: str) -> None:
        """Remove a request that the daemon has. Another process may have done so already."""
        try:
            os.unlink(os.path.join(self.directory, name))
        except FileNotFoundError:
            return

    def set_aside(self, name: str) -> None:
        """Rename a request that the daemon does not accept, so that it is not sent again; forget the oldest such."""
        path = os.path.join(self.directory, name)
        try:
            os.rename(path, path + REJECTED_ENDING)
            used = 0
            for count, rejected in enumerate(reversed(self.rejected())):
                used += os.lstat(os.path.join(self.directory, rejected)).st_size
                if count >= MAX_ENTRIES or (count and used > MAX_BYTES):
                    self.remove(rejected)
        except FileNotFoundError:  # another process may have done so already
            return

    def put_off(self, name: str, *, is_failure: bool) -> None:
        """Send a request later: a minute from now, or longer after each failure. After the last one, set it aside."""
        _, source, tries = _parsed_name(name)
        tries += is_failure
        if tries >= MOST_TRIES:
            self.set_aside(name)
            return
        pause_s = FIRST_PAUSE_S << max(0, tries - 1) if is_failure else FIRST_PAUSE_S
        later = f"{time.time_ns() + pause_s * 10**9:020d}-{source}-{tries}{_ENDING}"
        try:
            os.rename(os.path.join(self.directory, name), os.path.join(self.directory, later))
        except FileNotFoundError:  # another process may have sent it
            return

    def drain(
        self, send: Callable[[str, dict[str, Any], str, str], int], *, most: int, destinations: Collection[str] = ("",)
    ) -> None:
        """Send the due requests for these destinations, at most ``most``: path, body, the harness that
        reported, and destination.

        ``send`` returns the status of the answer, 0 if there was none.
        Stops after some requests without an answer. A request that the daemon does not accept for now is put off, one
        that it will never accept is set aside. Does nothing while another process drains.
        """
        import fcntl  # noqa: PLC0415 - needed only if something waits

        descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._remove_expired()
            self._send_due(send, most, destinations, self._switched_off())
        except BlockingIOError:
            return
        finally:
            os.close(descriptor)

    def _remove_expired(self) -> None:
        """Remove the requests that were set aside a week ago, by the time of the renaming."""
        for name in self.rejected():
            try:
                if time.time() - os.lstat(os.path.join(self.directory, name)).st_ctime > KEPT_S:
                    self.remove(name)
            except OSError:  # a directory, or another process has removed it
                continue

    def _switched_off(self) -> set[tuple[str, str]]:
        """Return the destinations and sessions of the switches that wait.

        What was stored at the same time as that of a prompt is removed.
        """
        sessions: set[tuple[str, str]] = set()
        for name in filter(_is_switch, self.waiting()):
            try:
                entry = self.read(name)
                sessions.add((entry["destination"], str(entry["body"]["sessionKey"])))
                if entry["path"].endswith(PROMPT):
                    self._forget(entry["body"]["sessionKey"])
            except (OSError, ValueError, KeyError, TypeError, RecursionError):
                continue  # it is set aside, or gone
        return sessions

    def _send_due(
        self,
        send: Callable[[str, dict[str, Any], str, str], int],
        most: int,
        destinations: Collection[str],
        switched_off: set[tuple[str, str]],
    ) -> None:
        unanswered = sent = 0
        for name in self.due():
            try:
                entry = self.read(name)
            except FileNotFoundError:
                continue
            except (OSError, ValueError, KeyError, TypeError, RecursionError):
                self.set_aside(name)
                continue
            session = (entry["destination"], str(entry["body"].get("sessionKey")))
            if entry["destination"] not in destinations or (session in switched_off and not _is_switch(name)):
                continue
            if sent == most or unanswered == MOST_UNANSWERED:
                return
            sent += 1
            status = send(entry["path"], entry["body"], entry["harness"], entry["destination"])
            unanswered = 0 if status else unanswered + 1
            if 200 <= status < 300:
                self.remove(name)
                switched_off.discard(session)
            elif status in FINAL_REFUSALS:
                self.set_aside(name)
            else:
                self.put_off(name, is_failure=status in FAILURES and not _is_switch(name))

    def read(self, name: str) -> dict[str, Any]:
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
                if not entry.name.endswith(REJECTED_ENDING):
                    count += 1
                    used += found.st_size
        if count >= MAX_ENTRIES or used + size > MAX_BYTES or size > MAX_ENTRY_BYTES:
            raise SpoolFull


def was_put_off(name: str) -> bool:
    """Return whether a waiting request was sent again at least once, and was not accepted."""
    return name.count("-") > 1


def _encoded(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _switch_source(key: str) -> str:
    return _SWITCH + _digest(key)


def _is_switch(name: str) -> bool:
    return _parsed_name(name)[1].startswith(_SWITCH)


def _digest(text: str) -> str:
    from hashlib import blake2b  # noqa: PLC0415 - takes milliseconds, and is needed only while the daemon is away

    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _parsed_name(name: str) -> tuple[int, str, int]:
    """Return when the request is due (nanoseconds since 1970), what stored it or is replaced, and its failed tries."""
    due, source, tries = (*name.removesuffix(_ENDING).split("-"), "", "")[:3]
    return int(due) if due.isdecimal() else 0, source, int(tries) if tries.isdecimal() else 0
