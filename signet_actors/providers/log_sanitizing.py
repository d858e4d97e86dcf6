"""What a stranger said, made fit for a log line and for the user."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

QUOTED_CHARS: Final = 200
"""Source: memory-pipeline.txt "Provider Abstraction": the first 200 characters of the body."""
ECHO_CHARS: Final = 12
"""So many letters and digits in a row that were sent, and come back, are an echo."""
_SHORTEST_ECHO: Final = 4
_KEY_LIKE: Final = re.compile(r"\b(?:sk|pk|key)-[\w*.-]{4,}")
_SEPARATORS: Final = re.compile(r"\\u[0-9A-Fa-f]{4}|\\[bfnrt]|[\W_]+")
"""What stands between letters, also as JSON writes it."""
_BLANKS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\s\x00-\x1f\x7f]+")


def on_one_line(text: str) -> str:
    """``text`` without line breaks, control characters and colours."""
    return _BLANKS.sub(" ", text).strip()


def sanitize(raw: bytes, secret: str | None) -> str:
    """The beginning of ``raw``, on one line and without ``secret`` or anything else that looks like a key."""
    text = raw.decode("utf-8", "replace")
    if secret:
        text = text.replace(secret, "[key]")
    return on_one_line(_KEY_LIKE.sub("[key]", text))[:QUOTED_CHARS]


def drop_if_echoed(said: str, sent: Iterable[str]) -> str:
    """``said``, or nothing where it repeats a piece of one of the texts that were ``sent``.

    What a stranger says of a failure is logged and kept with a job; a prompt holds memories, which may be forgotten
    for good later, and is to be found in neither (docs/reliability.md R23). Blanks, signs and capitals make no
    difference.
    """
    heard = _letters_and_digits(said)
    texts = [_letters_and_digits(text) for text in sent]
    short = any(text in heard for text in texts if _SHORTEST_ECHO <= len(text) < ECHO_CHARS)
    told = "\0".join(texts)
    pieces = (heard[at : at + ECHO_CHARS] for at in range(len(heard) - ECHO_CHARS + 1))
    return "" if short or any(piece in told for piece in pieces) else said


def _letters_and_digits(text: str) -> str:
    return _SEPARATORS.sub("", text).casefold()
