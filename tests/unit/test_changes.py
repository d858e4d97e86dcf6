"""Whether a memory says that something has changed, and of which older one."""

from __future__ import annotations

import pytest

from signet_actors.domain.temporal.change import Shared, shared, speaks_of_change, subject_of


@pytest.mark.parametrize(
    "text",
    [
        "Celery was replaced by Dramatiq",
        "The local postgres port is now 5442",
        "Staging moved to Fly.io",
        "ETAs no longer ask Google",
        "Use pnpm instead of npm",
        "Redis is gone",
        "Jest has been swapped out for Vitest",
        "The Auth0 tenant was cancelled",
        "No more walkthroughs, please",
        "We release on Thursdays as of May",
        "Celery wurde durch Dramatiq ersetzt",
        "Wir releasen jetzt donnerstags statt dienstags",
        "Der Port ist nicht mehr 5434",
        "Logs bleiben inzwischen 30 Tage",
        "Celery a été remplacé par Dramatiq",
        "Le port est désormais 5442",
        "On utilise Vitest au lieu de Jest",
        "Celery fue reemplazado por Dramatiq",
        "El puerto ahora es 5442",
        "Ya no usamos Jenkins",
    ],
)
def test_a_text_with_words_of_change_speaks_of_change(text: str) -> None:
    assert speaks_of_change(text)


@pytest.mark.parametrize(
    "text",
    [
        "The local postgres port is 5434",
        "We decided to use Celery for background jobs",
        "Never push to main",
        "The nightly backup runs at 02:30",
        "Invoices are rendered by the worker billing-pdf",
        "Der Hafen hat drei Kräne",
        "Le port est 5434",
        "El puerto es 5434",
        "Celery was replaced " + "and more was said " * 200,
        "",
    ],
)
def test_other_texts_do_not_and_long_ones_do_so_by_chance(text: str) -> None:
    assert not speaks_of_change(text)


def found(older: str, newer: str, common: tuple[str, ...] = ()) -> Shared:
    return shared(
        subject_of(older), subject_of(newer), lambda word: word not in common, lambda word: word not in common
    )


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("We decided to use Celery for background jobs", "Celery was replaced by Dramatiq"),
        ("We use BullMQ on Redis for background jobs", "Redis is gone, pg-boss does the work"),
        ("Login is handled by Auth0", "The Auth0 tenant was cancelled"),
        ("Unit tests run with Jest: `npx jest`", "Jest has been swapped out for Vitest"),
        ("Driving times come from the Google API", "ETAs no longer ask Google"),
        ("Mail is sent via SendGrid", "SendGrid was replaced by Postmark"),
        ("Releases go out every Tuesday", "Wir releasen jetzt donnerstags statt dienstags"),
        ("We deploy with Jenkins on Fridays", "Ya no usamos Jenkins"),
        ("The queue runs on RabbitMQ", "On utilise NATS au lieu de RabbitMQ"),
        ("The default branch is master", "We renamed master to main"),
        ("Dates are handled with dayjs", "Someone removed dayjs, dates are native now"),
    ],
)
def test_a_name_that_has_changed_joins_two_memories(older: str, newer: str) -> None:
    assert found(older, newer).has_name


@pytest.mark.parametrize(
    ("older", "newer", "common"),
    [
        ("The local postgres port is 5434", "The staging API moved from port 8080 to port 8090", ("port",)),
        ("User prefers a real Postgres in tests", "Local Postgres moved to port 5439", ("postgres",)),
        ("Nachts zuerst Aylin anrufen, dann die Kunden", "Wir releasen jetzt, weil Aylin beim Kunden ist", ("aylin",)),
        ("Der Hafen hat drei Kräne", "Die Logs bleiben inzwischen 30 Tage", ()),
        ("The team knows the ropes", "The team has now five members", ()),
        ("Invoices are nightly", "The backup is now nightly", ()),
        ("test test", "The test environment is switched off", ()),
        ("Never push to main", "We moved to Fly.io", ()),
        ("The price list has 400 rows", "The list view was removed", ()),
        ("Lunch is at noon", "Standup is now at nine", ()),
    ],
)
def test_other_words_do_not(older: str, newer: str, common: tuple[str, ...]) -> None:
    told = found(older, newer, common)
    assert not told.has_name
    assert told.share < 0.5


@pytest.mark.parametrize(
    ("older", "newer", "least"),
    [
        ("The local postgres port is 5434", "The local postgres port is now 5442", 0.7),
        ("A dock slot lasts 30 minutes by default", "Default slot length is now 45 minutes", 0.5),
        ("Install the dependencies with npm ci", "Use pnpm instead of npm; in CI `pnpm install`", 0.5),
        ("Loki hebt die Logs 14 Tage auf", "Logs bleiben inzwischen 30 Tage in Loki", 0.4),
        ("Explain your changes, I am new to NestJS", "I know NestJS now: two lines about a change", 0.3),
    ],
)
def test_what_two_memories_are_about_is_the_share_of_their_words(older: str, newer: str, least: float) -> None:
    assert found(older, newer).share >= least


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The docs are built with Sphinx", "Docs now use MkDocs"),
        ("Background jobs run on Sidekiq", "Jobs now run on GoodJob"),
        ("The test coverage must be at least 80 percent", "Coverage threshold was lowered to 70 percent"),
        ("Images are stored in the S3 bucket ferry-media", "Images moved to Cloudflare R2"),
        ("Die Urlaubsliste führt Herr Amend", "Die Urlaubsliste liegt jetzt in Personio"),
        ("Les factures partent par courrier", "Les factures partent désormais par mail"),
        ("Las copias van a Glacier", "Las copias ahora van a Backblaze"),
    ],
)
def test_two_memories_that_begin_with_what_has_changed_are_about_the_same(older: str, newer: str) -> None:
    assert found(older, newer).has_topic


@pytest.mark.parametrize(
    ("older", "newer", "common"),
    [
        ("The docs are built with Sphinx", "Sphinx now needs Python 3.12 for the docs", ()),
        ("The docs are built with Sphinx", "Docs now use MkDocs", ("docs",)),
        ("The release notes are in docs", "Docs now use MkDocs", ()),
        ("Docs are built with Sphinx", "Docs need a table of contents, and the site of the project is gone", ()),
        ("Invoices are nightly", "The backup is now nightly", ()),
        ("Lunch is at noon", "Standup is now at nine", ()),
    ],
)
def test_what_begins_otherwise_or_has_not_changed_is_not(older: str, newer: str, common: tuple[str, ...]) -> None:
    assert not found(older, newer, common).has_topic
