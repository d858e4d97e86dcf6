"""Times that a query names without a full date: ``yesterday``, ``last week``, ``three days ago``, ``in March``.

English and German. Each rule looks at a few adjacent words, so that reading is linear in the length of the query. A
month or a day without a year is the latest that has begun.

Source: docs/compatibility.md "Temporal requests".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple

from signet_actors.domain.temporal.full_dates import day, month_number

_WORD: Final = re.compile(r"[^\W\d_]+|[0-9]+")
_ISO_MONTH: Final = re.compile(
    r"(?<![0-9A-Za-z_./\\-])((?:19|20|21)[0-9]{2})[/-](0[1-9]|1[0-2])(?![0-9A-Za-z_/\\-])", re.ASCII
)
_MAX_GAP: Final = 3
_GAP: Final = frozenset(" \t\n\r.,-'\u2019\u00a0")
_DAY: Final = timedelta(days=1)


def _forms(stem: str) -> tuple[str, ...]:
    return tuple(stem + ending for ending in ("e", "en", "er", "es", "em"))


_SINGLE_DAYS: Final = (
    dict.fromkeys(("today", "tonight", "heute", *_forms("heutig")), 0)
    | dict.fromkeys(("yesterday", "gestern", *_forms("gestrig")), 1)
    | dict.fromkeys(("vorgestern", *_forms("vorgestrig")), 2)
)
_LAST: Final = frozenset({"last", "previous", "past", *_forms("letzt"), *_forms("vorig"), *_forms("vergangen")})
_THIS: Final = frozenset({"this", "current", *_forms("dies")})
_AGO: Final = "ago"
_BEFORE: Final = "vor"
_PARTS_OF_DAY: Final = frozenset({"morning", "afternoon", "evening"})
_DAYTIMES: Final = frozenset(
    {*_PARTS_OF_DAY, "noon", "night", "abend", "nachmittag", "vormittag", "morgen", "mittag", "nacht"}
)
_REPEATED: Final = frozenset({"every", "each", "any", "next", "coming", "jeden", "n\u00e4chsten", "kommenden"})
_NIGHTS: Final = frozenset({"night", "nacht"})
_ENGLISH_NUMBERS: Final = "two three four five six seven eight nine ten eleven twelve"
_GERMAN_NUMBERS: Final = "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf"
_COUNTS: Final = {
    **dict.fromkeys(("a", "an", "one", "ein", "eine", "einem", "einer", "einen"), 1),
    **{word: n for n, word in enumerate(_ENGLISH_NUMBERS.split(), 2)},
    **{word: n for n, word in enumerate(_GERMAN_NUMBERS.split(), 2)},
    "couple": 2,
}
_SEVERAL: Final = frozenset({"few", "several", "paar", "einige", "einigen"})
_SEVERAL_RANGE: Final = (2, 5)
"""How many a few are."""
_UNITS: Final = {
    **dict.fromkeys(("hour", "hours", "stunde", "stunden"), "hour"),
    **dict.fromkeys(("day", "days", "tag", "tage", "tagen"), "day"),
    **dict.fromkeys(("week", "weeks", "woche", "wochen"), "week"),
    **dict.fromkeys(("month", "months", "monat", "monate", "monaten"), "month"),
    **dict.fromkeys(("year", "years", "jahr", "jahre", "jahren"), "year"),
    **dict.fromkeys(("weekend", "wochenende"), "weekend"),
}
_WEEKDAYS: Final = {
    name: number
    for number, names in enumerate(
        (
            "monday montag",
            "tuesday dienstag",
            "wednesday mittwoch",
            "thursday donnerstag",
            "friday freitag",
            "saturday samstag sonnabend",
            "sunday sonntag",
        )
    )
    for name in names.split()
}
_MONTH_WORDS: Final = """
    january jan januar jänner february feb februar march mar märz april apr may mai june jun juni july jul
    juli august aug september sept sep october oct oktober okt november nov december dec dezember dez
