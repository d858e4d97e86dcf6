"""Fences of code in Markdown, in which a line that looks like a mark of ours is a quotation.

Source: CommonMark 0.31 "Fenced code blocks".
"""

from __future__ import annotations

import re
from typing import Final

_FENCES: Final = re.compile(r"^(?:\A(?:\ufeff|\xef\xbb\xbf))? {0,3}(`{3,}+(?!.*`)|~{3,})([^\r\n]*)", re.MULTILINE)
"""Also behind a byte order mark, and behind the bytes of one as characters."""


def is_in_fence(text: str, begin: int, end: int) -> bool:
    """Return whether the lines from ``begin`` to ``end`` are in one fence of code that is closed below them."""
    fence = ""
    for line in _FENCES.finditer(text):
        if not fence and line.start() > begin:
            break
        if not fence:
            fence = line[1]
        elif line[1].startswith(fence) and not line[2].strip():
            if line.start() > begin:
                return line.start() > end
            fence = ""
    return False
