"""Exact dates in a query."""

from __future__ import annotations

import time

import pytest

from signet_actors.domain.date_phrases import date_phrase

LONGEST = 20_000


@pytest.mark.parametrize(
    ("query", "phrase"),
    [
        ("2026/05/13 editor", "2026/05/13"),
        ("tell me about the deploy on 2026-5-3", "2026-5-3"),
        ("what were we doing on May 13, 2026?", "May 13, 2026"),
        ("May 13 2026", "May 13 2026"),
        ("notes of sept 1st 2025", "sept 1st 2025"),
        ("DECEMBER 31, 1999", "DECEMBER 31, 1999"),
        ("2026-02-30 or 2026-03-01", "2026-03-01"),
        ("2026-02-30", None),
        ("13 May 2026", None),
        ("may 13", None),
        ("last tuesday", None),
        ("port 5432 of 10.0.0.1", None),
        ("marching 12 2024", None),
        ("", None),
    ],
)
def test_an_exact_date_is_found_in_every_documented_form(query: str, phrase: str | None) -> None:
    assert date_phrase(query) == phrase


@pytest.mark.parametrize(
    "piece", ["0", "2026-", "2026-1-", "may 1 ", "may   ", "jan 1st, 202", "2026/13/45 ", "january 31 99999 "]
)
def test_the_longest_query_takes_linear_time(piece: str) -> None:
    query = ("2026 " + piece * LONGEST)[:LONGEST]
    began = time.perf_counter()
    date_phrase(query)
    assert time.perf_counter() - began < 5, "hangs"
