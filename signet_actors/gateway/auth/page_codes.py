"""Codes with which the page at ``/`` gets the owner's token: for one use, within half a minute, in memory only.

A browser is opened with an address, which other programs of the machine can read; so the token itself is never in it.
"""

from __future__ import annotations

import secrets
from typing import Final

LIFE_S: Final = 30
MOST: Final = 16
"""Codes that are valid at one time; the oldest is dropped for a new one."""


class PageCodes:
    """The codes that are not used yet, with the monotonic time at which each ends."""

    def __init__(self) -> None:
        self._until_ns: dict[str, int] = {}

    def issue(self, now_ns: int) -> str:
        """Return a new code."""
        while len(self._until_ns) >= MOST:
            del self._until_ns[next(iter(self._until_ns))]
        code = secrets.token_urlsafe(32)
        self._until_ns[code] = now_ns + LIFE_S * 1_000_000_000
        return code

    def take(self, code: str, now_ns: int) -> bool:
        """Return whether the code is valid, for the first time and the last one."""
        return self._until_ns.pop(code, 0) > now_ns
