"""Whether a text names the month or the day that a query asks for, as in "code freeze on December 18, 2026".

Source: docs/quality.md "Times in the text"; docs/compatibility.md "Temporal requests".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.temporal.full_dates import month_number
from signet_actors.domain.temporal.other_languages import MONTHS_IN_ENGLISH
from signet_actors.domain.temporal.phrases import DatePhrase
from signet_actors.domain.temporal.relative_dates import MONTH_NAMES

MAX_CHARS: Final = 4_000
"""The beginning of a text that is read."""
_NAMES: Final = "|".join(sorted((*MONTH_NAMES, *MONTHS_IN_ENGLISH), key=len, reverse=True))
_NAMED: Final = compile_later(
    rf"\b(?:(?P<before>[0-9]{{1,2}})(?:\.|st|nd|rd|th|er)?\s(?:of\s|de\s)?)?(?P<in>(?i:in|since|until|during|of)\s)?"
    rf"(?P<name>(?i:{_NAMES}))\b\.?(?:\s(?P<after>[0-9]{{1,2}})(?:st|nd|rd|th)?(?![0-9]))?"
    r"(?:,?\s(?:of\s|del?\s)?(?P<year>[0-9]{4})\b)?"
    r"|\b(?P<iso_year>[0-9]{4})-(?P<iso_month>0[1-9]|1[0-2])(?:-(?P<iso_day>[0-9]{2}))?\b"
)
_VERB: Final = "may"


class NamedTime(NamedTuple):
    """A month or a day in a text; ``day`` and ``year`` are None if they are not said."""

    month: int
    day: int | None
    year: int | None


def names_time(text: str, phrase: DatePhrase) -> bool:
    """Return whether ``text`` names the time of a query: without a year there, the latest or the coming one."""
    asked = next(_times(phrase.text, is_time=True), None)
    if asked is None:
        return False
    years = {asked.year} if asked.year is not None else {phrase.first.year, phrase.first.year + 1}
    return any(
        named.month == asked.month
        and (asked.day is None or named.day == asked.day)
        and (named.year is None or named.year in years)
        for named in _times(text[:MAX_CHARS])
    )


def _times(text: str, *, is_time: bool = False) -> Iterator[NamedTime]:
    """Yield the months and days of a text. ``is_time``: it is nothing else, so that "may" is no verb in it."""
    for match in _NAMED.finditer(text):
        if match["iso_year"]:
            day = match["iso_day"]
            yield NamedTime(int(match["iso_month"]), int(day) if day else None, int(match["iso_year"]))
            continue
        name, number, year = match["name"].lower(), match["before"] or match["after"], match["year"]
        is_month = name != _VERB or bool(year) or (match["name"][0] != _VERB[0] and bool(match["in"] or number))
        if is_month or is_time:
            month = month_number(MONTHS_IN_ENGLISH.get(name, name))
            yield NamedTime(month, int(number) if number else None, int(year) if year else None)
