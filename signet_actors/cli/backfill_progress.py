"""Which past sessions the daemon has, saved in the user's cache, so that the next backfill sends only what is new.

Source: docs/guides/backfill.md.
"""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec

from signet_actors.cli.import_progress import cache_directory
from signet_actors.cli.presentation import print_message
from signet_actors.config.regular_file import read_regular
from signet_actors.errors import ConfigError, ErrorCode, RequestRefused
from signet_actors.runtime.file_draft import replace_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from signet_actors.cli.connection import DaemonClient
    from signet_actors.cli.invocation import Invocation
    from signet_actors.cli.past_sessions.session import PastSession

_MAX_BYTES: Final = 64 * 1024 * 1024
_WRITE_S: Final = 2.0
_BEHIND_ALL: Final = 2**53 - 1
"""A cursor behind every turn: the reply says only whether there is a transcript."""


class _Saved(msgspec.Struct):
    """``done``: the stamp of each session that was stored; ``last``: the key of the one that was stored last."""

    done: dict[str, str] = {}
    last: str | None = None


class BackfillProgress:
    """The sessions of one agent that one daemon has. What cannot be read or written is forgotten: all is sent again."""

    def __init__(self, path: Path, saved: _Saved, agent: str | None) -> None:
        self._path, self._saved, self._agent = path, saved, agent
        self._written_s = time.monotonic()
        self._is_reported = False

    @classmethod
    def read(cls, invocation: Invocation, agent: str | None) -> BackfillProgress:
        """Return the progress of former runs."""
        daemon = invocation.url or (
            str(invocation.workspace) if invocation.uses_workspace_daemon else invocation.environ["SIGNET_DAEMON_URL"]
        )
        name = hashlib.sha256(f"{daemon}\0{agent}".encode("utf-8", "surrogateescape")).hexdigest()
        path = cache_directory(invocation.environ) / f"backfill-{name[:32]}.json"
        try:
            saved = msgspec.json.decode(read_regular(path, _MAX_BYTES), type=_Saved)
        except (ConfigError, OSError, msgspec.DecodeError):
            saved = _Saved()
        return cls(path, saved, agent)

    def without_done(self, sessions: Sequence[PastSession]) -> list[PastSession]:
        """Return the sessions that have not been stored as they are now."""
        return [session for session in sessions if self._saved.done.get(session.name) != session.stamp]

    def is_outdated(self, client: DaemonClient) -> bool:
        """Return whether the daemon lacks the session that was stored last, and begin anew then.

        Its database was restored or replaced since, or the user has erased this transcript.
        """
        if self._saved.last is None:
            return False
        try:
            path = f"/api/sessions/{quote(self._saved.last, safe='')}/transcript"
            client.get(path, after=_BEHIND_ALL, agentId=self._agent)
        except RequestRefused as error:
            if error.code is not ErrorCode.NOT_FOUND:
                raise
            self._saved = _Saved()
            return True
        return False

    def add(self, session: PastSession, *, is_kept: bool) -> None:
        """Add a session that the daemon has completely; ``is_kept``: there is a transcript, as something was said."""
        self._saved.done[session.name] = session.stamp
        self._saved.last = session.key if is_kept else self._saved.last
        if time.monotonic() - self._written_s > _WRITE_S:
            self.write()

    def write(self) -> None:
        """Save the progress."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._path, json.dumps(msgspec.to_builtins(self._saved)).encode(), durable=False)
        except OSError as error:
            if not self._is_reported:
                print_message(f"The progress cannot be saved in {self._path.parent} ({error.strerror}).")
            self._is_reported = True
        self._written_s = time.monotonic()
