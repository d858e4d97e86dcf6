"""Search a long text window by window, so that other threads can run in between.

A single call of ``re`` or ``str`` holds the interpreter lock until it returns, and over a long text it would stop every
other thread of the process.

Source: docs/reliability.md R13.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

WINDOW: Final = 16_384
"""Characters per call: one or two milliseconds with the slowest pattern."""

_BLANK = re.compile(r"\s")


def windowed_matches(pattern: re.Pattern[str], text: str, reach: int) -> Iterator[re.Match[str]]:
    """Yield the matches of ``pattern.finditer(text)``, provided that no match is longer than ``reach`` characters.

    A longer match is found if its first ``reach`` characters are a match by themselves, and is then yielded whole. So a
    repetition at the end of a pattern may be unbounded, but not one in its middle. The pattern must not match the empty
    string.
    """
    size = len(text)
    if size <= WINDOW + reach:
        yield from pattern.finditer(text)
        return
    at = 0
    end = WINDOW
    while at < size:
        limit = min(end + reach, size)
        match = pattern.search(text, at, limit)
        if match is None or match.start() >= end:
            at, end = end, end + WINDOW
            continue
        if match.end() == limit < size:
            # The match may continue after the limit, or match only because the limit hid the rest.
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
    """Yield ``text`` in pieces of about ``WINDOW`` characters, cut at single white-space characters, which are dropped.

    A piece is longer if it contains a longer word.
    """
    at = 0
    while blank := _BLANK.search(text, at + WINDOW):
        yield text[at : blank.start()]
        at = blank.end()
    yield text[at:]
