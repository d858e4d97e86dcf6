"""Secrets that were recognised in a session, which its later texts may have without the name that told them.

Source: docs/operations.md "Secrets in memories".
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from itertools import islice
from typing import Final

from signet_actors.domain.redaction.labelled_values import MOST_OF_QUESTION
from signet_actors.domain.redaction.values import is_no_name

MAX_SESSIONS: Final = 256
MAX_VALUES: Final = 64


class SessionSecrets:
    """The values and their kinds by session, in memory only: of the sessions used last, the latest values each."""

    def __init__(self) -> None:
        self._by_session: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._last: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, session_key: str | None) -> dict[str, str]:
        """Return the values of the session with their kinds."""
        with self._lock:
            return dict(self._by_session.get(session_key or "", {}))

    def add(self, session_key: str | None, known: Mapping[str, str]) -> None:
        """Add values that were recognised in a text of the session; those that may be a name as well are not kept."""
        telling = {value: kind for value, kind in known.items() if is_no_name(value)}
        if not session_key or not telling:
            return
        with self._lock:
            values = {**self._by_session.pop(session_key, {}), **telling}
            self._by_session[session_key] = dict(islice(values.items(), max(0, len(values) - MAX_VALUES), None))
            while len(self._by_session) > MAX_SESSIONS:
                self._by_session.popitem(last=False)

    def note_last(self, session_key: str, said: str) -> None:
        """Note the last turn of a transcript, which the next prompt may answer."""
        with self._lock:
            self._last[session_key] = said[-MOST_OF_QUESTION:]
            self._last.move_to_end(session_key)
            while len(self._last) > MAX_SESSIONS:
                self._last.popitem(last=False)

    def last(self, session_key: str | None) -> str:
        """Return the end of what was said last in the session, empty if it is not known."""
        with self._lock:
            return self._last.get(session_key or "", "")
