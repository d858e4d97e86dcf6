"""The times that a query names. Source: docs/compatibility.md "Temporal requests", "Worked examples: dates"."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from signet_actors.domain.temporal.phrases import PhraseKind, date_phrase, limit_of, window_of

LONGEST = 20_000
NOW = datetime(2026, 11, 25, 9, 30, tzinfo=UTC)
"""A Wednesday."""


def days(query: str, now: datetime = NOW) -> tuple[str, str, str] | None:
    """The phrase, its first day and the day after its last."""
    found = date_phrase(query, now)
    return found and (found.text, found.first.isoformat(), found.after.isoformat())


@pytest.mark.parametrize(
    ("query", "phrase", "first", "after"),
    [
        ("2026/05/13 editor", "2026/05/13", "2026-05-13", "2026-05-14"),
        ("tell me about the deploy on 2026-5-3", "2026-5-3", "2026-05-03", "2026-05-04"),
        ("what were we doing on May 13, 2026?", "May 13, 2026", "2026-05-13", "2026-05-14"),
        ("May 13 2026", "May 13 2026", "2026-05-13", "2026-05-14"),
        ("notes of sept 1st 2025", "sept 1st 2025", "2025-09-01", "2025-09-02"),
        ("DECEMBER 31, 1999", "DECEMBER 31, 1999", "1999-12-31", "2000-01-01"),
        ("2026-02-30 or 2026-03-01", "2026-03-01", "2026-03-01", "2026-03-02"),
        ("2026-07-25/26", "2026-07-25/26", "2026-07-25", "2026-07-27"),
        ("July 25/26 2026", "July 25/26 2026", "2026-07-25", "2026-07-27"),
        ("May 13,2026", "May 13,2026", "2026-05-13", "2026-05-14"),
        ("before May 1, 2025, on 2025-06-01", "2025-06-01", "2025-06-01", "2025-06-02"),
        ("(2026-05-13).", "2026-05-13", "2026-05-13", "2026-05-14"),
        ("yesterday, no, 2026-05-13", "2026-05-13", "2026-05-13", "2026-05-14"),
        ("13 May 2025 or 2026-05-13", "2026-05-13", "2026-05-13", "2026-05-14"),
    ],
)
def test_a_documented_date_is_exact(query: str, phrase: str, first: str, after: str) -> None:
    assert days(query) == (phrase, first, after)
    found = date_phrase(query, NOW)
    assert found is not None
    assert found.kind is PhraseKind.EXACT


@pytest.mark.parametrize(
    ("query", "phrase", "first"),
    [
        ("13 May 2026", "13 May 2026", "2026-05-13"),
        ("who came on the 3rd of June, 2023?", "3rd of June, 2023", "2023-06-03"),
        ("on 3 June, 2023", "3 June, 2023", "2023-06-03"),
        ("am 13. Mai 2026", "13. Mai 2026", "2026-05-13"),
        ("13. März 2026", "13. März 2026", "2026-03-13"),
        ("am 13.05.2026", "13.05.2026", "2026-05-13"),
        ("vom 3. 6. 2023", "3. 6. 2023", "2023-06-03"),
        ("the file backup-2026-05-13.db", "2026-05-13", "2026-05-13"),
        ("logs/2026/05/13/app.log", "2026/05/13", "2026-05-13"),
        ("the week before May 13, 2026", "May 13, 2026", "2026-05-13"),
        ("Since 2026-05-13 it fails", "2026-05-13", "2026-05-13"),
        ("seit 2026-05-13", "2026-05-13", "2026-05-13"),
        ("error at 2026-05-13T10:00:00Z", "2026-05-13", "2026-05-13"),
    ],
)
def test_another_full_date_is_read_but_is_not_exact(query: str, phrase: str, first: str) -> None:
    found = date_phrase(query, NOW)
    assert found is not None
    assert (found.text, found.first.isoformat(), found.kind) == (phrase, first, PhraseKind.FULL)
    assert (found.after - found.first).days == 1


@pytest.mark.parametrize(
    "query",
    [
        *(
            "2026-02-30",
            "31 June 2023",
            "June 31, 2023",
            "2026-07-25/01",
            "2026-07-25/26th",
            "2026-13-01",
            "0001-01-01",
        ),
        *("9999-12-31", "met on \u017fept 13, 2026", "may 13", "port 5432 of 10.0.0.1", "marching 12 2024", "", "2024"),
        *("the last of the week", "past the weekend", "in a second", "ago", "vor", "every Monday", "next week"),
        *(
            "May we go?",
            "we march on",
            "vor dem Essen",
            "last but not least",
            "this is it",
            "three days",
            "99999 days ago",
        ),
        *("9999 years ago", "yester day", "in 1024 files", "from the second of the list", "release 2024.05.1234"),
    ],
)
def test_other_text_names_no_time(query: str) -> None:
    assert days(query) is None


@pytest.mark.parametrize(
    ("query", "phrase", "first", "after"),
    [
        ("what did we do today?", "today", "2026-11-25", "2026-11-26"),
        ("yesterday's deploy", "yesterday", "2026-11-24", "2026-11-25"),
        ("the day before yesterday", "day before yesterday", "2026-11-23", "2026-11-24"),
        ("this morning", "this morning", "2026-11-25", "2026-11-26"),
        ("last night", "last night", "2026-11-24", "2026-11-25"),
        ("last week", "last week", "2026-11-16", "2026-11-23"),
        ("this week", "this week", "2026-11-23", "2026-11-30"),
        ("the past week", "past week", "2026-11-18", "2026-11-26"),
        ("last month", "last month", "2026-10-01", "2026-11-01"),
        ("this month", "this month", "2026-11-01", "2026-12-01"),
        ("last year", "last year", "2025-01-01", "2026-01-01"),
        ("this year", "this year", "2026-01-01", "2027-01-01"),
        ("last weekend", "last weekend", "2026-11-21", "2026-11-23"),
        ("three days ago", "three days ago", "2026-11-22", "2026-11-23"),
        ("a day ago", "a day ago", "2026-11-24", "2026-11-25"),
        ("10 hours ago", "10 hours ago", "2026-11-24", "2026-11-25"),
        ("two weeks ago", "two weeks ago", "2026-11-08", "2026-11-15"),
        ("a couple of days ago", "a couple of days ago", "2026-11-23", "2026-11-24"),
        ("a few days ago", "a few days ago", "2026-11-20", "2026-11-24"),
        ("two months ago", "two months ago", "2026-09-01", "2026-10-01"),
        ("12 months ago", "12 months ago", "2025-11-01", "2025-12-01"),
        ("2 years ago", "2 years ago", "2024-01-01", "2025-01-01"),
        ("in the last three days", "last three days", "2026-11-22", "2026-11-26"),
        ("the past 2 weeks", "past 2 weeks", "2026-11-08", "2026-11-26"),
        ("last Monday", "last Monday", "2026-11-23", "2026-11-24"),
        ("last Wednesday", "last Wednesday", "2026-11-18", "2026-11-19"),
        ("on Wednesday", "on Wednesday", "2026-11-25", "2026-11-26"),
        ("on Thursday", "on Thursday", "2026-11-19", "2026-11-20"),
        ("2025-05", "2025-05", "2025-05-01", "2025-06-01"),
        ("2025/12 report", "2025/12", "2025-12-01", "2026-01-01"),
        ("May 2025", "May 2025", "2025-05-01", "2025-06-01"),
        ("in July of 2023", "in July of 2023", "2023-07-01", "2023-08-01"),
        ("in March", "in March", "2026-03-01", "2026-04-01"),
        ("in December", "in December", "2025-12-01", "2026-01-01"),
        ("in november", "in november", "2026-11-01", "2026-12-01"),
        ("last November", "last November", "2025-11-01", "2025-12-01"),
        ("in 2024", "in 2024", "2024-01-01", "2025-01-01"),
        ("on March 3rd", "March 3rd", "2026-03-03", "2026-03-04"),
        ("on December 3", "December 3", "2025-12-03", "2025-12-04"),
        ("the 3rd of March", "3rd of March", "2026-03-03", "2026-03-04"),
        ("on May 13", "May 13", "2026-05-13", "2026-05-14"),
        ("February 29", "February 29", "2024-02-29", "2024-03-01"),
        ("was haben wir heute gemacht?", "heute", "2026-11-25", "2026-11-26"),
        ("gestern", "gestern", "2026-11-24", "2026-11-25"),
        ("vorgestern", "vorgestern", "2026-11-23", "2026-11-24"),
        ("letzte Woche", "letzte Woche", "2026-11-16", "2026-11-23"),
        ("diese Woche", "diese Woche", "2026-11-23", "2026-11-30"),
        ("vergangenen Monat", "vergangenen Monat", "2026-10-01", "2026-11-01"),
        ("voriges Jahr", "voriges Jahr", "2025-01-01", "2026-01-01"),
        ("letztes Wochenende", "letztes Wochenende", "2026-11-21", "2026-11-23"),
        ("in den letzten 3 Tagen", "letzten 3 Tagen", "2026-11-22", "2026-11-26"),
        ("vor drei Tagen", "vor drei Tagen", "2026-11-22", "2026-11-23"),
        ("vor fünf Wochen", "vor fünf Wochen", "2026-10-18", "2026-10-25"),
        ("vor einem Monat", "vor einem Monat", "2026-10-01", "2026-11-01"),
        ("vor ein paar Tagen", "vor ein paar Tagen", "2026-11-20", "2026-11-24"),
        ("letzten Montag", "letzten Montag", "2026-11-23", "2026-11-24"),
        ("am Dienstag", "am Dienstag", "2026-11-24", "2026-11-25"),
        ("im März", "im März", "2026-03-01", "2026-04-01"),
        ("im Mai 2025", "im Mai 2025", "2025-05-01", "2025-06-01"),
        ("Ende Oktober", "Ende Oktober", "2026-10-01", "2026-11-01"),
        ("im Jahr 2024", "im Jahr 2024", "2024-01-01", "2025-01-01"),
        ("am 3. März", "3. März", "2026-03-03", "2026-03-04"),
    ],
)
def test_a_relative_time_is_read_in_english_and_german(query: str, phrase: str, first: str, after: str) -> None:
    assert days(query) == (phrase, first, after)
    found = date_phrase(query, NOW)
    assert found is not None
    assert found.kind is PhraseKind.RELATIVE


def test_a_word_in_another_sentence_belongs_to_no_phrase() -> None:
    assert days("We saw the last (week 7)") is None
    assert days("three; days ago") is None


@pytest.mark.parametrize(
    ("now", "query", "first", "after"),
    [
        (datetime(2026, 1, 1, tzinfo=UTC), "last month", "2025-12-01", "2026-01-01"),
        (datetime(2026, 1, 1, tzinfo=UTC), "yesterday", "2025-12-31", "2026-01-01"),
        (datetime(2024, 3, 1, tzinfo=UTC), "yesterday", "2024-02-29", "2024-03-01"),
        (datetime(2026, 11, 22, tzinfo=UTC), "this week", "2026-11-16", "2026-11-23"),
        (datetime(2026, 11, 22, tzinfo=UTC), "last weekend", "2026-11-14", "2026-11-16"),
        (datetime(9999, 12, 31, tzinfo=UTC), "today", None, None),
        (datetime(1, 1, 1, tzinfo=UTC), "yesterday", None, None),
    ],
)
def test_a_relative_time_crosses_months_and_years(
    now: datetime, query: str, first: str | None, after: str | None
) -> None:
    found = days(query, now)
    assert (found and found[1], found and found[2]) == (first, after)


@pytest.mark.parametrize(
    ("zone", "query", "start", "end"),
    [
        ("America/Denver", "2026/05/13", "2026-05-13T06:00:00+00:00", "2026-05-14T06:00:00+00:00"),
        ("UTC", "2026/05/13", "2026-05-13T00:00:00+00:00", "2026-05-14T00:00:00+00:00"),
        ("Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00+00:00", "2026-03-29T22:00:00+00:00"),
        ("Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00+00:00", "2026-10-25T23:00:00+00:00"),
        ("Asia/Kathmandu", "2026-05-13", "2026-05-12T18:15:00+00:00", "2026-05-13T18:15:00+00:00"),
        ("Africa/Cairo", "2026-04-24", "2026-04-23T22:00:00+00:00", "2026-04-24T21:00:00+00:00"),  # midnight is skipped
    ],
)
def test_a_day_lasts_from_midnight_to_midnight_of_the_zone(zone: str, query: str, start: str, end: str) -> None:
    found = date_phrase(query, NOW)
    assert found is not None
    window = window_of(found, ZoneInfo(zone))
    assert [datetime.fromtimestamp(ms / 1000, UTC).isoformat() for ms in window] == [start, end]


def test_today_depends_on_the_zone_of_the_query() -> None:
    late = datetime(2026, 11, 25, 23, 30, tzinfo=UTC)
    assert days("today", late.astimezone(ZoneInfo("America/Los_Angeles"))) == ("today", "2026-11-25", "2026-11-26")
    assert days("today", late.astimezone(ZoneInfo("Asia/Tokyo"))) == ("today", "2026-11-26", "2026-11-27")


@pytest.mark.parametrize(
    "piece",
    [
        *("0", "2026-", "2026-1-", "may 1 ", "may   ", "jan 1st, 202", "2026/13/45 ", "january 31 99999 ", "1.1."),
        *("last 3 ", "vor ein paar ", "in the ", "day before ", "a few ", "3rd of ", "\u00e4", "20261 ", "2026/07/25/"),
    ],
)
def test_the_longest_query_takes_linear_time(piece: str) -> None:
    query = ("2026 " + piece * LONGEST)[:LONGEST]
    began = time.perf_counter()
    date_phrase(query, NOW)
    assert time.perf_counter() - began < 20, "hangs"


LIMITS = [
    ("Asia/Tokyo", "2026-11-27", "2026-11-26T15:00:00.000Z", "2026-11-27T14:59:59.999Z"),
    ("Asia/Tokyo", "yesterday", "2026-11-23T15:00:00.000Z", "2026-11-24T14:59:59.999Z"),
    ("Asia/Tokyo", "2026-11-27T10:00", "2026-11-27T01:00:00.000Z", "2026-11-27T01:00:00.000Z"),
    ("Asia/Tokyo", "2026-11-27T10:00Z", "2026-11-27T10:00:00.000Z", "2026-11-27T10:00:00.000Z"),
    ("Asia/Tokyo", "2026-11-27T10:00+01:00", "2026-11-27T09:00:00.000Z", "2026-11-27T09:00:00.000Z"),
    ("Asia/Kathmandu", "2026-11-27", "2026-11-26T18:15:00.000Z", "2026-11-27T18:14:59.999Z"),
    ("Asia/Kathmandu", "last week", "2026-11-15T18:15:00.000Z", "2026-11-22T18:14:59.999Z"),
    ("America/New_York", "2026-11-01", "2026-11-01T04:00:00.000Z", "2026-11-02T04:59:59.999Z"),  # 25 hours
    ("America/New_York", "2026-03-08", "2026-03-08T05:00:00.000Z", "2026-03-09T03:59:59.999Z"),  # 23 hours
    ("America/New_York", "November 1, 2026", "2026-11-01T04:00:00.000Z", "2026-11-02T04:59:59.999Z"),
    ("America/New_York", "on Monday", "2026-11-23T05:00:00.000Z", "2026-11-24T04:59:59.999Z"),
    ("America/New_York", "in March", "2026-03-01T05:00:00.000Z", "2026-04-01T03:59:59.999Z"),
    ("America/New_York", "2026-03-07 23:59:59.5", "2026-03-08T04:59:59.500Z", "2026-03-08T04:59:59.500Z"),
    ("Europe/Berlin", "27.11.2026", "2026-11-26T23:00:00.000Z", "2026-11-27T22:59:59.999Z"),
    ("UTC", "2026/11/27", "2026-11-27T00:00:00.000Z", "2026-11-27T23:59:59.999Z"),
]


@pytest.mark.parametrize(("zone", "text", "since", "until"), LIMITS)
def test_a_limit_is_a_day_of_the_reader_and_as_an_end_includes_it(zone: str, text: str, since: str, until: str) -> None:
    now = NOW.astimezone(ZoneInfo(zone))
    assert (limit_of(text, now, end=False), limit_of(text, now, end=True)) == (since, until)


@pytest.mark.parametrize("text", ["2026-02-30", "20260101", "yesterday at noon", "blub", "the port of yesterday", "27"])
def test_what_is_no_time_limits_nothing(text: str) -> None:
    assert limit_of(text, NOW, end=True) is None
