"""Headers that the gateway and its clients both use: names of Signet's own ones, and values of others."""

from __future__ import annotations

import math
from typing import Final

NEXT_CURSOR_HEADER: Final = "x-signet-next-cursor"
OWNER_TOKEN_HEADER: Final = "x-signet-owner-token"  # noqa: S105 - the name of a header
TRACE_HEADER: Final = "x-signet-trace-id"
WARNINGS_HEADER: Final = "x-signet-warnings"

JSON_LINES: Final = "application/x-ndjson"
"""The media type of a body with a JSON object in each line."""
EVENT_STREAM: Final = "text/event-stream"
"""The media type of server-sent events."""

_MAX_RETRY_AFTER_S: Final = 3600.0


def retry_after_ms(header: str | None) -> int | None:
    """Return the wait of a Retry-After header in seconds, at most an hour; None without a usable value."""
    try:
        seconds = float(header or "")
    except ValueError:
        return None
    if not math.isfinite(seconds) or seconds < 0:
        return None
    return int(min(seconds, _MAX_RETRY_AFTER_S) * 1000)
