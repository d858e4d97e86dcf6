"""Full dates in a query: ``2026-05-13``, ``May 13, 2026``, and with the day first ``13 May 2026``, ``13.05.2026``.

The documented forms, which activate a filter, are the numbers with the year first and the names with the month first;
each may name two days (``2026-07-25/26``). Every repetition is bounded, so that matching is linear.

Source: memory-api.txt "POST /api/memory/recall" (exact date phrases); docs/compatibility.md "Temporal requests".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import pairwise
from typing import Final, NamedTuple

MONTHS: Final = {
    name: number
    for number, names in enumerate(
        ("jan jän", "feb", "mar mär mrz", "apr", "may mai", "jun", "jul", "aug", "sep", "oct okt", "nov", "dec dez"), 1
    )
    for name in names.split()
}
"""Number of a month by its first three letters, in English and German."""
FIRST_YEAR: Final = 1000
LAST_YEAR: Final = 9998

# A full date contains four digits. Most queries do not, so this pattern alone rules them out.
_YEAR: Final = re.compile(r"[0-9]{4}")
_MONTH: Final = (
    r"(?P<month>jan(?:uary|uar)?|j[\u00e4\u00c4]nner|feb(?:ruary|ruar)?|mar(?:ch)?|m[\u00e4\u00c4]rz|mrz|apr(?:il)?|may"
    r"|mai|june?|juni|july?|juli|aug(?:ust)?|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?)\.?"
)
_DAY: Final = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
_OTHER_DAY: Final = r"(?:/(?P<last>[0-9]{1,2}))?"
# A time of day may follow ("2026-05-13T10:00"). What looks like a second day but is none makes the whole no date.
_YEAR_FIRST: Final = re.compile(
    rf"\b(?P<year>[0-9]{{4}})[/-](?P<month>[0-9]{{1,2}})[/-](?P<day>[0-9]{{1,2}}){_OTHER_DAY}"
    r"(?!/[0-9])(?:(?=T[0-9]{2})|(?![0-9A-Za-z_]))",
    re.ASCII,
)
_MONTH_FIRST: Final = re.compile(
    rf"\b{_MONTH}\s{{1,3}}{_DAY}{_OTHER_DAY}(?:,\s{{0,3}}|\s{{1,3}})(?P<year>[0-9]{{4}})\b", re.IGNORECASE | re.ASCII
)
_DAY_FIRST: Final = re.compile(
    rf"\b{_DAY}\.?\s{{0,3}}(?:of\s{{1,3}})?{_MONTH}(?:,\s{{0,3}}|\s{{1,3}})(?P<year>[0-9]{{4}})\b",
    re.IGNORECASE | re.ASCII,
)
_DAY_FIRST_NUMBERS: Final = re.compile(
    r"(?<![0-9.])(?P<day>[0-9]{1,2})\. ?(?P<month>[0-9]{1,2})\. ?(?P<year>[0-9]{4})(?![0-9])", re.ASCII
)
_SLASHED: Final = re.compile(
    r"(?<![\w/.-])(?P<one>[0-9]{1,2})(?P<mark>[/-])(?P<two>[0-9]{1,2})(?P=mark)(?P<year>[0-9]{4})(?![\w/-])", re.ASCII
)
"""``11/27/2026`` or ``27/11/2026``, where only one of the numbers can be the month."""
_LIMITS: Final = (
    "before after since until till by between to than not vor nach seit bis zwischen ab nicht depuis avant desde antes"
)
_OTHER_TIMES: Final = frozenset(_LIMITS.split())
"""With such a word before it, a date is a limit of the time that is meant."""
_UP_TO: Final = frozenset({"i", "we", "you", "they", "he", "she", "get", "got", "been", "being"})
"""What somebody was up to on a day is no limit of a time."""
_SINCE: Final = frozenset({"since", "seit", "depuis", "desde"})
_BETWEEN_ENDS: Final = frozenset(
    {"and", "to", "until", "till", "through", "und", "bis", "bis zum", "-", "\u2013", "\u2014"}
)
_ARTICLES: Final = frozenset({"the", "der", "dem", "den", "le", "el", "la"})
_MOST_WORD_CHARS: Final = 20


class FullDate(NamedTuple):
    """A date in a query, at ``start`` to ``end``: the days from ``first`` to before ``after``.

    ``is_exact``: it has a documented form and stands alone, not in a path or a file name, and not as in "before May 13,
    2026". ``first`` is None for a date that does not exist.
    """

    start: int
    end: int
    first: date | None
    after: date | None
    is_exact: bool


def full_dates(query: str) -> list[FullDate]:
    """Return the full dates of ``query`` in order, also those that do not exist."""
    if _YEAR.search(query) is None:
        return []
    found = sorted(_found(query), key=lambda date: (date.start, -date.end))
    for one, (before, after) in enumerate(pairwise(found)):
        if query[before.end : after.start].strip().lower() in _BETWEEN_ENDS:
            # The ends of a longer time: neither is the whole.
            found[one], found[one + 1] = before._replace(is_exact=False), after._replace(is_exact=False)
    return found


def day(year: int, month: int, number: int) -> date | None:
    """Return the date; None if it does not exist or its year is out of range."""
    if not FIRST_YEAR <= year <= LAST_YEAR:
        return None
    try:
        return date(year, month, number)
    except ValueError:
        return None


def month_number(name: str) -> int:
    """Return the number of a month that is given by name or in digits."""
    return int(name) if name.isdecimal() else MONTHS[name[:3].lower()]


def _found(query: str) -> Iterator[FullDate]:
    for pattern, is_documented in (
        (_YEAR_FIRST, True),
        (_MONTH_FIRST, True),
        (_DAY_FIRST, False),
        (_DAY_FIRST_NUMBERS, False),
    ):
        for match in pattern.finditer(query):
            parts = match.groupdict()
            year, month = int(match["year"]), month_number(match["month"])
            first = day(year, month, int(match["day"]))
            last = first if parts.get("last") is None else day(year, month, int(match["last"]))
            is_exact = is_documented and not (
                _is_part_of_name(query, match.start(), match.end()) or is_limit(query, match.start())
            )
            if first is None or last is None or last < first:
                yield FullDate(match.start(), match.end(), None, None, is_exact)
            else:
                yield FullDate(match.start(), match.end(), first, last + timedelta(days=1), is_exact)

    for match in _SLASHED.finditer(query):
        one, two = int(match["one"]), int(match["two"])
        if (one <= 12) == (two <= 12) and one != two:
            continue
        first = day(int(match["year"]), min(one, two), max(one, two))
        yield FullDate(match.start(), match.end(), first, first and first + timedelta(days=1), is_exact=False)


def _is_part_of_name(query: str, start: int, end: int) -> bool:
    """Return True if the text at ``start`` to ``end`` is a part of a path, a file name or a time."""
    before, behind = query[start - 1 : start] if start else "", query[end : end + 2]
    return (
        before in {".", "/", "\\", "-"}
        or behind[:1] in {"/", "\\", "-", "T"}
        or (behind[:1] == "." and behind[1:].isalnum())
    )


def is_limit(query: str, start: int) -> bool:
    """Return True if the word before ``start`` says that another time is meant, or the word there ("since Monday").

    German "vor" there belongs to the time ("vor drei Tagen").
    """
    own = query[start : start + _MOST_WORD_CHARS].lower().split()
    if own and own[0] != "vor" and own[0] in _OTHER_TIMES:
        return True
    words = query[max(0, start - _MOST_WORD_CHARS) : start].lower().split()
    if words and words[-1] in _ARTICLES:
        words.pop()
    if words[-2:] == ["up", "to"] and not _UP_TO.isdisjoint(words[-3:-2]):
        return False
    return bool(words) and words[-1] in _OTHER_TIMES


def is_since(query: str, start: int) -> bool:
    """Return True if the word before ``start``, or the word there, says that the time began then ("since Monday")."""
    own = query[start : start + _MOST_WORD_CHARS].split()
    before = query[max(0, start - _MOST_WORD_CHARS) : start].split()
    if before and before[-1].lower() in _ARTICLES:
        before.pop()
    return any(words and words[at].lower() in _SINCE for words, at in ((own, 0), (before, -1)))
