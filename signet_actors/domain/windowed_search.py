"""A long text is read window by window, because one call of ``re`` or ``str`` over all of it would stop every other
thread of the process for as long as it takes: the interpreter lock is given up between calls, never inside one.

Source: docs/reliability.md R13.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

WINDOW: Final = 16_384
"""Characters that one call reads: a millisecond or two of the slowest pattern."""

_BLANK = re.compile(r"\s")


def windowed_matches(
    pattern: re.Pattern[str], text: str, reach: int, may_match: Callable[[int, int], bool] | None = None
) -> Iterator[re.Match[str]]:
    """What ``pattern.finditer(text)`` yields, as long as no match is longer than ``reach`` characters.

    A longer one is found if its first ``reach`` characters are a match by themselves, and is then yielded whole; so
    a repetition at the end of a pattern may be unbounded, one in its middle may not. ``may_match(begin, end)`` may say
    False of a stretch that holds no whole match, which is then not searched. The pattern must not match nothing.
    """
    size = len(text)
    if size <= WINDOW + reach:
        yield from pattern.finditer(text)
        return
    at = 0
    end = WINDOW
    while at < size:
        limit = min(end + reach, size)
        match = pattern.search(text, at, limit) if may_match is None or may_match(at, limit) else None
        if match is None or match.start() >= end:
            at, end = end, end + WINDOW
            continue
        if match.end() == limit < size:
            # It may go on behind the limit, or be one only because the limit hid what follows.
            match = pattern.match(text, start := match.start())
            if match is None:
                at = start + 1
                end = max(end, at)
                continue
        yield match
        at = match.end()
        if at >= end:
            end = at + WINDOW


def word_windows(text: str) -> Iterator[str]:
    """``text`` in pieces of about ``WINDOW`` characters, cut at single white-space characters, which are dropped.

    A piece is longer where a word is.
    """
    at = 0
    while blank := _BLANK.search(text, at + WINDOW):
        yield text[at : blank.start()]
        at = blank.end()
    yield text[at:]
