"""The stored form of a timestamp: ``YYYY-MM-DDTHH:MM:SS.mmmZ``, UTC, which sorts as text.

Source: memory-api.txt "POST /api/memory/remember" (createdAt and the temporal fields); docs/architecture.md "Names and
units".
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

_ISO = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})"
    r"(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?"
    r" ?(?:([Zz])|([+-])(\d{2}):?(\d{2})?)?)?",
    re.ASCII,
)
_STORED = re.compile(r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d\.\d{3}Z", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _parse(text: str) -> datetime | None:
    match = _ISO.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, _, sign, offset_hours, offset_minutes = match.groups()
    microsecond = int((fraction or "0")[:3].ljust(3, "0")) * 1000
    offset = timedelta(hours=int(offset_hours or 0), minutes=int(offset_minutes or 0))
    if int(offset_minutes or 0) > 59:
        return None
    try:
        zone = timezone(-offset if sign == "-" else offset)
        moment = datetime(
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), microsecond, zone
        )
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def normalize_timestamp(text: str) -> str | None:
    """Return ``text`` (ISO 8601, or SQLite's ``YYYY-MM-DD HH:MM:SS``) in the stored form, or None if it is not valid.

    A time without an offset is UTC. A bare date is its first moment in UTC. Digits beyond milliseconds are cut off.
    None also for dates that do not exist (30 February) and for years outside 0001 to 9999 in UTC.
    """
    if _STORED.fullmatch(text):  # the usual form, and that of exports; a sixth of the time of parsing
        try:
            datetime.fromisoformat(text)
        except ValueError:
            return None
        return text
    moment = _parse(text)
    if moment is None:
        return None
    return (
        f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}T{moment.hour:02d}:{moment.minute:02d}:"
        f"{moment.second:02d}.{moment.microsecond // 1000:03d}Z"
    )


def epoch_ms(text: str) -> int | None:
    """Return the milliseconds since the Unix epoch (negative before 1970), or None if ``text`` is not a valid time."""
    moment = _parse(text)
    return None if moment is None else (moment - _EPOCH) // timedelta(milliseconds=1)


def iso(wall_ms: int) -> str:
    """Return ``wall_ms`` (milliseconds since 1970) in the stored form."""
    moment = datetime.fromtimestamp(wall_ms / 1000, tz=UTC)
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}.{wall_ms % 1000:03d}Z"


def local_time(stored: str) -> datetime:
    """Return a moment in the stored form in the time zone of this machine; in UTC where that has no such moment."""
    moment = datetime.fromisoformat(stored)
    try:
        return moment.astimezone()
    except (OverflowError, ValueError, OSError):
        return moment


def moved(moment: str, by: timedelta) -> str:
    """Return ``moment`` moved by ``by``, both in the stored form; unmoved if the result is outside the calendar."""
    try:
        result = datetime.fromisoformat(moment) + by
    except OverflowError:
        return moment
    return f"{result.year:04d}-{result:%m-%dT%H:%M:%S}.{result.microsecond // 1000:03d}Z"
