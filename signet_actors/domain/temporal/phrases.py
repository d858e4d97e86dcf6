"""The time that a query names, as days of the caller's calendar and as a window of instants.

Source: docs/compatibility.md "Temporal requests"; docs/decisions.md 58.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from enum import Enum
from typing import Final, NamedTuple

from signet_actors.domain.temporal.full_dates import FIRST_YEAR, LAST_YEAR, full_dates, is_limit
from signet_actors.domain.temporal.relative_dates import relative_date
from signet_actors.domain.timestamps import iso

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


class PhraseKind(Enum):
    """How a query names a time.

    EXACT: a full date in a documented form, standing alone. FULL: another full date. RELATIVE: anything else, such as a
    month.
    """

    EXACT = "exact"
    FULL = "full"
    RELATIVE = "relative"


class DatePhrase(NamedTuple):
    """A time as it is written in a query; it means the days from ``first`` to before ``after``.

    ``rest`` is the query without it. ``is_limit``: a word before it says that another time is meant ("since Monday").
    """

    text: str
    rest: str
    first: date
    after: date
    kind: PhraseKind
    is_limit: bool


class Window(NamedTuple):
    """The instants from ``start_ms`` to before ``end_ms``, in milliseconds since 1970."""

    start_ms: int
    end_ms: int


def date_phrase(query: str, now: datetime) -> DatePhrase | None:
    """Return the time that ``query`` names, or None. ``now`` is the moment of the query in the caller's time zone.

    The first full date in a documented form counts, else the first other one, else the first relative time.
    A full date that does not exist is ignored, and a query with such a one alone names no time.
    """
    dates = full_dates(query)
    for is_exact in (True, False):
        for found in dates:
            if found.first is not None and found.after is not None and found.is_exact == is_exact:
                kind = PhraseKind.EXACT if is_exact else PhraseKind.FULL
                return _phrase(query, found.start, found.end, found.first, found.after, kind)
    relative = None if dates else relative_date(query, now)
    if relative is None or relative.first.year < FIRST_YEAR or relative.after.year > LAST_YEAR:
        return None
    return _phrase(query, *relative, PhraseKind.RELATIVE)


def window_of(phrase: DatePhrase, zone: tzinfo) -> Window:
    """Return the instants of the phrase's days in ``zone``, from midnight to midnight."""
    return Window(_midnight_ms(phrase.first, zone), _midnight_ms(phrase.after, zone))


def limit_of(text: str, now: datetime, *, end: bool) -> str | None:
    """Return the first moment of the days that the text names, or the last one with ``end``, in the stored form.

    The days are those of the time zone of ``now``. None if the text is anything but a date or such a phrase.
    """
    phrase = date_phrase(text, now)
    if phrase is None or phrase.rest.strip() or now.tzinfo is None:
        return None
    window = window_of(phrase, now.tzinfo)
    return iso(window.end_ms - 1 if end else window.start_ms)


def _phrase(query: str, start: int, end: int, first: date, after: date, kind: PhraseKind) -> DatePhrase:
    return DatePhrase(query[start:end], f"{query[:start]} {query[end:]}", first, after, kind, is_limit(query, start))


def _midnight_ms(of: date, zone: tzinfo) -> int:
    return (datetime(of.year, of.month, of.day, tzinfo=zone) - _EPOCH) // _MILLISECOND
