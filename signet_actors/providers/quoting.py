"""What a stranger said, made fit for a log line and for the user."""

from __future__ import annotations

import re
from typing import Final

QUOTED_CHARS: Final = 200
"""Source: memory-pipeline.txt "Provider Abstraction": the first 200 characters of the body."""
_KEY_LIKE: Final = re.compile(r"\b(?:sk|pk|key)-[\w*.-]{4,}")
_BLANKS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\s\x00-\x1f\x7f]+")


def on_one_line(text: str) -> str:
    """``text`` without line breaks, control characters and colours."""
    return _BLANKS.sub(" ", text).strip()


def quotable(raw: bytes, secret: str | None) -> str:
    """The beginning of ``raw``, on one line and without ``secret`` or anything else that looks like a key."""
    text = raw.decode("utf-8", "replace")
    if secret:
        text = text.replace(secret, "[key]")
    return on_one_line(_KEY_LIKE.sub("[key]", text))[:QUOTED_CHARS]
