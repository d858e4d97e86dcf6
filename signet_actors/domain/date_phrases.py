"""Find exact dates in a query: ``2026-05-13``, ``2026/05/13``, ``May 13, 2026``.

Source: memory-api.txt "POST /api/memory/recall" (exact date phrases).
"""

from __future__ import annotations

import re
from datetime import date
from typing import Final

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# A date contains four digits. Most queries do not, so this pattern alone rules them out.
_YEAR: Final = re.compile(r"[0-9]{4}")
# Every repetition is bounded, so that matching is linear in the length of the query.
_NUMBERS: Final = re.compile(r"\b([0-9]{4})[/-]([0-9]{1,2})[/-]([0-9]{1,2})\b")
_WORDS: Final = re.compile(
    r"\b(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?\s{1,3}([0-9]{1,2})(?:st|nd|rd|th)?,?\s{1,3}([0-9]{4})\b",
    re.IGNORECASE,
)


def date_phrase(query: str) -> str | None:
    """Return the first exact date in ``query`` as written there, or None. Dates that do not exist are ignored."""
    if _YEAR.search(query) is None:
        return None
    for match in _NUMBERS.finditer(query):
        if _exists(int(match[1]), int(match[2]), int(match[3])):
            return match[0]
    for match in _WORDS.finditer(query):
        if _exists(int(match[3]), _MONTHS.index(match[1][:3].lower()) + 1, int(match[2])):
            return match[0]
    return None


def _exists(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True