"""
MONTH_NAMES: Final = frozenset(_MONTH_WORDS.split())
_IN: Final = frozenset({"in", "im", "during", "early", "late", "mid", "anfang", "mitte", "ende"})
_ON: Final = frozenset({"on", "am", "vom", "seit", "since", "by", "of", "from", "before", "after", "until"})
_CUES: Final = frozenset(
    {"st", "nd", "rd", "th", *_SINGLE_DAYS, *_LAST, *_THIS, _AGO, _BEFORE, *_WEEKDAYS, *MONTH_NAMES, *_IN, "year"}
)
"""A query without any of these words names no relative time."""
_FIRST_WORDS: Final = _CUES | {*_COUNTS, *_SEVERAL, *_ON, "day", "jahr", "for"}
"""The words that a relative time can begin with, apart from digits."""
MAX_CHARS: Final = 2_000
"""The rest of a longer query is not read."""

Days = tuple[date, date]
"""The first day, and the day after the last."""


class RelativeDate(NamedTuple):
    """A time in a query, at ``start`` to ``end``: the days from ``first`` to before ``after``."""

    start: int
    end: int
    first: date
    after: date


class _Words:
    """The words of a query in lower case, where they stand, and the moment of the query."""

    def __init__(self, query: str, now: datetime) -> None:
        found = list(_WORD.finditer(query))
        self.words = [match[0].lower() for match in found]
        self.starts = [match.start() for match in found]
        self.ends = [match.end() for match in found]
        self._query = query
        self.now = now
        self.today = now.date()

    def at(self, index: int) -> str:
        """Return the word at ``index``, empty if there is none or another sentence lies between it and the former."""
        if not 0 <= index < len(self.words):
            return ""
        if index:
            gap = self._query[self.ends[index - 1] : self.starts[index]]
            if len(gap) > _MAX_GAP or not _GAP.issuperset(gap):
                return ""
        return self.words[index]

    def is_part_of_name(self, at: int, end: int) -> bool:
        """Return True if the words from ``at`` to before ``end`` are a part of an address, a path or a file name."""
        before = self._query[max(0, self.starts[at] - 1) : self.starts[at]]
        behind = self._query[self.ends[end - 1] : self.ends[end - 1] + 2]
        return before in {".", "/", "@", "_", "\\"} or (behind[:1] in {".", "/", "@", "_"} and behind[1:].isalnum())

    def ends_with(self, at: int) -> bool:
        """Return True if the word at ``at`` is the last one, apart from a possessive ``s``."""
        return at == len(self.words) - 1 or (self.at(at + 1) == "s" and self._query[self.ends[at]] in "'\u2019")


Rule = Callable[[_Words, int], tuple[int, Days] | None]
"""Returns the index behind the last word of a time that begins at the index, and its days."""


def relative_date(query: str, now: datetime) -> RelativeDate | None:
    """Return the first time that ``query`` names relative to ``now`` (in the caller's time zone), or None."""
    query = query[:MAX_CHARS]
    iso = _ISO_MONTH.search(query)
    if iso is None and _CUES.isdisjoint(_WORD.findall(query.lower())):
        return None
    text = _Words(query, now)
    for index in range(len(text.words)):
        if iso is not None and text.starts[index] >= iso.start():
            break
        if text.words[index] not in _FIRST_WORDS and not text.words[index].isdecimal():
            continue
        for rule in _RULES:
            try:
                found = rule(text, index)
            except (OverflowError, ValueError):  # outside the calendar
                found = None
            if found is not None and not text.is_part_of_name(index, found[0]):
                end, (first, after) = found
                return RelativeDate(text.starts[index], text.ends[end - 1], first, after)
    if iso is None:
        return None
    first, after = _month(int(iso[1]), int(iso[2]))
    return RelativeDate(iso.start(), iso.end(), first, after)


def _single_day(text: _Words, at: int) -> tuple[int, Days] | None:
    word = text.words[at]
    if word == "day" and text.at(at + 1) == "before" and text.at(at + 2) == "yesterday":
        return at + 3, _days_ago(text, 2)
    if word in _SINGLE_DAYS:
        return at + 1, _days_ago(text, _SINGLE_DAYS[word])
    if word in _LAST and text.at(at + 1) in _NIGHTS:
        return at + 2, _days_ago(text, 1)
    if word in _THIS and text.at(at + 1) in _PARTS_OF_DAY:
        return at + 2, _days_ago(text, 0)
    return None


def _calendar_unit(text: _Words, at: int) -> tuple[int, Days] | None:
    """``last week``, ``this month``, ``letztes Jahr``, ``last March``."""
    word, follows = text.words[at], text.at(at + 1)
    back = 1 if word in _LAST else 0 if word in _THIS else None
    if back is None or not follows:
        return None
    if follows == "may" and (word in _THIS or text.at(at + 2)):
        return None  # "this may happen", "last may i"
    if follows in _WEEKDAYS:
        return at + 2, _weekday(text, _WEEKDAYS[follows], today_counts=not back)
    if follows in MONTH_NAMES:
        return at + 2, _latest_month(text, month_number(follows), this_counts=not back)
    unit = _UNITS.get(follows)
    is_up_to_now = word == "past" or (
        word == "last" and text.at(at - 1) == "the" and text.at(at - 2) in {"over", "during"}
    )
    if unit == "week" and is_up_to_now:
        return at + 2, (text.today - 7 * _DAY, text.today + _DAY)
    return None if unit is None else _of(at + 2, _unit_back(text.today, unit, back))


def _recent_units(text: _Words, at: int) -> tuple[int, Days] | None:
    """``the last three days``, ``past two weeks``, ``letzten 3 Tage``: up to today."""
    if text.words[at] not in _LAST:
        return None
    end, count = _count(text, at + 1)
    unit = _UNITS.get(text.at(end))
    if count is None or unit is None or unit == "weekend":
        return None
    return end + 1, (_ago(text, unit, count[1])[0], text.today + _DAY)


def _units_ago(text: _Words, at: int) -> tuple[int, Days] | None:
    """``three days ago``, ``a couple of weeks ago``, ``vor zwei Monaten``, ``vor ein paar Tagen``."""
    german = text.words[at] == _BEFORE
    end, count = _count(text, at + 1 if german else at)
    unit = _UNITS.get(text.at(end))
    if count is None or unit is None or unit == "weekend" or (not german and text.at(end + 1) != _AGO):
        return None
    return end + (1 if german else 2), (_ago(text, unit, count[1])[0], _ago(text, unit, count[0])[1])


def _month_or_year(text: _Words, at: int) -> tuple[int, Days] | None:
    """``May 2025``, ``in March``, ``im M\u00e4rz``, ``in 2024``, ``im Jahr 2024``."""
    word = text.words[at]
    if word in MONTH_NAMES:
        year = at + 2 if text.at(at + 1) == "of" else at + 1
        return _of(year + 1, _month(int(text.at(year)), month_number(word))) if _is_year(text.at(year)) else None
    if word not in _IN and word not in {"year", "jahr"}:
        return None
    name = at + 1
    if text.at(name) in {"jahr", "jahre", "year", "the"}:
        name += 1
    if _is_year(text.at(name)):
        return name + 1, _year(int(text.at(name)))
    if text.at(name) in MONTH_NAMES and word in _IN:
        dated = _month_or_year(text, name) or _day_of_month(text, name)
        return dated or (name + 1, _latest_month(text, month_number(text.at(name)), this_counts=True))
    return None


def _day_of_month(text: _Words, at: int) -> tuple[int, Days] | None:
    """``March 3rd``, ``3. M\u00e4rz``, ``3rd of March``: the latest of that name. ``may`` needs ``on`` before it."""
    word = text.words[at]
    if word in MONTH_NAMES and _is_day(text.at(at + 1)) and (word != "may" or text.at(at - 1) in _ON):
        end = at + 3 if text.at(at + 2) in {"st", "nd", "rd", "th"} else at + 2
        return _of(end, _latest_day(text, month_number(word), int(text.at(at + 1))))
    if not _is_day(word):
        return None
    name = at + 1
    if text.at(name) in {"st", "nd", "rd", "th"}:
        name += 1
    if text.at(name) == "of":
        name += 1
    if text.at(name) not in MONTH_NAMES or (text.at(name) == "may" and text.at(at - 1) not in _ON):
        return None
    return _of(name + 1, _latest_day(text, month_number(text.at(name)), int(word)))


def _on_weekday(text: _Words, at: int) -> tuple[int, Days] | None:
    """``on Monday``, ``am Montag``: today or before."""
    weekday = _WEEKDAYS.get(text.at(at + 1))
    if weekday is None or text.words[at] not in _ON:
        return None
    if dated := _weekday_alone(text, at + 1):
        return dated
    return at + 2, _weekday(text, weekday, today_counts=True)


def _weekday_alone(text: _Words, at: int) -> tuple[int, Days] | None:
    """``Friday, November 27``, or at the end of the query and before a part of the day ``Friday``, ``Friday's``."""
    weekday = _WEEKDAYS.get(text.words[at])
    if weekday is None or text.at(at - 1) in _REPEATED:
        return None
    name = at + 2 if text.at(at + 1) in {"the", "den", "dem", "der"} else at + 1
    if text.at(name) and (dated := _day_of_month(text, name)):
        return dated
    if not text.ends_with(at) and text.at(at + 1) not in _DAYTIMES:
        return None
    return at + 1, _weekday(text, weekday, today_counts=True)


def _nth(text: _Words, at: int) -> tuple[int, Days] | None:
    """``on the 27th``: the latest such day."""
    number = text.at(at + 2)
    if text.words[at] not in {*_ON, "for"} or text.at(at + 1) != "the" or not _is_day(number):
        return None
    if text.at(at + 3) not in {"st", "nd", "rd", "th"} or text.at(at + 4) == "of":
        return None
    for months in range(12):
        back = text.today.year * 12 + text.today.month - 1 - months
        first = day(back // 12, back % 12 + 1, int(number))
        if first is not None and first <= text.today:
            return at + 4, (first, first + _DAY)
    return None


_RULES: Final[tuple[Rule, ...]] = (
    _single_day,
    _recent_units,
    _calendar_unit,
    _units_ago,
    _month_or_year,
    _day_of_month,
    _nth,
    _weekday_alone,
    _on_weekday,
)


def _of(end: int, days: Days | None) -> tuple[int, Days] | None:
    return None if days is None else (end, days)


def _count(text: _Words, at: int) -> tuple[int, tuple[int, int] | None]:
    """Return the index behind a number and its smallest and greatest meaning, None if there is no number."""
    word = text.at(at)
    if word in {"a", "ein"} and text.at(at + 1) in {"couple", *_SEVERAL}:
        at, word = at + 1, text.at(at + 1)
    end = at + 2 if text.at(at + 1) == "of" else at + 1
    if word in _SEVERAL:
        return end, _SEVERAL_RANGE
    if word.isdecimal() and word.isascii() and len(word) <= 4:
        return end, (int(word), int(word))
    count = _COUNTS.get(word)
    return end, None if count is None else (count, count)


def _days_ago(text: _Words, count: int) -> Days:
    first = text.today - count * _DAY
    return first, first + _DAY


def _ago(text: _Words, unit: str, count: int) -> Days:
    """Return the days of ``count`` units ago: a day, the seven days around it, a calendar month or year."""
    if unit == "hour":
        first = (text.now - timedelta(hours=count)).date()
        return first, first + _DAY
    if unit == "day":
        return _days_ago(text, count)
    if unit == "week":
        middle = text.today - 7 * count * _DAY
        return middle - 3 * _DAY, middle + 4 * _DAY
    if unit == "year":
        return _year(text.today.year - count)
    months = text.today.year * 12 + text.today.month - 1 - count
    return _month(months // 12, months % 12 + 1)


def _unit_back(today: date, unit: str, back: int) -> Days | None:
    """Return the calendar unit ``back`` units before the one of ``today``; None for hours and days."""
    if unit == "week":
        monday = today - today.weekday() * _DAY - 7 * back * _DAY
        return monday, monday + 7 * _DAY
    if unit == "weekend":
        monday = today - today.weekday() * _DAY
        saturday = monday + (5 - 7 * back) * _DAY
        return saturday, saturday + 2 * _DAY
    if unit == "month":
        months = today.year * 12 + today.month - 1 - back
        return _month(months // 12, months % 12 + 1)
    return _year(today.year - back) if unit == "year" else None


def _weekday(text: _Words, weekday: int, *, today_counts: bool) -> Days:
    """Return the latest such day of the week."""
    back = (text.today.weekday() - weekday) % 7
    return _days_ago(text, back if back or today_counts else 7)


def _latest_month(text: _Words, month: int, *, this_counts: bool) -> Days:
    today = text.today
    has_begun = month < today.month or (month == today.month and this_counts)
    return _month(today.year if has_begun else today.year - 1, month)


def _latest_day(text: _Words, month: int, number: int) -> Days | None:
    for year in range(text.today.year, text.today.year - 9, -1):  # 29 February
        first = day(year, month, number)
        if first is not None and first <= text.today:
            return first, first + _DAY
    return None


def _month(year: int, month: int) -> Days:
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def _year(year: int) -> Days:
    return date(year, 1, 1), date(year + 1, 1, 1)


def _is_year(word: str) -> bool:
    return len(word) == 4 and word.isascii() and word.isdecimal() and word[:2] in {"19", "20", "21"}


def _is_day(word: str) -> bool:
    return 0 < len(word) <= 2 and word.isascii() and word.isdecimal() and 1 <= int(word) <= 31
