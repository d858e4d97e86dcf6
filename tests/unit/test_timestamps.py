"""Every time is converted to one form or refused; nothing overflows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.timestamps import epoch_ms, normalize_timestamp


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("2026-02-21T10:00:00.000Z", "2026-02-21T10:00:00.000Z"),
        ("2026-02-21T10:00:00Z", "2026-02-21T10:00:00.000Z"),
        ("2026-02-21t10:00:00z", "2026-02-21T10:00:00.000Z"),
        ("2026-02-21T10:00Z", "2026-02-21T10:00:00.000Z"),
        ("2026-02-21T10:00:00.5Z", "2026-02-21T10:00:00.500Z"),
        ("2026-02-21T10:00:00.123456789Z", "2026-02-21T10:00:00.123Z"),
        ("2026-02-21T10:00:00.9999Z", "2026-02-21T10:00:00.999Z"),
        ("2026-02-21T10:00:00,25Z", "2026-02-21T10:00:00.250Z"),
        ("2026-02-21T10:00:00+02:00", "2026-02-21T08:00:00.000Z"),
        ("2026-02-21T10:00:00-0530", "2026-02-21T15:30:00.000Z"),
        ("2026-02-21T10:00:00+02", "2026-02-21T08:00:00.000Z"),
        ("2026-02-21T10:00:00", "2026-02-21T10:00:00.000Z"),
        ("2026-02-21 10:00:00", "2026-02-21T10:00:00.000Z"),
        ("2026-02-21 10:00:00 +01:00", "2026-02-21T09:00:00.000Z"),
        (" 2026-02-21 ", "2026-02-21T00:00:00.000Z"),
        ("2024-02-29", "2024-02-29T00:00:00.000Z"),
        ("0001-01-01", "0001-01-01T00:00:00.000Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
    ],
)
def test_a_time_is_stored_in_one_form(text: str, stored: str) -> None:
    assert normalize_timestamp(text) == stored


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026",
        "2026-2-1",
        "2026-02-30",
        "2025-02-29",
        "2026-13-01",
        "0000-01-01",
        "2026-02-21T25:00:00Z",
        "2026-02-21T10:60:00Z",
        "2026-02-21T10:00:61Z",
        "2026-02-21T10:00:00+25:00",
        "2026-02-21T10:00:00+02:75",
        "2026-02-21T10",
        "2026-02-21x10:00:00",
        "2026-02-21Z",
        "1771668000",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-01:00",
        "\u0662\u0660\u0662\u0666-02-21",
        "2026-02-21T10:00:00Z; DROP TABLE memories",
    ],
)
def test_an_invalid_time_is_refused(text: str) -> None:
    assert normalize_timestamp(text) is None
    assert epoch_ms(text) is None


@pytest.mark.parametrize("end", ["Z", "+00:00"])
@pytest.mark.parametrize(
    "day", ["2026-02-28", "2026-02-29", "2024-02-29", "2026-00-10", "2026-04-31", "0000-01-01", "0001-01-01"]
)
@pytest.mark.parametrize("hour", ["00:00:00.000", "23:59:59.999", "24:00:00.000", "12:60:00.000", "12:00:60.000"])
def test_a_time_in_the_stored_form_is_validated_like_every_other(day: str, hour: str, end: str) -> None:
    other = normalize_timestamp(f"{day} {hour} +00:00")
    assert normalize_timestamp(f"{day}T{hour}{end}") == other
    assert other in {None, f"{day}T{hour}Z"}


@given(st.text())
def test_no_text_raises_an_error(text: str) -> None:
    stored = normalize_timestamp(text)
    assert stored is None or normalize_timestamp(stored) == stored


@given(
    st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31)),  # noqa: DTZ001 - bounds of a naive strategy
    st.integers(-14 * 60, 14 * 60),
)
def test_offsets_agree_with_the_standard_library_and_order_as_text(moment: datetime, minutes: int) -> None:
    sign = "-" if minutes < 0 else "+"
    text = f"{moment.isoformat()}{sign}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
    expected = moment.replace(tzinfo=UTC) - timedelta(minutes=minutes)
    stored = normalize_timestamp(text)
    assert stored is not None
    assert stored[:19] == expected.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    later = normalize_timestamp((expected + timedelta(seconds=1)).isoformat())
    assert later is not None
    assert stored < later


def test_the_epoch_is_zero_and_earlier_times_are_negative() -> None:
    assert epoch_ms("1970-01-01T00:00:00.000Z") == 0
    assert epoch_ms("1969-12-31T23:59:59.999Z") == -1
    assert epoch_ms("2026-02-21T10:00:00.123Z") == 1771668000123
