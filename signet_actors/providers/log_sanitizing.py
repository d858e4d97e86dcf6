"""Sanitize text from providers for log lines and error messages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

QUOTED_CHARS: Final = 200
"""Source: memory-pipeline.txt "Provider Abstraction": the first 200 characters of the body."""
ECHO_CHARS: Final = 12
"""A response that repeats this many consecutive letters and digits of the request is an echo."""
_SHORTEST_ECHO: Final = 4
_KEY_LIKE: Final = re.compile(r"\b(?:sk|pk|key)-[\w*.-]{4,}")
_SEPARATORS: Final = re.compile(r"\\u[0-9A-Fa-f]{4}|\\[bfnrt]|[\W_]+")
"""Everything between letters and digits, also in JSON escapes."""
_BLANKS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\s\x00-\x1f\x7f]+")


def on_one_line(text: str) -> str:
    """Return ``text`` without line breaks, control characters and terminal colours."""
    return _BLANKS.sub(" ", text).strip()


def sanitize(raw: bytes, secret: str | None) -> str:
    """Return the beginning of ``raw`` on one line, without ``secret`` and anything else that looks like a key."""
    text = raw.decode("utf-8", "replace")
    if secret:
        text = text.replace(secret, "[key]")
    return on_one_line(_KEY_LIKE.sub("[key]", text))[:QUOTED_CHARS]


def drop_if_echoed(text: str, sent: Iterable[str]) -> str:
    """Return ``text``, or an empty string if it repeats a part of one of the ``sent`` texts.

    Error messages are logged and stored with a job. Prompts contain memories, which may be erased later, so they must
    not appear there (docs/reliability.md R23). Blanks, punctuation and case are ignored in the comparison.
    """
    received = _letters_and_digits(text)
    requests = [_letters_and_digits(each) for each in sent]
    repeats_short = any(each in received for each in requests if _SHORTEST_ECHO <= len(each) < ECHO_CHARS)
    requested = "\0".join(requests)
    pieces = (received[at : at + ECHO_CHARS] for at in range(len(received) - ECHO_CHARS + 1))
    return "" if repeats_short or any(piece in requested for piece in pieces) else text


def _letters_and_digits(text: str) -> str:
    return _SEPARATORS.sub("", text).casefold()
