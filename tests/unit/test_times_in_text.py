"""Which texts name the time that a question asks for. Source: docs/quality.md "Times in the text"."""

from __future__ import annotations

from datetime import UTC, datetime

from signet_actors.domain.temporal.in_text import names_time
from signet_actors.domain.temporal.phrases import date_phrase

NOW = datetime(2026, 11, 29, 17, tzinfo=UTC)
NAMED = {
    "what did we do in May?": """
        In May 2026 we migrated from CircleCI to GitHub Actions
        The lease of the rack ends in May
        On May 3 the certificate was renewed
        Am 3. Mai wurde das Zertifikat erneuert
        En mayo de 2026 migramos a GitHub Actions
        Le 3 mai 2026, le certificat a été renouvelé
        2026-05-12: the new index is live
        Since May 2026 the API has a limit
    """,
    "is there anything on December 18?": """
        Code freeze starts on December 18, 2026
        The audit was on 18 December 2025
        2026-12-18 code freeze
        Am 18. Dezember beginnt der Code Freeze
        Le gel du code commence le 18 décembre 2026
        El 18 de diciembre de 2026 empieza el congelamiento
        The party is on Dec 18th
    """,
    "was ist am 15. Januar?": """
        Der Umzug ist am 15. Januar 2027
        The audit is on 2027-01-15
        We move on January 15
    """,
    "qu'avons-nous fait en mars ?": """
        En mars 2026 nous avons migré la base
        We moved the database in March
    """,
    "¿qué hicimos en marzo de 2025?": """
        En marzo de 2025 cambiamos de proveedor
        The provider was changed in March 2025
    """,
}
OTHERS = {
    "what did we do in May?": """
        The API may be slow
        May the queue be empty, the worker sleeps
        In May 2023 we moved to Vite
        Only 12 may merge at once
        In June 2026 we moved to Vite
        mayonnaise is the name of the test user
        The dismay of the users was great
        2026-06-05 is the day of the audit
        Maya may deploy
    """,
    "is there anything on December 18?": """
        Code freeze starts on December 19, 2026
        The audit was on December 18, 2023
        In December we release twice
        Release 18 has 12 fixes
        The build of 2026-11-18 is broken
        On January 18 we move
        18 tests failed since December
    """,
    "was ist am 15. Januar?": """
        Der Umzug ist am 16. Januar 2027
        Am 15. Juni ist der Umzug
        Der Januar ist ruhig
    """,
    "¿qué hicimos en marzo de 2025?": """
        En marzo de 2026 cambiamos de proveedor
        The provider was changed in April 2025
    """,
    "what did we do yesterday?": """
        In May 2026 we migrated
        2026-11-28: the index is live
    """,
}


def named(question: str, text: str) -> bool:
    """Return whether the text names the time of the question."""
    phrase = date_phrase(question, NOW)
    assert phrase is not None
    return names_time(text, phrase)


def texts_of(data: str) -> list[str]:
    """Return the texts of a block."""
    return [line.strip() for line in data.strip().splitlines()]


def test_a_text_with_the_month_or_the_day_of_the_question_names_its_time() -> None:
    assert [text for question, data in NAMED.items() for text in texts_of(data) if not named(question, text)] == []


def test_a_text_with_another_time_or_the_verb_may_does_not() -> None:
    assert [text for question, data in OTHERS.items() for text in texts_of(data) if named(question, text)] == []
