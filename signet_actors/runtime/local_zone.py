"""The time zone of this process as a ``tzinfo``, whatever names it: ``TZ``, ``/etc/localtime``, or nothing (UTC)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

_NONE: Final = timedelta(0)


class LocalZone(tzinfo):
    """The machine's rules, with daylight saving time of the moment in question."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        if moment is None:
            return _NONE
        try:
            return moment.replace(tzinfo=None).astimezone().utcoffset() or _NONE
        except (OverflowError, ValueError, OSError):  # outside what the machine's calendar knows
            return _NONE

    def dst(self, moment: datetime | None) -> timedelta | None:  # noqa: ARG002
        return None

    def tzname(self, moment: datetime | None) -> str:  # noqa: ARG002
        return "local"

    def fromutc(self, moment: datetime) -> datetime:
        try:
            local = moment.replace(tzinfo=UTC).astimezone()
        except (OverflowError, ValueError, OSError):
            return moment
        return local.replace(tzinfo=self)


LOCAL_ZONE: Final = LocalZone()
