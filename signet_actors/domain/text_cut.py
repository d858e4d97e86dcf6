"""Cut a text whose secrets are looked for later: no part of a word stays at a cut, which may be a part of a secret.

Source: docs/compatibility.md "Hooks and sessions".
"""

from __future__ import annotations

from typing import Final

_MAX_DROPPED: Final = 4096
"""Text without white space is cut anywhere."""
_MAX_KEY: Final = 65_536
_MORE_WORDS: Final = 3
"""Left out after the part of a word: the name of a value may have been cut off ("password is ...")."""


def beginning_of(text: str, chars: int) -> str:
    """Return at most the first ``chars`` characters of ``text``, in whole words."""
    if len(text) <= chars or text[chars].isspace():
        return text[:chars]
    near = max(0, chars - min(_MAX_DROPPED, chars // 2))
    last = text[near:chars]
    return text[:near] + (last if last[-1:].isspace() else last.removesuffix(last.rsplit(None, 1)[-1]) or last)


def outside_key(text: str, at: int) -> int:
    """Return ``at``, or where the block of a key that it would divide ends: without its BEGIN, a part is no secret."""
    begin = text.rfind("-----BEGIN", max(0, at - _MAX_KEY), at)
    if begin < 0 or text.find("-----END", begin, at) >= 0:
        return at
    end = text.find("-----END", at, at + _MAX_KEY)
    return max(at, end) if text.find("-----BEGIN", at, max(at, end)) < 0 else at


def end_of(text: str, chars: int) -> str:
    """Return at most the last ``chars`` characters of ``text``, without words or a key whose beginning is cut off."""
    if len(text) <= chars:
        return text
    at = outside_key(text, len(text) - chars)
    end = text[at:]
    if at > len(text) - chars:
        return end
    near = min(_MAX_DROPPED, chars // 2)
    parts = end[:near].split(None, 1 + _MORE_WORDS)
    if parts and parts[0] == end[:near]:
        return end
    kept = len(parts) > 1 + _MORE_WORDS or not end[near - 1].isspace()
    return (parts[-1] if parts and kept else "") + end[near:]


def ends_of(text: str, chars: int) -> str:
    """Return at most about ``chars`` characters of ``text``: as many from its beginning as from its end."""
    half = chars // 2
    return text if len(text) <= chars else f"{beginning_of(text, half)}\n{end_of(text, half)}"
