"""Of facts that answer equally well the newest is first, and of versions only the newest is injected.

Source: docs/quality.md "Versions of a fact"; docs/guides/hooks.md "Each prompt".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.support.live_daemon import Client
from tests.system.fact_versions import DIFFERENT, PARALLEL, PAST, SEVERAL, SHORT_FACTS, SHORT_OTHERS, VERSIONS

pytestmark = pytest.mark.system
FACT_TIME = "2026-{:02d}-01T08:00:00Z"


def store(room: Client, texts: Sequence[str], *, time: str = "createdAt", newest_last: bool = True) -> None:
    """Store the texts, each with a month of its own. The newest is stored last, or first."""
    dated = [(text, FACT_TIME.format(month)) for month, text in enumerate(texts, 1)]
    for text, moment in dated if newest_last else reversed(dated):
        room.post("/api/memory/remember", {"content": text, time: moment}).ok()


def first(room: Client, question: str) -> str:
    content: str = room.post("/api/memory/recall", {"query": question, "limit": 10}).ok()["results"][0]["content"]
    return content


def injected(room: Client, question: str, **fields: Any) -> str:
    inject: str = room.post("/api/hooks/user-prompt-submit", {"harness": "t", "userPrompt": question, **fields}).ok()[
        "inject"
    ]
    return inject


@pytest.mark.parametrize("newest_last", [True, False])
def test_the_newest_version_is_first_in_whatever_order_they_were_stored(room: Client, newest_last: bool) -> None:
    for versions in VERSIONS:
        store(room, versions.texts, newest_last=newest_last)
    found = {versions.question: first(room, versions.question) for versions in VERSIONS}
    assert found == {versions.question: versions.texts[-1] for versions in VERSIONS}


def test_the_time_at_which_it_occurred_counts_before_the_time_of_storing(room: Client) -> None:
    for versions in VERSIONS:
        store(room, versions.texts, time="occurredAt", newest_last=False)
    found = {versions.question: first(room, versions.question) for versions in VERSIONS}
    assert found == {versions.question: versions.texts[-1] for versions in VERSIONS}


def test_of_versions_a_prompt_is_given_only_the_newest(room: Client) -> None:
    for versions in VERSIONS:
        store(room, versions.texts)
    given = {versions: injected(room, versions.question) for versions in VERSIONS}
    assert [versions.texts[-1] for versions, text in given.items() if versions.texts[-1] not in text] == []
    assert [old for versions, text in given.items() for old in versions.texts[:-1] if old in text] == []


def test_a_session_that_has_the_newest_version_is_not_given_an_older_one_later(room: Client) -> None:
    (versions, *_) = VERSIONS
    store(room, versions.texts)
    assert versions.texts[-1] in injected(room, versions.question, sessionKey="twice")
    assert injected(room, versions.question, sessionKey="twice") == ""


def test_a_question_about_the_past_is_answered_by_relevance(room: Client) -> None:
    store(room, VERSIONS[0].texts)
    store(room, [text for versions in VERSIONS[10:14] for text in versions.texts])
    for question, answer in PAST:
        assert answer in injected(room, question, maxInjectChars=2000), question


def test_a_fact_that_answers_stays_before_a_newer_one_that_does_not(empty_rooms: Callable[[], Client]) -> None:
    room = empty_rooms()
    for facts in DIFFERENT:
        store(room, (facts.answer, facts.newer))
    found = {facts.question: first(room, facts.question) for facts in DIFFERENT}
    assert found == {facts.question: facts.answer for facts in DIFFERENT}


def test_facts_about_different_things_are_all_given(room: Client) -> None:
    for _, texts in SEVERAL:
        store(room, texts)
    given = {question: injected(room, question, maxInjectChars=2000) for question, _ in SEVERAL}
    assert [text for question, texts in SEVERAL for text in texts if text not in given[question]] == []


def test_the_start_of_a_session_has_only_the_newest_version(room: Client) -> None:
    for text in VERSIONS[2].texts:
        room.remember(text, type="decision")
    start = room.post("/api/hooks/session-start", {"harness": "t"}).ok()["inject"]
    assert [text for text in VERSIONS[2].texts if text in start] == [VERSIONS[2].texts[-1]]


def test_of_two_versions_of_a_fact_of_few_words_a_prompt_is_given_the_newest(empty_rooms: Callable[[], Client]) -> None:
    wrong = []
    for texts in SHORT_FACTS:
        room = empty_rooms()
        store(room, texts)
        given = injected(room, f"{re.split(' (?:is|ist|est|es) ', texts[0])[0]} is what?")
        if texts[1] not in given or texts[0] in given:
            wrong.append((texts, given))
    assert wrong == []


def test_of_two_facts_of_few_words_a_prompt_is_given_both(empty_rooms: Callable[[], Client]) -> None:
    both = [texts for texts in SHORT_OTHERS if texts[0].split()[:3] == texts[1].split()[:3]]
    wrong = []
    for texts in both:
        room = empty_rooms()
        store(room, texts)
        given = injected(room, f"{' '.join(texts[0].split()[:3])} what?")
        if not all(text in given for text in texts):
            wrong.append((texts, given))
    assert (wrong, len(both) >= 12) == ([], True)


def test_a_prompt_about_one_of_two_things_is_given_its_value(empty_rooms: Callable[[], Client]) -> None:
    wrong = []
    for question, texts in PARALLEL:
        room = empty_rooms()
        store(room, texts)
        if texts[0] not in injected(room, question) or first(room, question) != texts[0]:
            wrong.append((question, injected(room, question), first(room, question)))
    assert wrong == []


CHANGED = (
    ("Deployments happen on Tuesdays", "Deployments now happen only on Wednesdays", "when do we deploy?"),
    (
        "The nightly report is sent by cron",
        "The nightly report now comes from Airflow",
        "what sends the nightly report?",
    ),
    ("Tickets are tracked in Jira", "Tickets now live in Linear", "where are our tickets?"),
    ("Secrets are kept in Ansible Vault", "Secrets moved to Doppler", "where do we keep secrets?"),
    ("Payments are processed by Stripe", "Payments are now processed with Adyen", "which payment processor do we use?"),
    ("Der Mittagstisch ist im Kasino", "Der Mittagstisch ist jetzt in der Mensa", "wo ist der Mittagstisch?"),
    ("Die Rechnungen druckt Frau Beck", "Die Rechnungen druckt inzwischen Herr Wolf", "wer druckt die Rechnungen?"),
    ("The docs are built with Sphinx", "Docs now use MkDocs", "what builds our documentation?"),
    ("Logs are shipped to Elasticsearch", "Logs now go to Loki", "where can I read the logs?"),
    ("Background jobs run on Sidekiq", "Jobs now run on GoodJob", "what runs our background jobs?"),
    ("Analytics events go to Mixpanel", "Analytics now goes to PostHog", "where do analytics events go?"),
    ("Images are stored in the S3 bucket ferry-media", "Images moved to Cloudflare R2", "where are images stored?"),
    (
        "The test coverage must be at least 80 percent",
        "Coverage threshold was lowered to 70 percent",
        "which test coverage is required?",
    ),
    ("Sessions expire after 30 minutes", "Session lifetime was raised to 2 hours", "when do sessions expire?"),
    (
        "The mobile app is written in React Native",
        "The mobile app was rewritten in Flutter",
        "what is the app written in?",
    ),
    ("Invoices are printed by Mara", "Invoices now go out by mail", "who prints the invoices?"),
    ("The newsletter is written in Mailchimp", "Newsletter moved to Listmonk", "which tool has the newsletter?"),
    ("Uploads are limited to 10 MB", "Upload limit was increased to 50 MB", "how large may uploads be?"),
    ("Traces are sent to Jaeger", "Traces now end up in Tempo", "where do I find traces?"),
    (
        "Dependencies are updated by Dependabot",
        "Dependency updates now come from Renovate",
        "what updates dependencies?",
    ),
    (
        "The staging certificate is made by hand",
        "Staging certificates now renew by cert-manager",
        "how is the staging certificate made?",
    ),
    ("The default branch is master", "We renamed master to main", "what is the default branch?"),
    ("The shop is deployed on Heroku", "We moved it to Fly.io, Heroku is shut down", "where is the shop deployed?"),
    ("Die Urlaubsliste führt Herr Amend", "Die Urlaubsliste liegt jetzt in Personio", "wer führt die Urlaubsliste?"),
)


def test_a_fact_that_has_changed_is_given_with_what_it_is_now(empty_rooms: Callable[[], Client]) -> None:
    alone, both = [], 0
    for older, newer, question in CHANGED:
        room = empty_rooms()
        store(room, (older, newer))
        given = injected(room, question)
        both += newer in given
        if older in given and newer not in given:
            alone.append((question, given))
    assert (alone, both >= len(CHANGED) - 1) == ([], True)


REPLACED = (
    ("The API base URL is https://api.old.example.com", "API base URL is https://api.new.example.com/v2"),
    ("docs are at https://docs.example.com/v1", "docs are at https://docs.example.com/v2"),
    ("We use Postgres 14", "We use Postgres 16"),
    ("Invoices are sent on the 3rd", "Invoices are sent on the 5th"),
    ("Use npm for installs", "Use pnpm for installs"),
)
BESIDE_EACH_OTHER = (
    ("Use ruff for linting", "Use black for formatting"),
    ("We run Postgres 14 in staging", "We run Postgres 16 in production"),
    ("We use MariaDB", "We use Redis"),
    ("The shop is at https://shop.example.com", "The admin page is at https://admin.example.com"),
    ("Alice owns billing", "Alice owns search"),
)


def test_a_start_has_only_the_newest_of_tools_versions_days_and_addresses_of_one_thing(room: Client) -> None:
    for text in (text for facts in (*REPLACED, *BESIDE_EACH_OTHER) for text in facts):
        room.remember(text, type="decision")
    start = room.post("/api/hooks/session-start", {"harness": "t"}).ok()["inject"]
    assert [old for old, new in REPLACED if f"- {old} (" in start or f"- {new} (" not in start] == []
    assert [text for facts in BESIDE_EACH_OTHER for text in facts if f"- {text} (" not in start] == []
