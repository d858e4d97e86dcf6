"""The time that a query names, as days of the caller's calendar and as a window of instants.

Source: docs/compatibility.md "Temporal requests"; docs/decisions.md 58.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from enum import Enum
from typing import Final, NamedTuple

from signet_actors.domain.temporal.full_dates import FIRST_YEAR, LAST_YEAR, full_dates, is_limit, is_since
from signet_actors.domain.temporal.other_languages import english_phrases
from signet_actors.domain.temporal.relative_dates import MAX_CHARS, RelativeDate, relative_date
from signet_actors.domain.timestamps import iso, normalize_timestamp

_LOCAL_TIME: Final = re.compile(
    r"[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}(?P<time>[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)?", re.ASCII
)
"""A date or a time without an offset."""
_WORDS_OF_LIMITS: Final = frozenset({"on", "the", "am", "of"})
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

    ``rest`` is the query without it. ``is_limit``: a word before it says that another time is meant ("before Monday").
    ``is_since``: that word says that the time began then ("since Monday").
    """

    text: str
    rest: str
    first: date
    after: date
    kind: PhraseKind
    is_limit: bool
    is_since: bool


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
    if dates:
        return None
    relative = relative_date(query, now)
    for start, end, english in english_phrases(query[:MAX_CHARS]):
        named = date_phrase(english, now)
        if named is not None and (relative is None or end <= relative.start):
            relative = RelativeDate(start, end, named.first, named.after)
            break
    if relative is None or relative.first.year < FIRST_YEAR or relative.after.year > LAST_YEAR:
        return None
    return _phrase(query, *relative, PhraseKind.RELATIVE)


def window_of(phrase: DatePhrase, zone: tzinfo) -> Window:
    """Return the instants of the phrase's days in ``zone``, from midnight to midnight."""
    return Window(_midnight_ms(phrase.first, zone), _midnight_ms(phrase.after, zone))


def ms_of(moment: datetime) -> int:
    """Return the milliseconds since 1970."""
    return (moment - _EPOCH) // _MILLISECOND


def limit_of(text: str, now: datetime, *, end: bool) -> str | None:
    """Return the instant that ``text`` limits a search to, in the stored form; None if it is no time.

    ``text`` is a date, a time, or a phrase such as ``last week``, in the time zone of ``now``, which is aware. A day is
    meant whole: as the ``end`` it is its last millisecond. A time with an offset is taken as it is.
    """
    zone = now.tzinfo
    assert zone is not None
    local = _LOCAL_TIME.fullmatch(text.strip())
    if local is not None and (moment := _moment(local[0])) is not None:
        if local["time"]:
            return iso(_ms_in(moment, zone))
        following = moment + timedelta(days=1) if moment.year < LAST_YEAR else moment
        return iso(_ms_in(following, zone) - 1 if end else _ms_in(moment, zone))
    if (given := normalize_timestamp(text)) is not None:
        return given
    phrase = date_phrase(text, now)
    if phrase is None or not _WORDS_OF_LIMITS.issuperset(phrase.rest.lower().split()):
        return None
    window = window_of(phrase, zone)
    return iso(window.end_ms - 1 if end else window.start_ms)


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text.replace("/", "-"))
    except ValueError:
        return None


def _phrase(query: str, start: int, end: int, first: date, after: date, kind: PhraseKind) -> DatePhrase:
    rest = f"{query[:start]} {query[end:]}"
    return DatePhrase(query[start:end], rest, first, after, kind, is_limit(query, start), is_since(query, start))


def _midnight_ms(of: date, zone: tzinfo) -> int:
    return _ms_in(datetime(of.year, of.month, of.day), zone)  # noqa: DTZ001 - the zone is put on it


def _ms_in(local: datetime, zone: tzinfo) -> int:
    return ms_of(local.replace(tzinfo=zone))
