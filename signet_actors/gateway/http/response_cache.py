"""A cache of responses to status probes, which are expensive under overload.

Source: docs/reliability.md R13.
"""

from __future__ import annotations

from typing import Final

from signet_actors.gateway.http.responses import EncodedResponse

CACHE_TTL_NS: Final = 250_000_000


class ResponseCache:
    """The last response of each route template; the route table bounds its size."""

    def __init__(self) -> None:
        self._responses: dict[str, tuple[int, EncodedResponse]] = {}

    def get(self, path: str, now_ns: int) -> EncodedResponse | None:
        """Return the response stored for ``path`` within the last ``CACHE_TTL_NS``, or None."""
        at_ns, answer = self._responses.get(path, (0, None))
        return answer if answer is not None and now_ns - at_ns < CACHE_TTL_NS else None

    def store(self, path: str, answer: EncodedResponse, now_ns: int) -> None:
        self._responses[path] = (now_ns, answer)
