"""The sessions that hooks have named to this process: their claims, and which are bypassed.

A harness may be connected by two paths, a plugin and the older hooks. The first path that names a session claims it,
and hooks of the other do nothing. Callers without a path neither claim nor conflict. A claim ends with the session
(``end``), or ``CLAIM_MS`` after its last hook. Claims, bypasses, and which path ended a session, are in a file that
outlives the process, with the time of the last hook to the minute. Other sessions are known to this one only. A thread
writes the file, one state at a time and the newest one next, because a sync may take many seconds.

Source: docs/compatibility.md "Hooks and sessions"; docs/decisions.md 34.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from signet_actors.config.regular_file import read_regular
from signet_actors.domain.session_keys import DEFAULT_AGENT
from signet_actors.errors import ConfigError
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.file_draft import replace_file

CLAIM_MS: Final = 4 * 3_600_000
MAX_SESSIONS: Final = 4096
_MAX_FILE_BYTES: Final = 64 << 20
STORED_MS: Final = 60_000
"""The stored time of a session's last hook is not older."""
STORE_WAIT_S: Final = 0.3
"""Longest wait of a hook for its claim to be stored; without it, another path may have the session after a kill."""
SECOND_MS: Final = 1000
"""Programs tell the time of an end in whole seconds."""


@dataclass(slots=True)
class Session:
    """One session. Times are milliseconds since 1970; ``active_ms`` is that of its last hook.

    ``agent_id``: the agent whose hook named it first.

    ``path``: the runtime path that claimed it. ``ended_by``: the path that ended it, empty for one without a path, None
    while it runs. ``notified``: ids of the notifications that it received and that still hold.
    ``stored_ms``: ``active_ms`` as it is in the file. ``followed_ms``: ``active_ms`` when another session went on with
    its work.
    """

    key: str
    first_ms: int
    active_ms: int
    agent_id: str = DEFAULT_AGENT
    path: str | None = None
    bypassed: bool = False
    ended_by: str | None = None
    notified: frozenset[str] = frozenset()
    stored_ms: int = 0
    followed_ms: int = 0

    @property
    def expires_ms(self) -> int:
        """When it is forgotten unless another hook names it."""
        return self.active_ms + CLAIM_MS


class StoredClaim(NamedTuple):
    """What of a session that is bypassed, has a path, or that one has ended, is in the file; see ``Session``."""

    key: str
    first_ms: int
    active_ms: int
    agent_id: str
    path: str | None
    ended_by: str | None
    bypassed: bool = False


Stored = Future[bool]
"""Whether a change is in the file, once that is known."""


class Entry(NamedTuple):
    """The session that a hook entered. ``known``: an earlier hook named it. ``claimed_by``: another path has it.

    ``stored``: None if nothing is to be stored.
    """

    session: Session
    known: bool
    claimed_by: str | None
    stored: Stored | None = None


class Ending(NamedTuple):
    """Whether the end of a session was accepted, else the path that has it or that ended it before."""

    accepted: bool
    claimed_by: str | None = None
    ended_by: str | None = None
    stored: Stored | None = None


class _Unstored(NamedTuple):
    """What the file is to hold next. ``active``: the sessions in it with their last hooks."""

    claims: bytes
    active: list[tuple[Session, int]]
    durable: bool


