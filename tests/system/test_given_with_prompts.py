"""What a prompt is given: what is current beside what is outdated, and what was said where no memory answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import Client, LiveDaemon, live_daemon

pytestmark = pytest.mark.system

HERE, ELSEWHERE = "/home/ada/quay", "/home/ada/pier"
FACTS = (
    ("We decided to use Celery for background jobs", "Celery was replaced by Dramatiq in May"),
    ("The local harbour database listens on port 5434", "The local harbour database listens now on port 5442"),
    ("Login of the kiosk is handled by Auth0", "The kiosk asks Keycloak; the Auth0 tenant was cancelled"),
    ("Rechnungen werden mit Wkhtmltopdf erzeugt", "Wkhtmltopdf wurde durch WeasyPrint ersetzt"),
    ("The staging API runs on port 8080", "The staging API moved from port 8080 to port 8090"),
)
ASKED = {
    "which library do we use for background jobs?": ("Celery was replaced", "We decided to use Celery"),
    "who handles the login of the kiosk?": ("the Auth0 tenant was cancelled", "Login of the kiosk"),
    "womit werden die Rechnungen erzeugt?": ("durch WeasyPrint ersetzt", "Rechnungen werden"),
}
"""By prompt, what the newer memory says, and how the older one begins."""
TALK = (
    ("How many trucks did it take to reproduce the double booking?", "400 virtual trucks on 12 docks, with ramp.js."),
    ("What was left to do after the banner?", "Two things: the Polish translation and an end-to-end test."),
    ("Which colour has the lighthouse lamp?", "The lamp of the lighthouse is amber since the storm."),
)


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon(patient=True) as started:
        for older, _ in FACTS:
            started.api.remember(older, project=HERE)
        for number in range(12):
            started.api.remember(f"Crane {number} of the quay lifts {number} tons", project=HERE)
        for _, newer in FACTS:
            started.api.remember(newer, project=HERE)
        talk(started.api, "past", HERE, TALK)
        talk(
            started.api, "elsewhere", ELSEWHERE, (("Where is the anchor of the barge?", "The anchor is in shed nine."),)
        )
        yield started


def hook(client: Client, name: str, session: str, **fields: Any) -> Any:
    body = {"harness": "codex", "project": HERE, "sessionKey": session, **fields}
    for _ in range(20):
        reply = client.post(f"/api/hooks/{name}", body).ok()
        if reply.get("reason") != "timeout":
            break
    return reply


def talk(client: Client, session: str, project: str, said: tuple[tuple[str, str], ...]) -> None:
    turns = [
        {"role": role, "content": text} for pair in said for role, text in zip(("user", "assistant"), pair, strict=True)
    ]
    assert hook(client, "session-end", session, project=project, transcript=turns, reason="logout")["stored"]


def given(daemon: LiveDaemon, prompt: str, session: str | None = None, **fields: Any) -> list[str]:
    inject = hook(daemon.api, "user-prompt-submit", session or prompt, userPrompt=prompt, **fields)["inject"]
    return str(inject).split("\n- ")[1:]


@pytest.mark.parametrize("prompt", ASKED)
def test_an_outdated_memory_is_marked_and_the_newer_one_is_given_beside_it(daemon: LiveDaemon, prompt: str) -> None:
    newer, older = ASKED[prompt]
    items = given(daemon, prompt)
    at = next(at for at, item in enumerate(items) if item.startswith(older))
    (beside,) = [item for item in items[max(0, at - 1) : at + 2] if newer in item]
    assert "(see the newer " in items[at]
    assert "(see the newer " not in beside


def test_of_versions_in_nearly_the_same_words_only_the_newest_is_given(daemon: LiveDaemon) -> None:
    items = given(daemon, "which port has the local harbour database?")
    assert any("5442" in item for item in items)
    assert not any("5434" in item for item in items)


def test_no_outdated_memory_is_given_alone_where_the_session_has_the_newer_one(daemon: LiveDaemon) -> None:
    daemon.api.recall("Dramatiq replaced Celery", sessionKey="has-newer", project=HERE)
    items = given(daemon, "which library do we use for background jobs?", "has-newer")
    assert not any("We decided to use Celery" in item for item in items), items


def test_a_start_marks_what_is_outdated_and_gives_the_newer_memory_before_it(daemon: LiveDaemon) -> None:
    prompt = "which library do we use for background jobs?"
    assert given(daemon, prompt, "asks-before-a-start")

    def told() -> list[str]:
        items: list[str] = hook(daemon.api, "session-start", "told", source="clear")["inject"].split("\n- ")
        return [item for item in items if "Celery" in item]

    newer, older = eventually(lambda: found if len(found := told()) == 2 else None, what="what was asked for")
    assert newer.startswith("Celery was replaced by Dramatiq")
    assert "(see the newer " not in newer
    assert "(see the newer " in older


def test_sentences_with_a_word_of_a_rule_push_no_preference_or_decision_out_of_a_start(daemon: LiveDaemon) -> None:
    project = "/home/ada/reports"
    preferences = [f"Answer Ada in {language}, whatever the language of the code" for language in ("German", "Dutch")]
    decisions = [f"Reports are rendered by {name} since the spring" for name in ("Typst", "Quarto")]
    for number in range(80):
        for text in ("must have run before the export", "always takes an hour", "never came back from the archive"):
            daemon.api.remember(f"Report {number} {text} of day {number}", project=project)
        if number == 40:
            for kind, texts in (("preference", preferences), ("decision", decisions)):
                for text in texts:
                    daemon.api.remember(text, type=kind, project=project, importance=0.5)
    kinds = {row["type"] for row in daemon.api.recall("report 7 export archive", project=project)["results"]}
    assert "rule" in kinds or "constraint" in kinds, kinds
    start = hook(daemon.api, "session-start", "reports", project=project)["inject"]
    assert "Active Constraints" not in start
    given_lines = [line for line in start.splitlines() if line.startswith("- ")]
    wanted = [*preferences, *decisions]
    assert sorted(line[2:].partition(" (")[0] for line in given_lines[:4]) == sorted(wanted), start
    assert len(given_lines) <= 10, start


def test_of_two_that_answer_the_newer_one_stands_first(daemon: LiveDaemon) -> None:
    rows = daemon.api.recall("on which port runs the staging API?", project=HERE)["results"]
    assert [row["content"] for row in rows[:2]] == [
        "The staging API moved from port 8080 to port 8090",
        "The staging API runs on port 8080",
    ]
    assert rows[1]["newer_id"] == rows[0]["id"]


def test_a_recall_has_the_newer_memory_beside_the_older_one(daemon: LiveDaemon) -> None:
    rows = daemon.api.recall("which library do we use for background jobs?", project=HERE)["results"]
    at = next(at for at, row in enumerate(rows) if row["content"].startswith("We decided to use Celery"))
    assert rows[at + 1]["content"] == "Celery was replaced by Dramatiq in May"
    assert rows[at]["newer_id"] == rows[at + 1]["id"]
    assert rows[at + 1]["relevance"] >= 0.5
    assert [row for row in rows if row["content"].startswith("Crane") and "newer_id" in row] == []


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("how many virtual trucks did it take to reproduce the double booking?", "400 virtual trucks"),
        ("what was left to do after the banner?", "the Polish translation"),
        ("which colour has the lamp of the lighthouse?", "is amber since the storm"),
    ],
)
def test_what_was_said_in_the_project_answers_where_no_memory_does(
    daemon: LiveDaemon, prompt: str, answer: str
) -> None:
    items = [item for item in given(daemon, prompt) if item.startswith("From an earlier session: ")]
    assert len(items) == 1, items
    assert answer in items[0]
    assert re.search(r" \(\w{3} \d{1,2}, \d{4} at \d\d:\d\d\)$", items[0]), "its time"
    assert given(daemon, prompt, prompt) == [], "it was told"


@pytest.mark.parametrize(
    "prompt",
    [
        "where is the anchor of the barge?",
        "thanks, that is it for today",
        "please fix the typo",
        "write a haiku about autumn leaves",
        "what is the capital of Mongolia?",
        "which trucks?",
    ],
)
def test_what_was_said_elsewhere_or_has_little_to_do_with_it_is_not_given(daemon: LiveDaemon, prompt: str) -> None:
    assert not any("earlier session" in item for item in given(daemon, prompt))


def test_a_session_without_a_project_and_another_agent_get_no_turn(daemon: LiveDaemon) -> None:
    prompt = "which colour has the lamp of the lighthouse?"
    assert given(daemon, prompt, "no project", project=None) == []
    reply = hook(daemon.agent("bob"), "user-prompt-submit", "bob's", userPrompt=prompt)
    assert "lighthouse" not in reply["inject"]


DEPOT = "/home/ada/depot"
SAID = {
    "broker": (("Which broker carries the sluice mails?", "RabbitMQ on the host sluice-1 carries the sluice mails."),),
    "gate": (
        ("How wide is the lock gate of Emden?", "The lock gate of Emden is 12 metres wide."),
        ("Which paint does it have?", "Green paint, from 2019."),
        ("How wide is the lock gate of Emden really?", "The lock gate of Emden is 15 metres wide, I was wrong."),
    ),
    "tide": (
        ("Move the tide tables to Zarr", "The tide tables are in Zarr."),
        ("What about their index?", "It is as it was."),
        ("Anything left?", "Only the docs of the reader."),
    ),
    "ferry": (
        ("Move the ferry times to ferrix-cron", "All ferry times come from ferrix-cron."),
        ("What is left?", "Three things: the help page, the alarm, the old table."),
    ),
    "uhr": (
        ("Zwischen 2 und 3 Uhr fehlt eine F\u00e4hre", "Die Umstellung der Uhr verdoppelt die Stunde."),
        ("Rechne mit der Zeit in UTC", "Erledigt."),
        ("Was ist noch offen?", "Offen ist der Test f\u00fcr Lissabon."),
    ),
    "berths": (
        ("Publish the berths as a tideline feed", "The tideline feed has a berth for each ship."),
        ("Ships that left stay in Thunderbird", "Thunderbird needs a cancelled berth with a higher number."),
    ),
    "sluices": (
        ("What happens with doubled sluice numbers?", "Of doubled sluice numbers the later row wins, with a warning."),
        ("Commit it please", "Committed. A test of the doubled sluice numbers is still missing."),
    ),
    "yard": (("Show the yard crane in yellow", "The yard crane is yellow. A rollback needs a minute."),),
}
GIVEN_OF_SESSIONS = {
    "which broker carries the sluice mails?": ("NATS", "RabbitMQ on the host"),
    "how wide is the lock gate of Emden?": ("15 metres",),
    "what was left to do after the tide tables moved to Zarr?": ("Only the docs of the reader", "are in Zarr"),
    "what was left to do after we moved to ferrix-cron?": ("Three things", "come from ferrix-cron"),
    "is anything left of ferrix-cron?": ("Three things", "come from ferrix-cron"),
    "was war bei der Zeitumstellung noch offen?": ("Offen ist der Test", "verdoppelt die Stunde"),
    "what did we find out about Thunderbird and the tideline feed?": ("a higher number", "a berth for each ship"),
    "show me the yellow yard crane": ("A rollback needs a minute",),
    "what happens with doubled sluice numbers?": ("is still missing", "the later row wins"),
}
"""By prompt, what is given of memories and sessions, in this order."""
NOT_GIVEN_OF_SESSIONS = (
    "how do I roll back a deployment?",  # "rollback" is one word
    "why not use socket.io for the yard crane?",
    "which paint has the door?",
    "what is left to do today?",
    "is the shop still open?",
    "anything left?",
    "was ist bei der Gehaltsumstellung noch offen?",
)


@pytest.fixture(scope="module")
def sessions(daemon: LiveDaemon) -> LiveDaemon:
    """Sessions of a project, and a memory that says what has changed since."""
    for name, said in SAID.items():
        talk(daemon.api, name, DEPOT, said)
    daemon.api.remember("RabbitMQ was replaced: the sluice mails go through NATS now", project=DEPOT)
    return daemon


@pytest.mark.parametrize("prompt", GIVEN_OF_SESSIONS)
def test_of_a_session_the_latest_answer_is_given_and_with_it_what_has_changed_since(
    sessions: LiveDaemon, prompt: str
) -> None:
    items = given(sessions, prompt, project=DEPOT)
    wanted = GIVEN_OF_SESSIONS[prompt]
    assert len(items) == len(wanted), items
    assert all(words in item for words, item in zip(wanted, items, strict=True)), items
    assert ["(see the newer " in item for item in items] == ["RabbitMQ on" in item for item in items]


def test_memories_that_the_session_has_keep_no_turn_away(daemon: LiveDaemon) -> None:
    project, prompt = "/home/ada/prices", "what did we do with the price list import of the kiosk?"
    said = (("Import the price list of the kiosk", "The price list import of the kiosk runs; rounding is missing."),)
    talk(daemon.api, "prices", project, said)
    for fact in ("reads CSV files of the supplier", "must never change a price in the past"):
        daemon.api.remember(f"The price list import of the kiosk {fact}", project=project, importance=0.9)
    first, second = (given(daemon, prompt, "asks twice", project=project) for _ in range(2))
    assert ["reads CSV" in "".join(first), "in the past" in "".join(first)] == [True, True]
    assert not any("rounding is missing" in item for item in first)
    assert [("rounding is missing" in item) for item in second] == [True], second


@pytest.mark.parametrize("prompt", NOT_GIVEN_OF_SESSIONS)
def test_a_turn_without_the_name_or_two_words_of_a_prompt_is_not_given(sessions: LiveDaemon, prompt: str) -> None:
    assert given(sessions, prompt, project=DEPOT) == []


@pytest.mark.parametrize(
    "answer", ["I could not find anything about it.", "Dazu habe ich nichts gefunden. Soll ich im CI nachsehen?", None]
)
def test_a_question_is_given_with_what_answers_it_or_not_at_all(daemon: LiveDaemon, answer: str | None) -> None:
    asked = "How long does the smoke test of the lock gate take?"
    project = f"/home/ada/gates-{len(answer or '')}"
    unanswered = [{"role": "user", "content": asked}]
    unanswered += [] if answer is None else [{"role": "assistant", "content": answer}]

    def end(session: str, turns: list[dict[str, str]]) -> None:
        told = hook(daemon.api, "session-end", session, project=project, transcript=turns, reason="logout")
        assert told["stored"], told

    end(f"gates-asked-{project}", unanswered)
    assert given(daemon, asked, f"before-{project}", project=project) == []
    recalled = daemon.api.post("/api/memory/recall", {"query": asked, "project": project}).ok()["results"]
    assert [asked in row["content"] for row in recalled] == [True], "a recall still finds it"
    end(f"gates-said-{project}", [{"role": "user", "content": "The smoke test of the lock gate takes 17 minutes now."}])
    end(f"gates-asked-again-{project}", unanswered)
    (item,) = given(daemon, asked, f"after-{project}", project=project)
    assert "17 minutes" in item


PORTS = (
    "The staging API moved from port 8080 to port 8090",
    "The login form validates with formkit",
    "Invoices are rendered by the worker billing-pdf",
    "test test",
    "Feature flags live in the file flags.yaml",
    "Primary keys are UUIDv7, never serial integers",
    "The switch table has a row for each warehouse",
    "Unit tests run with `npx jest`",
)
ANSWERED = (
    "which port has the staging API?",
    "staging port?",
    "what validates the login form?",
    "which worker renders the invoices?",
    "which file has the feature flags?",
    "what are the primary keys?",
    "which table has a row for each warehouse?",
    "how do I run the unit tests?",
    "how do I run only a single test?",
    "on what port does the API listen in staging?",
)
NOT_ANSWERED = (
    "storybook port?",
    "which port has the frontend?",
    "which port has grafana?",
    "on which port does kafka listen?",
    "which form do I need for the visa?",
    "which worker repairs the elevator?",
    "which test is flaky on CI?",
    "which file has the haiku?",
    "which key opens the cellar?",
    "which table is free in the canteen?",
)


@pytest.mark.parametrize("stored", [PORTS[:1], PORTS])
def test_a_general_word_alone_is_no_match(daemon: LiveDaemon, stored: tuple[str, ...]) -> None:
    project = f"/home/ada/general-{len(stored)}"
    for text in stored:
        daemon.api.remember(text, project=project)
    best = {
        question: max((row["relevance"] for row in daemon.api.recall(question, project=project)["results"]), default=0)
        for question in (*ANSWERED, *NOT_ANSWERED)
    }
    assert {question: found for question in NOT_ANSWERED if (found := best[question]) >= 0.5} == {}
    if stored == PORTS:
        assert {question: found for question in ANSWERED if (found := best[question]) < 0.5} == {}


ZONES = (
    "The nightly job close-day runs at 02:30 Europe/Berlin and frees the slots that nobody checked in for.",
    "Reports are dated in America/New_York because the board sits there",
    "The cron host is set to Asia/Tokyo; backups begin at 04:00",
    "SLA clocks of the southern depots use Australia/Sydney",
    "The demo tenant has the zone Europe/Paris and the locale fr_FR",
    "Log rotation on the edge boxes happens at midnight, Africa/Nairobi",
)
IN_THEIR_ZONES = (
    "at what time does close-day run?",
    "which job frees the slots that nobody checked in for?",
    "what runs at night in Europe/Berlin?",
    "in which zone are the reports dated?",
    "why are the reports in America/New_York?",
    "when do the backups begin on the cron host?",
    "which zone has the cron host, Asia/Tokyo?",
    "what clock do the southern depots use?",
    "which locale has the demo tenant?",
    "when are the logs rotated on the edge boxes?",
)
IN_THE_PLACES = (
    "what time does the next train to Berlin leave?",
    "how far is it from Hamburg to Berlin?",
    "find me a hotel in Berlin",
    "is the wall in Berlin still there?",
    "who is the mayor of Berlin?",
    "wie wird das Wetter in Berlin?",
    "book a flight to New York",
    "who won the marathon in New York?",
    "what is the best pizza in New York?",
    "how tall is the tower in Tokyo?",
    "translate the menu of the restaurant in Tokyo",
    "how many people live in Tokyo?",
    "is the opera of Sydney open?",
    "what is the weather in Sydney?",
    "plan a honeymoon in Paris",
    "who painted the ceiling of the opera in Paris?",
    "où est la gare à Paris ?",
    "how do I get a visa for Nairobi?",
    "which giraffes live near Nairobi?",
    "what does a taxi cost in Nairobi?",
)


def test_a_place_in_the_name_of_a_time_zone_is_no_match(daemon: LiveDaemon) -> None:
    project = "/home/ada/zones"
    for text in (*ZONES, *PORTS):
        daemon.api.remember(text, project=project)
    best = {
        question: max((row["relevance"] for row in daemon.api.recall(question, project=project)["results"]), default=0)
        for question in (*IN_THEIR_ZONES, *IN_THE_PLACES)
    }
    assert {question: found for question in IN_THE_PLACES if (found := best[question]) >= 0.5} == {}
    assert {question: found for question in IN_THEIR_ZONES if (found := best[question]) < 0.5} == {}


DAYS = (
    "what did we do today?",
    "what did we change today?",
    "give me a summary of today for the standup",
    "what did we do with the lighthouse today?",
    "what was the last thing we did?",
    "where did we leave off today?",
    "what happened today?",
    "was haben wir heute gemacht?",
    "woran haben wir heute gearbeitet?",
    "qu'avons-nous fait aujourd'hui ?",
    "\u00bfqu\u00e9 hicimos hoy?",
    "what did we do last time?",
    "where were we?",
    "what is still open?",
    "Wo waren wir stehen geblieben?",
)


@pytest.mark.parametrize("prompt", DAYS)
def test_a_prompt_about_a_day_is_given_the_sessions_of_the_project(daemon: LiveDaemon, prompt: str) -> None:
    (item,) = given(daemon, prompt)
    assert item.startswith("From an earlier session: User: How many trucks did it take")
    assert "the lighthouse is amber since the storm." in item, "its end"


@pytest.mark.parametrize(
    "prompt",
    [
        "what's the date today?",
        "is it Monday today?",
        "deploy this today",
        "see you tomorrow",
        "what did we do in 1999?",
        "what did we do with the zeppelin today?",
        "add a test for the date of today",
    ],
)
def test_a_prompt_with_a_time_and_something_else_is_given_no_session(daemon: LiveDaemon, prompt: str) -> None:
    assert not any("How many trucks" in item for item in given(daemon, prompt))


def test_a_question_about_a_day_lists_sessions_first(daemon: LiveDaemon) -> None:
    body = {"query": "what did we do today?", "project": HERE, "limit": 6}
    rows = daemon.api.post("/api/memory/recall", body).ok()["results"]
    assert [row["type"] for row in rows][:1] == ["session"]
    assert rows[0]["content"].startswith("User: How many trucks did it take")
    assert rows[0]["content"].endswith(
        "User: Which colour has the lighthouse lamp? Assistant: The lamp of the lighthouse is amber since the storm."
    )
    assert "session" not in [row["type"] for row in rows][1:]
    assert len(rows) == 6
