"""Times as people read them: local and relative on a terminal. On a pipe they stay as the daemon sent them (ISO 8601).

Source: docs/cli.md "Output".
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click

from signet_actors.cli.presentation import counted, on_terminal, one_line

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400
RELATIVE_DAYS = 7
"""An older time is shown as a date."""
TIME_FORMS: Final = (
    "Give a date (2026-01-31), a time (2026-01-31T14:00, or 2026-01-31T14:00Z in UTC), or a phrase such as `yesterday`,"
    " `last week`, `3 days ago` or `in March`."
)


class PastTime(click.ParamType[str]):
    """A time, or a phrase that a recall understands: ``2026-01-31``, ``yesterday``, ``last week``, ``3 days ago``.

    Days are those of this machine. A day becomes its beginning, or with ``end`` its last moment.
    """

    name = "time"

    def __init__(self, *, end: bool = False) -> None:
        self._end = end

    def convert(self, value: Any, parameter: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the time in ISO form; refuse what is neither a time nor a phrase."""
        from signet_actors.domain.temporal.phrases import limit_of  # noqa: PLC0415 - only with such an option
        from signet_actors.domain.timestamps import normalize_timestamp  # noqa: PLC0415
        from signet_actors.runtime.local_zone import LOCAL_ZONE  # noqa: PLC0415

        text = str(value)
        if not text.strip():
            return value
        found = limit_of(text, current_time().astimezone(LOCAL_ZONE), end=self._end)
        if found is None:
            self.fail(f"{one_line(text, 80)!r} is not a time. {TIME_FORMS}", parameter, ctx)
        return value if found == normalize_timestamp(text) else found


SINCE: Final = PastTime()
UNTIL: Final = PastTime(end=True)


def current_time() -> datetime:
    """Return the time of this machine's clock, with its time zone."""
    return datetime.fromtimestamp(time.time(), UTC).astimezone()


def time_text(value: Any) -> str:
    """Return an ISO timestamp for a table: relative or local on a terminal, unchanged on a pipe."""
    moment = _moment(value) if on_terminal() else None
    return str(value or "") if moment is None else _relative(moment) or f"{moment:%Y-%m-%d %H:%M}"


def full_time_text(value: Any) -> str:
    """Return an ISO timestamp for a single field: local and relative on a terminal, unchanged on a pipe."""
    moment = _moment(value) if on_terminal() else None
    if moment is None:
        return str(value or "")
    relative = _relative(moment)
    return f"{moment:%Y-%m-%d %H:%M:%S}{f' ({relative})' if relative else ''}"


def clock_text(value: Any) -> str:
    """Return the time of a line of the log: on a terminal the local one, without the day if that is today."""
    moment = _moment(value) if on_terminal() else None
    if moment is None:
        return str(value or "")
    return f"{moment:%H:%M:%S}" if moment.date() == current_time().date() else f"{moment:%m-%d %H:%M:%S}"


def age_text(seconds: float) -> str:
    """Return how long ago something was, such as ``7 min ago``; in days if that is long."""
    moment = current_time() - timedelta(seconds=seconds)
    return _relative(moment) or _ago(f"{int(seconds // DAY_S)} days", past=True)


def _moment(value: Any) -> datetime | None:
    """Return the local time of an ISO timestamp; None if it is none."""
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone()
    except (TypeError, ValueError, OverflowError):
        return None


def _relative(moment: datetime) -> str:
    """Return how far the time is from now; empty if it is more than a week."""
    now = current_time()
    seconds = (now - moment).total_seconds()
    apart = abs(seconds)
    if apart < MINUTE_S:
        return "just now" if seconds >= 0 else "in a moment"
    if apart < HOUR_S:
        return _ago(f"{int(apart // MINUTE_S)} min", past=seconds > 0)
    if apart < DAY_S:
        return _ago(counted(int(apart // HOUR_S), "hour"), past=seconds > 0)
    if moment.date() == (now - timedelta(days=1)).date():
        return "yesterday"
    days = int(apart // DAY_S)
    return _ago(counted(days, "day"), past=seconds > 0) if days < RELATIVE_DAYS else ""


def _ago(text: str, *, past: bool) -> str:
    return f"{text} ago" if past else f"in {text}"
