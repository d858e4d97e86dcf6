"""Secrets that were recognised in a session, which its later texts may have without the name that told them.

Source: docs/operations.md "Secrets in memories".
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from itertools import islice
from typing import Final

from signet_actors.domain.redaction.values import is_random

MAX_SESSIONS: Final = 256
MAX_VALUES: Final = 64


class SessionSecrets:
    """The values and their kinds by session, in memory only: of the sessions used last, the latest values each."""

    def __init__(self) -> None:
        self._by_session: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, session_key: str | None) -> dict[str, str]:
        """Return the values of the session with their kinds."""
        with self._lock:
            return dict(self._by_session.get(session_key or "", {}))

    def add(self, session_key: str | None, known: Mapping[str, str]) -> None:
        """Add values that were recognised in a text of the session; those that may be a name as well are not kept."""
        telling = {value: kind for value, kind in known.items() if is_random(value)}
        if not session_key or not telling:
            return
        with self._lock:
            values = {**self._by_session.pop(session_key, {}), **telling}
            self._by_session[session_key] = dict(islice(values.items(), max(0, len(values) - MAX_VALUES), None))
            while len(self._by_session) > MAX_SESSIONS:
                self._by_session.popitem(last=False)
