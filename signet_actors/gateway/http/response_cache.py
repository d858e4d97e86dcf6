"""Answers to operators' questions that a crowd makes dear: for a moment, the next one gets the same.

Source: docs/reliability.md R13.
"""

from __future__ import annotations

from typing import Final

from signet_actors.gateway.http.responses import EncodedResponse

CACHE_TTL_NS: Final = 250_000_000


class ResponseCache:
    """The last answer of each path; bounded, as paths are templates of the route table."""

    def __init__(self) -> None:
        self._responses: dict[str, tuple[int, EncodedResponse]] = {}

    def get(self, path: str, now_ns: int) -> EncodedResponse | None:
        """What was answered there less than ``CACHE_TTL_NS`` ago."""
        at_ns, answer = self._responses.get(path, (0, None))
        return answer if answer is not None and now_ns - at_ns < CACHE_TTL_NS else None

    def store(self, path: str, answer: EncodedResponse, now_ns: int) -> None:
        """It is what was answered there last."""
        self._responses[path] = (now_ns, answer)
