"""Find a full date in a query: ``2026-05-13``, ``2026/05/13``, ``May 13, 2026``, ``13th of May, 2026``.

Source: memory-api.txt "POST /api/memory/recall" (exact date phrases).
Departs: the forms with the day first are read, too.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Final, NamedTuple

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# A date contains four digits. Most queries do not, so this pattern alone rules them out.
_YEAR: Final = re.compile(r"[0-9]{4}")
_MONTH: Final = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY: Final = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
# Every repetition is bounded, so that matching is linear in the length of the query.
_NUMBERS: Final = re.compile(r"\b(?P<year>[0-9]{4})[/-](?P<month>[0-9]{1,2})[/-](?P<day>[0-9]{1,2})\b", re.ASCII)
_MONTH_FIRST: Final = re.compile(
    rf"\b{_MONTH}\s{{1,3}}{_DAY},?\s{{1,3}}(?P<year>[0-9]{{4}})\b", re.IGNORECASE | re.ASCII
)
_DAY_FIRST: Final = re.compile(
    rf"\b{_DAY}\s{{1,3}}(?:of\s{{1,3}})?{_MONTH},?\s{{1,3}}(?P<year>[0-9]{{4}})\b", re.IGNORECASE | re.ASCII
)


class DatePhrase(NamedTuple):
    """A date as it is written in a query, and the day that it names."""

    text: str
    date: date


def date_phrase(query: str) -> DatePhrase | None:
    """Return the first full date in ``query``, or None. Dates that do not exist are ignored."""
    if _YEAR.search(query) is None:
        return None
    found = (match for pattern in (_NUMBERS, _MONTH_FIRST, _DAY_FIRST) for match in pattern.finditer(query))
    for match in sorted(found, key=re.Match.start):
        month = match["month"]
        number = int(month) if month.isdecimal() else _MONTHS.index(month[:3].lower()) + 1
        try:
            return DatePhrase(match[0], date(int(match["year"]), number, int(match["day"])))
        except ValueError:  # 31 June
            continue
    return None
