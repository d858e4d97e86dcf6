"""Answers to operators' questions that a crowd makes dear: for a moment, the next one gets the same.

Source: docs/reliability.md R13.
"""

from __future__ import annotations

from typing import Final

from signet_actors.gateway.http.responses import EncodedResponse

RECENT_NS: Final = 250_000_000


class ResponseCache:
    """The last answer of each path; bounded, as paths are templates of the route table."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[int, EncodedResponse]] = {}

    def find(self, path: str, now_ns: int) -> EncodedResponse | None:
        """What was answered there less than ``RECENT_NS`` ago."""
        at_ns, answer = self._kept.get(path, (0, None))
        return answer if answer is not None and now_ns - at_ns < RECENT_NS else None

    def keep(self, path: str, answer: EncodedResponse, now_ns: int) -> None:
        """It is what was answered there last."""
        self._kept[path] = (now_ns, answer)
