"""A prompt that orders work is given what was said about the same thing, not what was ordered in the same words.

Source: docs/guides/hooks.md "Each prompt".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from tests.support.live_daemon import Client

pytestmark = pytest.mark.system
PROJECT = "/home/ada/quay"
KEYS = count()
SAID = (
    (
        "add a filter for the berth number to the harbour map",
        "Added BerthFilter.tsx above the map; it filters by number.",
    ),
    ("write a test for it", "Added BerthFilter.test.tsx with four cases; all pass."),
    ("please review my changes", "Two findings: the promise of saveBerth is not awaited, and the fee is a float."),
    ("commit this", "Committed as 81ac03f: feat: filter the map by berth."),
    ("fix the eslint errors", "Fixed nine errors, mostly unused imports of hooks."),
    ("refactor the tide helpers, they are a mess", "Moved all tide helpers to src/lib/tides.ts and dropped moment."),
    ("create a docker compose file for development", "Created compose.dev.yml with postgres, redis and mailpit."),
    (
        "explain how the webhook retries work",
        "A failed webhook is retried five times; then it goes to the dead letter table.",
    ),
    ("remove the feature flag new-fees", "Removed new-fees and the old fee components."),
    ("update the dependencies", "Updated 27 packages; vite stays at 6 because the plugin for SVG lacks support."),
    ("add pagination to the list of ships", "Added cursor pagination with 50 a page to /api/ships."),
    ("rename the component ShipRow to VesselRow", "Renamed it in eleven files."),
)
OTHER_WORK = (
    *(
        "add a button to delete a note",
        "write a test for the parser",
        "commit this",
        "commit and push",
        "fix the tests",
    ),
    *("run the tests", "refactor the settings page", "please review my changes", "can you add a spinner?"),
    *("explain how the auth middleware works", "create a script to seed the database", "update the readme"),
    *(
        "rename the variable foo to bar",
        "remove the console.log statements",
        "fix the type errors",
        "show me the git log",
    ),
    *(
        "add an endpoint to list the invoices",
        "add a loading state to the form",
        "make the header sticky",
        "fix this bug",
    ),
    "write a migration that adds a column phone to users",
)
SAME_WORK = {
    "refactor the tide helpers once more": "tides.ts",
    "explain the webhook retries to Tom": "dead letter",
    "add redis persistence to the docker compose file": "mailpit",
    "write a test for the berth filter on the map": "BerthFilter",
    "bring the flag new-fees back": "new-fees",
    "where are the tide helpers?": "tides.ts",
    "what did the review find about the fee?": "saveBerth",
    "how many ships are on a page of the list?": "cursor pagination",
    "why is vite still at 6?": "plugin for SVG",
}


def told(room: Client, when: datetime, turns: Sequence[tuple[str, str]], project: str = PROJECT) -> None:
    """Store a session with these prompts and answers, a minute apart."""
    said = [(role, text) for each in turns for role, text in zip(("user", "assistant"), each, strict=True)]
    lines = [
        json.dumps({"role": role, "content": text, "timestamp": (when + timedelta(minutes=at)).isoformat()})
        for at, (role, text) in enumerate(said)
    ]
    body = {"harness": "claude-code", "project": project, "sessionKey": f"work-{next(KEYS)}", "reason": "logout"}
    room.post("/api/hooks/session-end", {**body, "transcript": "\n".join(lines)}).ok()


def given(room: Client, prompt: str) -> str:
    body = {"harness": "claude-code", "project": PROJECT, "sessionKey": f"asks-{next(KEYS)}", "userPrompt": prompt}
    inject: str = room.post("/api/hooks/user-prompt-submit", body).ok()["inject"]
    return inject


def test_an_order_is_given_what_was_said_about_the_same_thing_only(room: Client) -> None:
    for day in range(0, len(SAID), 4):
        told(room, datetime(2026, 3, 1 + day, 9, tzinfo=UTC), SAID[day : day + 4])
    assert [(prompt, text) for prompt, word in SAME_WORK.items() if word not in (text := given(room, prompt))] == []
    assert [(prompt, text) for prompt in OTHER_WORK if (text := given(room, prompt))] == []


CHANGES = (
    ("We host the docs on Netlify", "We moved the docs to Cloudflare Pages last night", "where are the docs hosted?"),
    (
        "Use Redux for the state of the editor",
        "I replaced Redux by Zustand in the editor",
        "what holds the editor state?",
    ),
    ("the feature freeze is on December 12", "the freeze got postponed to December 19", "when is the feature freeze?"),
    ("The staging cluster is in Frankfurt", "staging was moved to Dublin", "where is the staging cluster?"),
    ("Our customer portal uses Auth0", "we dropped Auth0 and run Keycloak", "what does the customer portal use?"),
    ("Keep the logs for 14 days", "logs must be kept for 90 days now", "how many days are the logs kept?"),
    ("The price list is sent on Mondays", "Prices now go out on Thursdays", "when is the price list sent?"),
    ("Der Kran Nord wird von Uwe gewartet", "Den Kran wartet jetzt Birte", "wer wartet den Kran Nord?"),
)
UNCHANGED = (
    ("We host the docs on Netlify", "the invoices moved to the archive", "where are the docs hosted?"),
    ("The staging cluster is in Frankfurt", "production has a new certificate now", "where is the staging cluster?"),
    ("Our customer portal uses Auth0", "the printer was replaced", "what does the customer portal use?"),
)


@pytest.mark.parametrize("apart", [True, False], ids=["a session for each", "two sessions"])
def test_what_a_later_session_changed_is_given_beside_what_was_said_of_it(
    empty_rooms: Callable[[], Client], apart: bool
) -> None:
    room, old, new = empty_rooms(), datetime(2026, 3, 1, 9, tzinfo=UTC), datetime(2026, 3, 8, 9, tzinfo=UTC)
    for when, turns in (
        (old, [(each[0], "Noted.") for each in CHANGES]),
        (new, [(each[1], "Done.") for each in CHANGES]),
    ):
        for at, turn in enumerate(turns if apart else ()):
            told(room, when + timedelta(hours=at), [turn])
        if not apart:
            told(room, when, turns)
    assert [(question, text) for _, later, question in CHANGES if later not in (text := given(room, question))] == []


CORRECTED = (
    (
        "we deploy to Fly.io region fra, app name shop-prod",
        ("where do we deploy this app?", "To Fly.io, region fra, app shop-prod."),
        (
            "no, we moved from Fly.io to Railway last week. project name shop-rail",
            "Got it: Railway, project shop-rail.",
        ),
        "where is the app deployed?",
    ),
    (
        "error reports go to Sentry, project quay-web",
        ("where do error reports go?", "To Sentry, project quay-web."),
        ("not any more, Sentry was replaced by GlitchTip in spring", "Noted, GlitchTip."),
        "where do the error reports of the app go?",
    ),
    (
        "the nightly export is written to S3 bucket quay-dumps",
        ("where does the nightly export go?", "To the S3 bucket quay-dumps."),
        ("quay-dumps is gone, we switched to a MinIO share", "OK, the MinIO share."),
        "where is the nightly export written?",
    ),
    (
        "Translations are managed in Lokalise",
        ("which tool manages the translations?", "Lokalise."),
        ("wrong, Lokalise was cancelled, Weblate now", "Thanks, Weblate."),
        "what manages our translations?",
    ),
    (
        "wir hosten die Karten bei Mapbox",
        ("wo hosten wir die Karten?", "Bei Mapbox."),
        ("nein, Mapbox wurde durch MapTiler ersetzt", "Gut, MapTiler."),
        "wo hosten wir denn die Karten?",
    ),
)
"""What was said first, a question later with its stale answer, the correction after it, and a prompt."""


def test_a_correction_of_a_stale_answer_in_the_same_session_is_given(empty_rooms: Callable[[], Client]) -> None:
    lost = []
    for first, stale, correction, prompt in CORRECTED:
        room = empty_rooms()
        told(room, datetime(2026, 3, 1, 9, tzinfo=UTC), [(first, "Noted.")])
        told(room, datetime(2026, 3, 3, 9, tzinfo=UTC), [stale, correction])
        told(room, datetime(2026, 3, 4, 9, tzinfo=UTC), [("make the header sticky", "Done, in header.css.")])
        if correction[0] not in (text := given(room, prompt)):
            lost.append((prompt, text))
    assert lost == [], "\n".join(map(str, lost))


REPLIES = (
    (
        ("which payment provider does the checkout use?", "The checkout uses Stripe."),
        ("we switched to Adyen in October", "Thanks, Adyen then. I updated the README."),
        "which payment provider does the checkout use?",
    ),
    (
        ("where is the api hosted?", "The api is hosted on Fly."),
        ("no, Fly is gone, it's railway up now", "OK, Railway."),
        "where is the api hosted?",
    ),
    (
        ("where do the nightly dumps go?", "The nightly dumps go to an S3 bucket."),
        ("they moved to Backblaze", "Noted, Backblaze it is."),
        "where do the nightly dumps go?",
    ),
    (
        ("which linter checks the scripts?", "The scripts are checked with flake8."),
        ("it's ruff now", "Ruff, noted."),
        "which linter checks the scripts?",
    ),
    (
        ("what is the rate limit of the search API?", "The rate limit is 100 requests a minute."),
        ("not any more, 250 since Monday", "250, thanks."),
        "what is the rate limit of the search API?",
    ),
    (
        ("who reviews the migrations?", "Migrations are reviewed by Jonas."),
        ("wrong, that is Priya", "Priya, noted."),
        "who reviews the migrations?",
    ),
    (
        ("which queue carries the mails?", "The mails go through RabbitMQ."),
        ("we use NATS now", "NATS, noted."),
        "which queue carries the mails?",
    ),
    (
        ("which service sends the newsletter?", "The newsletter is sent by Mailgun."),
        ("it's Postmark, not Mailgun", "Postmark, sorry."),
        "which service sends the newsletter?",
    ),
    (
        ("which theme has the handbook?", "The handbook has the theme Furo."),
        ("that is not right. Shibuya.", "Shibuya, noted."),
        "which theme has the handbook?",
    ),
    (
        ("womit bauen wir die Container?", "Die Container werden mit Docker gebaut."),
        ("nein, mit Podman", "Podman, notiert."),
        "womit bauen wir die Container?",
    ),
)
NO_CORRECTIONS = (
    ("now add a spinner to the settings page", "Done, the spinner is on the settings page."),
    ("thanks, now run the tests", "The tests pass."),
    ("ok. can you move the button to the left now?", "The button is on the left."),
    ("please replace the logo in the footer", "The logo in the footer is replaced."),
    ("jetzt schreib einen Test dafür", "Der Test ist geschrieben."),
    ("great, and is the sandbox reset each night now?", "Yes, the sandbox is reset each night."),
    ("thanks, that works now", "Great that it works."),
    ("no problem, thanks", "You are welcome."),
    ("that's all for now", "See you."),
    ("I am in a meeting now", "All right."),
    ("no idea", "Fine."),
    ("stimmt, danke", "Gern."),
    ("tests pass now", "You are welcome."),
    ("the error is gone", "Good."),
    ("no, run the linter first", "The linter has no complaints."),
    ("No. Write it in Rust instead.", "Rewritten in Rust."),
    ("now the login page", "The login page is next."),
    ("yes, it was changed last year", "Good to know."),
)


@pytest.mark.parametrize("memory", ["", "The checkout pays with Stripe"])
def test_a_reply_that_corrects_an_answer_needs_no_word_of_the_prompt(
    empty_rooms: Callable[[], Client], memory: str
) -> None:
    lost = []
    for asked, reply, prompt in REPLIES[:1] if memory else REPLIES:
        room = empty_rooms()
        if memory:
            room.remember(memory, project=PROJECT)
        turns = [("fix the eslint errors", "Fixed nine errors."), asked, reply, ("show me the git log", "Shown.")]
        told(room, datetime(2026, 3, 3, 9, tzinfo=UTC), turns)
        told(room, datetime(2026, 3, 4, 9, tzinfo=UTC), [("make the header sticky", "Done, in header.css.")])
        if reply[0] not in (text := given(room, prompt)):
            lost.append((prompt, text))
    assert lost == [], "\n".join(map(str, lost))


def test_what_was_ordered_or_asked_next_is_no_correction(empty_rooms: Callable[[], Client]) -> None:
    question, answer = REPLIES[0][0]
    for reply in NO_CORRECTIONS:
        room = empty_rooms()
        told(room, datetime(2026, 3, 3, 9, tzinfo=UTC), [(question, answer), reply])
        text = given(room, question)
        assert answer in text
        assert reply[0] not in text


def test_a_recall_has_the_answer_before_what_was_said_after_it(empty_rooms: Callable[[], Client]) -> None:
    room = empty_rooms()
    told(room, datetime(2026, 3, 3, 9, tzinfo=UTC), [*REPLIES[0][:2]])
    found = room.post("/api/memory/recall", {"query": REPLIES[0][2], "limit": 1, "project": PROJECT}).ok()
    assert [REPLIES[0][0][1] in row["content"] for row in found["results"]] == [True]


@pytest.mark.parametrize("forgotten", ["The checkout uses Adyen as payment provider", "The checkout uses Stripe"])
def test_a_reply_about_something_forgotten_is_not_given(empty_rooms: Callable[[], Client], forgotten: str) -> None:
    room = empty_rooms()
    answers = [("which payment provider does the checkout use?", "The checkout uses Stripe.")]
    told(room, datetime(2026, 3, 3, 9, tzinfo=UTC), [*answers, ("no, it is Adyen", "Adyen, noted.")])
    assert "it is Adyen" in given(room, answers[0][0])
    memory = room.remember(forgotten, project=PROJECT)["id"]
    room.request("DELETE", f"/api/memory/{memory}?reason=wrong").ok()
    assert "it is Adyen" not in given(room, answers[0][0])


@pytest.mark.parametrize("is_other_agent", [True, False], ids=["another agent", "another project"])
def test_what_others_say_often_does_not_hide_what_was_changed(
    empty_rooms: Callable[[], Client], is_other_agent: bool
) -> None:
    room = empty_rooms()
    other, project = (empty_rooms(), PROJECT) if is_other_agent else (room, "/home/ada/mole")
    for day in range(1, 13):
        turns = [(f"The staging of chapter {day} has props in Dublin {day}", "Noted.")]
        told(other, datetime(2026, 2, day, 9, tzinfo=UTC), turns, project)
    told(room, datetime(2026, 3, 1, 9, tzinfo=UTC), [("The staging cluster is in Frankfurt", "Noted.")])
    told(room, datetime(2026, 3, 8, 9, tzinfo=UTC), [("staging was moved to Dublin", "Done.")])
    assert "staging was moved to Dublin" in given(room, "where is the staging cluster?")


def test_a_later_change_of_something_else_is_not_given(empty_rooms: Callable[[], Client]) -> None:
    for first, other, question in UNCHANGED:
        room = empty_rooms()
        told(room, datetime(2026, 3, 1, 9, tzinfo=UTC), [(first, "Noted.")])
        told(room, datetime(2026, 3, 8, 9, tzinfo=UTC), [(other, "Done.")])
        text = given(room, question)
        assert first in text
        assert other not in text