class SessionTable:
    """The sessions by canonical key, the last used one last. One event loop only. ``file``: where claims are kept."""

    def __init__(self, clock: Clock, *, max_sessions: int = MAX_SESSIONS, file: Path | None = None) -> None:
        self._clock = clock
        self._max_sessions = max_sessions
        self._file = file
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._thread = ThreadPoolExecutor(1, "claims")
        self._lock = threading.Lock()
        self._unstored: _Unstored | None = None
        self._storing: Stored | None = None
        if file is not None:
            # A lost claim is claimed again.
            with contextlib.suppress(OSError, ConfigError, ValueError, RecursionError):
                for claim in msgspec.json.decode(read_regular(file, _MAX_FILE_BYTES), type=list[StoredClaim]):
                    self._sessions[claim.key] = Session(
                        *(claim.key, claim.first_ms, claim.active_ms, claim.agent_id),
                        path=claim.path,
                        bypassed=claim.bypassed,
                        ended_by=claim.ended_by,
                        stored_ms=claim.active_ms,
                    )

    def __len__(self) -> int:
        return len(self._sessions)

    def enter(self, key: str, path: str | None, agent_id: str = DEFAULT_AGENT, *, late: bool = False) -> Entry:
        """Return the session of a hook, and claim it for ``path`` if it is free. A session that had ended goes on.

        A hook that comes ``late`` tells of the past: it neither begins nor claims a session, and no session goes on.
        """
        now_ms = self._clock.wall_ms()
        session = self.find(key, ended=True)
        known = session is not None
        if session is None:
            session = Session(key, now_ms, now_ms, agent_id)
            if not late:
                self._sessions[key] = session
                self._drop_oldest()
        if late:
            return Entry(
                session, known, session.path if path is not None and session.path not in (None, path) else None
            )
        before = (session.path, session.ended_by)
        if session.ended_by is not None:
            session.ended_by = session.path = None
        if path is not None and session.path is None:
            session.path = path
        conflict = session.path if path is not None and session.path != path else None
        if conflict is None:
            session.active_ms = now_ms
        self._sessions.move_to_end(key)
        is_old = session.path is not None and session.active_ms >= session.stored_ms + STORED_MS
        is_stored_now = is_old or before != (session.path, session.ended_by)
        return Entry(session, known, conflict, self._store() if is_stored_now else None)

    def find(self, key: str, *, ended: bool = False) -> Session | None:
        """Return the session, None if it is not known, has expired, or has ended (unless ``ended``)."""
        session = self._sessions.get(key)
        if session is not None and session.expires_ms <= self._clock.wall_ms():
            del self._sessions[key]
            return None
        return None if session is None or (session.ended_by is not None and not ended) else session

    def end(self, key: str, path: str | None, *, ended_ms: int | None = None) -> Ending:
        """End the session and release its claim; a path that did not claim it is refused.

        ``ended_ms``: when it ended. One that had a hook in a later second has gone on since, and keeps its claim.
        """
        session = self.find(key, ended=True)
        if session is not None and ended_ms is not None and session.active_ms >= ended_ms + SECOND_MS:
            return Ending(accepted=True)
        if session is None:
            return Ending(accepted=True)
        if path is not None and session.ended_by is not None:
            return Ending(accepted=False, ended_by=session.ended_by or None)
        if path is not None and session.path not in (None, path):
            return Ending(accepted=False, claimed_by=session.path)
        session.ended_by = path or session.path or ""
        session.path = None
        return Ending(accepted=True, stored=self._store() if session.ended_by else None)

    def renew(self, session: Session) -> Stored | None:
        """Begin the time of the session again."""
        session.active_ms = self._clock.wall_ms()
        return self._store()

    def bypass(self, session: Session, *, bypassed: bool) -> Stored | None:
        """Switch memory off or on for the session, at once. Return whether that is on disk; no writer is needed."""
        session.bypassed = bypassed
        return self._store(durable=True)

    def bypassed(self) -> list[Session]:
        """Return the sessions with a bypass, also those that have expired since an earlier process stored it."""
        return [session for session in self._sessions.values() if session.bypassed]

    def active(self) -> list[Session]:
        """Return the sessions that run, the last used one first."""
        found = (self.find(key) for key in list(self._sessions))
        return [session for session in found if session is not None][::-1]

    def _store(self, *, durable: bool = False) -> Stored | None:
        """Replace the file soon; it survives a kill. One that cannot be written is tried again with the next change."""
        if self._file is None:
            return None
        now_ms = self._clock.wall_ms()
        kept = [
            each
            for each in self._sessions.values()
            if (each.path or each.ended_by or each.bypassed) and each.expires_ms > now_ms
        ]
        claims = [
            StoredClaim(each.key, each.first_ms, each.active_ms, each.agent_id, each.path, each.ended_by, each.bypassed)
            for each in kept
        ]
        active = [(each, each.active_ms) for each in kept]
        with self._lock:
            durable = durable or (self._unstored is not None and self._unstored.durable)
            self._unstored = _Unstored(msgspec.json.encode(claims), active, durable)
            if self._storing is None:
                self._storing = self._thread.submit(self._replace)
            return self._storing

    def _replace(self) -> bool:
        """Write what the file is to hold next. Blocks."""
        with self._lock:
            unstored, self._unstored, self._storing = self._unstored, None, None
        assert self._file is not None
        assert unstored is not None, "the thread writes only what it was given"
        try:
            replace_file(self._file, unstored.claims, durable=unstored.durable)
        except OSError:
            return False
        for session, active_ms in unstored.active:
            session.stored_ms = active_ms
        return True

    def _drop_oldest(self) -> None:
        while len(self._sessions) > self._max_sessions:
            self._sessions.popitem(last=False)


async def on_disk(stored: Stored | None, wait_s: float | None = STORE_WAIT_S) -> bool:
    """Wait for a change to be stored, at most for ``wait_s``; return whether it is."""
    if stored is None:
        return True
    await asyncio.wait({asyncio.wrap_future(stored)}, timeout=wait_s)
    return stored.done() and stored.result()
