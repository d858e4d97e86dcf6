"""Exact dates in a query."""

from __future__ import annotations

import time

import pytest

from signet_actors.domain.date_phrases import date_phrase

LONGEST = 20_000


@pytest.mark.parametrize(
    ("query", "phrase", "day"),
    [
        ("2026/05/13 editor", "2026/05/13", "2026-05-13"),
        ("tell me about the deploy on 2026-5-3", "2026-5-3", "2026-05-03"),
        ("what were we doing on May 13, 2026?", "May 13, 2026", "2026-05-13"),
        ("May 13 2026", "May 13 2026", "2026-05-13"),
        ("notes of sept 1st 2025", "sept 1st 2025", "2025-09-01"),
        ("DECEMBER 31, 1999", "DECEMBER 31, 1999", "1999-12-31"),
        ("2026-02-30 or 2026-03-01", "2026-03-01", "2026-03-01"),
        ("2026-02-30", None, None),
        ("13 May 2026", "13 May 2026", "2026-05-13"),
        ("who came on the 3rd of June, 2023?", "3rd of June, 2023", "2023-06-03"),
        ("31 June 2023", None, None),
        ("between May 1, 2025 and 2025-06-01", "May 1, 2025", "2025-05-01"),
        ("met on \u017fept 13, 2026", None, None),
        ("may 13", None, None),
        ("last tuesday", None, None),
        ("port 5432 of 10.0.0.1", None, None),
        ("marching 12 2024", None, None),
        ("", None, None),
    ],
)
def test_a_full_date_is_found_in_every_form(query: str, phrase: str | None, day: str | None) -> None:
    found = date_phrase(query)
    assert (found and found.text, found and found.date.isoformat()) == (phrase, day)


@pytest.mark.parametrize(
    "piece", ["0", "2026-", "2026-1-", "may 1 ", "may   ", "jan 1st, 202", "2026/13/45 ", "january 31 99999 "]
)
def test_the_longest_query_takes_linear_time(piece: str) -> None:
    query = ("2026 " + piece * LONGEST)[:LONGEST]
    began = time.perf_counter()
    date_phrase(query)
    assert time.perf_counter() - began < 5, "hangs"
