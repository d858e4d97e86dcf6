"""The time zone of a process."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from signet_actors.runtime.local_zone import LOCAL_ZONE


@pytest.mark.usefixtures("berlin")
def test_a_local_time_follows_daylight_saving() -> None:
    assert datetime(2026, 1, 15, 12, tzinfo=LOCAL_ZONE).astimezone(UTC).hour == 11
    assert datetime(2026, 7, 15, 12, tzinfo=LOCAL_ZONE).astimezone(UTC).hour == 10
    assert datetime(2026, 7, 15, 22, 30, tzinfo=UTC).astimezone(LOCAL_ZONE).isoformat() == "2026-07-16T00:30:00+02:00"


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize("moment", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)])
def test_the_ends_of_the_calendar_have_an_offset(moment: datetime) -> None:
    assert moment.replace(tzinfo=LOCAL_ZONE).utcoffset() is not None
    assert LOCAL_ZONE.fromutc(moment.replace(tzinfo=LOCAL_ZONE)).tzinfo is LOCAL_ZONE
