"""Two memories are merged only if both say the same, word for word."""

from __future__ import annotations

import pytest

from signet_actors.features.duplicates.rules import Candidate, better_first, kept_and_merged

SAME = (
    ("The staging database listens on port 5433", "the staging database listens on port 5433."),
    ("Our staging database listens on port 5433", "staging database listens on port 5433"),
    ("Der Build braucht eine Stunde", "Build braucht eine Stunde."),
)
DIFFERENT = (
    ("The staging database listens on port 5433", "The staging database listens on port 5434"),
    ("The staging database of the shop listens on port 5433", "The staging database listens on port 5433"),
    ("We deploy the shop on Mondays", "We deploy the shop on Tuesdays"),
    ("Agents may deploy the shop", "Agents may not deploy the shop"),
    ("The deploy runs before the migration", "The deploy runs after the migration"),
    ("Deploy only on Friday", "Deploy on Friday"),
    ("Wir benutzen kein Redis f\u00fcr Sitzungen", "Wir benutzen Redis f\u00fcr Sitzungen"),
    (
        "\u041e\u043d \u043d\u0435 \u0438\u0441\u043f\u043e\u043b\u044c\u0437\u0443\u0435\u0442 Docker",
        "\u041e\u043d \u0438\u0441\u043f\u043e\u043b\u044c\u0437\u0443\u0435\u0442 Docker",
    ),
    ("Backups run from Berlin to Paris", "Backups run to Berlin from Paris"),
    ("Alice likes Bob's code", "Bob likes Alice's code"),
    ("The API uses C for parsing", "The API uses C# for parsing"),
    ("It started with version 1.2.3", "It started with version 1.3.2"),
    ("The threshold is -5 degrees", "The threshold is 5 degrees"),
    ("On 2024-05-03 the release was cut", "On 2025-05-03 the release was cut"),
    ("Backend calls frontend, frontend calls backend", "Frontend calls backend, backend calls frontend"),
    ("Maybe the build needs Node 18", "The build needs Node 18"),
    (
        f"{'The plan has many parts. ' * 100}The other site is in Paris",
        f"{'The plan has many parts. ' * 100}Nobody is there",
    ),
    ("the", "a"),
)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_texts_with_the_same_words_are_merged(one: str, other: str) -> None:
    assert kept_and_merged(candidate(one), candidate(other, seq=2)) is not None


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_texts_that_differ_in_what_they_say_are_not_merged(one: str, other: str) -> None:
    assert kept_and_merged(candidate(one), candidate(other, seq=2)) is None
    assert kept_and_merged(candidate(other), candidate(one, seq=2)) is None


def candidate(content: str, importance: float = 0.5, created_at: str = "2026-01-01", seq: int = 1) -> Candidate:
    return Candidate(seq, f"id-{seq}", content, "hash", importance, created_at)


def test_the_more_important_one_stays_and_then_the_older_one() -> None:
    old, new = candidate("x", created_at="2025-01-01"), candidate("x", created_at="2026-01-01", seq=2)
    important = candidate("x", 0.9, "2026-06-01", 3)
    assert better_first(new, old) == (old, new)
    assert better_first(old, important) == (important, old)
